// Every rule is verified by execution: random small instances of every operator, assignments of one, two and three axes
// of two, four and eight devices to factors and linear groups, compared with the kernel on one device.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <set>

#include "cases.h"
#include "operators/catalogue.h"
#include "operators/phases.h"
#include "oracle.h"

namespace shardplan {
namespace {

constexpr std::uint64_t kSeed = 20240611;
const std::vector<std::vector<std::int64_t>> kMeshes = {{2}, {4}, {8}, {2, 2}, {2, 4}, {4, 2}, {2, 2, 2}};

TEST(Sharding, EqualsOneDeviceUnderEveryAssignment) {
  std::cout << "seed " << kSeed << "\n";
  std::size_t runs = 0;
  std::uint64_t stream = 0;
  for (const CaseMaker& maker : case_makers()) {
    Random random = Random(kSeed).fork(stream++);
    for (int instance = 0; instance < 3; ++instance) {
      const OperatorCase example = maker.make(random);
      const Operation operation = operation_of(example);
      const std::vector<Values> operands = draw_operands(example, random);
      const std::vector<Values> whole = run_whole(operation, operands);
      for (const std::vector<std::int64_t>& mesh : kMeshes) {
        for (const Assignment& assignment : legal_assignments(operation, mesh, mesh.size() == 1 ? 64 : 8, random)) {
          const ShardedRun run = run_sharded(operation, operands, assignment, random);
          ++runs;
          ASSERT_EQ(run.fault, "") << maker.name << " " << to_string(operation.rule) << " under " << assignment.text();
          for (std::size_t r = 0; r < whole.size(); ++r) {
            ASSERT_LE(relative_difference(whole[r], run.results[r]), 1e-9)
                << maker.name << " result " << r << " " << to_string(operation.rule) << " under " << assignment.text();
          }
        }
      }
    }
  }
  std::cout << case_makers().size() << " cases, " << runs << " assignments executed\n";
}

TEST(Sharding, CoversTheWholeCatalogue) {
  std::set<std::string> seen;
  Random random(kSeed);
  for (const CaseMaker& maker : case_makers()) {
    const Operation operation = operation_of(maker.make(random));
    seen.insert(operation.type->name);
    if (operation.type->phases == nullptr) continue;
    for (const Phase& phase : operation.type->phases(operation).phases) seen.insert(phase.type);
  }
  for (const OperatorType& type : operator_catalogue()) EXPECT_TRUE(seen.contains(type.name)) << type.name;
}

/// What a rule says of a tensor: the factors of each dimension by name.
std::vector<std::vector<std::string>> names_of(const ShardingRule& rule, const TensorWalk& walk) {
  std::vector<std::vector<std::string>> names;
  for (const DimensionWalk& dimension : walk) {
    names.emplace_back();
    for (const std::uint32_t factor : dimension.factors) names.back().push_back(rule.factors[factor].name);
  }
  return names;
}

/// Lowering relies on this: factors of phases are the whole operator's, final results walk as its own do, and they are
/// partial over a normalised factor nowhere. An operator with phases lets no partial operand through, since statistics
/// are not linear.
TEST(Sharding, PhasesAgreeWithTheirOperator) {
  Random random(kSeed);
  for (const CaseMaker& maker : case_makers()) {
    const Operation operation = operation_of(maker.make(random));
    if (operation.type->phases == nullptr) continue;
    EXPECT_TRUE(operation.rule.linear.empty() && operation.rule.monotone.empty()) << maker.name;
    const Phases phases = operation.type->phases(operation);
    const std::vector<Operation> steps = phase_operations(operation, phases);
    std::vector<std::pair<std::size_t, std::size_t>> makers(operation.operands.size());  // of each value: phase, result
    std::set<std::size_t> read;
    for (std::size_t p = 0; p < steps.size(); ++p) {
      read.insert(phases.phases[p].inputs.begin(), phases.phases[p].inputs.end());
      for (std::size_t r = 0; r < steps[p].results.size(); ++r) makers.emplace_back(p, r);
      for (const Factor& factor : steps[p].rule.factors) {
        const auto at = operation.rule.find(factor.name);
        ASSERT_TRUE(at) << maker.name << ": " << steps[p].type->name << " has a factor of its own, " << factor.name;
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

// ---- what rules forbid is wrong

Operation make(const std::string& type, const Attributes& attributes, const std::vector<Shape>& shapes) {
  std::vector<TensorType> operands;
  for (const Shape& shape : shapes) operands.push_back({shape, DataType::kF64});
  return make_operation(*find_operator_type(type), attributes, operands);
}

/// The difference when axis 0 of four devices does `use`, with the rule changed by `change`.
double difference(Operation operation, const AxisUse& use, const std::function<void(ShardingRule&)>& change) {
  Random random(kSeed);
  change(operation.rule);
  std::vector<Values> operands;
  for (const TensorType& type : operation.operands)
    operands.push_back(make_values(type.shape, [&] { return 2 * random.unit() - 1; }));
  const ShardedRun run = run_sharded(operation, operands, {{4}, {use}}, random);
  return relative_difference(run_whole(operation, operands)[0], run.results[0]);
}
AxisUse sum_of_group(std::size_t group) { return {AxisUse::Kind::kLinear, "", group}; }

TEST(Sharding, BiasAddedToAPartialSumIsWrong) {
  const auto alone = [](ShardingRule& rule) { rule.linear = {{0}}; };
  EXPECT_GT(difference(make("BiasAdd", {}, {{4, 8}, {8}}), sum_of_group(0), alone), 0.1);
  EXPECT_GT(difference(make("Add", {}, {{4, 8}, {8}}), sum_of_group(0), alone), 0.1);
}

TEST(Sharding, ProductOfPartialSumsIsWrong) {
  const auto both = [](ShardingRule& rule) { rule.linear = {{0, 1}}; };
  EXPECT_GT(difference(make("Mul", {}, {{4, 8}, {4, 8}}), sum_of_group(0), both), 0.1);
  EXPECT_GT(difference(make("MatMul", {}, {{4, 8}, {8, 4}}), sum_of_group(0), both), 0.1);
}

TEST(Sharding, NonlinearFunctionsOfPartialSumsAreWrong) {
  const auto first = [](ShardingRule& rule) { rule.linear = {{0}}; };
  for (const std::string type : {"ReLU", "GeLU", "Exp", "Square", "Abs", "ReduceMax", "SquareSum"}) {
    EXPECT_GT(difference(make(type, {}, {{4, 8}}), sum_of_group(0), first), 0.01) << type;
  }
  EXPECT_GT(difference(make("Maximum", {}, {{4, 8}, {4, 8}}), sum_of_group(0), first), 0.01);
  EXPECT_GT(difference(make("RealDiv", {}, {{4, 8}, {4, 8}}), sum_of_group(0),
                       [](ShardingRule& rule) { rule.linear = {{1}}; }),
            0.01)
      << "the divisor";
}

TEST(Sharding, AddingUpPartialMaximaIsWrong) {
  const auto joint = [](ShardingRule& rule) { rule.monotone = {{0, 1}}; };
  EXPECT_GT(difference(make("Add", {}, {{4, 8}, {4, 8}}), {AxisUse::Kind::kMonotoneMax, "", 0}, joint), 0.01);
  const auto decreasing = [](ShardingRule& rule) { rule.monotone = {{0}}; };
  EXPECT_GT(difference(make("Neg", {}, {{4, 8}}), {AxisUse::Kind::kMonotoneMax, "", 0}, decreasing), 0.01);
}

TEST(Sharding, SumOfLocalMaximaAndMaximumOfLocalSumsAreWrong) {
  const auto as_sum = [](ShardingRule& rule) { rule.factors[1].reduction = Reduction::kSum; };
  const auto as_max = [](ShardingRule& rule) { rule.factors[1].reduction = Reduction::kMax; };
  const Attributes last = {{"axis", std::int64_t{1}}};
  EXPECT_GT(difference(make("ReduceMax", last, {{4, 8}}), {AxisUse::Kind::kFactor, "b", 0}, as_sum), 0.1);
  EXPECT_GT(difference(make("ReduceSum", last, {{4, 8}}), {AxisUse::Kind::kFactor, "b", 0}, as_max), 0.1);
}

/// A kernel that divides by what it has itself: its "means" add up to four times the mean.
TEST(Sharding, SumOfLocalMeansIsWrong) {
  const Operation global = make("ReduceMean", {{"axis", std::int64_t{1}}}, {{4, 8}});
  OperatorType local_type = *global.type;
  local_type.kernel = [](const KernelCall& call) {
    const std::int64_t columns = call.operands[0].shape[1];
    for (std::int64_t i = 0; i < call.operands[0].shape[0] * columns; ++i) {
      call.results[0].data[i / columns] += call.operands[0].data[i] / static_cast<double>(columns);
    }
  };
  Operation local = global;
  local.type = &local_type;
  EXPECT_GT(difference(local, {AxisUse::Kind::kFactor, "b", 0}, [](ShardingRule&) {}), 1);
  EXPECT_LT(difference(global, {AxisUse::Kind::kFactor, "b", 0}, [](ShardingRule&) {}), 1e-12);
}

/// Statistics of the local batch are not those of the whole one.
TEST(Sharding, SoftmaxOfAPieceIsNotAPieceOfTheSoftmax) {
  const auto free = [](ShardingRule& rule) { rule.factors[1].kind = FactorKind::kPassThrough; };
  EXPECT_GT(difference(make("Softmax", {}, {{4, 8}}), {AxisUse::Kind::kFactor, "b", 0}, free), 0.1);
  EXPECT_GT(difference(make("LayerNorm", {}, {{4, 8}, {8}, {8}}), {AxisUse::Kind::kFactor, "b", 0}, free), 0.1);
  EXPECT_GT(difference(make("CumSum", {{"axis", std::int64_t{1}}}, {{4, 8}}), {AxisUse::Kind::kFactor, "b", 0}, free),
            0.1);
}

TEST(Sharding, DropoutMaskDependsOnSeedAlone) {
  const Operation operation = make("Dropout", {{"keep_prob", 0.5}}, {{32, 32}});
  const std::vector<Values> ones = {make_values({32, 32}, [] { return 1.0; })};
  const std::vector<Values> first = run_whole(operation, ones, 1);
  EXPECT_EQ(first[1].data, run_whole(operation, ones, 1)[1].data);
  EXPECT_NE(first[1].data, run_whole(operation, ones, 2)[1].data);
  double kept = 0;
  for (const double mask : first[1].data) kept += mask;
  EXPECT_NEAR(kept / 1024, 0.5, 0.07);
}

}  // namespace
}  // namespace shardplan
