// Where a rule depends on more than its text can express, the catalogue has it twice: as a function and, for readers,
// as a text such as "... m k, k n -> ... m n; k: sum". This test compares every text with the rules of instances: it
// must be the rule of at least one of them, up to the names of the factors.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "operators/catalogue.h"
#include "operators/phases.h"
#include "operators/rule_parser.h"
#include "tests/operators/cases.h"

namespace shardplan {
namespace {

constexpr std::uint64_t kRuleTextSeed = 20240613;

/// Operators whose text describes the rule in words.
const std::set<std::string> kInWords = {"BroadcastTo", "Einsum",  "ExpandDims",   "Flatten",  "Pad",
                                        "PadGrad",     "Reshape", "Roll",         "RollGrad", "Slice",
                                        "SliceGrad",   "Squeeze", "StridedSlice", "Tile",     "Transpose"};

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == by) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

/// The dimensions of a tensor's text: "...", "k", "(g i)", "s*h+kh".
std::vector<std::string> dimensions(const std::string& text) {
  std::vector<std::string> result;
  bool in_bracket = false;
  for (const std::string& word : split(trimmed(text), ' ')) {
    if (word.empty()) continue;
    if (in_bracket) {
      result.back() += ' ' + word;
    } else {
      result.push_back(word);
    }
    in_bracket = (in_bracket || word.starts_with('(')) && !word.ends_with(')');
  }
  return result;
}

/// A rule's text, compared with one rule.
class Comparison {
 public:
  Comparison(const std::string& text, const Operation& operation) : rule_(operation.rule) {
    const std::vector<std::string> clauses = split(text, ';');
    const std::size_t arrow = clauses[0].find("->");
    for (std::size_t i = 1; i < clauses.size(); ++i) {
      const std::vector<std::string> sides = split(clauses[i], ':');
      const std::string kind = split(trimmed(sides[1]), ',')[0];
      for (const std::string& name : split(sides[0], ',')) kinds_[trimmed(name)] = kind;
    }
    is_equal_ = arrow != std::string::npos && compare(clauses[0].substr(0, arrow), rule_.operands) &&
                compare(clauses[0].substr(arrow + 2), rule_.results) && rests_agree() && kinds_agree();
  }

  bool is_equal() const { return is_equal_; }

 private:
  bool compare(const std::string& text, const std::vector<TensorWalk>& walks) {
    std::vector<std::string> tensors = split(text, ',');
    if (walks.empty()) return trimmed(text).empty();
    if (tensors.size() > walks.size()) return false;
    while (tensors.size() < walks.size()) tensors.push_back(tensors.back());  // repeated ones
    for (std::size_t i = 0; i < walks.size(); ++i) {
      if (!compare_tensor(dimensions(tensors[i]), walks[i])) return false;
    }
    return true;
  }

  bool compare_tensor(const std::vector<std::string>& texts, const TensorWalk& walk) {
    const bool has_rest = std::ranges::find(texts, "...") != texts.end();
    const std::size_t fixed = texts.size() - (has_rest ? 1 : 0);
    if (walk.size() < fixed || (!has_rest && walk.size() != fixed)) return false;
    const std::size_t rest = walk.size() - fixed;
    std::size_t d = 0;
    for (const std::string& text : texts) {
      if (text == "...") {
        rests_.emplace_back(walk.begin() + static_cast<std::ptrdiff_t>(d),
                            walk.begin() + static_cast<std::ptrdiff_t>(d + rest));
        d += rest;
      } else if (!compare_dimension(text, walk[d++])) {
        return false;
      }
    }
    return true;
  }

  bool compare_dimension(const std::string& text, const DimensionWalk& walk) {
    if (walk.window) {
      const std::size_t plus = text.find('+');
      if (plus == std::string::npos) return false;
      const std::string output = text.substr(0, plus);
      return bind(output.starts_with("s*") ? output.substr(2) : output, walk.window->output) &&
             bind(text.substr(plus + 1), walk.window->offset);
    }
    if (text.find('+') != std::string::npos) return false;
    if (walk.factors.empty()) {
      const auto kind = kinds_.find(text);
      return text == "1" || text == "whole" || (kind != kinds_.end() && kind->second == "whole");
    }
    const std::vector<std::string> names = split(text.starts_with('(') ? text.substr(1, text.size() - 2) : text, ' ');
    if (names.size() != walk.factors.size()) return false;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!bind(names[i], walk.factors[i])) return false;
    }
    return true;
  }

  /// One name for one factor.
  bool bind(const std::string& name, std::uint32_t factor) {
    const auto [at, is_new] = factors_.emplace(name, factor);
    const auto [back, is_new_back] = names_.emplace(factor, name);
    return at->second == factor && back->second == name;
  }

  /// Every "..." stands for the same dimensions, but operands may be broadcast: right-aligned, with dimensions of size
  /// 1.
  bool rests_agree() const {
    if (rests_.empty()) return true;
    const auto size = [](const TensorWalk& rest) { return rest.size(); };
    const TensorWalk& longest = *std::ranges::max_element(rests_, {}, size);
    return std::ranges::all_of(rests_, [&](const TensorWalk& rest) {
      const std::size_t skipped = longest.size() - rest.size();
      for (std::size_t d = 0; d < rest.size(); ++d) {
        if (rest[d] != longest[skipped + d] && rest[d] != DimensionWalk{}) return false;
      }
      return true;
    });
  }

  bool kinds_agree() const {
    for (std::uint32_t f = 0; f < rule_.factors.size(); ++f) {
      const auto name = names_.find(f);
      auto kind = kinds_.find(name == names_.end() ? "..." : name->second);
      if (kind == kinds_.end()) kind = kinds_.find("all");
      const std::string expected = kind == kinds_.end() ? "" : kind->second;
      const Factor& factor = rule_.factors[f];
      const std::string found = factor.kind == FactorKind::kPassThrough  ? ""
                                : factor.kind == FactorKind::kNormalised ? "normalised"
                                : factor.kind == FactorKind::kNeedReplication
                                    ? "whole"
                                    : std::string(to_string(factor.reduction));
      if (expected != found) return false;
    }
    return true;
  }

  const ShardingRule& rule_;
  std::map<std::string, std::string> kinds_;
  std::map<std::string, std::uint32_t> factors_;
  std::map<std::uint32_t, std::string> names_;
  std::vector<TensorWalk> rests_;  // what each "..." stands for
  bool is_equal_ = false;
};

TEST(RuleTextTest, IsTheRuleOfAnInstance) {
  std::map<std::string, std::string>
      seen;  // a rule of each operator that its text does not match yet; empty once it does
  const auto compare = [&](const Operation& operation) {
    const OperatorType& type = *operation.type;
    std::string& rule = seen.try_emplace(type.name, "?").first->second;
    if (rule.empty()) return;
    rule = type.rule == nullptr || Comparison(type.rule_text, operation).is_equal() ? "" : to_string(operation.rule);
  };
  for (const CaseMaker& maker : case_makers()) {
    Random random = random_of(maker, kRuleTextSeed);
    for (int instance = 0; instance < 100; ++instance) {
      const Operation operation = operation_of(maker.make(random));
      compare(operation);
      if (operation.type->phases == nullptr) continue;
      for (const Operation& phase : phase_operations(operation, whole_phases(operation))) compare(phase);
    }
  }
  for (const auto& [name, rule] : seen) {
    if (kInWords.contains(name)) continue;
    EXPECT_EQ(rule, "") << name << " says " << find_operator_type(name)->rule_text;
  }
}

TEST(RuleTextTest, ComparisonSeesDifferences) {
  const auto equals = [](const std::string& text, const std::string& type, const std::vector<Shape>& shapes) {
    std::vector<TensorType> operands;
    for (const Shape& shape : shapes) operands.push_back({shape, DataType::kF32});
    return Comparison(text, make_operation(*find_operator_type(type), {}, operands)).is_equal();
  };
  const std::vector<Shape> matmul = {{2, 4, 8}, {8, 16}};
  EXPECT_TRUE(equals("... m k, k n -> ... m n; k: sum", "MatMul", matmul));
  EXPECT_FALSE(equals("... m k, k n -> ... m n", "MatMul", matmul)) << "k is summed";
  EXPECT_FALSE(equals("... m k, k n -> ... m n; k: max", "MatMul", matmul));
  EXPECT_FALSE(equals("... m k, n k -> ... m n; k: sum", "MatMul", matmul));
  EXPECT_FALSE(equals("m k, k n -> m n; k: sum", "MatMul", matmul));
  EXPECT_FALSE(equals("... m k -> ... m; k: sum", "MatMul", matmul));
  EXPECT_TRUE(equals("... -> ; all: sum", "SquareSum", {{4, 8}}));
  EXPECT_FALSE(equals("... -> ", "SquareSum", {{4, 8}}));
  EXPECT_FALSE(equals("a a -> a a", "ReLU", {{4, 8}})) << "one name for two factors";
}

}  // namespace
}  // namespace shardplan
