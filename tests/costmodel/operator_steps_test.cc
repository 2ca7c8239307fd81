#include "costmodel/operator_steps.h"

#include <gtest/gtest.h>

#include "tests/layouts/test_costs.h"
#include "tests/support/operations.h"

namespace shardplan {
namespace {

/// Made-up costs that a reader can add up: 1000 per point of the iteration space, 1 per byte (2 for a weight that is
/// read and widened first), and 7 per kernel start. A halo costs 5 plus 1 per byte, a collective as `even_costs` says.
class ReadableCosts : public CostModel {
 public:
  explicit ReadableCosts(DeviceMesh mesh) : mesh_(std::move(mesh)) {}

  const DeviceMesh& mesh() const override { return mesh_; }
  Fusion fusion() const override { return Fusion::kNone; }
  Picoseconds computation(const Operation&, std::span<const std::int64_t> extents, Bytes bytes,
                          bool is_started) const override {
    std::int64_t points = 1;
    for (const std::int64_t extent : extents) points *= extent;
    return 1000 * points + bytes + (is_started ? 7 : 0);
  }
  Picoseconds reading(Bytes bytes) const override { return 2 * bytes; }
  std::shared_ptr<const CollectiveCosts> collectives() const override { return even_costs(mesh_.axes().size()); }
  std::uint32_t links(const std::vector<AxisRef>&) const override { return 1; }
  std::vector<SpeedsTogether> speeds_together() const override { return {}; }
  Picoseconds neighbour_exchange(const std::vector<AxisRef>&, Bytes sent) const override { return 5 + sent; }

 private:
  DeviceMesh mesh_;
};

class OperatorStepsTest : public testing::Test {
 protected:
  OperatorSteps steps(const Operation& operation, const std::map<std::string, std::string>& axes,
                      const KernelTraffic& traffic = {}) {
    Strategy strategy;
    std::vector<std::vector<AxisRef>> factors(operation.rule.factors.size());
    for (const auto& [factor, axis] : axes) factors[*operation.rule.find(factor)] = {*costs_.mesh().find(axis)};
    for (std::vector<AxisRef>& factor : factors) strategy.factors.push_back(std::move(factor));
    EXPECT_EQ(check_strategy(operation, strategy, costs_.mesh()), "");
    const OperatorSteps found =
        operator_steps(std::make_shared<const Operation>(operation), strategy, costs_, redistributions_, traffic);
    // For all of them: the two sums are those of the steps, and each step reads what was produced before it.
    Picoseconds computation = 0, communication = 0;
    std::size_t num_values = operation.operands.size();
    for (const OperatorStep& step : found.steps) {
      (step.kind == OperatorStep::Kind::kRun ? computation : communication) += step.time;
      for (const std::size_t input : step.inputs) EXPECT_LT(input, num_values);
      EXPECT_EQ(step.output_types.size(), step.output_layouts.size());
      num_values += step.output_types.size();
    }
    EXPECT_EQ(found.computation, computation);
    EXPECT_EQ(found.communication, communication);
    EXPECT_EQ(found.results.size(), operation.results.size());
    return found;
  }
  std::string layout(const OperatorStep& step, std::size_t output = 0) const {
    return to_string(step.output_layouts[output], costs_.mesh());
  }

  ReadableCosts costs_{DeviceMesh::parse("x=2,y=4")};
  RedistributionPlanner redistributions_{costs_.mesh(), costs_.collectives()};
};

TEST_F(OperatorStepsTest, OneKernelLeavesWhatItSumsPartial) {
  const Operation matmul = operation_of("MatMul", {}, {{8, 16}, {16, 4}});
  const OperatorSteps found = steps(matmul, {{"m", "x"}, {"k", "y"}});
  ASSERT_EQ(found.steps.size(), 1u);
  EXPECT_EQ(found.steps[0].inputs, (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(layout(found.steps[0]), "[{x}, {}] unreduced={y}");
  // 4 x 4 x 4 of 8 x 16 x 4 points; three tensors of 4 x 4 numbers of 4 bytes
  EXPECT_EQ(found.computation, 64'000 + 3 * 64 + 7);
  EXPECT_EQ(found.communication, 0);
  EXPECT_EQ(found.results, std::vector<std::size_t>{2});
}

TEST_F(OperatorStepsTest, PartOfALargerKernelReadsAndWritesLess) {
  const Operation add = operation_of("Add", {}, {{8, 16}, {8, 16}});
  const auto computation = [&](const KernelTraffic& traffic) { return steps(add, {{"a", "x"}}, traffic).computation; };
  EXPECT_EQ(computation({}), 64'000 + 3 * 256 + 7);
  EXPECT_EQ(computation({{1, 0}, {}, true, false}), 64'000 + 2 * 256 + 7);
  EXPECT_EQ(computation({{}, {1}, true, false}), 64'000 + 2 * 256 + 7);
  EXPECT_EQ(computation({{}, {}, false, false}), 64'000 + 3 * 256);
  EXPECT_EQ(computation({{}, {}, true, true}), 0);
  // The second operand is stored as 4 x 16 bytes, which are read and widened first.
  EXPECT_EQ(computation({{0, 1}, {}, true, false, {DataType::kF32, DataType::kI8}}), 64'000 + 2 * 256 + 7 + 2 * 64);
}

TEST_F(OperatorStepsTest, OfATableOnlyTheRowsAskedForAreRead) {
  // 6 rows of 8 numbers each are read and written, and 6 indices; a half of each with the rows' numbers in two.
  const TensorType few{{6}, DataType::kI32};
  const Operation gather = make_operation(*find_operator_type("Gather"), {}, {TensorType{{1024, 8}}, few});
  EXPECT_EQ(steps(gather, {}).computation, 1000 * 1024 * 6 * 8 + 2 * 192 + 24 + 7);
  EXPECT_EQ(steps(gather, {{"h", "x"}}).computation, 1000 * 1024 * 6 * 4 + 2 * 96 + 24 + 7);
  // A device that holds half of the rows reads half of those asked for; the result is a summand of all.
  EXPECT_EQ(steps(gather, {{"v", "x"}}).computation, 1000 * 512 * 6 * 8 + 96 + 192 + 24 + 7);
  // A small table is read at most once.
  const Operation again = make_operation(*find_operator_type("Gather"), {}, {TensorType{{2, 8}}, few});
  EXPECT_EQ(steps(again, {}).computation, 1000 * 2 * 6 * 8 + 64 + 192 + 24 + 7);
  const Operation slice = operation_of(
      "Slice", {{"begin", std::vector<std::int64_t>{0, 2}}, {"size", std::vector<std::int64_t>{-1, 3}}}, {{8, 16}});
  EXPECT_EQ(steps(slice, {{"a", "x"}}).steps[0].time % 1000, 2 * 48 + 7);
}

TEST_F(OperatorStepsTest, ACacheIsWrittenWhereTokensAreNew) {
  const TensorType cache{{4, 8, 64, 16}}, positions{{4}, DataType::kI32}, tokens{{4, 8, 2, 16}};
  const Operation update = make_operation(*find_operator_type("KVCacheScatterUpdate"), {}, {cache, positions, tokens});
  // The tokens are read and written; whoever holds any part of the sequences may have to write them all.
  EXPECT_EQ(steps(update, {}).computation % 1000, (2 * 4096 + 16 + 7) % 1000);
  EXPECT_EQ(steps(update, {{"a", "x"}}).computation % 1000, (2 * 2048 + 8 + 7) % 1000);
  EXPECT_EQ(steps(update, {{"c", "y"}}).computation % 1000, (2 * 4096 + 16 + 7) % 1000);
}

TEST_F(OperatorStepsTest, RowsThatAreUpdatedAreReadAndWritten) {
  const TensorType table{{1024, 8}}, indices{{6}, DataType::kI32}, rows{{6, 8}}, step{{}};
  const auto bytes = [&](const char* type, const std::vector<TensorType>& operands,
                         const std::map<std::string, std::string>& axes) {
    const Operation update = make_operation(*find_operator_type(type), {{"learning_rate", 0.1}}, operands);
    return steps(update, axes).computation % 1000 - 7;
  };
  // The rows, then for each stored table the same rows read and written; the count of steps has 4 bytes.
  const auto descent = [&](const std::map<std::string, std::string>& axes) {
    return bytes("SparseApplyGradientDescent", {table, indices, rows}, axes);
  };
  EXPECT_EQ(descent({}), 192 + 24 + 2 * 192);
  EXPECT_EQ(descent({{"h", "y"}}), 48 + 24 + 2 * 48);
  EXPECT_EQ(descent({{"v", "x"}}), 96 + 24 + 2 * 96);  // half of the rows are on each device
  EXPECT_EQ(bytes("SparseApplyAdam", {table, table, table, step, indices, rows}, {{"h", "y"}}),
            48 + 24 + 3 * 2 * 48 + 2 * 4);
}

TEST_F(OperatorStepsTest, EachTensorWrittenInPlaceCountsWithItsOwnType) {
  const TensorType table{{1024, 8}}, narrow{{1024, 8}, DataType::kBF16}, indices{{6}, DataType::kI32};
  const TensorType rows{{6, 8}}, narrow_rows{{6, 8}, DataType::kBF16};
  const auto bytes = [&](const TensorType& stored, const TensorType& of_gradient) {
    const Operation update = make_operation(*find_operator_type("SparseApplyGradientDescent"), {{"learning_rate", 0.1}},
                                            {stored, indices, of_gradient});
    return steps(update, {}).computation % 1000 - 7;
  };
  EXPECT_EQ(bytes(table, narrow_rows), 96 + 24 + 2 * 192);
  EXPECT_EQ(bytes(narrow, rows), 192 + 24 + 2 * 96);
  const TensorType cache{{4, 8, 64, 16}, DataType::kF8E4M3}, positions{{4}, DataType::kI32};
  const TensorType tokens{{4, 8, 2, 16}, DataType::kBF16};
  const Operation update = make_operation(*find_operator_type("KVCacheScatterUpdate"), {}, {cache, positions, tokens});
  EXPECT_EQ(steps(update, {}).computation % 1000, (2048 + 16 + 1024 + 7) % 1000);  // written narrower than read
}

TEST_F(OperatorStepsTest, WindowsFetchTheirHalosDimensionByDimension) {
  const Operation convolution =
      operation_of("Conv2D", {{"pad_mode", std::string("same")}}, {{1, 2, 8, 12}, {3, 2, 3, 3}});
  const OperatorSteps found = steps(convolution, {{"h", "x"}, {"w", "y"}});
  ASSERT_EQ(found.steps.size(), 2u);
  EXPECT_EQ(found.steps[0].kind, OperatorStep::Kind::kHalo);
  EXPECT_EQ(found.steps[0].inputs, std::vector<std::size_t>{0});
  ASSERT_EQ(found.steps[0].halo.size(), 2u);
  // A shard is [1, 2, 4, 3]. Of two stripes each gets the row next to it, 2 x 3 numbers; of four a middle one then gets a
  // column on each side of the resulting 5 rows, 2 x 2 x 5, corners included.
  EXPECT_EQ(found.communication, (5 + 4 * 6) + (5 + 4 * 20));
  // The kernel reads the operand with its halo, value 2, and the weight.
  EXPECT_EQ(found.steps[1].inputs, (std::vector<std::size_t>{2, 1}));
  EXPECT_EQ(layout(found.steps[1]), "[{}, {}, {x}, {y}]");
}

TEST_F(OperatorStepsTest, NormsOverChannelsReadTheirOperandsTwice) {
  const TensorType x = {{64, 4}, DataType::kF16}, channels = {{4}, DataType::kF16};  // 512 and 8 bytes
  const std::vector<TensorType> operands = {x, channels, channels, channels, channels};
  const auto bytes = [&](bool is_training) {
    const Operation norm = make_operation(*find_operator_type("BatchNorm"), {{"is_training", is_training}}, operands);
    return steps(norm, {}).computation - 7 - 1000 * 64 * 4;
  };
  EXPECT_EQ(bytes(true), 2 * (512 + 4 * 8) + 512 + 4 * 8);  // y and four results by channel
  EXPECT_EQ(bytes(false), 512 + 4 * 8 + 512);
  const Operation gradient =
      make_operation(*find_operator_type("BatchNormGrad"), {}, {x, x, channels, channels, channels});
  EXPECT_EQ(steps(gradient, {}).computation - 7 - 1000 * 64 * 4, 2 * (2 * 512 + 3 * 8) + 512 + 2 * 8);
  const Operation groups = operation_of("GroupNorm", {{"num_groups", std::int64_t{2}}}, {{64, 4}, {4}, {4}});
  EXPECT_EQ(steps(groups, {}).computation - 7 - 1000 * 64 * 4, 2 * (1024 + 2 * 16) + 1024) << "f32";
  const Operation row = operation_of("RmsNorm", {}, {{64, 4}, {4}});
  EXPECT_EQ(steps(row, {}).computation - 7 - 1000 * 64 * 4, 1024 + 16 + 1024) << "a row stays on chip";
}

TEST_F(OperatorStepsTest, BothSumsOfABatchNormAreCompletedAtOnce) {
  const auto kinds = [](const OperatorSteps& found) {
    std::string text;
    for (const OperatorStep& step : found.steps) {
      text += step.kind == OperatorStep::Kind::kRun ? step.operation->type->name + " " : "+ ";
    }
    return text;
  };
  const Operation norm = operation_of("BatchNorm", {{"is_training", true}}, {{8, 16, 4, 4}, {16}, {16}, {16}, {16}});
  EXPECT_EQ(kinds(steps(norm, {{"n", "y"}})), "ChannelMoments + ChannelStatistics BatchNormApply ");
  EXPECT_EQ(kinds(steps(norm, {{"c", "y"}})), "BatchNorm ");
  const Operation gradient = operation_of("BatchNormGrad", {}, {{8, 16, 4, 4}, {8, 16, 4, 4}, {16}, {16}, {16}});
  const OperatorSteps found = steps(gradient, {{"n", "y"}, {"c", "x"}});
  EXPECT_EQ(kinds(found), "BatchNormGradSums + BatchNormGradApply SumsOfParts ");
  EXPECT_EQ(layout(found.steps[1]), "[{}, {x}]");
}

TEST_F(OperatorStepsTest, PhasesAreCompletedBeforeTheyAreRead) {
  const Operation softmax = operation_of("Softmax", {}, {{8, 16}});
  EXPECT_EQ(steps(softmax, {{"a", "x"}}).steps.size(), 1u);  // rows are independent
  const OperatorSteps found = steps(softmax, {{"a", "x"}, {"b", "y"}});
  std::string outline;
  for (const OperatorStep& step : found.steps) {
    const bool is_run = step.kind == OperatorStep::Kind::kRun;
    outline += (is_run ? step.operation->type->name : std::string(to_string(step.collective.kind))) + " of";
    for (const std::size_t input : step.inputs) outline += " " + std::to_string(input);
    outline += ": " + layout(step) + "\n";
    EXPECT_EQ(step.is_phase, is_run);
  }
  EXPECT_EQ(outline,
            "ReduceMax of 0: [{x}, {}] unreduced={y} unreduced_kind=max\n"
            "all_reduce of 1: [{x}, {}]\n"
            "SoftmaxExp of 0 2: [{x}, {y}]\n"
            "all_reduce of 4: [{x}, {}]\n"
            "RealDiv of 3 5: [{x}, {y}]\n");
  EXPECT_EQ(found.results, std::vector<std::size_t>{6});
  // Each time, 4 maxima or sums of 4 bytes over 4 devices: a launch, 6 hops, twice 3/4 of 16 bytes.
  EXPECT_EQ(found.communication, 2 * (100 + 60 + 24));
}

}  // namespace
}  // namespace shardplan
