#include "planner/problem/mode_strategies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "model/read_model.h"
#include "planner/job_cluster.h"
#include "planner/model_planner.h"

namespace shardplan {
namespace {

constexpr char kModePerceptron[] = R"(
shardplan: 1
dims: {B: 32}
inputs: {x: [B, 64]}
operators:
  fc1:  {block: nn.Dense, in: x, out_channels: 128}
  act1: {op: ReLU, in: fc1}
  fc2:  {block: nn.Dense, in: act1, out_channels: 128}
  act2: {op: GeLU, in: fc2}
  both: {op: Add, in: [act1, act2]}
  fc3:  {block: nn.Dense, in: both, out_channels: 16, has_bias: false}
  loss: {op: ReduceMean, in: fc3}
loss: loss
)";

Plan planned(const std::string& text, Level level = Level::kRatio, const ModelOverrides& overrides = {}) {
  auto model = std::make_shared<const Model>(read_model_text(text, "m.yaml", overrides));
  const Cluster cluster = job_cluster(*model, {}).cluster;
  PlanOptions options;
  options.work_limit = 100'000'000;
  return ModelPlanner(model, cluster, options).plan(level, "auto");
}

std::string fault_of(const std::string& text, const ModelOverrides& overrides = {}) {
  try {
    planned(text, Level::kRatio, overrides);
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

/// How many collectives of each kind and pass: "backward all_reduce".
std::map<std::string, int> collectives(const Plan& plan) {
  std::map<std::string, int> counts;
  for (const Instruction& instruction : plan.program.instructions) {
    if (instruction.kind != InstructionKind::kCollective) continue;
    const char* pass = instruction.pass == Pass::kForward    ? "forward "
                       : instruction.pass == Pass::kBackward ? "backward "
                                                             : "update ";
    ++counts[pass + std::string(to_string(instruction.step->kind))];
  }
  return counts;
}

using Counts = std::map<std::string, int>;

// Five parameters: each gradient is summed by one collective, and apart from the loss nothing else is communicated.
TEST(ModeStrategiesTest, DataParallelSumsEachGradientOnceAtEveryLevel) {
  const std::string text = std::string(kModePerceptron) +
                           "training: {optimizer: momentum}\nparallel: {parallel_mode: data_parallel, mesh: {dp: 8}}\n";
  for (const Level level : kLevels) {
    const Plan plan = planned(text, level);
    EXPECT_EQ(collectives(plan), (Counts{{"forward all_reduce", 1}, {"update all_reduce", 5}})) << number_of(level);
    for (const Binding& given : plan.program.given) {
      if (given.is_input) continue;
      for (const DimensionLayout& dimension : plan.program.values[given.value].layout->dimensions) {
        EXPECT_EQ(dimension.num_pieces(), 1) << plan.program.values[given.value].name;
      }
    }
  }
}

TEST(ModeStrategiesTest, ClippingAndMicroBatchesSumOnceToo) {
  const std::string text = std::string(kModePerceptron) +
                           "training: {optimizer: adamw, clip_norm: 1, micro_batches: 2, mixed_precision: bf16}\n"
                           "cluster: dgx-a100\nparallel: {parallel_mode: data_parallel, mesh: {dp: 8}}\n";
  const Plan plan = planned(text, Level::kMemory);
  int sums = 0;
  for (const Instruction& instruction : plan.program.instructions) {
    if (instruction.kind != InstructionKind::kCollective) continue;
    ++sums;
    EXPECT_EQ(instruction.step->kind, CollectiveKind::kAllReduce);
    EXPECT_EQ(instruction.runs, 1) << instruction.name;  // once a step, not with every micro-batch
  }
  EXPECT_EQ(sums, 6);
}

TEST(ModeStrategiesTest, TheParallelOptimizerCutsWhatItCovers) {
  const std::string text = std::string(kModePerceptron) +
                           "training: {optimizer: momentum}\n"
                           "parallel: {parallel_mode: data_parallel, mesh: {dp: 8}, enable_parallel_optimizer: true}\n";
  const Counts found = collectives(planned(text));
  EXPECT_EQ(found.at("update reduce_scatter"), 5);
  EXPECT_EQ(found.at("update all_gather"), 5);
  EXPECT_FALSE(found.contains("update all_reduce"));
}

TEST(ModeStrategiesTest, AParameterCanBeExemptFromTheParallelOptimizer) {
  const std::string text = R"(
shardplan: 1
inputs: {x: [32, 64]}
parameters: {v: [64, 64], w: {shape: [64, 64], parallel_optimizer: false}}
operators:
  a:    {op: MatMul, in: [x, v]}
  b:    {op: MatMul, in: [a, w]}
  loss: {op: ReduceMean, in: b}
loss: loss
training: {optimizer: momentum}
parallel: {parallel_mode: data_parallel, mesh: {dp: 8}, enable_parallel_optimizer: true}
)";
  const Counts found = collectives(planned(text));
  EXPECT_EQ(found.at("update reduce_scatter"), 1);
  EXPECT_EQ(found.at("update all_gather"), 1);
  EXPECT_EQ(found.at("update all_reduce"), 1);
}

/// Parameters of built-in blocks are nowhere declared: the key stands beside the use, or in `strategies`.
TEST(ModeStrategiesTest, AParameterOfABlockCanBeExemptToo) {
  const std::string two = R"(
shardplan: 1
inputs: {x: [32, 64]}
operators:
  up:   {block: nn.Dense, in: x, out_channels: 64, has_bias: false}
  down: {block: nn.Dense, in: up, out_channels: 64, has_bias: false}
  loss: {op: ReduceMean, in: down}
loss: loss
training: {optimizer: momentum}
parallel: {parallel_mode: data_parallel, mesh: {dp: 8}, enable_parallel_optimizer: true}
)";
  const auto reduced = [](const std::string& text, const ModelOverrides& overrides = {}) {
    return collectives(planned(text, Level::kRatio, overrides)).at("update all_reduce");
  };
  EXPECT_FALSE(collectives(planned(two)).contains("update all_reduce"));
  EXPECT_EQ(reduced(two + "strategies: {up.weight: {parallel_optimizer: false}}\n"), 1);
  EXPECT_EQ(reduced(two + "strategies: {up: {parallel_optimizer: false}}\n"), 1);
  ModelOverrides set;
  set.strategies["up.weight.parallel_optimizer"] = "false";
  EXPECT_EQ(reduced(two, set), 1);
}

TEST(ModeStrategiesTest, WhatTheParallelOptimizerLeavesWholeIsSaid) {
  const auto notices = [](const std::string& weights, const std::string& key) {
    const auto model = std::make_shared<const Model>(read_model_text(
        "shardplan: 1\ninputs: {x: [32, 64]}\nparameters: {" + weights +
            "}\noperators:\n  a:    {op: MatMul, in: [x, v]}\n  loss: {op: ReduceMean, in: a}\nloss: loss\n"
            "training: {optimizer: adam}\nparallel: {parallel_mode: data_parallel, mesh: {dp: 8}" +
            key + "}\n",
        "m.yaml"));
    return ModelPlanner(model, job_cluster(*model, {}).cluster, {}).notices();
  };
  const std::string optimizer = ", enable_parallel_optimizer: true";
  using Notices = std::vector<std::string>;
  EXPECT_EQ(notices("v: [64, 16]", optimizer), Notices{});
  EXPECT_EQ(notices("v: {shape: [64, 16], parallel_optimizer: false}", optimizer), Notices{});
  EXPECT_EQ(
      notices("v: {shape: [64, 16], parallel_optimizer: false}", ""),
      Notices{"parallel_optimizer: false says nothing here: it is an exception from enable_parallel_optimizer and "
              "zero"});
}

TEST(ModeStrategiesTest, AWeightWhoseRowsTheDevicesDoNotDivideStaysWhole) {
  const auto model = std::make_shared<const Model>(read_model_text(
      std::string(kModePerceptron) +
          "training: {optimizer: adam}\n"
          "parallel: {parallel_mode: data_parallel, device_num: 8, mesh: {dp: 8}, enable_parallel_optimizer: true}\n"
          "strategies: {fc1: {parallel_optimizer: true}}\n",
      "m.yaml"));
  EXPECT_EQ(ModelPlanner(model, job_cluster(*model, {}).cluster, {}).notices(), std::vector<std::string>{});
  const std::string odd = R"(
shardplan: 1
inputs: {x: [32, 64]}
operators:
  fc:   {block: nn.Dense, in: x, out_channels: 10}
  loss: {op: ReduceMean, in: fc}
loss: loss
training: {optimizer: adam}
parallel: {parallel_mode: data_parallel, mesh: {dp: 8}, enable_parallel_optimizer: true}
)";
  EXPECT_EQ(
      planned(odd).notices,
      std::vector<std::string>{"enable_parallel_optimizer: fc.weight and 1 more stay whole: dimension 0 of [10, 64] "
                               "cannot be cut over all devices that hold the same"});
}

TEST(ModeStrategiesTest, GradientsOfTwoBytesAreSummedAsAsked) {
  const auto bytes = [](const std::string& sync, const std::string& training = "") {
    const Plan plan = planned(std::string(kModePerceptron) + "training: {optimizer: sgd, mixed_precision: f16" +
                              training + "}\nparallel: {parallel_mode: data_parallel, mesh: {dp: 8}" + sync + "}\n");
    std::map<std::string, int> types;
    for (const Instruction& instruction : plan.program.instructions) {
      if (instruction.kind != InstructionKind::kCollective || instruction.pass == Pass::kForward) continue;
      ++types[std::string(to_string(plan.program.values[instruction.inputs[0]].type.dtype))];
    }
    return types;
  };
  EXPECT_EQ(bytes(""), (Counts{{"f32", 5}}));
  EXPECT_EQ(bytes(", gradient_fp32_sync: true"), (Counts{{"f32", 5}}));
  EXPECT_EQ(bytes(", gradient_fp32_sync: false"), (Counts{{"f16", 5}}));
  // With every micro-batch too. The loss and the new weights that stage 2 gathers are of two bytes.
  const std::string twice = ", micro_batches: 2";
  EXPECT_EQ(bytes(", zero: 2", twice), (Counts{{"f32", 5}, {"f16", 6}}));
  EXPECT_EQ(bytes(", zero: 2, gradient_fp32_sync: true", twice), (Counts{{"f32", 5}, {"f16", 6}}));
  EXPECT_EQ(bytes(", zero: 2, gradient_fp32_sync: false", twice), (Counts{{"f16", 11}}));
  EXPECT_EQ(bytes(", zero: 2", twice + ", gradient_dtype: f16"), (Counts{{"f16", 11}}));
}

// A sum over micro-batches is f32, so only each summand can be reduced as f16.
TEST(ModeStrategiesTest, ThatGradientsOfTwoBytesAreReducedWithEachMicroBatchIsSaid) {
  const auto says_so = [](const std::string& training, const std::string& parallel) {
    const Plan plan =
        planned(std::string(kModePerceptron) + "training: {optimizer: sgd, mixed_precision: f16" + training +
                "}\nparallel: {parallel_mode: data_parallel, mesh: {dp: 8}, gradient_fp32_sync: " + parallel + "}\n");
    return std::ranges::any_of(plan.notices, [](const std::string& notice) {
      return notice.find("reduces gradients with each of the 2 micro-batches") != std::string::npos;
    });
  };
  EXPECT_TRUE(says_so(", micro_batches: 2", "false"));
  EXPECT_TRUE(says_so(", micro_batches: 2", "false, zero: 1"));
  EXPECT_FALSE(says_so(", micro_batches: 2", "false, zero: 2"));  // as without it
  EXPECT_FALSE(says_so(", micro_batches: 2", "true"));
  EXPECT_FALSE(says_so("", "false"));
}

constexpr const char* kStoredInPieces = R"(
shardplan: 1
cluster: dgx-a100
dims: {B: 64}
inputs: {x: [B, 256]}
parameters: {v: {shape: [256, 256], strategy: "[{dp}, {}]"}, w: {shape: [256, 256], strategy: "[{dp}, {}]"}}
operators:
  a:    {op: MatMul, in: [x, v]}
  r:    {op: ReLU, in: a}
  b:    {op: MatMul, in: [r, w]}
  loss: {op: ReduceMean, in: b}
loss: loss
parallel: {parallel_mode: semi_auto_parallel, mesh: {dp: 8}}
)";

// The gradient of v does not need v; w is read again for the gradient of r.
TEST(ModeStrategiesTest, WhatIsStoredInPiecesIsGatheredAgainAndItsGradientSummedInPieces) {
  for (const Level level : kLevels) {
    const Counts found =
        collectives(planned(std::string(kStoredInPieces) + "training: {optimizer: momentum}\n", level));
    EXPECT_EQ(found.at("forward all_gather"), 2);
    EXPECT_EQ(found.at("backward all_gather"), 1);
    EXPECT_EQ(found.at("update reduce_scatter"), 2);
    EXPECT_FALSE(found.contains("update all_gather"));
  }
  const Plan plan =
      planned(std::string(kStoredInPieces) + "training: {optimizer: adamw, micro_batches: 4, mixed_precision: bf16}\n");
  int scattered = 0;
  for (const Instruction& instruction : plan.program.instructions) {
    if (instruction.kind != InstructionKind::kCollective || instruction.step->kind != CollectiveKind::kReduceScatter)
      continue;
    ++scattered;
    EXPECT_EQ(instruction.runs, 4) << instruction.name;
  }
  EXPECT_EQ(scattered, 2);
}

// The gradient of the sum is passed to both of its operands unchanged; the row-sharded product reads it gathered, the
// norm in pieces.
TEST(ModeStrategiesTest, AGradientThatIsHandedOnLiesAsEachForwardOperatorDoes) {
  const Plan plan = planned(R"(
shardplan: 1
cluster: dgx-a100
inputs: {x: [8, 64, 256]}
parameters: {w: [256, 256]}
operators:
  product: {op: MatMul, in: [x, w], in_strategy: ["[{}, {}, {tp}]", "[{tp}, {}]"], out_strategy: ["[{}, {tp}, {}]"]}
  sum:     {op: Add, in: [product, x], in_strategy: ["[{}, {tp}, {}]", "[{}, {tp}, {}]"]}
  square:  {op: Mul, in: [sum, sum], in_strategy: ["[{}, {tp}, {}]", "[{}, {tp}, {}]"]}
  loss:    {op: ReduceMean, in: square, in_strategy: ["[{}, {tp}, {}]"]}
loss: loss
training: {optimizer: sgd}
parallel: {parallel_mode: semi_auto_parallel, mesh: {tp: 8}}
)");
  // Each device has the rows of w that it multiplies, and computes their gradient alone: nothing of w is communicated.
  for (const Instruction& instruction : plan.program.instructions) {
    if (instruction.kind != InstructionKind::kCollective) continue;
    EXPECT_EQ(plan.program.values[instruction.inputs[0]].type.shape != Shape({256, 256}), true) << instruction.name;
  }
}

TEST(ModeStrategiesTest, TheSumOfMeansIsSoManyTimesTheMean) {
  const auto factors = [](const char* mean) {
    const Plan plan =
        planned(std::string(kModePerceptron) +
                "training: {optimizer: sgd}\nparallel: {parallel_mode: data_parallel, mesh: {dp: 8}" + mean + "}\n");
    int found = 0;
    for (const GraphTensor& tensor : plan.graph->tensors()) {
      if (tensor.name.ends_with(".devices") && tensor.fill.value == 8) ++found;
    }
    EXPECT_EQ(collectives(plan).at("update all_reduce"), 5);
    return found;
  };
  EXPECT_EQ(factors(""), 0);
  EXPECT_EQ(factors(", gradients_mean: true"), 0);
  EXPECT_EQ(factors(", gradients_mean: false"), 5);
}

TEST(ModeStrategiesTest, ABatchThatTheDevicesDoNotDivideIsRefused) {
  const std::string text = std::string(kModePerceptron) + "parallel: {parallel_mode: data_parallel, mesh: {dp: 8}}\n";
  ModelOverrides batch;
  batch.dims["B"] = 12;
  EXPECT_EQ(fault_of(text, batch),
            "m.yaml:4:10: error: x: data parallelism splits dimension 0 into 8, but its size is 12\n    possible "
            "sizes: 8 or 16, or fewer devices");
  batch.dims["B"] = 6;
  EXPECT_EQ(fault_of(text, batch),
            "m.yaml:4:10: error: x: data parallelism splits dimension 0 into 8, but its size is 6\n    possible sizes: "
            "8, or fewer devices");
  batch.dims["B"] = 1;
  EXPECT_EQ(fault_of(text, batch),
            "m.yaml:4:10: error: x: data parallelism splits dimension 0 into 8, but its size is 1\n    possible sizes: "
            "8, or fewer devices");
}

TEST(ModeStrategiesTest, ABatchMayBeCutUnequallyIfNothingForbidsIt) {
  const auto fault = [](const std::string& more) {
    ModelOverrides thirty;
    thirty.dims["B"] = 30;
    return fault_of(std::string(kModePerceptron) +
                        "training: {optimizer: sgd}\nparallel: {parallel_mode: data_parallel, mesh: {dp: 8}" + more +
                        "}\n",
                    thirty);
  };
  const std::string refusal =
      "m.yaml:4:10: error: x: data parallelism splits dimension 0 into 8, but its size is 30\n    possible sizes: 24 "
      "or 32, or fewer devices";
  EXPECT_EQ(fault(""), "");
  EXPECT_EQ(fault(", uneven: false"), refusal);
  EXPECT_EQ(fault(", gradients_mean: false"), refusal);  // the sum of the devices' means
}

constexpr char kSharedWeight[] = R"(
shardplan: 1
inputs: {x: [32, 64]}
parameters: {w: [64, 64]}
operators:
  a:    {op: MatMul, in: [x, w], in_strategy: ((1, 1), (1, 2))}
  b:    {op: MatMul, in: [a, w], in_strategy: ((1, 2), (2, 1))}
  loss: {op: ReduceMean, in: b}
loss: loss
training: {optimizer: sgd}
parallel: {parallel_mode: semi_auto_parallel, mesh: {mp: 2}, device_num: 2)";

TEST(ModeStrategiesTest, OneParameterInTwoStrategiesIsANoticeOrMindSporesError) {
  const Plan plan = planned(std::string(kSharedWeight) + "}\n");
  ASSERT_EQ(plan.notices.size(), 1u);
  EXPECT_EQ(plan.notices[0],
            "w: b reads it as [{mp}, {}], but a in line 6 as [{}, {mp}]; MindSpore refuses this, here it is "
            "redistributed");
  EXPECT_EQ(fault_of(std::string(kSharedWeight) + ", compat: mindspore-1.7}\n"),
            "m.yaml:7:47: error: w: b reads it as [{mp}, {}], but a in line 6 as [{}, {mp}]\n"
            "    MindSpore allows only one strategy per parameter");
}

// The document's column-sharded MatMul: the weight stays sharded in the backward pass and in the update, and nothing is
// summed.
TEST(ModeStrategiesTest, BackwardOperatorsLieAsTheForwardOperatorDoes) {
  const Plan plan = planned(R"(
shardplan: 1
inputs: {x: [32, 64]}
parameters: {w: [64, 64]}
operators:
  fc:   {op: MatMul, in: [x, w], in_strategy: ((1, 1), (1, 2))}
  act:  {op: ReLU, in: fc, in_strategy: ((1, 2),)}
  loss: {op: ReduceMean, in: act, in_strategy: ((1, 2),)}
loss: loss
training: {optimizer: momentum}
parallel: {parallel_mode: semi_auto_parallel, mesh: {mp: 2}, device_num: 2}
)");
  EXPECT_EQ(collectives(plan), (Counts{{"forward all_reduce", 1}}));
  const OperatorId gradient = *plan.graph->find_operator("grad.fc.MatMul");
  EXPECT_EQ(
      to_string(result_layout(plan.graph->operation(gradient), plan.strategies[gradient], plan.mesh, 0), plan.mesh),
      "[{}, {mp}]");
  const OperatorId update = *plan.graph->find_operator("update.w.ApplyMomentum");
  EXPECT_EQ(to_string(operand_layout(plan.graph->operation(update), plan.strategies[update], plan.mesh, 0), plan.mesh),
            "[{}, {mp}]");
}

TEST(ModeStrategiesTest, StandAloneIsOneDeviceAndKnowsNoStrategies) {
  const std::string text = std::string(kModePerceptron) +
                           "training: {optimizer: sgd}\nparallel: {parallel_mode: stand_alone}\n"
                           "strategies: {act1: {in_strategy: ((8, 1),)}}\n";
  const Plan plan = planned(text);
  EXPECT_EQ(plan.mesh.num_devices(), 1);
  EXPECT_TRUE(collectives(plan).empty());
  EXPECT_EQ(plan.notices, std::vector<std::string>{"strategies are not used in parallel_mode stand_alone"});
}

TEST(ModeStrategiesTest, StandAloneSaysWhatItDoesNotUse) {
  const auto notices = [](const std::string& more) {
    const Model model = read_model_text(
        std::string(kModePerceptron) + "parallel: {parallel_mode: stand_alone" + more + "}\n", "m.yaml");
    const JobCluster job = job_cluster(model, {});
    EXPECT_EQ(job.cluster.num_devices(), 1);
    return job.notices;
  };
  EXPECT_TRUE(notices("").empty());
  EXPECT_TRUE(notices(", device_num: 1").empty());
  EXPECT_EQ(notices(", device_num: 4"),
            std::vector<std::string>{"device_num is not used: parallel_mode stand_alone is one device"});
}

TEST(ModeStrategiesTest, InPynativeWhatIsNotShardedIsDataParallel) {
  const std::string text = std::string(kModePerceptron) +
                           "mode: pynative\nparallel: {mesh: {dp: 8}}\n"
                           "strategies: {fc2: {in_strategy: ((1, 8),)}}\n";
  const Plan plan = planned(text, Level::kMemory);
  const auto layout = [&](const char* name) {
    const OperatorId op = *plan.graph->find_operator(name);
    return to_string(operand_layout(plan.graph->operation(op), plan.strategies[op], plan.mesh, 0), plan.mesh);
  };
  EXPECT_EQ(layout("fc1.matmul"), "[{dp}, {}]");
  EXPECT_EQ(layout("both"), "[{dp}, {}]");
  EXPECT_EQ(layout("fc2.in0"), "[{}, {dp}]");
}

}  // namespace
}  // namespace shardplan
