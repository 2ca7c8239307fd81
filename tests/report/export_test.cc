// Exports are executed: by Python with stand-ins for the frameworks (tests/report/stubs), which report what each device
// would hold; by bash; and, for Shardy, by a checker of the grammar. What a device should hold is taken from the
// program's values and `held_indices`, which exports do not use.

#include "report/export/export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/stored_updates.h"
#include "model/read_model.h"
#include "planner/job_cluster.h"
#include "planner/model_planner.h"
#include "report/export/python_text.h"
#include "report/export/uniform_plan.h"
#include "report/metrics/plan_metrics.h"
#include "tests/report/sdy_checker.h"
#include "tests/support/files.h"
#include "tests/support/golden.h"
#include "tests/support/hand_plan.h"
#include "tests/support/marked_model.h"
#include "tests/support/python.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

/// By point of the mesh, the begin and end of its piece in every dimension; "None" if some piece is not contiguous.
std::string held_text(const TensorLayout& layout, const Plan& plan, const Shape& shape) {
  std::vector<std::string> points;
  for (std::int64_t point = 0; point < plan.mesh.num_devices(); ++point) {
    std::vector<std::string> ranges;
    for (const std::vector<std::int64_t>& held : held_indices(layout, plan.mesh, shape, point)) {
      if (held.empty() || held.back() - held.front() + 1 != static_cast<std::int64_t>(held.size())) return "None";
      ranges.push_back(fmt::format("({}, {})", held.front(), held.back() + 1));
    }
    points.push_back(python_tuple(ranges));
  }
  return fmt::format("[{}]", fmt::join(points, ", "));
}

/// The plan as expected.py, which check_export.py compares with the exported text.
std::string expected_python(const Plan& plan) {
  const OperatorGraph& graph = *plan.graph;
  std::string inputs, parameters, states, owners, results, operands;
  for (const Binding& binding : plan.program.given) {
    const GraphTensor& tensor = graph.tensor(binding.tensor);
    const std::string entry =
        fmt::format("  {}: ({}, {}),\n", python_text(tensor.name), python_tuple(tensor.type.shape),
                    held_text(plan.program.values[binding.value].layout, plan, tensor.type.shape));
    if (tensor.kind == TensorKind::kInput) inputs += entry;
    if (tensor.kind == TensorKind::kParameter) parameters += entry;
    if (tensor.kind == TensorKind::kState && !tensor.type.shape.empty()) {
      states += entry;
      const std::string owner = tensor.state_of ? graph.tensor(*tensor.state_of).name : tensor.name;
      owners += fmt::format("  {}: {},\n", python_text(tensor.name), python_text(owner));
    }
  }
  for (const OperatorId op : graph.operators().ids()) {
    if (graph.operators()[op].pass != Pass::kForward || is_border(graph, op)) continue;
    const TensorId result = graph.operators()[op].results[0];
    std::vector<std::string> held;
    for (const ProgramValue& value : plan.program.values) {
      if (value.tensor != result || !value.layout->partial.empty()) continue;
      held.push_back(held_text(value.layout, plan, value.type.shape));
    }
    results += fmt::format("  {}: ({}, [{}]),\n", python_text(graph.operators()[op].name),
                           python_tuple(graph.tensor(result).type.shape), fmt::join(held, ", "));
    std::vector<std::string> pieces;
    for (std::size_t i = 0; i < graph.operation(op).operands.size(); ++i) {
      std::vector<std::int64_t> of_operand;
      for (const DimensionLayout& d :
           operand_layout(graph.operation(op), plan.strategies[op], plan.mesh, i).dimensions) {
        of_operand.push_back(d.num_pieces());
      }
      pieces.push_back(python_tuple(of_operand));
    }
    if (graph.operation(op).type->name == "OneHot") {  // MindSpore's: the result's, and two values
      std::vector<std::int64_t> of_result;
      for (const DimensionLayout& d :
           result_layout(graph.operation(op), plan.strategies[op], plan.mesh, 0).dimensions) {
        of_result.push_back(d.num_pieces());
      }
      pieces = {python_tuple(of_result), "()", "()"};
    }
    operands += fmt::format("  {}: [{}],\n", python_text(graph.operators()[op].name), fmt::join(pieces, ", "));
  }
  return fmt::format(
      "NUM_DEVICES = {}\nINPUTS = {{\n{}}}\nPARAMETERS = {{\n{}}}\nSTATES = {{\n{}}}\nOWNERS = {{\n{}}}\n"
      "RESULTS = {{\n{}}}\nOPERANDS = {{\n{}}}\n",
      plan.mesh.num_devices(), inputs, parameters, states, owners, results, operands);
}

/// Whether `text` runs and describes the plan, except for what the export rejects.
bool runs_in_python(const Plan& plan, const std::string& target, const std::string& text,
                    const std::string& redirection = "") {
  const std::string check = std::filesystem::absolute("tests/report/stubs/check_export.py").string();
  return python_runs(check + " " + target + redirection,
                     {{"plan.py", text},
                      {"expected.py", expected_python(plan)},
                      {"cannot_say.txt", fmt::format("{}\n", fmt::join(export_plan(plan, target).cannot_say, "\n"))}},
                     "tests/report/stubs", fmt::format("SHARDPLAN_TEST_DEVICES={}", plan.mesh.num_devices()));
}

/// The plan found by a short search; the test fails if there is none.
Plan found_plan(const std::string& file, Level level, std::map<std::string, std::int64_t> dims = {},
                const std::string& cluster = "ascend-910") {
  ModelOverrides overrides;
  overrides.dims = std::move(dims);
  auto model = std::make_shared<const Model>(read_model(file, overrides));
  PlanOptions options;
  options.level = level;
  options.work_limit = 1;
  const JobCluster job = job_cluster(*model, {.cluster = cluster, .device_num = {}, .rank_table = {}});
  const ModelPlanner planner(model, job.cluster, options);
  Plan plan = planner.plan(level, "auto");
  EXPECT_TRUE(plan.status == PlanStatus::kOptimal || plan.status == PlanStatus::kFeasible) << file;
  return plan;
}

TEST(ExportTest, SaysInEveryToolsWordsWhatItCan) {
  const Plan plan = tiny_plan();
  for (const std::string& target : export_targets()) {
    expect_golden("report/export_" + target + ".txt", export_plan(plan, target).text);
  }
  EXPECT_EQ(export_plan(plan, "jax").cannot_say, std::vector<std::string>());
  EXPECT_EQ(export_plan(plan, "dtensor").cannot_say.size(), 1U);
  EXPECT_THROW(export_plan(plan, "tensorflow"), InputError);
}

TEST(ExportTest, PythonRunsAndPlacesEveryTensorAsThePlanDoes) {
  if (!has_python()) GTEST_SKIP() << "there is no python3: what is exported is not run";
  const std::map<std::string, std::int64_t> small{{"L", 2}, {"V", 512}};
  const std::pair<const char*, Plan> plans[] = {
      {"tiny", tiny_plan()},
      {"block", block_plan()},
      {"mlp level 1", found_plan("configs/mlp.yaml", Level::kMemory)},
      {"mlp level 2 on 64 devices", found_plan("configs/mlp.yaml", Level::kSpeed, {}, "dgx-a100x8")},
      {"gpt2 level 0", found_plan("configs/gpt2-small.yaml", Level::kRatio, small)},
      {"lenet on two tori", found_plan("configs/lenet.yaml", Level::kRatio, {}, "tpu-v5px2")},
      {"lenet level 0", found_plan("configs/lenet.yaml", Level::kRatio)},
  };
  for (const auto& [name, plan] : plans) {
    for (const char* target : {"jax", "dtensor", "mindspore", "deepspeed"}) {
      EXPECT_TRUE(runs_in_python(plan, target, export_plan(plan, target).text)) << name << " for " << target;
    }
    EXPECT_EQ(sdy_fault(export_plan(plan, "shardy").text), "") << name;
  }
}

// Devices of a TPU are not numbered along the dimensions of its torus, and slices not together.
TEST(ExportTest, JaxArrangesTheDevicesOfATorusItself) {
  const auto has = [](const char* cluster, const char* text) {
    const Plan plan = found_plan("configs/lenet.yaml", Level::kRatio, {}, cluster);
    return export_plan(plan, "jax").text.find(text) != std::string::npos;
  };
  EXPECT_TRUE(has("tpu-v5p", "mesh_utils.create_device_mesh((4, 4, 4), allow_split_physical_axes=True)"));
  EXPECT_TRUE(has("tpu-v5px2", "mesh_utils.create_hybrid_device_mesh((1, 4, 4, 4), (2, 1, 1, 1), "));
  EXPECT_TRUE(has("dgx-a100x2", "numpy.array(jax.devices())"));
}

/// The check itself detects mistakes: each of these texts is rejected.
TEST(ExportTest, TheCheckersFindFaults) {
  const std::string right = export_plan(tiny_plan(), "shardy").text;
  ASSERT_EQ(sdy_fault(right), "");
  const std::pair<const char*, const char*> changes[] = {
      {"[{\"pcie\"}, {}, {}]>", "[{\"pcie\"}, {}]>"},
      {"[{\"pcie\"}, {}]>", "[{\"pcie\"}, {\"pcie\"}]>"},
      {"[{\"hccs\"}, {}]>", "[{\"hcc\"}, {}]>"},
      {"[{\"hccs\"}, {}]>", "[{\"hccs\":(1)3}, {}]>"},
      {"return %y", "return %z"},
      {"@mesh, [", "@other, ["},
      {"[{\"hccs\"}, {}]>", "[{\"hccs\":(1)2, \"hccs\":(2)2}, {}]>"},
      {"[{\"hccs\"}, {}]>", "[{\"hccs\"}, {}], unreduced={\"hccs\"}>"},
      {"[{}, {}]>", "[{}, {}], unreduced={\"hccs\", \"pcie\"}>"}};
  for (const auto& [from, to] : changes) {
    std::string wrong = right;
    const std::size_t at = wrong.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    wrong.replace(at, std::string(from).size(), to);
    EXPECT_NE(sdy_fault(wrong), "") << from << " as " << to;
  }
  if (!has_python()) return;
  struct Change {
    const char* target;
    const char* from;
    const char* to;
  };
  const Plan plan = tiny_plan();
  for (const Change& change :
       {Change{"jax", "S(\"hccs\", None)", "S(\"pcie\", None)"}, Change{"jax", "layers.{i}.up", "layers.{i}.down"},
        Change{"dtensor", "(Shard(0), Replicate())", "(Replicate(), Shard(0))"},
        Change{"dtensor", "(Replicate(), Shard(0))", "(Replicate(), Shard(2))"},
        Change{"mindspore", "((2, 1, 1), (1, 1))", "((1, 1, 1), (1, 1))"},
        Change{"mindspore", "device_num", "device_count"}}) {
    std::string wrong_text = export_plan(plan, change.target).text;
    const std::size_t at = wrong_text.find(change.from);
    ASSERT_NE(at, std::string::npos) << change.from;
    wrong_text.replace(at, std::string(change.from).size(), change.to);
    EXPECT_FALSE(runs_in_python(plan, change.target, wrong_text, " >faults.txt 2>&1"))
        << change.target << ": " << change.from << " as " << change.to;
  }
}

TEST(ExportTest, DegreesAreThoseOfTheNearestUniformPlan) {
  const Plan small = found_plan("configs/mlp.yaml", Level::kMemory);
  const UniformPlan mlp = uniform_plan(small, nearest_degrees(small));
  EXPECT_EQ(mlp.data * mlp.tensor * mlp.context, 8);
  const Plan gpt2 = found_plan("configs/gpt2-small.yaml", Level::kSpeed, {{"L", 2}, {"V", 512}});
  const UniformPlan uniform = uniform_plan(gpt2, nearest_degrees(gpt2));
  EXPECT_EQ(uniform.data, 8);
  EXPECT_EQ(uniform.tensor, 1);
  EXPECT_EQ(uniform.micro_batch * uniform.data, uniform.global_batch);
  for (const char* target : {"megatron", "torchtitan"}) {
    const ExportedText exported = export_plan(gpt2, target);
    const std::string variable = target == std::string("megatron") ? "MEGATRON" : "TORCHTITAN";
    const TemporaryFolder folder;
    write_file(folder.at("flags.sh"), exported.text);
    const std::string command = fmt::format(
        "bash -euc '. {}/flags.sh; for word in \"${{{}[@]}}\"; do "
        "[[ \"$word\" == --* || \"$word\" =~ ^[a-z0-9_]+$ ]]; done'",
        folder.path(), variable);
    EXPECT_EQ(std::system(command.c_str()), 0) << exported.text;
  }
}

/// Caches are laid out like the work on their sequences and heads in plans of global degrees, not kept by all devices.
TEST(ExportTest, ADecodingStepIsEngineArguments) {
  const auto model = std::make_shared<const Model>(
      read_model("configs/models/llama3-70b-decode.yaml", {{{"L", 2}, {"V", 1024}, {"T", 2048}}, {}}));
  const ModelPlanner planner(model, read_cluster("dgx-h100"), {});
  GlobalDegrees degrees;
  degrees.tensor = {AxisRef{0, 2, 4}};  // of 8: data in 2
  const Plan plan = planner.plan(Level::kSpeed, "auto");
  std::string why;
  const std::optional<Plan> uniform = planner.plan_of_degrees(plan, degrees, &why);
  ASSERT_TRUE(uniform) << why;
  Bytes caches = 0, held = 0;
  const TensorVersions versions = tensor_versions(*uniform->graph);
  for (const VersionId id : versions.all.ids()) {
    const TensorVersion& version = versions.all[id];
    if (!is_cache(*uniform->graph, version.tensor)) continue;
    if (version.kind != TensorVersion::Kind::kStored) continue;
    caches += uniform->graph->tensor(version.tensor).type.bytes();
    held += local_bytes(uniform->graph->tensor(version.tensor).type, uniform->versions[id]);
  }
  EXPECT_EQ(caches, Bytes{2} * 2 * 128 * 8 * 2048 * 128 * 2);
  EXPECT_EQ(held, caches / 8);
  const ExportedText exported = export_plan(*uniform, "vllm", &planner);
  expect_has(exported.text,
             "  --tensor-parallel-size 4\n  --data-parallel-size 2\n  --max-num-seqs 64\n"
             "  --max-model-len 2048\n)\n");
  EXPECT_EQ(exported.text.find("is for"), std::string::npos) << exported.text;
  const Plan trained = found_plan("configs/mlp.yaml", Level::kMemory);
  expect_has(export_plan(trained, "vllm").text, "#   the plan is for training\n");
  EXPECT_EQ(export_plan(trained, "megatron").text.find("is for"), std::string::npos);
  expect_has(export_plan(plan, "megatron").text, "#   the plan is for inference\n");
}

/// Frameworks choose the products themselves, in whole layers.
TEST(ExportTest, ProductsInF8AreSaid) {
  const auto plan_of = [](const std::string& marks, const std::string& training) {
    const auto model = std::make_shared<const Model>(read_model_text(R"(shardplan: 1
dtype: bf16
dims: {B: 32, C: 64}
inputs: {x: [B, C]}
blocks:
  layer:
    inputs: {x: [B, C]}
    operators: {up: {block: nn.Dense, in: x, out_channels: C}, down: {block: nn.Dense, in: up, out_channels: C}}
operators:
  layers: {block: layer, in: x, repeat: 2}
  loss:   {op: ReduceSum, in: layers}
fp8: [)" + marks + "]\n" + training + "parallel: {parallel_mode: data_parallel}\n",
                                                                     "m.yaml"));
    return ModelPlanner(model, read_cluster("dgx-h100"), {}).plan(Level::kRatio, "auto");
  };
  const char* const training = "loss: loss\ntraining: {optimizer: sgd}\n";
  const Plan whole = plan_of("layers.*", training), parts = plan_of("layers.*.up", training);
  expect_has(export_plan(whole, "megatron").text, "  --fp8-format hybrid --fp8-recipe tensorwise\n");
  expect_has(export_plan(whole, "torchtitan").text, "  --model.converters float8\n");
  expect_has(export_plan(whole, "deepspeed").text, "products of layers.* multiply in f8");
  expect_has(export_plan(plan_of("layers.*", ""), "vllm").text, "  --quantization fp8\n");
  const auto narrow = std::make_shared<const Model>(read_model_text(
      "shardplan: 1\ninputs: {x: [32, 64]}\nparameters: {w: [64, 64]}\noperators: {y: {op: MatMul, in: [x, w]}}\n"
      "int8_weights: [y]\n",
      "m.yaml"));
  const Plan of_narrow = ModelPlanner(narrow, read_cluster("dgx-h100"), {}).plan(Level::kRatio, "auto");
  expect_has(export_plan(of_narrow, "vllm").text, "weights of y are stored in i8");
  for (const char* target : {"megatron", "torchtitan"}) {
    expect_has(export_plan(parts, target).text, "products in f8: layers.*.up");
    EXPECT_EQ(export_plan(whole, target).text.find("products in f8"), std::string::npos);
  }
}

TEST(ExportTest, ACacheOfF8IsSaid) {
  const auto model = std::make_shared<const Model>(read_model_text(R"(shardplan: 1
dtype: bf16
inputs: {k: [8, 4, 1, 16], position: {shape: [8], dtype: i32}}
parameters: {keys: {shape: [8, 4, 64, 16], dtype: f8e4m3, requires_grad: false}}
operators:
  all: {op: KVCacheScatterUpdate, in: [keys, position, k]}
  sum: {op: ReduceSum, in: all, axis: 2}
)",
                                                                   "m.yaml"));
  const Plan plan = ModelPlanner(model, read_cluster("dgx-h100"), {}).plan(Level::kRatio, "auto");
  expect_has(export_plan(plan, "vllm").text, "  --max-model-len 64\n  --kv-cache-dtype fp8\n)\n");
}

/// vLLM's caches have the sequences of their engine, the heads of their device, and tokens in pieces only where devices
/// would hold the same heads.
TEST(ExportTest, HowEnginesStoreCachesIsADegree) {
  const auto exported = [](std::int64_t heads, const std::string& cache) {
    const auto model = std::make_shared<const Model>(read_model_text(fmt::format(R"(shardplan: 1
dtype: bf16
dims: {{B: 4, T: 64, H: 8, G: {}, D: 16}}
inputs:
  x:        {{shape: [B, H*D], strategy: "[{{}}, {{}}]"}}
  k:        [B, G, 1, D]
  position: {{shape: [B], dtype: i32}}
parameters: {{keys: {{shape: [B, G, T, D], requires_grad: false, strategy: "{}"}}, w: {{shape: [H*D, H*D], strategy: "[{{}}, {{nvlink}}]"}}}}
operators:
  q:       {{op: MatMul, in: [x, w], in_strategy: [[1, 1], [1, 8]]}}
  heads:   {{op: Reshape, in: q, shape: [B, H, 1, D]}}
  all:     {{op: KVCacheScatterUpdate, in: [keys, position, k]}}
  context: {{op: FlashAttention, in: [heads, all, all]}}
)",
                                                                                 heads, cache),
                                                                     "m.yaml"));
    const ModelPlanner planner(model, read_cluster("dgx-h100"), {});
    return export_plan(planner.plan(Level::kSpeed, "auto"), "vllm", &planner).text;
  };
  const std::string by_tokens = exported(1, "[{}, {}, {nvlink}, {}]");
  expect_has(by_tokens, "  --tensor-parallel-size 8\n");
  expect_has(by_tokens, "  --decode-context-parallel-size 8\n");
  EXPECT_EQ(by_tokens.find("keys: stored"), std::string::npos) << by_tokens;
  EXPECT_EQ(exported(8, "[{}, {nvlink}, {}, {}]").find("decode-context"), std::string::npos);
  const std::string otherwise = exported(8, "[{}, {}, {nvlink}, {}]");
  expect_has(otherwise, "keys: stored in (1, 1, 8, 1)");
  EXPECT_EQ(otherwise.find("decode-context"), std::string::npos) << otherwise;
  expect_has(exported(1, "[{}, {}, {}, {nvlink}]"), "keys: stored in (1, 1, 1, 8)");
}

/// Its casts are not the model's operators, and are what DeepSpeed has an option for.
TEST(ExportTest, AutocastIsSaid) {
  const auto model = std::make_shared<const Model>(read_model_text(R"(shardplan: 1
autocast: bf16
dims: {B: 32, C: 64}
inputs: {x: [B, C]}
operators:
  up:   {block: nn.Dense, in: x, out_channels: C}
  loss: {op: ReduceSum, in: up}
loss: loss
training: {optimizer: sgd}
parallel: {parallel_mode: semi_auto_parallel}
)",
                                                                   "m.yaml"));
  const Plan plan = ModelPlanner(model, read_cluster("dgx-a100"), {}).plan(Level::kRatio, "auto");
  ASSERT_TRUE(plan.graph->find_operator("up.weight.bf16"));
  EXPECT_EQ(export_plan(plan, "mindspore").text.find("bf16"), std::string::npos);
  expect_has(export_plan(plan, "deepspeed").text,
             "    \"torch_autocast\": {\"enabled\": True, \"dtype\": \"bfloat16\", "
             "\"lower_precision_safe_modules\": []},\n");
  for (const char* target : {"megatron", "torchtitan"}) {
    expect_has(export_plan(plan, target).text, "only products compute in bf16 (autocast)");
  }
}

/// Where a plan redistributes before an operator without weights, nothing but its own layout says so.
TEST(ExportTest, LayoutsThatDoNotFollowFromOperandsAreConstraints) {
  const auto model = std::make_shared<const Model>(read_model_text(R"(shardplan: 1
inputs: {x: [64, 1024]}
operators:
  up:   {block: nn.Dense, in: x, out_channels: 4096}
  act:  {op: ReLU, in: up}
  more: {op: GeLU, in: act}
  down: {block: nn.Dense, in: more, out_channels: 1024, has_bias: false}
parallel: {parallel_mode: semi_auto_parallel, mesh: {dp: 2, mp: 4}}
strategies:
  up.matmul: {in_strategy: ((2, 1), (4, 1))}
  up.bias_add: {in_strategy: ((8, 1), (1,))}
  act: {in_strategy: ((1, 8),)}
  more: {in_strategy: ((1, 8),)}
  down.matmul: {in_strategy: ((2, 4), (1, 4))}
)",
                                                                   "m.yaml"));
  const Plan plan = ModelPlanner(model, read_cluster("dgx-a100"), {}).plan(Level::kRatio, "auto");
  const std::string jax = export_plan(plan, "jax").text;
  expect_has(jax, "    \"up.matmul\": S(\"dp\", \"mp\"),\n");
  expect_has(jax, "    \"up.bias_add\": S((\"dp\", \"mp\"), None),\n");
  expect_has(jax, "    \"act\": S(None, (\"dp\", \"mp\")),\n");
  EXPECT_EQ(jax.find("\"more\""), std::string::npos) << "it follows from act";
  const std::string dtensor = export_plan(plan, "dtensor").text;
  expect_has(dtensor, "\"bias\": (Replicate(), Replicate())}, (Shard(0), Shard(0))),\n");
  expect_has(dtensor, "    \"act\": Placed({}, (Shard(1), Shard(1))),\n");
  const std::string shardy = export_plan(plan, "shardy").text;
  expect_has(shardy, "@\"act\"(%x");
  EXPECT_EQ(sdy_fault(shardy), "");
  if (!has_python()) return;
  for (const char* target : {"jax", "dtensor", "mindspore"}) {
    EXPECT_TRUE(runs_in_python(plan, target, export_plan(plan, target).text)) << target;
  }
}

/// A mark beside a block or operator is as good as its name in the list.
TEST(ExportTest, RecomputedBlocksAreFoundWhereverTheyAreMarked) {
  const auto model = std::make_shared<const Model>(read_model_text(
      layered_model(", recompute: [layers.1]") +
          "cluster: dgx-a100\nstrategies: {layers.*.gelu: {recompute: true}, error: {recompute: true}}\n",
      "m.yaml"));
  const Plan plan = ModelPlanner(model, read_cluster("dgx-a100"), {}).plan(Level::kRatio, "auto");
  expect_has(export_plan(plan, "jax").text,
             "cannot be expressed: recomputed in the backward pass: layers.1, layers.*.gelu, error\n");
  expect_has(export_plan(plan, "megatron").text, "  --recompute-granularity selective\n");
  const ExportedText mindspore = export_plan(plan, "mindspore");
  expect_has(mindspore.text, "    net.layers[1].recompute()\n");
  expect_has(mindspore.text, "    for i in (0, 2):\n        copy = net.layers[i]\n        copy.gelu.recompute()\n");
  expect_has(mindspore.text, "    net.error.recompute()\n");
  EXPECT_TRUE(!has_python() || runs_in_python(plan, "mindspore", mindspore.text)) << mindspore.text;
}

/// Layouts say nothing of them, and no framework's options name weights that are not trained.
TEST(ExportTest, WhatIsLeftToTheProgramIsSaid) {
  const std::string text = layered_model(", micro_batches: 2, recompute: [layers.*]") +
                           "cluster: dgx-a100\nstrategies: {layers.*.up: {requires_grad: false}}\n";
  const auto model = std::make_shared<const Model>(read_model_text(text, "m.yaml"));
  const Plan plan = ModelPlanner(model, read_cluster("dgx-a100"), {}).plan(Level::kRatio, "auto");
  constexpr char kUntrained[] = "not trained: layers.*.up.weight";
  for (const char* target : {"jax", "dtensor", "mindspore", "shardy"}) {
    const ExportedText exported = export_plan(plan, target);
    constexpr char kRecomputed[] = "recomputed in the backward pass: layers.*";
    for (const char* what : {"gradients are summed over 2 micro-batches", kRecomputed, kUntrained}) {
      const bool is_called =
          what == std::string_view(kRecomputed) && target == std::string("mindspore");  // Cell.recompute
      EXPECT_EQ(std::ranges::count(exported.cannot_say, what), is_called ? 0 : 1) << target;
      if (!is_called) expect_has(exported.text, fmt::format("cannot be expressed: {}\n", what));
    }
  }
  for (const char* target : {"megatron", "torchtitan", "deepspeed"}) {
    expect_has(export_plan(plan, target).text, kUntrained);
  }
}

/// A result that stays partial is constrained as it is, or Shardy would sum it there.
TEST(ExportTest, PartialResultsAreUnreducedInShardy) {
  const auto exported = [](const std::string& layout) {
    Plan plan = tiny_plan();
    const TensorId head = *plan.graph->find_tensor("head");
    for (ProgramValue& value : plan.program.values) {
      if (value.tensor == head) value.layout = parse_layout(layout, plan.mesh);
    }
    return export_plan(plan, "shardy");
  };
  const ExportedText sum = exported("[{}, {}, {}] unreduced={pcie, hccs:(2)2}");
  expect_has(sum.text, "<@mesh, [{}, {}, {}], unreduced={\"pcie\", \"hccs\":(2)2}>");
  EXPECT_EQ(sdy_fault(sum.text), "");
  EXPECT_EQ(sum.cannot_say, std::vector<std::string>());
  const ExportedText maximum = exported("[{}, {}, {}] unreduced={pcie} unreduced_kind=max");
  EXPECT_EQ(maximum.cannot_say.size(), 1U);
  EXPECT_EQ(sdy_fault(maximum.text), "");
}

/// Tables of results have operators' names also where an operator has several results with names of their own, and
/// running statistics have torch's names and stay buffers.
TEST(ExportTest, NamesAreThoseThatProgramsKnow) {
  const auto model = std::make_shared<const Model>(read_model_text(R"(shardplan: 1
inputs: {x: [8, 4, 8, 8], q: [8, 4, 16, 8], k: [8, 4, 16, 8], v: [8, 4, 16, 8]}
operators:
  c:    {block: nn.Conv2d, in: x, out_channels: 4, kernel_size: 3}
  bn:   {block: nn.BatchNorm2d, in: c}
  att:  {op: FlashAttention, in: [q, k, v], out: [o, lse]}
  m:    {op: ReduceMean, in: o}
  n:    {op: ReduceMean, in: bn}
  loss: {op: Add, in: [m, n]}
loss: loss
training: {optimizer: adamw}
parallel: {parallel_mode: semi_auto_parallel}
)",
                                                                   "m.yaml"));
  const Plan plan = ModelPlanner(model, read_cluster("ascend-910"), {}).plan(Level::kRatio, "auto");
  expect_has(export_plan(plan, "jax").text, "    \"att\": S((");
  expect_has(export_plan(plan, "dtensor").text, "    \"att\": Placed({}, (");
  expect_has(export_plan(plan, "dtensor").text, "\"running_var\": (Replicate(), Replicate())})");
  expect_has(export_plan(plan, "mindspore").text, "    net.att.shard(");
  expect_has(export_plan(plan, "shardy").text, "@\"att\"(%x");
  if (!has_python()) return;
  for (const char* target : {"jax", "dtensor", "mindspore"}) {
    EXPECT_TRUE(runs_in_python(plan, target, export_plan(plan, target).text)) << target;
  }
}

/// No parameter stays a plain tensor beside DTensors; a parameter and states that are stored alike are one problem.
TEST(ExportTest, DTensorTakesTheNearestPlacement) {
  const auto model = std::make_shared<const Model>(
      read_model_text("shardplan: 1\ninputs: {x: [64, 64]}\noperators:\n"
                      "  up:   {block: nn.Dense, in: x, out_channels: 64, has_bias: false}\n"
                      "  loss: {op: ReduceMean, in: up}\nloss: loss\ntraining: {optimizer: adamw}\n",
                      "m.yaml", {{}, {{"up.weight", "[{hccs, pcie}, {}]"}}}));
  const Plan plan = ModelPlanner(model, read_cluster("ascend-910"), {}).plan(Level::kRatio, "auto");
  const ExportedText exported = export_plan(plan, "dtensor");
  expect_has(exported.text, "    \"up\": Placed({\"weight\": (Shard(0), Shard(0)");
  expect_has(exported.text, "    \"up.weight\": (Shard(0), Shard(0)");
  EXPECT_EQ(exported.cannot_say, std::vector<std::string>{"up.weight [{hccs, pcie}, {}]; DTensor nests left to right"});
  EXPECT_TRUE(!has_python() || runs_in_python(plan, "dtensor", exported.text)) << exported.text;
}

/// DTensor's convolution looks at the last dimension alone.
TEST(ExportTest, ConvolutionsThatDTensorRefusesAreNamed) {
  const auto problems = [](const std::string& keys) {
    const auto model = std::make_shared<const Model>(
        read_model_text("shardplan: 1\ncluster: dgx-a100\ninputs: {x: [8, 4, 32, 32]}\noperators:\n"
                        "  c: {block: nn.Conv2d, in: x, out_channels: 4, has_bias: false, " +
                            keys + "}\n",
                        "m.yaml"));
    const Plan plan = ModelPlanner(model, read_cluster("dgx-a100"), {}).plan(Level::kRatio, "auto");
    return fmt::format("{}", fmt::join(export_plan(plan, "dtensor").cannot_say, "; "));
  };
  const std::string by_batch = ", in_strategy: [[8, 1, 1, 1]]";
  EXPECT_EQ(problems("kernel_size: 3" + by_batch), "");
  expect_has(problems("kernel_size: 3, stride: 2" + by_batch), "c.conv2d: stride 2 with padding");
  expect_has(problems("kernel_size: 3, dilation: 2" + by_batch), "c.conv2d: dilation 2");
  expect_has(problems("kernel_size: 3, pad_mode: valid" + by_batch), "stride 1 of a kernel of 3 without padding");
  EXPECT_EQ(problems("kernel_size: 2, stride: 2, pad_mode: valid" + by_batch), "");
  expect_has(problems("kernel_size: 3, in_strategy: [[2, 1, 4, 1]]"),
             "dimension 2 in 4; DTensor passes rims of the last");
}

/// Options of the model that MindSpore also has are in its context, others are named.
TEST(ExportTest, TheContextHasTheModelsOptions) {
  const auto exported = [](const std::string& parallel) {
    const auto model = std::make_shared<const Model>(read_model_text(R"(shardplan: 1
dims: {B: 32, C: 64}
inputs: {x: [B, C]}
operators:
  up:   {block: nn.Dense, in: x, out_channels: C}
  loss: {op: ReduceMean, in: up}
loss: loss
training: {optimizer: sgd}
parallel: {parallel_mode: data_parallel)" + parallel + "}\n",
                                                                     "m.yaml"));
    const Plan plan = ModelPlanner(model, read_cluster("ascend-910"), {}).plan(Level::kRatio, "auto");
    const ExportedText text = export_plan(plan, "mindspore");
    EXPECT_TRUE(!has_python() || runs_in_python(plan, "mindspore", text.text)) << text.text;
    return text;
  };
  const ExportedText plain = exported("");
  EXPECT_TRUE(plain.cannot_say.empty());
  for (const char* key : {"gradient_fp32_sync", "strategy_ckpt"}) {
    EXPECT_EQ(plain.text.find(key), std::string::npos) << key;
  }
  const ExportedText full =
      exported(", gradients_mean: false, gradient_fp32_sync: false, strategy_ckpt_save_file: s.json");
  expect_has(full.text, "        gradient_fp32_sync=False,\n");
  expect_has(full.text, "        strategy_ckpt_save_file=\"s.json\",\n");
  expect_has(full.text,
             "        parallel_mode=\"data_parallel\",\n        device_num=8,\n        gradients_mean=False,\n");
  EXPECT_TRUE(full.cannot_say.empty());
  expect_has(plain.text, "        gradients_mean=True,\n");
  expect_has(plain.text, "def shard(net):\n    return net\n");
  // Whole batches are for semi_auto_parallel, sums of gradients for data_parallel: the sums are more than who slices.
  const ExportedText whole = exported(", full_batch: true");
  expect_has(whole.text, "        parallel_mode=\"semi_auto_parallel\",\n");
  EXPECT_TRUE(whole.cannot_say.empty());
  const ExportedText sums = exported(", full_batch: true, gradients_mean: false");
  expect_has(sums.text, "        gradients_mean=False,\n");
  EXPECT_EQ(sums.cannot_say,
            std::vector<std::string>{"full_batch: true; in data_parallel each device reads its own rows"});
  // Weights in pieces are not those of MindSpore's data_parallel.
  const ExportedText sharded = exported(", zero: 3, gradients_mean: false");
  expect_has(sharded.text, "    # cannot be expressed: gradients_mean: false;");
}

TEST(ExportTest, PlacedOperatorsAreCallsOfPlaceWhichOnlyMindSporeHas) {
  const Plan plan = found_plan("configs/lenet-place.yaml", Level::kRatio, {}, "dgx-a100");
  const std::string text = export_plan(plan, "mindspore").text;
  EXPECT_NE(text.find("    net.conv1.conv2d.place(\"MS_WORKER\", 3)\n"), std::string::npos) << text;
  EXPECT_NE(text.find("    net.fc1.bias_add.place(\"MS_WORKER\", 0)\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("relu1"), std::string::npos) << text;
  EXPECT_EQ(text.find(".shard("), std::string::npos) << text;
  EXPECT_THROW(export_plan(plan, "jax"), InputError);
}

}  // namespace
}  // namespace shardplan
