#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace shardplan {

/// An expression of a model file: "4*H", "H/heads", "-1", "1/sqrt(D)", "6e-4". Whole numbers, decimals, names, + - * /
/// // % ( ) and sqrt. Kept in postfix order.
///
/// As a whole number (`evaluate`) every division by `/` must be exact and decimals and sqrt are refused; 4*H with H=768
/// is 3072, H/5 is a fault. `//` rounds down and `%` is what it leaves, as in Python: -1//4 is -1, -1%4 is 3. As a real
/// number (`evaluate_real`) it is computed in double, with correctly rounded operations only.
class Expression {
 public:
  using Lookup = std::function<std::int64_t(std::string_view name)>;  // throws InputError if there is no such name
  using Literals = std::function<std::int64_t(std::int64_t)>;         // what stands for a whole number as it is written

  /// Throws InputError (no place) that quotes the text.
  static Expression parse(std::string_view text);

  /// Throw InputError (no place): "H/5 is not whole: 768 / 5", "beyond 64 bits", and what `lookup` throws.
  std::int64_t evaluate(const Lookup& lookup, const Literals& literals = {}) const;
  double evaluate_real(const Lookup& lookup) const;

  /// The names in it, in order of appearance.
  std::vector<std::string> names() const;
  /// Its value if it is nothing but a whole number, perhaps with a sign.
  std::optional<std::int64_t> literal() const;
  /// Its name if it is nothing but one.
  std::optional<std::string> single_name() const;
  const std::string& text() const { return text_; }

 private:
  enum class Kind {
    kInteger,
    kReal,
    kName,
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kFloorDivide,
    kRemainder,
    kNegate,
    kSquareRoot
  };
  struct Step {
    Kind kind = Kind::kInteger;
    std::int64_t integer = 0;
    double real = 0;
    std::string name;
  };
  friend class ExpressionParser;

  std::string text_;
  std::vector<Step> steps_;
};

/// Letters, digits and '_', not beginning with a digit.
bool is_name(std::string_view text);

}  // namespace shardplan
