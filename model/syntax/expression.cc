#include "model/syntax/expression.h"

#include <charconv>
#include <cmath>

#include "base/integer.h"

// A recursive descent parser that writes postfix steps; evaluation is then a loop over a stack, and an expression can be
// evaluated often (once for every size that a proof tries) without being parsed again. Depth and length are limited, so
// that no text overflows the stack.

namespace shardplan {
namespace {

constexpr int kDeepestExpression = 64;
constexpr std::size_t kMaxLength = 1000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

}  // namespace

bool is_name(std::string_view text) {
  if (text.empty() || !is_letter(text[0])) return false;
  for (const char c : text) {
    if (!is_letter(c) && !is_digit(c)) return false;
  }
  return true;
}

/// sum: product (('+' | '-') product)*;  product: factor (('*' | '/' | '//' | '%') factor)*;
/// factor: '-' factor | '(' sum ')' | 'sqrt' '(' sum ')' | number | name | 'get_rank()' | 'get_group_size()'.
class ExpressionParser {
 public:
  explicit ExpressionParser(std::string_view text) : text_(text) { expression_.text_ = text; }

  Expression parse() {
    if (text_.size() > kMaxLength) fail("longer than 1000 characters");
    sum(0);
    skip_blanks();
    if (at_ < text_.size()) fail(fmt::format("'{}' was not expected", text_[at_]));
    return std::move(expression_);
  }

 private:
  using Kind = Expression::Kind;

  [[noreturn]] void fail(const std::string& why) const {
    throw InputError({}, "'{}' is not an expression: {}", text_.substr(0, 80), why);
  }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
  }
  bool accept(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("'{}' is missing", c));
  }
  void push(Kind kind) { expression_.steps_.push_back({kind, 0, 0, {}}); }

  void sum(int depth) {
    if (depth > kDeepestExpression) fail("nested too deeply");
    product(depth);
    while (true) {
      if (accept('+')) {
        product(depth);
        push(Kind::kAdd);
      } else if (accept('-')) {
        product(depth);
        push(Kind::kSubtract);
      } else {
        return;
      }
    }
  }

  void product(int depth) {
    factor(depth);
    while (true) {
      if (accept('*')) {
        factor(depth);
        push(Kind::kMultiply);
      } else if (accept('/')) {
        const bool rounds_down = at_ < text_.size() && text_[at_] == '/';
        if (rounds_down) ++at_;
        factor(depth);
        push(rounds_down ? Kind::kFloorDivide : Kind::kDivide);
      } else if (accept('%')) {
        factor(depth);
        push(Kind::kRemainder);
      } else {
        return;
      }
    }
  }

  void factor(int depth) {
    if (depth > kDeepestExpression) fail("nested too deeply");
    skip_blanks();
    if (at_ >= text_.size()) fail(text_.empty() ? "it is empty" : "it ends too early");
    const char c = text_[at_];
    if (accept('-')) {
      factor(depth + 1);
      push(Kind::kNegate);
    } else if (accept('(')) {
      sum(depth + 1);
      expect(')');
    } else if (is_digit(c) || c == '.') {
      number();
    } else if (is_letter(c)) {
      const std::size_t begin = at_;
      while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
      const std::string_view name = text_.substr(begin, at_ - begin);
      if (name == "sqrt" && accept('(')) {
        sum(depth + 1);
        expect(')');
        push(Kind::kSquareRoot);
      } else if ((name == "get_rank" || name == "get_group_size") && accept('(')) {  // MindSpore's functions
        expect(')');
        expression_.steps_.push_back({Kind::kName, 0, 0, std::string(name.substr(4))});
      } else {
        expression_.steps_.push_back({Kind::kName, 0, 0, std::string(name)});
      }
    } else {
      fail(fmt::format("'{}' was not expected", c));
    }
  }

  void number() {
    const std::size_t begin = at_;
    bool is_whole = true;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const bool is_exponent = (c == 'e' || c == 'E') && at_ > begin;
      if (!is_digit(c) && c != '.' && !is_exponent) break;
      if (!is_digit(c)) is_whole = false;
      ++at_;
      if (is_exponent && at_ < text_.size() && (text_[at_] == '-' || text_[at_] == '+')) ++at_;
    }
    const std::string_view digits = text_.substr(begin, at_ - begin);
    if (at_ < text_.size() && is_letter(text_[at_]))
      fail(fmt::format("'{}' after a number; a product needs '*'", text_[at_]));
    Expression::Step step;
    if (is_whole) {
      if (digits.size() > 1 && digits[0] == '0') fail(fmt::format("{} begins with 0; numbers are decimal", digits));
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step.integer);
      if (error != std::errc()) fail("a number beyond 64 bits");
    } else {
      step.kind = Kind::kReal;
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step.real);
      if (error != std::errc() || end != digits.data() + digits.size()) fail(fmt::format("{} is not a number", digits));
    }
    expression_.steps_.push_back(std::move(step));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Expression expression_;
};

Expression Expression::parse(std::string_view text) { return ExpressionParser(text).parse(); }

std::int64_t Expression::evaluate(const Lookup& lookup, const Literals& literals) const {
  std::vector<std::int64_t> stack;
  const auto pop = [&] {
    const std::int64_t value = stack.back();
    stack.pop_back();
    return value;
  };
  const auto push = [&](std::optional<std::int64_t> value) {
    if (!value) throw InputError({}, "{} is beyond 64 bits", text_);
    stack.push_back(*value);
  };
  for (const Step& step : steps_) {
    if (step.kind == Kind::kInteger) {
      push(literals ? literals(step.integer) : step.integer);
    } else if (step.kind == Kind::kName) {
      push(lookup(step.name));
    } else if (step.kind == Kind::kNegate) {
      push(checked_multiply(pop(), -1));
    } else if (step.kind == Kind::kReal || step.kind == Kind::kSquareRoot) {
      throw InputError({}, "{} is not whole; expected a whole number", text_);
    } else {
      const std::int64_t b = pop();
      const std::int64_t a = pop();
      if (step.kind == Kind::kMultiply) {
        push(checked_multiply(a, b));
      } else if (step.kind == Kind::kFloorDivide || step.kind == Kind::kRemainder) {
        if (b == 0) throw InputError({}, "{} divides by 0", text_);
        const bool is_quotient = step.kind == Kind::kFloorDivide;
        if (b == -1) {
          push(is_quotient ? checked_multiply(a, -1) : std::optional<std::int64_t>(0));
        } else {
          const std::int64_t rest = a % b;
          const bool is_below = rest != 0 && (rest < 0) != (b < 0);
          push(is_quotient ? a / b - (is_below ? 1 : 0) : rest + (is_below ? b : 0));
        }
      } else if (step.kind == Kind::kDivide) {
        if (b == 0) throw InputError({}, "{} divides by 0", text_);
        if (b == -1) {
          push(checked_multiply(a, -1));
        } else if (a % b != 0) {
          throw InputError({}, "{} is not whole: {} / {}", text_, a, b);
        } else {
          push(a / b);
        }
      } else if (step.kind == Kind::kAdd) {
        push(checked_add(a, b));
      } else {
        std::int64_t difference = 0;
        const bool overflows = __builtin_sub_overflow(a, b, &difference);
        push(overflows ? std::nullopt : std::optional(difference));
      }
    }
  }
  return pop();
}

double Expression::evaluate_real(const Lookup& lookup) const {
  std::vector<double> stack;
  const auto pop = [&] {
    const double value = stack.back();
    stack.pop_back();
    return value;
  };
  for (const Step& step : steps_) {
    switch (step.kind) {
      case Kind::kInteger:
        stack.push_back(static_cast<double>(step.integer));
        break;
      case Kind::kReal:
        stack.push_back(step.real);
        break;
      case Kind::kName:
        stack.push_back(static_cast<double>(lookup(step.name)));
        break;
      case Kind::kNegate:
        stack.push_back(-pop());
        break;
      case Kind::kSquareRoot:
        stack.push_back(std::sqrt(pop()));
        break;
      default: {
        const double b = pop();
        const double a = pop();
        const bool divides =
            step.kind == Kind::kDivide || step.kind == Kind::kFloorDivide || step.kind == Kind::kRemainder;
        if (divides && b == 0) throw InputError({}, "{} divides by 0", text_);
        stack.push_back(step.kind == Kind::kAdd           ? a + b
                        : step.kind == Kind::kSubtract    ? a - b
                        : step.kind == Kind::kMultiply    ? a * b
                        : step.kind == Kind::kFloorDivide ? std::floor(a / b)
                        : step.kind == Kind::kRemainder   ? a - b * std::floor(a / b)
                                                          : a / b);
      }
    }
  }
  const double value = pop();
  if (!std::isfinite(value)) throw InputError({}, "{} has no finite value", text_);
  return value;
}

std::vector<std::string> Expression::names() const {
  std::vector<std::string> names;
  for (const Step& step : steps_) {
    if (step.kind == Kind::kName) names.push_back(step.name);
  }
  return names;
}

std::optional<std::int64_t> Expression::literal() const {
  if (steps_.size() == 1 && steps_[0].kind == Kind::kInteger) return steps_[0].integer;
  if (steps_.size() == 2 && steps_[0].kind == Kind::kInteger && steps_[1].kind == Kind::kNegate) {
    return -steps_[0].integer;
  }
  return std::nullopt;
}

std::optional<std::string> Expression::single_name() const {
  if (steps_.size() == 1 && steps_[0].kind == Kind::kName) return steps_[0].name;
  return std::nullopt;
}

}  // namespace shardplan
