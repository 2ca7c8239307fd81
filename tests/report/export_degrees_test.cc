// What frameworks with one setting for the whole model are told of a plan: the nearest plan of their kind, what it costs,
// in which type it reduces gradients, what differs, and what they cannot run at all.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/units.h"
#include "model/read_model.h"
#include "planner/model_planner.h"
#include "report/export/export.h"
#include "report/export/kept_types.h"
#include "report/export/uniform_plan.h"
#include "tests/support/hand_plan.h"
#include "tests/support/marked_model.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

/// What is tested is what is said of plans, not how good they are.
constexpr std::uint64_t kWorkOfKinds = 500'000'000;

/// Given the planner that made the plan, the export shows the cost of the nearest plan that the framework can express
/// beside that of the plan; if the framework can express the plan itself, there is nothing to show.
TEST(ExportDegreesTest, SaysWhatTheNearestPlanOfAKindCosts) {
  const auto planner_of = [](const std::string& parallel, const std::string& training) {
    const auto model = std::make_shared<const Model>(read_model_text(R"(shardplan: 1
model: layers
dims: {B: 32, S: 64, H: 512, F: 4*H}
inputs: {x: [B, S, H]}
operators:
  mix:  {op: Softmax, in: x}
  norm: {block: nn.LayerNorm, in: mix}
  up:   {block: nn.Dense, in: norm, out_channels: F}
  gelu: {op: GeLU, in: up}
  down: {block: nn.Dense, in: gelu, out_channels: H}
  loss: {op: ReduceMean, in: down}
loss: loss
training: {optimizer: adam)" + training + "}\nparallel: " + parallel + "\n",
                                                                     "m.yaml"));
    PlanOptions options;
    options.work_limit = kWorkOfKinds;
    return ModelPlanner(model, read_cluster("ascend-910"), options);
  };
  // Without micro-batches ZeRO-1 is ZeRO-2.
  const std::pair<const char*, const char*> stages[] = {
      {"", ""}, {", ZeRO-1", ", ZeRO-2"}, {", ZeRO-2", ", ZeRO-2"}, {", ZeRO-3", ", ZeRO-3"}};
  for (int zero = 0; zero <= 3; ++zero) {
    for (const bool has_micro_batches : {true, false}) {
      const ModelPlanner by_mode = planner_of(fmt::format("{{parallel_mode: data_parallel, zero: {}}}", zero),
                                              has_micro_batches ? ", micro_batches: 2" : "");
      const Plan plan = by_mode.plan(Level::kSpeed, "auto");
      for (const char* target : {"megatron", "deepspeed", "torchtitan"}) {
        const ExportedText exported = export_plan(plan, target, &by_mode);
        expect_has(exported.text, fmt::format("# The plan is of this kind: data 8 x tensor 1{}.",
                                              has_micro_batches ? stages[zero].first : stages[zero].second));
        EXPECT_EQ(exported.nearest, "");
      }
    }
  }
  const ModelPlanner planner = planner_of("{}", "");
  for (const Level level : {Level::kMemory, Level::kSpeed}) {
    const Plan plan = planner.plan(level, "auto");
    GlobalDegrees degrees = nearest_degrees(plan);
    if (uniform_plan(plan, degrees).differences.empty()) continue;
    degrees.gathers_again = degrees.sequence;  // as Megatron does
    std::string why;
    const std::optional<Plan> nearest = planner.plan_of_degrees(plan, degrees, &why);
    const ExportedText exported = export_plan(plan, "megatron", &planner);
    const std::string expected =
        nearest ? fmt::format(" takes {} a step and {} at level {}, this plan {} and {}",
                              format_time(nearest->time.step()), format_bytes(nearest->memory.peak), number_of(level),
                              format_time(plan.time.step()), format_bytes(plan.memory.peak))
                : " cannot be planned: " + why;
    expect_has(exported.nearest, expected);
    expect_has(exported.text, "# The nearest plan of this kind, data ");
  }
}

TEST(ExportDegreesTest, ExpertParallelismIsADegree) {
  PlanOptions options;
  options.level = Level::kSpeed;
  options.overlap = false;  // else replicated experts are as fast
  const Plan plan =
      ModelPlanner(std::make_shared<const Model>(read_model("configs/mixture.yaml")), read_cluster("dgx-a100"), options)
          .plan(Level::kSpeed, "auto");
  const ExportedText megatron = export_plan(plan, "megatron");
  EXPECT_EQ(megatron.cannot_say,
            std::vector<std::string>{"the network: pretrain_gpt.py runs transformers, and it has no attention"});
  expect_has(megatron.text, "# The nearest plan of this kind is data 8 x tensor 1, experts in 8. Where this plan ");
  expect_has(megatron.text, "  --grad-reduce-in-bf16\n  --bf16\n");
  expect_has(megatron.text, "  --expert-model-parallel-size 8\n  --expert-tensor-parallel-size 1\n");
  const std::string torchtitan = export_plan(plan, "torchtitan").text;
  expect_has(torchtitan, "#   gradients are reduced as bf16, kept as f32\n");
  expect_has(torchtitan, "  --parallelism.expert_parallel_degree 8\n");
  expect_has(export_plan(plan, "vllm").text, "  --enable-expert-parallel\n");
  EXPECT_EQ(export_plan(plan, "deepspeed").text.find("experts in"), std::string::npos) << "it has no such setting";
}

/// All but DeepSpeed without its tensor parallelism bring their own models.
TEST(ExportDegreesTest, NetworksThatAProgramDoesNotRunAreSaid) {
  const auto model = std::make_shared<const Model>(read_model_text(R"(shardplan: 1
inputs: {x: [8, 4, 32, 32]}
operators:
  c:    {block: nn.Conv2d, in: x, out_channels: 4, kernel_size: 3}
  loss: {op: ReduceMean, in: c}
loss: loss
training: {optimizer: sgd}
parallel: {parallel_mode: data_parallel}
)",
                                                                   "m.yaml"));
  const Plan plan = ModelPlanner(model, read_cluster("dgx-a100"), {}).plan(Level::kRatio, "auto");
  const auto says = [&](const char* target, const std::string& program) {
    const std::string line = "the network: " + program + " runs transformers, and it has no attention\n";
    return export_plan(plan, target).text.find(line) != std::string::npos;
  };
  EXPECT_TRUE(says("megatron", "pretrain_gpt.py"));
  EXPECT_TRUE(says("torchtitan", "torchtitan"));
  EXPECT_TRUE(says("vllm", "vLLM"));
  EXPECT_FALSE(says("deepspeed", "DeepSpeed's AutoTP"));
}

/// Before any difference of degrees.
TEST(ExportDegreesTest, WhatAProgramCannotRunAtAllIsSaidFirst) {
  const Plan plan = tiny_plan();
  expect_has(export_plan(plan, "vllm").text,
             "Where this plan differs:\n#   the plan is for training\n"
             "#   the network: vLLM runs transformers, and it has no attention\n#   wte.gather: ");
  expect_has(export_plan(plan, "megatron").text,
             "Where this plan differs:\n"
             "#   the network: pretrain_gpt.py runs transformers, and it has no attention\n#   wte.gather: ");
}

/// Two products around attention, by data parallelism of the given kind.
ModelPlanner planner_of_products(const std::string& training, const std::string& parallel) {
  const auto model = std::make_shared<const Model>(read_model_text(R"(shardplan: 1
dims: {B: 64, H: 256, F: 4*H}
inputs: {x: [B, H]}
operators:
  up:   {block: nn.Dense, in: x, out_channels: F, has_bias: false}
  mix:  {op: Softmax, in: up}
  down: {block: nn.Dense, in: mix, out_channels: H, has_bias: false}
  loss: {op: ReduceMean, in: down}
loss: loss
training: {optimizer: adamw)" + training + "}\nparallel: {" + parallel +
                                                                       "}\n",
                                                                   "m.yaml"));
  return ModelPlanner(model, read_cluster("dgx-h100"), {});
}

/// Megatron-LM has options for it; torchtitan reduces as f32, and its nearest plan is charged for that.
TEST(ExportDegreesTest, GradientsAreReducedInTheTypeThatIsCharged) {
  const std::string narrow = "parallel_mode: data_parallel, gradient_fp32_sync: false";
  const ModelPlanner free = planner_of_products(", mixed_precision: bf16", "");
  for (const int zero : {0, 3}) {
    const ModelPlanner by_mode =
        planner_of_products(", mixed_precision: bf16", fmt::format("{}, zero: {}", narrow, zero));
    const Plan plan = by_mode.plan(Level::kSpeed, "auto");
    const std::string megatron = export_plan(plan, "megatron", &free).text;
    expect_has(megatron, "# The plan is of this kind: data 8 x tensor 1");
    expect_has(megatron, zero == 0 ? "  --grad-reduce-in-bf16\n  --bf16\n"
                                   : "  --grad-reduce-in-bf16\n"
                                     "  --megatron-fsdp-grad-comm-dtype bf16 --megatron-fsdp-main-grads-dtype fp32\n");
    GlobalDegrees degrees = nearest_degrees(plan);
    EXPECT_EQ(degrees.zero, zero);
    degrees.reduces_wide = true;
    std::string why;
    const std::optional<Plan> wide = free.plan_of_degrees(plan, degrees, &why);
    ASSERT_TRUE(wide) << why;
    EXPECT_EQ(short_sums(plan, kept_types(*plan.graph)), DataType::kBF16);
    EXPECT_EQ(short_sums(*wide, kept_types(*wide->graph)), std::nullopt);
    const ExportedText torchtitan = export_plan(plan, "torchtitan", &free);
    EXPECT_EQ(torchtitan.cannot_say, std::vector<std::string>{"gradients are reduced as bf16, kept as f32"});
    expect_has(torchtitan.nearest, fmt::format(" takes {} a step and {} at level 2", format_time(wide->time.step()),
                                               format_bytes(wide->memory.peak)));
  }
}

/// Sums over micro-batches in pieces take their summands in two bytes, unless a mode asks for others: no plan of this
/// graph can be charged as torchtitan would be.
TEST(ExportDegreesTest, APlanThatReducesInTwoBytesIsSaidToBeTooFast) {
  const char* const training = ", mixed_precision: bf16, micro_batches: 4";
  const ModelPlanner by_mode =
      planner_of_products(training, "parallel_mode: data_parallel, gradient_fp32_sync: false, zero: 3");
  const ModelPlanner free = planner_of_products(training, "");
  const Plan plan = by_mode.plan(Level::kSpeed, "auto");
  expect_has(export_plan(plan, "torchtitan", &free).nearest, "; gradients reduced as f32, as there, take longer");
  const std::string megatron = export_plan(plan, "megatron", &free).text;
  EXPECT_EQ(megatron.find("take longer"), std::string::npos) << megatron;
  expect_has(megatron, "  --megatron-fsdp-grad-comm-dtype bf16 --megatron-fsdp-main-grads-dtype fp32\n");
}

/// torchtitan has words for both: copies of what is sharded, and weights kept for the backward pass.
TEST(ExportDegreesTest, TorchtitanShardsInGroupsAndKeepsWeights) {
  const ModelPlanner hybrid = planner_of_products("",
                                                  "parallel_mode: semi_auto_parallel, mesh: {r: 2, s: 4}}\n"
                                                  "strategies: {up.weight: {strategy: \"[{s}, {}]\"}, down.weight: "
                                                  "{strategy: \"[{s}, {}]\"}");
  const ExportedText in_groups = export_plan(hybrid.plan(Level::kRatio, "auto"), "torchtitan", &hybrid);
  expect_has(in_groups.text, "# The plan is of this kind: data 8 x tensor 1, ZeRO-3 in 2 copies.\n");
  expect_has(in_groups.text,
             "  --parallelism.data_parallel_replicate_degree 2\n  --parallelism.data_parallel_shard_degree 4\n");
  expect_has(in_groups.text, "  --parallelism.fsdp_reshard_after_forward always\n");

  const ModelPlanner keeping =
      planner_of_products("", "parallel_mode: data_parallel, zero: 3, reshard_after_forward: false");
  const ExportedText kept = export_plan(keeping.plan(Level::kRatio, "auto"), "torchtitan", &keeping);
  expect_has(kept.text, "# The plan is of this kind: data 8 x tensor 1, ZeRO-3, weights kept gathered.\n");
  expect_has(kept.text, "  --parallelism.fsdp_reshard_after_forward never\n");
}

/// Whole layers are recomputed by one option; of parts of them these frameworks have only a selection of their own.
TEST(ExportDegreesTest, RecomputedPartsOfLayersAreSaid) {
  const auto exported = [](const char* names, const char* target) {
    const auto model = std::make_shared<const Model>(
        read_model_text(layered_model(fmt::format(", recompute: [{}]", names)) + "cluster: dgx-a100\n", "m.yaml"));
    return export_plan(ModelPlanner(model, read_cluster("dgx-a100"), {}).plan(Level::kRatio, "auto"), target).text;
  };
  const char* const parts = "layers.*.gelu, layers.*.drop, layers.*.norm, layers.*.up";
  expect_has(exported("layers.*", "megatron"), "--recompute-granularity full ");
  expect_has(exported(parts, "megatron"), "--recompute-granularity selective\n");
  expect_has(exported(parts, "megatron"), "recomputed: layers.*.gelu, layers.*.drop, layers.*.norm and 1 more\n");
  expect_has(exported("layers.*.norm.*", "megatron"), "recomputed: layers.*.norm.*\n");
  expect_has(exported("layers", "torchtitan"), "--activation_checkpoint.mode full\n");
  expect_has(exported(parts, "torchtitan"), "--activation_checkpoint.mode selective ");
  expect_has(exported("layers.*", "deepspeed"), "#   recomputed in the backward pass: layers.*\n");
  expect_has(exported("layers.*", "mindspore"), "        copy = net.layers[i]\n        copy.recompute()\n");
  expect_has(exported("layers.*.gelu", "mindspore"), "        copy.gelu.recompute()\n");
}

TEST(ExportDegreesTest, ClippingIsAnOption) {
  const ModelPlanner planner = planner_of_products(", clip_norm: 0.5", "parallel_mode: data_parallel");
  const Plan plan = planner.plan(Level::kRatio, "auto");
  expect_has(export_plan(plan, "megatron").text, "  --clip-grad 0.5\n");
  expect_has(export_plan(plan, "torchtitan").text, "  --training.max_norm 0.5\n");
  expect_has(export_plan(plan, "deepspeed").text, "    \"gradient_clipping\": 0.5,\n");
}

/// Weights of ZeRO-3 are gathered with every micro-batch, which takes longer than to keep them.
TEST(ExportDegreesTest, AFasterStageOfZeroIsNamed) {
  const ModelPlanner by_mode = planner_of_products(", micro_batches: 4", "parallel_mode: data_parallel, zero: 3");
  const ModelPlanner free = planner_of_products(", micro_batches: 4", "");
  Plan plan = by_mode.plan(Level::kSpeed, "auto");
  const TensorVersions versions = tensor_versions(*plan.graph);
  for (const VersionId id : versions.all.ids()) {
    const bool is_kept = versions.all[id].kind == TensorVersion::Kind::kKept;
    if (!is_kept || plan.graph->tensor(versions.all[id].tensor).name != "down.weight") continue;
    plan.versions[id] = TensorLayout::replicated(2);
  }
  GlobalDegrees degrees = nearest_degrees(plan);
  ASSERT_EQ(degrees.zero, 3);
  std::optional<Plan> fastest;
  for (const int zero : {0, 1, 2}) {
    degrees.zero = zero;
    std::string why;
    std::optional<Plan> found = free.plan_of_degrees(plan, degrees, &why);
    if (found && (!fastest || found->time.step() < fastest->time.step())) fastest = std::move(found);
  }
  ASSERT_TRUE(fastest);
  const std::string text = export_plan(plan, "deepspeed", &free).nearest;
  EXPECT_TRUE(text.ends_with(
      fmt::format(" it would take {} and {}", format_time(fastest->time.step()), format_bytes(fastest->memory.peak))))
      << text;
  plan.options.level = Level::kRatio;
  EXPECT_EQ(export_plan(plan, "deepspeed", &free).nearest.find("it would take"), std::string::npos);
}

}  // namespace
}  // namespace shardplan
