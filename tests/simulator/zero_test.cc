// The stages of ZeRO as words: what is sharded, when gradients are summed, and that training stays the same. Random
// networks are executed on simulated devices and compared with one device.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "base/random.h"
#include "model/read_model.h"
#include "planner/job_cluster.h"
#include "planner/model_planner.h"
#include "program/program_checker.h"
#include "simulator/proof/validate.h"

namespace shardplan {
namespace {

Plan plan_at_speed(const std::string& text) {
  auto model = std::make_shared<const Model>(read_model_text(text, "zero.yaml"));
  return ModelPlanner(model, job_cluster(*model).cluster, PlanOptions()).plan(Level::kSpeed, "auto");
}

std::string fault_in(const std::string& parallel) {
  try {
    plan_at_speed(
        "shardplan: 1\ncluster: dgx-a100\ninputs: {x: [16, 8]}\nparameters: {w: [8, 8]}\noperators:\n"
        "  y:    {op: MatMul, in: [x, w]}\n  loss: {op: ReduceMean, in: y}\nloss: loss\n"
        "training: {optimizer: adamw}\nparallel: {" +
        parallel + "}\n");
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

/// Two products over eight devices and two micro-batches; of the second weight's dimensions, 8 divides only the last.
std::string two_layers(const std::string& parallel, int micro_batches = 2) {
  return fmt::format(
      "shardplan: 1\ncluster: dgx-a100\ndims: {{B: 32}}\ninputs: {{x: [B, 24]}}\nparameters: {{v: [24, 12], w: [12, "
      "16]}}\noperators:\n"
      "  a:    {{op: MatMul, in: [x, v]}}\n  r:    {{op: ReLU, in: a}}\n  b:    {{op: MatMul, in: [r, w]}}\n"
      "  s:    {{op: Square, in: b}}\n  loss: {{op: ReduceMean, in: s}}\nloss: loss\n"
      "training: {{optimizer: adamw, micro_batches: {}}}\nparallel: {{parallel_mode: data_parallel, {}}}\n",
      micro_batches, parallel);
}

/// How often a step runs collectives of this kind for gradients and weights; the loss has its own all_reduce.
std::int64_t runs_of(const Plan& plan, CollectiveKind kind) {
  std::int64_t runs = 0;
  for (const Instruction& instruction : plan.program.instructions) {
    const bool is_it = instruction.kind == InstructionKind::kCollective && instruction.step->kind == kind;
    const bool is_scalar =
        !instruction.inputs.empty() && plan.program.values[instruction.inputs[0]].layout->dimensions.empty();
    if (is_it && !is_scalar) runs += instruction.runs;
  }
  return runs;
}

std::string stored_as(const Plan& plan, const std::string& name) {
  for (const Binding& given : plan.program.given) {
    const ProgramValue& value = plan.program.values[given.value];
    if (value.name == name) return to_string(value.layout, plan.mesh);
  }
  return "";
}

struct StageCase {
  const char* parallel;
  std::int64_t all_reduces, reduce_scatters, all_gathers;  // runs in a step of two micro-batches, two parameters
  const char* weight;
  const char* state;
};

TEST(ZeroTest, EachStageCutsWhatItSays) {
  const StageCase cases[] = {
      {"zero: 0", 2, 0, 0, "[{}, {}]", "[{}, {}]"},
      {"zero: 1", 0, 2, 2, "[{}, {}]", "[{}, {nvlink}]"},
      {"zero: 2", 0, 4, 2, "[{}, {}]", "[{}, {nvlink}]"},
      {"zero: 3", 0, 4, 6, "[{}, {nvlink}]", "[{}, {nvlink}]"},  // v for the forward pass, w for the backward pass too
      {"zero: 3, reshard_after_forward: false", 0, 4, 4, "[{}, {nvlink}]", "[{}, {nvlink}]"},  // w only once, too
      {"zero: 3, gradient_accumulation_shard: false", 0, 2, 6, "[{}, {nvlink}]", "[{}, {nvlink}]"},
      {"zero: 1, gradient_accumulation_shard: true", 0, 4, 2, "[{}, {}]", "[{}, {nvlink}]"},
  };
  for (const StageCase& stage : cases) {
    SCOPED_TRACE(stage.parallel);
    const Plan plan = plan_at_speed(two_layers(stage.parallel));
    EXPECT_EQ(runs_of(plan, CollectiveKind::kAllReduce), stage.all_reduces);
    EXPECT_EQ(runs_of(plan, CollectiveKind::kReduceScatter), stage.reduce_scatters);
    EXPECT_EQ(runs_of(plan, CollectiveKind::kAllGather), stage.all_gathers);
    EXPECT_EQ(stored_as(plan, "w"), stage.weight);
    for (const TensorId id : plan.graph->tensors().ids()) {
      const GraphTensor& tensor = plan.graph->tensor(id);
      const std::optional<TensorId> w = plan.graph->find_tensor("w");
      if (tensor.state_of && tensor.state_of == w && tensor.type.shape == plan.graph->tensor(*w).type.shape) {
        EXPECT_EQ(stored_as(plan, tensor.name), stage.state) << tensor.name;
      }
    }
  }
}

TEST(ZeroTest, WithoutAStageNothingIsInPieces) {
  const Plan none = plan_at_speed(two_layers("mesh: {dp: 8}")),
             zero = plan_at_speed(two_layers("mesh: {dp: 8}, zero: 0"));
  EXPECT_EQ(none.time.step(), zero.time.step());
  EXPECT_EQ(none.memory.peak, zero.memory.peak);
}

// A gradient is reduced behind the operator that computes it, so twelve of them are never whole at once: in f32 they take
// 192 KiB, everything stored 96 KiB. The norm of all gradients, which clipping needs, changes nothing about that.
TEST(ZeroTest, NoMoreThanAFewGradientsAreWholeAtOnce) {
  for (const char* options : {"", ", clip_norm: 1"}) {
    for (const int stage : {1, 2, 3}) {
      SCOPED_TRACE(fmt::format("{} {}", options, stage));
      std::string text =
          "shardplan: 1\ncluster: dgx-a100\ninputs: {x: [8, 64]}\nblocks:\n  layer:\n    inputs: {x: [8, 64]}\n"
          "    operators: {fc: {block: nn.Dense, in: x, out_channels: 64, has_bias: false}}\n    outputs: [fc]\n"
          "operators:\n  layers: {block: layer, in: x, repeat: 12}\n  loss: {op: ReduceMean, in: layers}\nloss: loss\n";
      text += fmt::format("training: {{optimizer: adamw, mixed_precision: bf16{}}}\n", options);
      text += fmt::format("parallel: {{parallel_mode: data_parallel, zero: {}}}\n", stage);
      const auto model = std::make_shared<const Model>(read_model_text(text, "zero.yaml"));
      PlanOptions plan_options;
      plan_options.capacity = (stage == 3 ? 160 : 240) * 1024;  // bf16 weights that are not sharded take 96 KiB
      const ModelPlanner planner(model, job_cluster(*model).cluster, plan_options);
      const Plan plan = planner.plan(Level::kSpeed, "auto");
      EXPECT_TRUE(plan.fits());
      EXPECT_TRUE(validate(plan.program, planner.graph(), {}).is_equal());
    }
  }
}

TEST(ZeroTest, TheUsersOwnLayoutOfAWeightStands) {
  std::string text = two_layers("zero: 3") + "strategies: {w: {strategy: \"[{}, {}]\"}}\n";
  text.replace(text.find("data_parallel"), 13, "semi_auto_parallel");
  const Plan plan = plan_at_speed(text);
  EXPECT_EQ(stored_as(plan, "w"), "[{}, {}]");
  EXPECT_EQ(stored_as(plan, "v"), "[{nvlink}, {}]");
}

TEST(ZeroTest, WhatContradictsIsRefused) {
  EXPECT_NE(fault_in("zero: 2").find("zero is for parallel_mode data_parallel and semi_auto_parallel"),
            std::string::npos);
  EXPECT_NE(fault_in("parallel_mode: data_parallel, zero: 1, enable_parallel_optimizer: true").find("keep one of them"),
            std::string::npos);
  EXPECT_NE(fault_in("parallel_mode: data_parallel, zero: 2, reshard_after_forward: false").find("leaves them whole"),
            std::string::npos);
  EXPECT_NE(fault_in("parallel_mode: data_parallel, zero: 4").find("0 to 3"), std::string::npos);
  EXPECT_NE(fault_in("parallel_mode: data_parallel, zero: 3, gradient_fp32_sync: false, gradient_accumulation_shard: "
                     "false")
                .find("keep one of them"),
            std::string::npos);
}

std::string random_training(Random& random) {
  const std::int64_t micro_batches = 1 + static_cast<std::int64_t>(random.below(3));
  std::string operators, last = "x";
  const auto add = [&](const std::string& line) {
    const std::string name = fmt::format("l{}", operators.size());
    operators += fmt::format("  {}: {}\n", name, fmt::format(fmt::runtime(line), last));
    last = name;
  };
  const std::size_t layers = 1 + random.below(3);
  for (std::size_t layer = 0; layer < layers; ++layer) {
    add(fmt::format("{{{{block: nn.Dense, in: {{}}, out_channels: {}, has_bias: {}}}}}", 3 + random.below(20),
                    random.below(2) == 0));
    if (random.below(2) == 0) add("{{op: Tanh, in: {}}}");
  }
  add("{{op: Square, in: {}}}");
  const char* const optimizers[] = {"sgd", "momentum", "adamw"};
  const char* const precisions[] = {"", ", mixed_precision: bf16"};
  const char* const shards[] = {"", ", gradient_accumulation_shard: true", ", gradient_accumulation_shard: false"};
  const char* const reshards[] = {
      "", ", zero: 3, reshard_after_forward: false", ", zero: 0", ", zero: 1", ", zero: 2", ", zero: 3"};
  const char* const modes[] = {"data_parallel", "semi_auto_parallel"};
  const bool is_autocast = random.below(3) == 0;
  const std::string frozen = layers > 1 && random.below(2) == 0 ? "strategies: {l0: {requires_grad: false}}\n" : "";
  return frozen + (is_autocast ? "autocast: bf16\n" : "") +
         fmt::format(
             "shardplan: 1\ncluster: dgx-a100\ndims: {{B: {}}}\ninputs: {{x: [B, {}]}}\noperators:\n{}  loss: {{op: "
             "ReduceMean, in: {}}}\n"
             "loss: loss\ntraining: {{optimizer: {}, micro_batches: {}, clip_norm: {}{}}}\nparallel: {{parallel_mode: "
             "{}, "
             "device_num: {}{}{}, uneven: {}}}\n",
             8 * micro_batches, 4 + random.below(20), operators, last, optimizers[random.below(3)], micro_batches,
             random.below(2), precisions[is_autocast ? 0 : random.below(2)], modes[random.below(2)],
             2 << random.below(3), reshards[random.below(6)], shards[random.below(3)], random.below(2) == 0);
}

std::size_t cut_dimensions(const ProgramValue& value) {
  return static_cast<std::size_t>(std::ranges::count_if(
      value.layout->dimensions, [](const DimensionLayout& dimension) { return dimension.num_pieces() > 1; }));
}

TEST(ZeroTest, RandomTrainingStaysTheSame) {
  std::size_t in_several_dimensions = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    const std::string text = random_training(random);
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    auto model = std::make_shared<const Model>(read_model_text(text, "zero.yaml"));
    const ModelPlanner planner(model, job_cluster(*model).cluster, PlanOptions());
    const Plan plan = planner.plan(Level::kSpeed, "auto");
    EXPECT_EQ(check_program(plan.program, planner.graph()), "");
    EXPECT_TRUE(validate(plan.program, planner.graph(), {}).is_equal());
    for (const Binding& given : plan.program.given) {
      in_several_dimensions += !given.is_input && cut_dimensions(plan.program.values[given.value]) > 1 ? 1 : 0;
    }
  }
  EXPECT_GT(in_several_dimensions, 5u);  // these are proven too
}

}  // namespace
}  // namespace shardplan
