#include "operators/rule_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <utility>

#include "base/error.h"

// Two steps. The lexer turns the text into lists of names, without sizes. The builder gives each name a size, from
// plain dimensions first and then as the rest of a product, numbers the factors in the order of their names in the
// text, and checks every dimension against the sizes found.

namespace shardplan {
namespace {

/// One dimension of a rule's text: the names that it walks.
using DimensionText = std::vector<std::string>;
using TensorText = std::vector<DimensionText>;

struct KindText {
  std::string factor;
  std::string kind;
};

struct RuleText {
  std::vector<TensorText> operands;
  std::vector<TensorText> results;
  std::vector<KindText> kinds;
};

bool is_name_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Splits the text into names.
class RuleLexer {
 public:
  explicit RuleLexer(std::string_view text) : text_(text) {}

  RuleText run() const {
    const std::size_t arrow = text_.find("->");
    if (arrow == std::string_view::npos) {
      throw InputError(SourcePlace{}, "rule '{}' has no '->' between operands and results", text_);
    }
    const std::size_t end = std::min(text_.find(';', arrow), text_.size());
    RuleText result{tensors(text_.substr(0, arrow)), tensors(text_.substr(arrow + 2, end - arrow - 2)), {}};
    for (std::size_t begin = end; begin < text_.size();) {
      const std::size_t next = std::min(text_.find(';', begin + 1), text_.size());
      add_kinds(text_.substr(begin + 1, next - begin - 1), result.kinds);
      begin = next;
    }
    return result;
  }

 private:
  std::vector<TensorText> tensors(std::string_view text) const {
    std::vector<TensorText> result(1);
    bool in_bracket = false;
    std::size_t at = 0;
    while (at < text.size()) {
      const char c = text[at];
      if (c == ' ') {
        ++at;
      } else if (c == ',') {
        if (in_bracket) fault("a ',' inside brackets");
        result.emplace_back();
        ++at;
      } else if (c == '(') {
        if (in_bracket) fault("brackets inside brackets");
        in_bracket = true;
        result.back().emplace_back();
        ++at;
      } else if (c == ')') {
        if (!in_bracket) fault("a ')' without '('");
        in_bracket = false;
        ++at;
      } else {
        const std::string name = name_at(text, at);
        if (!in_bracket) result.back().emplace_back();
        if (name != "1") {
          if (std::isdigit(static_cast<unsigned char>(name[0]))) fault("a name that begins with a digit: " + name);
          result.back().back().push_back(name);
        }
      }
    }
    if (in_bracket) fault("a '(' without ')'");
    return result;
  }

  /// "k: sum" or "h, w: whole".
  void add_kinds(std::string_view text, std::vector<KindText>& kinds) const {
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos) fault(fmt::format("'{}' behind ';'", text));
    std::size_t at = colon + 1;
    while (at < text.size() && text[at] == ' ') ++at;
    const std::string kind = at < text.size() ? name_at(text, at) : std::string();
    for (at = 0; at < colon;) {
      if (text[at] == ' ' || text[at] == ',') {
        ++at;
      } else {
        kinds.push_back({name_at(text, at), kind});
      }
    }
  }

  /// The name that begins at `at`; `at` moves past it.
  std::string name_at(std::string_view text, std::size_t& at) const {
    std::size_t end = at;
    while (end < text.size() && is_name_character(text[end])) ++end;
    if (end == at) fault(fmt::format("'{}'", text[at]));
    return std::string(text.substr(std::exchange(at, end), end - at));
  }

  [[noreturn]] void fault(const std::string& what) const {
    throw InputError(SourcePlace{}, "rule '{}' holds {}; expected names parted by spaces, tensors by commas", text_,
                     what);
  }

  std::string_view text_;
};

/// Gives sizes to the names and assembles the rule.
class RuleBuild {
 public:
  RuleBuild(std::string_view text, const std::vector<Shape>& operands, const std::vector<Shape>& results)
      : text_(text), parsed_(RuleLexer(text).run()) {
    check_count("operands", parsed_.operands, operands);
    if (!results.empty()) check_count("results", parsed_.results, results);
    // Sizes of plain dimensions first, then the one unknown of each product.
    for (const bool is_plain : {true, false}) {
      find_sizes("operand", parsed_.operands, operands, is_plain);
      if (!results.empty()) find_sizes("result", parsed_.results, results, is_plain);
    }
    rule_.operands = walks(parsed_.operands, operands.size());
    rule_.results = walks(parsed_.results, parsed_.results.size());
    set_kinds();
  }

  ShardingRule take() { return std::move(rule_); }

 private:
  void check_count(std::string_view what, const std::vector<TensorText>& texts, const std::vector<Shape>& shapes) {
    if (texts.size() == shapes.size() || (shapes.empty() && texts.front().empty())) return;
    throw InputError(SourcePlace{}, "rule '{}' is for {} {}, found {}", text_, texts.size(), what, shapes.size());
  }

  void find_sizes(std::string_view what, const std::vector<TensorText>& texts, const std::vector<Shape>& shapes,
                  bool is_plain) {
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      if (texts[i].size() != shapes[i].size()) {
        throw InputError(SourcePlace{}, "rule '{}': {} {} has {} dimensions there, {} in fact", text_, what, i,
                         texts[i].size(), shapes[i].size());
      }
      for (std::size_t d = 0; d < shapes[i].size(); ++d) {
        if (texts[i][d].size() == 1) {
          if (is_plain) set_size(texts[i][d][0], shapes[i][d]);
        } else if (!is_plain) {
          find_factor_of_product(fmt::format("dimension {} of {} {}", d, what, i), texts[i][d], shapes[i][d]);
        }
      }
    }
  }

  void set_size(const std::string& name, std::int64_t size) {
    const auto [at, is_new] = sizes_.emplace(name, size);
    if (!is_new && at->second != size) {
      throw InputError(SourcePlace{}, "rule '{}': {} is {} in one place and {} in another", text_, name, at->second,
                       size);
    }
  }

  void find_factor_of_product(const std::string& place, const DimensionText& names, std::int64_t size) {
    std::int64_t rest = size;
    std::vector<std::string> unknown;
    for (const std::string& name : names) {
      const auto known = sizes_.find(name);
      if (known == sizes_.end()) {
        unknown.push_back(name);
      } else if (rest % known->second == 0) {
        rest /= known->second;
      } else {
        throw InputError(SourcePlace{}, "rule '{}': {} is {}, not a multiple of {} = {}", text_, place, size, name,
                         known->second);
      }
    }
    if (unknown.size() == 1) set_size(unknown[0], rest);
    if (unknown.size() > 1) {
      throw InputError(SourcePlace{}, "rule '{}': the sizes of {} and {} are not known", text_, unknown[0], unknown[1]);
    }
    if (unknown.empty() && rest != 1) {
      throw InputError(SourcePlace{}, "rule '{}': {} is {}, {} times what is walked", text_, place, size, rest);
    }
  }

  std::vector<TensorWalk> walks(const std::vector<TensorText>& tensors, std::size_t count) {
    std::vector<TensorWalk> result;
    for (std::size_t i = 0; i < count; ++i) {
      TensorWalk walk;
      std::vector<std::string> seen;
      for (const DimensionText& dimension : tensors[i]) {
        DimensionWalk factors;
        for (const std::string& name : dimension) {
          if (std::ranges::find(seen, name) != seen.end()) {
            throw InputError(SourcePlace{}, "rule '{}': {} stands twice in one tensor", text_, name);
          }
          seen.push_back(name);
          factors.factors.push_back(factor_of(name));
        }
        walk.push_back(std::move(factors));
      }
      result.push_back(std::move(walk));
    }
    return result;
  }

  std::uint32_t factor_of(const std::string& name) {
    if (const std::optional<std::uint32_t> known = rule_.find(name)) return *known;
    const auto size = sizes_.find(name);
    if (size == sizes_.end()) throw InputError(SourcePlace{}, "rule '{}': the size of {} is not known", text_, name);
    rule_.factors.push_back({name, size->second, FactorKind::kReduction, Reduction::kSum});
    return static_cast<std::uint32_t>(rule_.factors.size() - 1);
  }

  void set_kinds() {
    for (const TensorWalk& result : rule_.results) {
      for (const DimensionWalk& dimension : result) {
        for (const std::uint32_t factor : dimension.factors) rule_.factors[factor].kind = FactorKind::kPassThrough;
      }
    }
    for (const auto& [name, kind] : parsed_.kinds) {
      const std::optional<std::uint32_t> at = rule_.find(name);
      if (!at) throw InputError(SourcePlace{}, "rule '{}' has no factor '{}'", text_, name);
      Factor& factor = rule_.factors[*at];
      if (kind == "whole") {
        factor.kind = FactorKind::kNeedReplication;
      } else if (kind == "normalised") {
        factor.kind = FactorKind::kNormalised;
      } else if (kind == "sum" || kind == "max" || kind == "min") {
        factor.kind = FactorKind::kReduction;
        factor.reduction = kind == "sum" ? Reduction::kSum : kind == "max" ? Reduction::kMax : Reduction::kMin;
      } else {
        throw InputError(SourcePlace{}, "rule '{}': factor {} is '{}'; expected sum, max, min, normalised or whole",
                         text_, name, kind);
      }
    }
  }

  std::string_view text_;
  RuleText parsed_;
  std::map<std::string, std::int64_t> sizes_;
  ShardingRule rule_;
};

}  // namespace

ShardingRule parse_rule(std::string_view text, const std::vector<Shape>& operands, const std::vector<Shape>& results) {
  return RuleBuild(text, operands, results).take();
}

}  // namespace shardplan
