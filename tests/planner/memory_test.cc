#include <fmt/format.h>
#include <gtest/gtest.h>

#include <iterator>
#include <memory>
#include <string>

#include "model/read_model.h"
#include "planner/model_planner.h"
#include "tests/support/files.h"

namespace shardplan {
namespace {

struct Sizes {
  std::int64_t batch = 4, length = 2048, hidden = 6144, heads = 64, layers = 1;  // the 22B model of Korthikanti et al.
  std::int64_t devices = 1;
};

/// configs/gpt2-small.yaml with its attention as written, whose layer has every dropout that the formulas count, at other
/// sizes, as the fastest plan with these strategies and any memory.
ModelPlanner transformer_planning(const Sizes& sizes, const std::string& parallel, const std::string& strategies) {
  const std::map<std::string, std::int64_t> dims{{"B", sizes.batch},     {"S", sizes.length}, {"H", sizes.hidden},
                                                 {"heads", sizes.heads}, {"V", 64},           {"L", sizes.layers}};
  const std::string file = content_of("configs/gpt2-small.yaml");
  const std::size_t end = file.find("parallel: {attention: fused}\n");
  EXPECT_NE(end, std::string::npos);
  const std::string text = file.substr(0, end) + "parallel: {mesh: {x: " + std::to_string(sizes.devices) + "}" +
                           parallel + "}\n" + strategies;
  auto model = std::make_shared<const Model>(read_model_text(text, "transformer.yaml", {dims, {}}));
  PlanOptions options;
  options.capacity = kUnlimitedBytes;
  options.overlap = false;  // the memory in graph order
  return {model, take_devices(read_cluster("dgx-a100"), sizes.devices), options};
}
Plan transformer(const Sizes& sizes, const std::string& strategies = "", const std::string& parallel = "") {
  return transformer_planning(sizes, parallel, strategies).plan(Level::kSpeed, "auto");
}

/// The bytes that are always in memory.
Bytes stored_bytes(const Plan& plan) {
  Bytes sum = 0;
  for (const Binding& given : plan.program.given) sum += given.is_input ? 0 : plan.program.values[given.value].bytes;
  return sum;
}

/// The bytes held for the backward pass when it begins.
Bytes kept_bytes(const Plan& plan) {
  for (std::size_t i = 0; i < plan.program.instructions.size(); ++i) {
    if (plan.program.instructions[i].pass == Pass::kBackward) return plan.memory.bytes[i] - stored_bytes(plan);
  }
  return 0;
}

double kept_per_layer(Sizes sizes, const std::string& strategies = "", const std::string& parallel = "") {
  const Bytes one = kept_bytes(transformer(sizes, strategies, parallel));
  ++sizes.layers;
  return static_cast<double>(kept_bytes(transformer(sizes, strategies, parallel)) - one);
}

// What is not sharded over x is on all its devices.
const char* const kTensorParallel = R"(strategies:
  layers.*.norm1.layer_norm: {in_strategy: [[{}, {}, {}], [{}], [{}]]}
  layers.*.attn.qkv.matmul: {in_strategy: [[{}, {}, {}], [{x}, {}]]}
  layers.*.attn.proj.matmul: {in_strategy: [[{}, {}, {x}], [{}, {x}]]}
  layers.*.attn.proj.bias_add: {in_strategy: [[{}, {}, {}], [{}]]}
  layers.*.drop1: {in_strategy: [[{}, {}, {}]]}
  layers.*.add1: {in_strategy: [[{}, {}, {}], [{}, {}, {}]]}
  layers.*.norm2.layer_norm: {in_strategy: [[{}, {}, {}], [{}], [{}]]}
  layers.*.up.matmul: {in_strategy: [[{}, {}, {}], [{x}, {}]]}
  layers.*.down.matmul: {in_strategy: [[{}, {}, {x}], [{}, {x}]]}
  layers.*.down.bias_add: {in_strategy: [[{}, {}, {}], [{}]]}
  layers.*.drop2: {in_strategy: [[{}, {}, {}]]}
  layers.*.add2: {in_strategy: [[{}, {}, {}], [{}, {}, {}]]}
)";

// Norms, dropouts and sums sharded over the sequence.
const char* const kSequenceParallel = R"(strategies:
  layers.*.norm1.layer_norm: {in_strategy: [[{}, {x}, {}], [{}], [{}]]}
  layers.*.attn.qkv.matmul: {in_strategy: [[{}, {}, {}], [{x}, {}]]}
  layers.*.attn.proj.matmul: {in_strategy: [[{}, {}, {x}], [{}, {x}]]}
  layers.*.drop1: {in_strategy: [[{}, {x}, {}]]}
  layers.*.add1: {in_strategy: [[{}, {x}, {}], [{}, {x}, {}]]}
  layers.*.norm2.layer_norm: {in_strategy: [[{}, {x}, {}], [{}], [{}]]}
  layers.*.up.matmul: {in_strategy: [[{}, {}, {}], [{x}, {}]]}
  layers.*.down.matmul: {in_strategy: [[{}, {}, {x}], [{}, {x}]]}
  layers.*.drop2: {in_strategy: [[{}, {x}, {}]]}
  layers.*.add2: {in_strategy: [[{}, {x}, {}], [{}, {x}, {}]]}
)";

// Korthikanti et al. 2022, table 2: bytes per layer, 2 per activation, 1 per dropout mask. With sequence parallelism a
// device keeps its part of the two norms' results, and gathers it again for the backward pass; otherwise they take 4
// sbh.
TEST(MemoryTest, ActivationsOfATransformerLayerAreThoseOfKorthikanti) {
  const Sizes sizes;
  const double sbh = static_cast<double>(sizes.length * sizes.batch * sizes.hidden);
  const double scores = 5.0 * static_cast<double>(sizes.heads * sizes.length) / static_cast<double>(sizes.hidden);
  const auto check = [&](const char* name, double kept, double formula) {
    EXPECT_NEAR(kept / formula, 1, 0.05) << name << ": " << kept / sbh << " sbh, the formula says " << formula / sbh;
  };
  check("no parallelism", kept_per_layer(sizes), sbh * (34 + scores));
  for (const std::int64_t t : {2, 8}) {
    Sizes cut = sizes;
    cut.devices = t;
    const auto d = static_cast<double>(t);
    check("tensor parallel", kept_per_layer(cut, kTensorParallel), sbh * (10 + 24 / d + scores / d));
    const auto sequence_parallel = [&](const char* gather_again) {
      return kept_per_layer(cut, kSequenceParallel, fmt::format(", gather_again: {}", gather_again));
    };
    check("tensor and sequence parallel", sequence_parallel("true"), sbh / d * (34 + scores));
    check("the same, gathered once", sequence_parallel("false"), sbh * (4 + (30 + scores) / d));
  }
}

/// Bytes per parameter in use when the update begins.
double held_at_update(const Plan& plan) {
  double parameters = 0;
  for (const GraphTensor& tensor : plan.graph->tensors()) {
    if (tensor.kind == TensorKind::kParameter) parameters += static_cast<double>(tensor.type.bytes()) / 2;
  }
  for (std::size_t i = 0; i < plan.program.instructions.size(); ++i) {
    const Instruction& instruction = plan.program.instructions[i];
    if (instruction.pass == Pass::kUpdate && instruction.kind == InstructionKind::kOperator) {
      return static_cast<double>(plan.memory.bytes[i]) / parameters;
    }
  }
  return 0;
}

// Weights of 2 bytes, gradients, master copies and two moments of 4 each; in addition a step counter per tensor and
// temporary values of the first update.
TEST(MemoryTest, MixedPrecisionAdamWTakes18BytesAParameter) {
  EXPECT_NEAR(held_at_update(transformer({8, 16, 64, 4, 8, 1})), 18, 0.05);
}

TEST(MemoryTest, TheParallelOptimizerCuts16Of18BytesAParameter) {
  for (const std::int64_t dp : {2, 8}) {
    // Parameters replicated: what the update reads and writes is sharded, and a gradient as soon as it is computed.
    const ModelPlanner planning = transformer_planning(
        {8, 16, 64, 4, 8, dp}, ", parallel_mode: data_parallel, enable_parallel_optimizer: true", "");
    const Plan found = planning.plan(Level::kSpeed, "auto");
    EXPECT_NEAR(held_at_update(found), 2 + 16.0 / static_cast<double>(dp), 0.05) << dp;
  }
}

// A view and its source are held once, until the last reader of either; an optimizer overwrites the old values.
TEST(MemoryTest, ViewsAndNewValuesTakeNoMemoryOfTheirOwn) {
  const auto plan_of = [](const std::string& text) {
    auto model = std::make_shared<const Model>(read_model_text("shardplan: 1\nmodel: m\n" + text, "m.yaml"));
    return ModelPlanner(model, take_devices(read_cluster("dgx-a100"), 1), {}).plan(Level::kSpeed, "auto");
  };
  // x, its sum and a square at the same time; the view and the identity are in the memory of x and of the sum.
  const Plan views = plan_of(
      "inputs: {x: [64, 4, 16]}\n"
      "operators:\n"
      "  flat:  {op: Reshape, in: x, shape: [64, 64]}\n"
      "  sum:   {op: Add, in: [flat, flat]}\n"
      "  same:  {op: Identity, in: sum}\n"
      "  back:  {op: Reshape, in: same, shape: [64, 4, 16]}\n"
      "  y:     {op: Mul, in: [back, x]}\n"
      "outputs: [y]\n");
  EXPECT_EQ(views.memory.peak, 3 * 64 * 64 * 4);
  EXPECT_EQ(views.memory.alive_at_peak.size(), 3u);
  // w, its momentum and its gradient.
  const Plan update = plan_of(
      "inputs: {x: [4, 1024]}\nparameters: {w: [1024, 1024]}\n"
      "operators:\n"
      "  y:    {op: MatMul, in: [x, w]}\n"
      "  loss: {op: ReduceSum, in: y}\n"
      "loss: loss\ntraining: {optimizer: momentum}\n");
  EXPECT_NEAR(static_cast<double>(update.memory.peak) / (1024 * 1024 * 4), 3, 0.05);
}

// What a problem counts must not exceed what its programs hold, or plans that fit are refused: attention keeps its result
// and a view of it, the networks of graphs keep features and views of them. (LeNet's plan repeats contractions, which
// level 0 otherwise avoids. A decoder's attention reads the caches where they are written.)
TEST(MemoryTest, ThePlanWithTheLeastMemoryIsFoundWhereItJustFits) {
  for (const char* file : {"configs/models/t5-large.yaml", "configs/models/gat-products.yaml", "configs/lenet.yaml",
                           "configs/models/llama3-70b-decode.yaml"}) {
    SCOPED_TRACE(file);
    const std::string text = content_of(file);
    const std::map<std::string, std::int64_t> dims = text.find("L: ") == std::string::npos
                                                         ? std::map<std::string, std::int64_t>()
                                                         : std::map{std::pair(std::string("L"), std::int64_t{2})};
    const auto model = std::make_shared<const Model>(read_model_text(text, file, {dims, {}}));
    const auto planning = [&](Bytes capacity) {
      PlanOptions options;
      options.capacity = capacity;
      options.overlap = false;  // the memory in graph order
      return ModelPlanner(model, read_cluster("dgx-a100"), options);
    };
    const Plan smallest = planning(kUnlimitedBytes).smallest();
    EXPECT_LE(smallest.bound.amount, smallest.memory.peak);
    for (const Level level : kLevels) {
      SCOPED_TRACE(number_of(level));
      const Plan plan = planning(smallest.memory.peak).plan(level, "auto");
      EXPECT_FALSE(plan.strategies.empty());
      EXPECT_TRUE(plan.fits());
    }
  }
}

// In a model this small most of the memory is held by a running gather, which a search does not see: no plan with the
// least memory holds more than data parallelism, or than a plan that another level finds.
TEST(MemoryTest, SmallModelsAreNotGatheredIntoMoreThanTheySave) {
  for (const int rows : {8, 16, 64}) {
    for (const int columns : {8, 16, 48}) {
      SCOPED_TRACE(fmt::format("{} x 32 x {}", rows, columns));
      const auto model = std::make_shared<const Model>(read_model_text(
          fmt::format(
              "shardplan: 1\ninputs: {{x: [{}, 32]}}\noperators:\n  fc: {{block: nn.Dense, in: x, out_channels: {}}}\n",
              rows, columns),
          "m.yaml"));
      const ModelPlanner planner(model, read_cluster("ascend-910"), {});
      const Plan least = planner.plan(Level::kMemory, "auto");
      EXPECT_LE(least.memory.peak, planner.data_parallel().peak);
      EXPECT_LE(least.memory.peak, planner.plan(Level::kRatio, "auto").memory.peak);
      EXPECT_LE(least.memory.peak, planner.plan(Level::kSpeed, "auto").memory.peak);
    }
  }
}

}  // namespace
}  // namespace shardplan
