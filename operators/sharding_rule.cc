#include "operators/sharding_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "base/error.h"

namespace shardplan {
namespace {

std::string dimension_text(const ShardingRule& rule, const DimensionWalk& walk) {
  if (walk.window) {
    const Window& window = *walk.window;
    const auto times = [](std::int64_t by, const std::string& name) {
      return by == 1 ? name : fmt::format("{}*{}", by, name);
    };
    return fmt::format("{}+{}", times(window.stride, rule.factors[window.output].name),
                       times(window.dilation, rule.factors[window.offset].name));
  }
  if (walk.factors.empty()) return "1";
  if (walk.factors.size() == 1) return rule.factors[walk.factors[0]].name;
  std::string text = "(";
  for (const std::uint32_t factor : walk.factors) text += (text.size() > 1 ? " " : "") + rule.factors[factor].name;
  return text + ")";
}

std::string tensors_text(const ShardingRule& rule, const std::vector<TensorWalk>& tensors) {
  std::string text;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (i > 0) text += ",";
    for (std::size_t d = 0; d < tensors[i].size(); ++d) {
      text += (d > 0 || i > 0 ? " " : "") + dimension_text(rule, tensors[i][d]);
    }
  }
  return text;
}

std::string_view kind_text(const Factor& factor) {
  switch (factor.kind) {
    case FactorKind::kReduction:
      return to_string(factor.reduction);
    case FactorKind::kNormalised:
      return "normalised";
    case FactorKind::kNeedReplication:
      return "whole";
    case FactorKind::kPassThrough:
      break;
  }
  return "passes through";
}

/// One dimension of a rule's text: the names that it walks.
using DimensionText = std::vector<std::string>;

class RuleParser {
 public:
  explicit RuleParser(std::string_view text) : text_(text) {}

  /// The tensors before "->", then those behind it.
  std::pair<std::vector<std::vector<DimensionText>>, std::vector<std::vector<DimensionText>>> parse() {
    const std::size_t arrow = text_.find("->");
    if (arrow == std::string_view::npos) {
      throw InputError(SourcePlace{}, "rule '{}' has no '->' between operands and results", text_);
    }
    return {tensors(text_.substr(0, arrow)), tensors(text_.substr(arrow + 2))};
  }

 private:
  std::vector<std::vector<DimensionText>> tensors(std::string_view text) const {
    std::vector<std::vector<DimensionText>> result(1);
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
        std::size_t end = at;
        while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_')) ++end;
        if (end == at) fault(fmt::format("'{}'", c));
        const std::string name(text.substr(at, end - at));
        if (!in_bracket) result.back().emplace_back();
        if (name != "1") {
          if (std::isdigit(static_cast<unsigned char>(name[0]))) fault("a name that begins with a digit: " + name);
          result.back().back().push_back(name);
        }
        at = end;
      }
    }
    if (in_bracket) fault("a '(' without ')'");
    return result;
  }

  [[noreturn]] void fault(const std::string& what) const {
    throw InputError(SourcePlace{}, "rule '{}' holds {}; expected names parted by spaces, tensors by commas", text_,
                     what);
  }

  std::string_view text_;
};

}  // namespace

std::optional<std::uint32_t> ShardingRule::find(std::string_view factor) const {
  for (std::size_t i = 0; i < factors.size(); ++i) {
    if (factors[i].name == factor) return static_cast<std::uint32_t>(i);
  }
  return std::nullopt;
}

std::string to_string(const ShardingRule& rule) {
  std::string text = tensors_text(rule, rule.operands) + " -> " + tensors_text(rule, rule.results);
  for (const Factor& factor : rule.factors) {
    if (factor.kind != FactorKind::kPassThrough) text += fmt::format("; {}: {}", factor.name, kind_text(factor));
  }
  return text;
}

ShardingRule parse_rule(std::string_view text, const std::vector<Shape>& operands) {
  const auto [operand_texts, result_texts] = RuleParser(text).parse();
  if (operand_texts.size() != operands.size() && !(operands.empty() && operand_texts.front().empty())) {
    throw InputError(SourcePlace{}, "rule '{}' is for {} operands, found {}", text, operand_texts.size(),
                     operands.size());
  }
  // Sizes: of plain dimensions first, then the one unknown of each product.
  std::map<std::string, std::int64_t> sizes;
  const auto define = [&](const std::string& name, std::int64_t size) {
    const auto [at, is_new] = sizes.emplace(name, size);
    if (!is_new && at->second != size) {
      throw InputError(SourcePlace{}, "rule '{}': {} is {} in one place and {} in another", text, name, at->second,
                       size);
    }
  };
  for (int pass = 0; pass < 2; ++pass) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const std::vector<DimensionText>& dimensions = operand_texts[i];
      if (dimensions.size() != operands[i].size()) {
        throw InputError(SourcePlace{}, "rule '{}': operand {} has {} dimensions there, {} in fact", text, i,
                         dimensions.size(), operands[i].size());
      }
      for (std::size_t d = 0; d < dimensions.size(); ++d) {
        std::int64_t rest = operands[i][d];
        std::vector<std::string> unknown;
        if (pass == 0 && dimensions[d].size() != 1) continue;
        for (const std::string& name : dimensions[d]) {
          const auto known = sizes.find(name);
          if (known == sizes.end() || dimensions[d].size() == 1) {
            unknown.push_back(name);
          } else if (rest % known->second == 0) {
            rest /= known->second;
          } else {
            throw InputError(SourcePlace{}, "rule '{}': dimension {} of operand {} is {}, not a multiple of {} = {}",
                             text, d, i, operands[i][d], name, known->second);
          }
        }
        if (unknown.size() == 1) define(unknown[0], rest);
        if (unknown.size() > 1) {
          throw InputError(SourcePlace{}, "rule '{}': the sizes of {} and {} are not known", text, unknown[0],
                           unknown[1]);
        }
        if (unknown.empty() && rest != 1) {
          throw InputError(SourcePlace{}, "rule '{}': dimension {} of operand {} is {}, {} times what is walked", text,
                           d, i, operands[i][d], rest);
        }
      }
    }
  }
  ShardingRule rule;
  const auto walks = [&](const std::vector<std::vector<DimensionText>>& tensors, std::size_t count) {
    std::vector<TensorWalk> result;
    for (std::size_t i = 0; i < count; ++i) {
      TensorWalk walk;
      std::vector<std::string> seen;
      for (const DimensionText& dimension : tensors[i]) {
        DimensionWalk factors;
        for (const std::string& name : dimension) {
          if (std::ranges::find(seen, name) != seen.end()) {
            throw InputError(SourcePlace{}, "rule '{}': {} stands twice in one tensor", text, name);
          }
          seen.push_back(name);
          std::optional<std::uint32_t> at = rule.find(name);
          if (!at) {
            const auto size = sizes.find(name);
            if (size == sizes.end())
              throw InputError(SourcePlace{}, "rule '{}': the size of {} is not known", text, name);
            at = static_cast<std::uint32_t>(rule.factors.size());
            rule.factors.push_back({name, size->second, FactorKind::kReduction, Reduction::kSum});
          }
          factors.factors.push_back(*at);
        }
        walk.push_back(std::move(factors));
      }
      result.push_back(std::move(walk));
    }
    return result;
  };
  rule.operands = walks(operand_texts, operands.size());
  rule.results = walks(result_texts, result_texts.size());
  for (const TensorWalk& result : rule.results) {
    for (const DimensionWalk& dimension : result) {
      for (const std::uint32_t factor : dimension.factors) rule.factors[factor].kind = FactorKind::kPassThrough;
    }
  }
  return rule;
}

Interval window_reads(const Window& window, std::int64_t window_size, const Box& output, std::int64_t extent) {
  const std::int64_t first = window.stride * output.begin - window.pad_before;
  const std::int64_t last = window.stride * (output.end - 1) + window.dilation * (window_size - 1) - window.pad_before;
  Interval reads{std::clamp<std::int64_t>(first, 0, extent), std::clamp<std::int64_t>(last + 1, 0, extent)};
  if (reads.end < reads.begin) reads.end = reads.begin;  // a window that lies in the padding altogether
  return reads;
}

}  // namespace shardplan
