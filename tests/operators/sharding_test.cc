// Every rule is verified by execution: random small instances of every operator, assignments of one, two and three axes
// of two, four and eight devices to factors and linear groups, compared with the kernel on one device.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <set>

#include "operators/catalogue.h"
#include "operators/families/communication.h"
#include "operators/phases.h"
#include "tests/operators/cases.h"

namespace shardplan {
namespace {

constexpr std::uint64_t kShardingSeed = 20240611;
const std::vector<std::vector<std::int64_t>> kMeshes = {{2}, {4}, {8}, {2, 2}, {2, 4}, {4, 2}, {2, 2, 2}};

const std::vector<std::vector<std::int64_t>> kUnevenMeshes = {{2}, {3}, {4}, {5}, {7}, {2, 2}, {3, 2}, {2, 3}};

TEST(ShardingTest, EqualsOneDeviceUnderEveryAssignment) {
  std::cout << "seed " << kShardingSeed << "\n";
  std::size_t runs = 0;
  for (const CaseMaker& maker : case_makers()) {
    Random random = random_of(maker, kShardingSeed);
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

// The same with pieces of ceil(N / n), the last one shorter: kernels get the actual intervals.
TEST(ShardingTest, EqualsOneDeviceUnderUnevenAssignments) {
  std::cout << "seed " << kShardingSeed << "\n";
  std::set<std::string> uneven;
  std::size_t runs = 0;
  for (const CaseMaker& maker : case_makers()) {
    Random random = random_of(maker, kShardingSeed + 1);
    for (int instance = 0; instance < 3; ++instance) {
      const OperatorCase example = maker.make(random);
      const Operation operation = operation_of(example);
      const std::vector<Values> operands = draw_operands(example, random);
      const std::vector<Values> whole = run_whole(operation, operands);
      for (const std::vector<std::int64_t>& mesh : kUnevenMeshes) {
        for (const Assignment& assignment : legal_assignments(operation, mesh, 12, random, Cuts::kSomeUneven)) {
          const ShardedRun run = run_sharded(operation, operands, assignment, random);
          ++runs;
          uneven.insert(operation.type->name);
          ASSERT_EQ(run.fault, "") << maker.name << " " << to_string(operation.rule) << " under " << assignment.text();
          for (std::size_t r = 0; r < whole.size(); ++r) {
            ASSERT_LE(relative_difference(whole[r], run.results[r]), 1e-9)
                << maker.name << " result " << r << " " << to_string(operation.rule) << " under " << assignment.text();
          }
        }
      }
    }
  }
  std::cout << uneven.size() << " operators, " << runs << " assignments executed\n";
  EXPECT_GT(uneven.size(), 100u);
}

TEST(ShardingTest, CoversTheWholeCatalogue) {
  std::set<std::string> seen;
  Random random(kShardingSeed);
  for (const CaseMaker& maker : case_makers()) {
    const Operation operation = operation_of(maker.make(random));
    seen.insert(operation.type->name);
    if (operation.type->phases == nullptr) continue;
    for (const Phase& phase : whole_phases(operation).phases) seen.insert(phase.type);
  }
  for (const OperatorType& type : operator_catalogue()) {
    EXPECT_EQ(seen.contains(type.name), !is_communication(type)) << type.name;  // these are not sharded
  }
}

// ---- what rules forbid would be wrong

Operation make(const std::string& type, const Attributes& attributes, const std::vector<Shape>& shapes) {
  std::vector<TensorType> operands;
  for (const Shape& shape : shapes) operands.push_back({shape, DataType::kF64});
  return make_operation(*find_operator_type(type), attributes, operands);
}

/// The difference if axis 0 of four devices does `use`, with the rule changed by `change`.
double difference(Operation operation, const AxisUse& use, const std::function<void(ShardingRule&)>& change) {
  Random random(kShardingSeed);
  change(operation.rule);
  std::vector<Values> operands;
  for (const TensorType& type : operation.operands)
    operands.push_back(make_values(type.shape, [&] { return 2 * random.unit() - 1; }));
  const ShardedRun run = run_sharded(operation, operands, {{4}, {use}}, random);
  return relative_difference(run_whole(operation, operands)[0], run.results[0]);
}
AxisUse sum_of_group(std::size_t group) { return {AxisUse::Kind::kLinear, "", group}; }

TEST(ShardingTest, BiasAddedToAPartialSumIsWrong) {
  const auto alone = [](ShardingRule& rule) { rule.linear = {{0}}; };
  EXPECT_GT(difference(make("BiasAdd", {}, {{4, 8}, {8}}), sum_of_group(0), alone), 0.1);
  EXPECT_GT(difference(make("Add", {}, {{4, 8}, {8}}), sum_of_group(0), alone), 0.1);
}

TEST(ShardingTest, ProductOfPartialSumsIsWrong) {
  const auto both = [](ShardingRule& rule) { rule.linear = {{0, 1}}; };
  EXPECT_GT(difference(make("Mul", {}, {{4, 8}, {4, 8}}), sum_of_group(0), both), 0.1);
  EXPECT_GT(difference(make("MatMul", {}, {{4, 8}, {8, 4}}), sum_of_group(0), both), 0.1);
}

TEST(ShardingTest, NonlinearFunctionsOfPartialSumsAreWrong) {
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

TEST(ShardingTest, AddingUpPartialMaximaIsWrong) {
  const auto joint = [](ShardingRule& rule) { rule.monotone = {{0, 1}}; };
  EXPECT_GT(difference(make("Add", {}, {{4, 8}, {4, 8}}), {AxisUse::Kind::kMonotoneMax, "", 0}, joint), 0.01);
  const auto decreasing = [](ShardingRule& rule) { rule.monotone = {{0}}; };
  EXPECT_GT(difference(make("Neg", {}, {{4, 8}}), {AxisUse::Kind::kMonotoneMax, "", 0}, decreasing), 0.01);
}

TEST(ShardingTest, SumOfLocalMaximaAndMaximumOfLocalSumsAreWrong) {
  const auto as_sum = [](ShardingRule& rule) { rule.factors[1].reduction = Reduction::kSum; };
  const auto as_max = [](ShardingRule& rule) { rule.factors[1].reduction = Reduction::kMax; };
  const Attributes last = {{"axis", std::int64_t{1}}};
  EXPECT_GT(difference(make("ReduceMax", last, {{4, 8}}), {AxisUse::Kind::kFactor, "b", 0}, as_sum), 0.1);
  EXPECT_GT(difference(make("ReduceSum", last, {{4, 8}}), {AxisUse::Kind::kFactor, "b", 0}, as_max), 0.1);
}

/// A kernel that divides by the local count: its "means" add up to four times the mean.
TEST(ShardingTest, SumOfLocalMeansIsWrong) {
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

/// Statistics of the local batch differ from those of the whole batch.
TEST(ShardingTest, SoftmaxOfAPieceIsNotAPieceOfTheSoftmax) {
  const auto free = [](ShardingRule& rule) { rule.factors[1].kind = FactorKind::kPassThrough; };
  EXPECT_GT(difference(make("Softmax", {}, {{4, 8}}), {AxisUse::Kind::kFactor, "b", 0}, free), 0.1);
  EXPECT_GT(difference(make("LayerNorm", {}, {{4, 8}, {8}, {8}}), {AxisUse::Kind::kFactor, "b", 0}, free), 0.1);
  EXPECT_GT(difference(make("CumSum", {{"axis", std::int64_t{1}}}, {{4, 8}}), {AxisUse::Kind::kFactor, "b", 0}, free),
            0.1);
}

}  // namespace
}  // namespace shardplan
