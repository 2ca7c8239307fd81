#include "operators/phases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "operators/catalogue.h"
#include "tests/operators/cases.h"

namespace shardplan {
namespace {

constexpr std::uint64_t kPhasesSeed = 20240611;

/// A tensor's part of a rule: the factors of each dimension by name.
std::vector<std::vector<std::string>> names_of(const ShardingRule& rule, const TensorWalk& walk) {
  std::vector<std::vector<std::string>> names;
  for (const DimensionWalk& dimension : walk) {
    names.emplace_back();
    for (const std::uint32_t factor : dimension.factors) names.back().push_back(rule.factors[factor].name);
  }
  return names;
}

/// Lowering relies on this: phases have the factors of the whole operator, final results walk as the operator's own do,
/// and are never partial over a normalised factor. An operator with phases lets no partial operand through, since
/// statistics are not linear.
TEST(PhasesTest, AgreeWithTheirOperator) {
  Random random(kPhasesSeed);
  for (const CaseMaker& maker : case_makers()) {
    const Operation operation = operation_of(maker.make(random));
    if (operation.type->phases == nullptr) continue;
    EXPECT_TRUE(operation.rule.linear.empty() && operation.rule.monotone.empty()) << maker.name;
    const Phases phases = whole_phases(operation);
    const std::vector<Operation> steps = phase_operations(operation, phases);
    std::vector<std::pair<std::size_t, std::size_t>> makers(operation.operands.size());  // of each value: phase, result
    std::set<std::size_t> read;
    for (std::size_t p = 0; p < steps.size(); ++p) {
      read.insert(phases.phases[p].inputs.begin(), phases.phases[p].inputs.end());
      for (std::size_t r = 0; r < steps[p].results.size(); ++r) makers.emplace_back(p, r);
      for (const Factor& factor : steps[p].rule.factors) {
        const auto at = operation.rule.find(factor.name);
        // What is within one piece, and what the operator need not name.
        if (!at && (factor.kind == FactorKind::kNeedReplication || factor.size == 1)) continue;
        ASSERT_TRUE(at) << maker.name << ": " << steps[p].type->name << " has a factor of its own, " << factor.name;
        // One dimension may count pieces: here all are whole.
        const bool counts_pieces =
            steps[p].attributes.contains("pieces") || (p > 0 && steps[0].attributes.contains("pieces"));
        if (counts_pieces && factor.size == 1) continue;
        EXPECT_EQ(operation.rule.factors[*at].size, factor.size) << maker.name << " " << factor.name;
      }
    }
    for (std::size_t r = 0; r < phases.results.size(); ++r) {
      const auto& [p, result] = makers[phases.results[r]];
      const ShardingRule& rule = steps[p].rule;
      EXPECT_EQ(operation.results[r], steps[p].results[result]) << maker.name;
      EXPECT_EQ(names_of(operation.rule, operation.rule.results[r]), names_of(rule, rule.results[result]))
          << maker.name << " result " << r;
      if (read.contains(phases.results[r])) continue;  // completed before the next phase
      for (std::uint32_t f = 0; f < rule.factors.size(); ++f) {
        const Factor& whole = operation.rule.factors[*operation.rule.find(rule.factors[f].name)];
        const bool is_walked = std::ranges::any_of(rule.results[result], [&](const DimensionWalk& d) {
          return std::ranges::find(d.factors, f) != d.factors.end();
        });
        const bool is_partial = rule.factors[f].kind == FactorKind::kReduction && !is_walked;
        EXPECT_EQ(is_partial, whole.kind == FactorKind::kReduction && !is_walked)
            << maker.name << " result " << r << " over " << whole.name;
      }
    }
  }
}

TEST(PhasesTest, ReadOperandsAndEarlierResultsByName) {
  const Operation norm = make_operation(*find_operator_type("LayerNorm"), {}, {{{4, 8}}, {{8}}, {{8}}});
  const Phases phases = whole_phases(norm);
  ASSERT_EQ(phases.phases.size(), 3u);
  EXPECT_EQ(phases.phases[0].type, "ReduceMean");
  EXPECT_EQ(phases.phases[0].inputs, (std::vector<std::size_t>{0}));
  EXPECT_EQ(phases.phases[1].inputs, (std::vector<std::size_t>{0, 3}));
  EXPECT_EQ(phases.phases[2].inputs, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(phases.results, (std::vector<std::size_t>{5}));
  // If two values share a name, the later one is meant: the moving statistics are both operands and results.
  const Operation batch_norm =
      make_operation(*find_operator_type("BatchNorm"), {{"is_training", true}}, {{{4, 2}}, {{2}}, {{2}}, {{2}}, {{2}}});
  EXPECT_EQ(whole_phases(batch_norm).results, (std::vector<std::size_t>{10, 8, 9, 6, 7}));
}

}  // namespace
}  // namespace shardplan
