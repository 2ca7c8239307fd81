#include "program/collective_matmul.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/read_model.h"
#include "operators/catalogue.h"
#include "planner/model_planner.h"
#include "program/instruction_table.h"
#include "program/memory_profile.h"
#include "program/overlapped_timeline.h"

namespace shardplan {
namespace {

using Span = OverlappedTimeline::Span;

Operation product_of_matrices() {
  return make_operation(*find_operator_type("MatMul"), {}, {{{4, 4}, DataType::kF32}, {{4, 4}, DataType::kF32}});
}

/// Kernels and collectives that only consist of times, pieces and dependencies.
class Pipeline {
 public:
  Pipeline() { program.instructions.reserve(16); }

  ValueId kernel(Picoseconds time, std::vector<ValueId> inputs) { return operation(relu_, time, std::move(inputs)); }
  ValueId product(Picoseconds time, std::vector<ValueId> inputs) {
    return operation(product_, time, std::move(inputs));
  }
  /// The number of pieces; 0: not in pieces.
  ValueId collective(CollectiveKind kind, Picoseconds time, ValueId input, std::int64_t pieces) {
    Instruction instruction;
    instruction.kind = InstructionKind::kCollective;
    instruction.step.edit().kind = kind;
    instruction.step.edit().axes = {AxisRef{0, 1, std::max<std::int64_t>(pieces, 2)}};
    instruction.in_pieces = pieces > 0;
    instruction.links = 1;
    return add(std::move(instruction), time, {input});
  }
  ValueId gather(Picoseconds time, ValueId input, std::int64_t pieces) {
    return collective(CollectiveKind::kAllGather, time, input, pieces);
  }
  ValueId scatter(Picoseconds time, ValueId input, std::int64_t pieces) {
    return collective(CollectiveKind::kReduceScatter, time, input, pieces);
  }
  Picoseconds end() const { return overlapped_timeline(program).end; }
  std::vector<Span> spans() const { return overlapped_timeline(program).spans; }

  ParallelProgram program;

 private:
  std::shared_ptr<const Operation> relu_ =
      std::make_shared<const Operation>(make_operation(*find_operator_type("ReLU"), {}, {{{1}, DataType::kF32}}));
  std::shared_ptr<const Operation> product_ = std::make_shared<const Operation>(product_of_matrices());

  ValueId operation(const std::shared_ptr<const Operation>& of, Picoseconds time, std::vector<ValueId> inputs) {
    Instruction instruction;
    instruction.kind = InstructionKind::kOperator;
    instruction.operation = of;
    return add(std::move(instruction), time, std::move(inputs));
  }
  ValueId add(Instruction instruction, Picoseconds time, std::vector<ValueId> inputs) {
    instruction.time = time;
    instruction.inputs = std::move(inputs);
    instruction.outputs = {program.values.push_back({})};
    program.instructions.push_back(std::move(instruction));
    return program.instructions.back().outputs[0];
  }
};

// A ring of p devices: p pieces of the product and p - 1 hops, each of which runs beside a piece. That is m / p + (p -
// 1) max(m / p, g / (p - 1)).
TEST(CollectiveMatmulTest, AProductAndItsCollectiveTakeAPieceMoreThanTheLongerOfThem) {
  for (const std::int64_t pieces : {2, 4, 8}) {
    for (const Picoseconds m : {8, 80, 800}) {
      for (const Picoseconds g : {0, 7, 70, 700}) {
        const Picoseconds expected = m / pieces + std::max(g, m - m / pieces);
        Pipeline gathers;
        gathers.product(m, {gathers.gather(g, gathers.kernel(10, {}), pieces)});
        EXPECT_EQ(gathers.end(), 10 + expected) << pieces << " " << m << " " << g;
        Pipeline scatters;
        scatters.scatter(g, scatters.product(m, {scatters.kernel(10, {})}), pieces);
        EXPECT_EQ(scatters.end(), 10 + expected) << pieces << " " << m << " " << g;
      }
    }
  }
}

TEST(CollectiveMatmulTest, OtherKernelsAndCollectivesThatAreNotCutWait) {
  Pipeline whole;
  whole.scatter(30, whole.product(40, {whole.gather(20, whole.kernel(10, {}), 0)}), 0);
  EXPECT_EQ(whole.spans(), (std::vector<Span>{{0, 10}, {10, 30}, {30, 70}, {70, 100}}));
  Pipeline other;
  other.scatter(30, other.kernel(40, {other.gather(20, other.kernel(10, {}), 4)}), 4);
  EXPECT_EQ(other.spans(), whole.spans());
}

TEST(CollectiveMatmulTest, OneProductMayHaveBoth) {
  Pipeline both;
  const ValueId scattered = both.scatter(10, both.product(40, {both.gather(20, both.kernel(10, {}), 4)}), 4);
  both.kernel(5, {scattered});
  // The links are free at 30, the first piece is done at 20; the scatter ends with the product.
  EXPECT_EQ(both.spans(), (std::vector<Span>{{0, 10}, {10, 30}, {10, 50}, {30, 50}, {50, 55}}));
  both.program.instructions[3].time = 35;
  EXPECT_EQ(both.spans(), (std::vector<Span>{{0, 10}, {10, 30}, {10, 50}, {30, 65}, {65, 70}}));
}

TEST(CollectiveMatmulTest, OnlyAScatterRightBehindTheProductBeginsInIt) {
  Pipeline late;
  const ValueId made = late.product(40, {late.kernel(10, {})});
  late.kernel(20, {made});
  late.scatter(30, made, 4);
  EXPECT_EQ(late.end(), 10 + 40 + 20 + 30);
}

// A device has its own piece of a gather from the start, that of a scatter only when all have sent theirs.
TEST(CollectiveMatmulTest, AProductBeginsWithAGatherNotWithAScatter) {
  Pipeline scatters;
  scatters.product(40, {scatters.scatter(50, scatters.product(20, {}), 4)});
  EXPECT_EQ(scatters.spans(), (std::vector<Span>{{0, 20}, {5, 55}, {55, 95}}));
}

TEST(CollectiveMatmulTest, BothRunAtTheSpeedsThatTheyLeaveEachOther) {
  Pipeline gathers;
  gathers.product(100, {gathers.gather(60, gathers.kernel(10, {}), 2)});
  gathers.program.speeds_together = {{500'000, 600'000}};
  // 60 of the gather take 100 beside the product, which completes 50 of its own time meanwhile.
  EXPECT_EQ(gathers.spans(), (std::vector<Span>{{0, 10}, {10, 110}, {10, 160}}));
}

TEST(CollectiveMatmulTest, EveryRunOfTheLoopTakesTheSame) {
  const auto end = [](std::int64_t micro_batches) {
    Pipeline both;
    both.kernel(1, {both.scatter(35, both.product(40, {both.gather(20, both.kernel(10, {}), 4)}), 4)});
    for (Instruction& instruction : both.program.instructions) instruction.runs = micro_batches;
    both.program.micro_batches = micro_batches;
    return both.end();
  };
  EXPECT_EQ(end(1), 66);
  EXPECT_EQ(end(7), 7 * 66);
}

TEST(CollectiveMatmulTest, WhatIsScatteredTakesMemoryWhileTheProductRuns) {
  Pipeline scatters;
  const ValueId given = scatters.kernel(10, {});
  const ValueId made = scatters.product(40, {given});
  const ValueId scattered = scatters.scatter(30, made, 4);
  scatters.program.values[given].bytes = 1000;
  scatters.program.values[made].bytes = 400;
  scatters.program.values[scattered].bytes = 100;
  EXPECT_EQ(memory_profile(scatters.program).peak, 1400);
  EXPECT_EQ(memory_profile(scatters.program, overlapped_timeline(scatters.program)).peak, 1500);
}

TEST(CollectiveMatmulTest, ProductsAreOfTwoTensorsWithoutWindows) {
  const auto is_one = [](const char* type, const Attributes& attributes, std::vector<TensorType> operands) {
    return is_product(make_operation(*find_operator_type(type), attributes, std::move(operands)));
  };
  const TensorType matrix{{4, 4}, DataType::kF32};
  const TensorType image{{2, 4, 8, 8}, DataType::kF32};
  EXPECT_TRUE(is_one("MatMul", {}, {matrix, matrix}));
  EXPECT_FALSE(is_one("ReLU", {}, {matrix}));
  EXPECT_FALSE(is_one("Add", {}, {matrix, matrix}));
  EXPECT_FALSE(is_one("Conv2D", {}, {image, {{4, 4, 3, 3}, DataType::kF32}}));
}

/// Sequence-parallel tensor parallelism of one layer, sharded by hand.
Plan planned(bool collective_matmul, bool overlap) {
  const auto model = std::make_shared<const Model>(read_model_text(R"(shardplan: 1
model: layer
dims: {B: 4, S: 1024, H: 1024, F: 4096}
inputs: {x: [B, S, H], labels: [B, S, H]}
operators:
  norm: {block: nn.LayerNorm, in: x}
  up:   {block: nn.Dense, in: norm, out_channels: F, has_bias: false}
  gelu: {op: GeLU, in: up}
  down: {block: nn.Dense, in: gelu, out_channels: H, has_bias: false}
  add:  {op: Add, in: [x, down]}
  error: {op: Sub, in: [add, labels]}
  square: {op: Square, in: error}
  loss: {op: ReduceMean, in: square}
loss: loss
training: {optimizer: sgd}
parallel: {parallel_mode: semi_auto_parallel, level: 2, device_num: 8, mesh: {tensor: 8}}
strategies:
  x: {strategy: "[{}, {tensor}, {}]"}
  labels: {strategy: "[{}, {tensor}, {}]"}
  norm.layer_norm: {in_strategy: ["[{}, {tensor}, {}]", "[{}]", "[{}]"]}
  up.matmul: {in_strategy: ["[{}, {}, {}]", "[{tensor}, {}]"]}
  gelu: {in_strategy: ["[{}, {}, {tensor}]"]}
  down.matmul: {in_strategy: ["[{}, {}, {tensor}]", "[{}, {tensor}]"], out_strategy: ["[{}, {tensor}, {}]"]}
  add: {in_strategy: ["[{}, {tensor}, {}]", "[{}, {tensor}, {}]"]}
  error: {in_strategy: ["[{}, {tensor}, {}]", "[{}, {tensor}, {}]"]}
  square: {in_strategy: ["[{}, {tensor}, {}]"]}
  loss: {in_strategy: ["[{}, {tensor}, {}]"]}
)",
                                                                   "layer.yaml"));
  Cluster cluster = read_cluster("dgx-h100");
  cluster.collectives.collective_matmul = collective_matmul;
  PlanOptions options;
  options.level = Level::kSpeed;
  options.overlap = overlap;
  options.reorders_kernels = false;
  return ModelPlanner(model, cluster, options).plan(Level::kSpeed, "auto");
}

TEST(CollectiveMatmulTest, APlanGainsByItInItsOverlappedStepAlone) {
  const Plan plain = planned(false, true), cut = planned(true, true);
  EXPECT_LT(cut.time.step(), plain.time.step());
  EXPECT_EQ(cut.time.additive(), plain.time.additive());
  ASSERT_TRUE(cut.overlapped_bound.has_value());
  EXPECT_LE(*cut.overlapped_bound, cut.time.step());
  EXPECT_LT(*cut.overlapped_bound, *plain.overlapped_bound);
  EXPECT_EQ(planned(true, false).time.step(), planned(false, false).time.step());
  std::vector<std::string> in_pieces;
  for (const Instruction& instruction : cut.program.instructions) {
    if (instruction.in_pieces) in_pieces.push_back(instruction.name);
  }
  std::sort(in_pieces.begin(), in_pieces.end());
  EXPECT_EQ(in_pieces,
            (std::vector<std::string>{
                "down.matmul.out.reduce_scatter0", "grad.norm.layer_norm.LayerNormGrad.in0.reduce_scatter0",
                "grad.square.SquareGrad.delivered_backward.all_gather0", "norm.layer_norm.delivered.all_gather0"}));
  for (const Instruction& instruction : plain.program.instructions) EXPECT_FALSE(instruction.in_pieces);
}

}  // namespace
}  // namespace shardplan
