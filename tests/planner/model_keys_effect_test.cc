// Every key of a model file has an effect: for each there are two models that differ in its value alone, and their
// plan, program or report differs too, or the value is rejected.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "model/read_model.h"
#include "model/syntax/model_keys.h"
#include "planner/job_cluster.h"
#include "planner/model_planner.h"
#include "planner/problem/strategy_file.h"

namespace shardplan {
namespace {

constexpr char kModel[] = R"(shardplan: 1
model: base
cluster: dgx-a100
dims: {B: 32, C: 16}
inputs: {x: [B, C]}
constants: {k: {shape: [C], fill: ones}, z: {shape: [C, C], fill: ones}}
parameters: {w: [C, C], v: [C, C]}
custom_operators: {Mine: {rule: "b h, h f -> b f", factors: {h: sum}}}
blocks:
  two:
    dims: {inner: given, n: inferred, m: inner}
    inputs: {x: [B, n]}
    constants: {shift: {shape: [n], fill: 2}}
    parameters: {u: [n, m]}
    operators:
      q: {op: Add, in: [x, shift]}
      p: {op: MatMul, in: [q, u]}
    outputs: [p]
operators:
  a:      {op: MatMul, in: [x, w]}
  b:      {block: two, in: a, inner: 2*C}
  c:      {op: ReLU, in: b}
  d:      {block: two, in: c, inner: C}
  e:      {block: two, in: d, inner: C, repeat: 2}
  f:      {op: Add, in: [e, k]}
  g:      {op: MatMul, in: [f, v]}
  parts:  {op: Split, in: g, axis: 1, output_num: 2, out: [left, right]}
  i:      {op: Concat, in: [left, right], axis: 1}
  j:      {op: Mine, in: [x, z]}
  l:      {op: Add, in: [i, j]}
  loss:   {op: ReduceMean, in: l}
loss: loss
training: {optimizer: adamw}
parallel: {mesh: {dp: 2, mp: 4}}
)";

std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// Everything that a user sees of a model: its name and cluster, the graph, the plan, its program and the notices; or
/// the errors.
std::string planned_and_printed(const std::string& text) {
  try {
    auto model = std::make_shared<const Model>(read_model_text(text, "m.yaml"));
    const JobCluster job = job_cluster(*model, {});
    PlanOptions options;
    options.level = level_of(model->parallel.level);
    options.search = model->parallel.search;
    options.uniform_layers = model->parallel.uniform_layers;
    options.work_limit = 20'000'000;
    const Plan plan = ModelPlanner(model, job.cluster, options).plan(options.level, options.search);
    std::string out = fmt::format("{} on {} of {}, search {}, level {}\n", model->name, job.cluster.num_devices(),
                                  job.cluster.name, options.search, model->parallel.level);
    for (const std::string& notice : job.notices) out += notice + "\n";
    for (const std::string& notice : plan.notices) out += notice + "\n";
    for (const GraphOperator& op : plan.graph->operators()) {
      const Operation& operation = plan.graph->operations()[op.operation];
      out += fmt::format("{} {} {}", op.name, operation.type->name, operation.type->flops_per_point);
      for (const auto& [name, value] : operation.attributes) out += fmt::format(" {}={}", name, to_string(value));
      for (const TensorType& result : operation.results) {
        out += fmt::format(" {}{}", to_string(result.dtype), to_string(result.shape));
      }
      out += "\n";
    }
    for (const GraphTensor& tensor : plan.graph->tensors()) {
      out += fmt::format("{} {}{} {} {}\n", tensor.name, to_string(tensor.type.dtype), to_string(tensor.type.shape),
                         static_cast<int>(tensor.fill.kind), tensor.fill.value);
    }
    for (const Instruction& instruction : plan.program.instructions) {
      out += fmt::format("{} {} {}", instruction.name, instruction.time_of_step(), instruction.fusion);
      for (const ValueId value : instruction.outputs) {
        out += " " + to_string(plan.program.values[value].layout, plan.mesh);
      }
      out += "\n";
    }
    for (const StartupBroadcast& broadcast : plan.program.broadcasts) {
      out += fmt::format("broadcast of {} {}\n", broadcast.given, broadcast.time);
    }
    for (const Binding& given : plan.program.given) {
      out += to_string(plan.program.values[given.value].layout, plan.mesh) + "\n";
    }
    if (!model->parallel.strategy_save_file.empty()) out += strategy_file_text(plan);
    for (const Binding& output : plan.program.outputs) out += plan.program.values[output.value].name + "\n";
    return out;
  } catch (const InputError& error) {
    return std::string("refused: ") + error.what();
  }
}

/// The same; a text that several cases share is planned once.
const std::string& seen(const std::string& text) {
  static std::map<std::string, std::string> known;
  const auto [at, is_new] = known.try_emplace(text);
  if (is_new) at->second = planned_and_printed(text);
  return at->second;
}

/// `from` in the model above becomes `first` in one and `second` in the other, `also_from` becomes `also_to` in both.
/// If the key is rejected, `fault` is part of the message. The custom operator's reduced factor is in pieces.
constexpr const char* kCutOverH = "parallel: {mesh: {dp: 2, mp: 4}}\nstrategies: {j: {in_strategy: ((1, 4), (4, 1))}}";

struct KeyCase {
  const char* key;
  const char* from;
  const char* first;
  const char* second;
  const char* fault = "";
  const char* also_from = "";  // in both
  const char* also_to = "";
};

struct Section {
  const char* name;
  const KeySpecs& (*keys)();
  std::vector<KeyCase> cases;
};

constexpr char kTraining[] = "{optimizer: adamw}";
constexpr char kParallel[] = "parallel: {mesh: {dp: 2, mp: 4}}";
constexpr char kUse[] = "in: c, inner: C}";
constexpr char kLoss[] = "loss: loss\n";
constexpr char kGatheredInD[] =
    "loss: loss\nstrategies:\n  d.q: {in_strategy: [\"[{dp}, {mp}]\", \"[{mp}]\"]}\n"
    "  d.p: {in_strategy: [\"[{dp}, {}]\", \"[{}, {mp}]\"]}\n";

const std::vector<Section>& sections() {
  static const std::vector<Section> all = {
      {"the file",
       file_keys,
       {{"shardplan", "shardplan: 1", "shardplan: 1", "shardplan: 2", "format version"},
        {"model", "model: base", "model: base", "model: other"},
        {"dims", "C: 16", "C: 16", "C: 32"},
        {"dtype", "model: base", "dtype: f32", "dtype: f64", ""},
        {"autocast", "model: base", "dtype: f32", "autocast: bf16", ""},
        {"fp8", "model: base", "dtype: f32", "fp8: [d]", "does not compute f8e4m3"},
        {"int8_weights", "model: base", "dtype: f32", "int8_weights: [d]", "is for inference"},
        {"inputs", "{x: [B, C]}", "{x: [B, C]}", "{x: [2*B, C]}"},
        {"constants", "k: {shape: [C], fill: ones}", "k: {shape: [C], fill: ones}", "k: {shape: [C], fill: zeros}"},
        {"parameters", "w: [C, C]", "w: [C, C]", "w: {shape: [C, C], requires_grad: false}"},
        {"blocks", "p: {op: MatMul, in: [q, u]}", "p: {op: MatMul, in: [q, u]}", "p: {op: MatMul, in: [u, q]}",
         "expected [B, n]"},
        {"operators", "c:      {op: ReLU, in: b}", "c:      {op: ReLU, in: b}", "c:      {op: GeLU, in: b}"},
        {"outputs", "loss: loss\n", "loss: loss\n", "loss: loss\noutputs: [c]\n"},
        {"loss", "loss: loss\n", "loss: loss\n", "loss: c\n", "feeds no output"},
        {"training", "training: {optimizer: adamw}\n", "training: {optimizer: adamw}\n",
         "training: {optimizer: sgd}\n"},
        {"strategies", kParallel, kParallel,
         "parallel: {mesh: {dp: 2, mp: 4}}\nstrategies: {c: {in_strategy: ((1, 8),)}}"},
        {"parallel", kParallel, kParallel, "parallel: {mesh: {dp: 8}}"},
        {"mode", "model: base", "mode: graph", "mode: pynative"},
        {"cluster", "cluster: dgx-a100", "cluster: dgx-a100", "cluster: dgx-h100"},
        {"custom_operators", "h: sum", "h: sum", "h: max", "", kParallel, kCutOverH}}},
      {"a block",
       block_keys,
       {{"dims", "m: inner", "m: inner", "m: 2*inner"},
        {"inputs", "inputs: {x: [B, n]}", "inputs: {x: [B, n]}", "inputs: {x: [n, B]}", "expected [n, B]"},
        {"constants", "fill: 2", "fill: 2", "fill: 3"},
        {"parameters", "u: [n, m]", "u: [n, m]", "u: {shape: [n, m], requires_grad: false}"},
        {"operators", "q: {op: Add, in: [x, shift]}", "q: {op: Add, in: [x, shift]}", "q: {op: Sub, in: [x, shift]}"},
        {"outputs", "outputs: [p]", "outputs: [p]", "outputs: [q]", "feeds no output"}}},
      {"a parameter",
       parameter_keys,
       {{"shape", "w: [C, C]", "w: {shape: [C, C]}", "w: {shape: [C, 2*C]}", ""},
        {"dtype", "w: [C, C]", "w: {shape: [C, C]}", "w: {shape: [C, C], dtype: f16}", "f16"},
        {"strategy", "w: [C, C]", "w: {shape: [C, C], strategy: [8, 1]}", "w: {shape: [C, C], strategy: [1, 8]}"},
        {"requires_grad", "w: [C, C]", "w: [C, C]", "w: {shape: [C, C], requires_grad: false}"},
        {"layerwise_parallel", "w: [C, C]", "w: [C, C]", "w: {shape: [C, C], layerwise_parallel: true}", "", kParallel,
         "parallel: {parallel_mode: data_parallel}"},
        {"comm_fusion", "w: [C, C]", "w: [C, C]", "w: {shape: [C, C], comm_fusion: 0}", "", kParallel,
         "parallel: {parallel_mode: data_parallel}"},
        {"begin", "w: [C, C]", "w: [C, C]", "w: {shape: [C, C], begin: [0, 0]}", "only a model written per device"},
        {"gradient_strategy", "w: [C, C]", "w: {shape: [C, C], gradient_strategy: [1, 1]}",
         "w: {shape: [C, C], gradient_strategy: [8, 1]}"},
        {"state_strategy", "w: [C, C]", "w: {shape: [C, C], state_strategy: [8, 1]}",
         "w: {shape: [C, C], state_strategy: [1, 8]}"},
        {"gradient_dtype", "w: [C, C]", "w: [C, C]", "w: {shape: [C, C], gradient_dtype: bf16}"},
        {"state_dtype", "w: [C, C]", "w: [C, C]", "w: {shape: [C, C], state_dtype: f8e4m3}"},
        {"parallel_optimizer", "w: [C, C]", "w: [C, C]", "w: {shape: [C, C], parallel_optimizer: false}", "", kParallel,
         "parallel: {parallel_mode: data_parallel, enable_parallel_optimizer: true}"}}},
      {"a constant",
       constant_keys,
       {{"shape", "{shape: [C], fill: ones}", "{shape: [C], fill: ones}", "{shape: [B, C], fill: ones}"},
        {"dtype", "{shape: [C], fill: ones}", "{shape: [C], fill: ones}", "{shape: [C], fill: ones, dtype: f64}", ""},
        {"fill", "fill: ones", "fill: ones", "fill: iota"}}},
      {"an operator",
       operator_keys,
       {{"op", "op: ReLU", "op: ReLU", "op: Tanh"},
        {"in", "in: [f, v]", "in: [f, v]", "in: [f, w]", ""},
        {"out", "out: [left, right]", "out: [left, right]", "out: [right, left]"},
        {"shape", "{op: ReLU, in: b}", "{op: ReLU, in: b}", "{op: ReLU, in: b, shape: [7]}", "the file says"},
        {"ranks", "{op: ReLU, in: b}", "{op: ReLU, in: b}", "{op: ReLU, in: b, ranks: [0]}",
         "only a model written per device"}}},
      {"the use of a block",
       call_keys,
       {{"block", "{block: two, in: c, inner: C}", "{block: two, in: c, inner: C}",
         "{block: nn.Dense, in: c, out_channels: C}"},
        {"in", kUse, kUse, "in: b, inner: C}"},
        {"repeat", "repeat: 2", "repeat: 2", "repeat: 3"},
        {"ranks", kUse, kUse, "in: c, inner: C, ranks: [0]}", "only a model written per device"},
        {"share", "repeat: 2", "repeat: 2", "repeat: 2, share: e"}}},
      {"settings",
       settings_keys,
       {{"in_strategy", kUse, kUse, "in: c, inner: C, in_strategy: ((8, 1),)}"},
        {"out_strategy", kUse, kUse, "in: c, inner: C, out_strategy: ((1, 8),)}"},
        {"strategy", kUse, kUse, "in: c, inner: C, strategy: [{dp}, {mp}]}"},
        {"level", kUse, kUse, "in: c, inner: C, level: 1}"},
        {"parallel_mode", kUse, kUse, "in: c, inner: C, parallel_mode: data_parallel}"},
        {"place", kUse, "in: c, inner: C, place: (\"MS_WORKER\", 1)}", "in: c, inner: C, place: (\"MS_WORKER\", 2)}",
         "", kParallel, "parallel: {device_num: 3}"},
        {"comm_fusion", kUse, kUse, "in: c, inner: C, comm_fusion: 0}", "", kParallel,
         "parallel: {parallel_mode: data_parallel}"},
        {"recompute", kUse, kUse, "in: c, inner: C, recompute: true}"},
        {"gather_again", kUse, "in: c, inner: C, gather_again: true}", "in: c, inner: C, gather_again: false}", "",
         kLoss, kGatheredInD},
        {"compiled", kUse, kUse, "in: c, inner: C, compiled: false}"},
        {"device", kUse, kUse, "in: c, inner: C, device: Ascend}", "device is Ascend"},
        {"gradient_strategy", kUse, kUse, "in: c, inner: C, gradient_strategy: [8, 1]}", "is for a parameter"},
        {"state_strategy", kUse, kUse, "in: c, inner: C, state_strategy: [8, 1]}", "is for a parameter"},
        {"gradient_dtype", kUse, kUse, "in: c, inner: C, gradient_dtype: bf16}"},
        {"state_dtype", kUse, kUse, "in: c, inner: C, state_dtype: bf16}"},
        {"parallel_optimizer", kUse, kUse, "in: c, inner: C, parallel_optimizer: false}", "", kParallel,
         "parallel: {parallel_mode: data_parallel, enable_parallel_optimizer: true}"},
        {"requires_grad", kUse, kUse, "in: c, inner: C, requires_grad: false}"}}},
      {"place",
       place_keys,
       {{"role", kUse, "in: c, inner: C, place: {role: MS_WORKER, rank: 1}}",
         "in: c, inner: C, place: {role: MS_SCHED, rank: 1}}", "role is 'MS_SCHED'"},
        {"rank", kUse, "in: c, inner: C, place: {rank: 1}}", "in: c, inner: C, place: {rank: 2}}", "", kParallel,
         "parallel: {device_num: 3}"}}},
      {"training",
       training_keys,
       {{"optimizer", kTraining, kTraining, "{optimizer: adam}"},
        {"learning_rate", kTraining, kTraining, "{optimizer: adamw, learning_rate: 0.5}"},
        {"momentum", kTraining, "{optimizer: momentum}", "{optimizer: momentum, momentum: 0.5}"},
        {"beta1", kTraining, kTraining, "{optimizer: adamw, beta1: 0.5}"},
        {"beta2", kTraining, kTraining, "{optimizer: adamw, beta2: 0.5}"},
        {"eps", kTraining, kTraining, "{optimizer: adamw, eps: 0.5}"},
        {"weight_decay", kTraining, kTraining, "{optimizer: adamw, weight_decay: 0.5}"},
        {"clip_norm", kTraining, kTraining, "{optimizer: adamw, clip_norm: 0.5}"},
        {"micro_batches", kTraining, kTraining, "{optimizer: adamw, micro_batches: 2}"},
        {"mixed_precision", kTraining, kTraining, "{optimizer: adamw, mixed_precision: bf16}"},
        {"gradient_dtype", kTraining, kTraining, "{optimizer: adamw, gradient_dtype: bf16}"},
        {"state_dtype", kTraining, kTraining, "{optimizer: adamw, state_dtype: bf16}"},
        {"master_copy", kTraining, "{optimizer: adamw, mixed_precision: bf16}",
         "{optimizer: adamw, mixed_precision: bf16, master_copy: false}"},
        {"recompute", kTraining, kTraining, "{optimizer: adamw, recompute: d}"}}},
      {"parallel",
       parallel_keys,
       {{"parallel_mode", kParallel, kParallel, "parallel: {parallel_mode: data_parallel, mesh: {dp: 2, mp: 4}}"},
        {"search_mode", kParallel, kParallel, "parallel: {search_mode: ilp, mesh: {dp: 2, mp: 4}}"},
        {"device_num", kParallel, "parallel: {device_num: 8}", "parallel: {device_num: 4}"},
        {"workers", kParallel, "parallel: {workers: 2}", "parallel: {workers: 4}", "", kUse,
         "in: c, inner: C, place: {rank: 1}}"},
        {"gradients_mean", kParallel, "parallel: {parallel_mode: data_parallel, gradients_mean: true}",
         "parallel: {parallel_mode: data_parallel, gradients_mean: false}"},
        {"gradient_fp32_sync", "training: {optimizer: adamw}\nparallel: {mesh: {dp: 2, mp: 4}}",
         "training: {optimizer: sgd, mixed_precision: bf16}\nparallel: {parallel_mode: data_parallel, "
         "gradient_fp32_sync: true}",
         "training: {optimizer: sgd, mixed_precision: bf16}\nparallel: {parallel_mode: data_parallel, "
         "gradient_fp32_sync: false}"},
        {"parameter_broadcast", kParallel, kParallel, "parallel: {mesh: {dp: 2, mp: 4}, parameter_broadcast: true}"},
        {"batch_norm", kParallel, "parallel: {parallel_mode: data_parallel, batch_norm: global}",
         "parallel: {parallel_mode: data_parallel, batch_norm: local}", "", "c:      {op: ReLU, in: b}",
         "image: {op: Reshape, in: b, shape: [B, C, 1, 2]}\n"
         "  bn: {block: nn.BatchNorm2d, in: image}\n"
         "  c: {op: Reshape, in: bn, shape: [B, 2*C]}"},
        {"full_batch", kParallel, "parallel: {parallel_mode: data_parallel}",
         "parallel: {parallel_mode: data_parallel, full_batch: true}"},
        {"dataset_strategy", kParallel, "parallel: {dataset_strategy: full_batch}",
         "parallel: {dataset_strategy: ((1, 8),)}"},
        {"enable_parallel_optimizer", kParallel, "parallel: {parallel_mode: data_parallel}",
         "parallel: {parallel_mode: data_parallel, enable_parallel_optimizer: true}"},
        {"zero", kParallel, "parallel: {parallel_mode: data_parallel, zero: 1}",
         "parallel: {parallel_mode: data_parallel, zero: 3}"},
        {"reshard_after_forward", kParallel, "parallel: {parallel_mode: data_parallel, zero: 3}",
         "parallel: {parallel_mode: data_parallel, zero: 3, reshard_after_forward: false}"},
        {"gather_again", kParallel, "parallel: {mesh: {dp: 2, mp: 4}, gather_again: true}",
         "parallel: {mesh: {dp: 2, mp: 4}, gather_again: false}", "", kLoss, kGatheredInD},
        {"gradient_accumulation_shard", kParallel, "parallel: {parallel_mode: data_parallel, zero: 2}",
         "parallel: {parallel_mode: data_parallel, zero: 2, gradient_accumulation_shard: false}", "", kTraining,
         "{optimizer: adamw, micro_batches: 2}"},
        {"comm_fusion", kParallel, "parallel: {parallel_mode: data_parallel}",
         "parallel: {parallel_mode: data_parallel, comm_fusion: {openstate: false}}"},
        {"strategy_ckpt_save_file", kParallel, kParallel,
         "parallel: {strategy_ckpt_save_file: s, mesh: {dp: 2, mp: 4}}"},
        {"strategy_ckpt_load_file", kParallel, kParallel,
         "parallel: {strategy_ckpt_load_file: s, mesh: {dp: 2, mp: 4}}", "error: s: cannot"},
        {"mesh", kParallel, kParallel, "parallel: {mesh: {dp: 8}}"},
        {"attention", kParallel, kParallel, "parallel: {attention: fused, mesh: {dp: 2, mp: 4}}", "",
         "  l:      {op: Add, in: [i, j]}\n",
         "  heads: {op: Reshape, in: j, shape: [B, 2, 4, 2]}\n"
         "  s: {op: BatchMatMul, in: [heads, heads], transpose_b: true}\n"
         "  weights: {op: Softmax, in: s, axis: -1}\n"
         "  context: {op: BatchMatMul, in: [weights, heads]}\n"
         "  merged: {op: Reshape, in: context, shape: [B, C]}\n"
         "  l: {op: Add, in: [i, merged]}\n"},
        // The bound of layers of uniform plans is another one, and so is the text about it.
        {"layers", kParallel, "parallel: {layers: free, mesh: {dp: 2, mp: 4}}",
         "parallel: {layers: uniform, mesh: {dp: 2, mp: 4}}"},
        {"uneven", kParallel, "parallel: {uneven: true, parallel_mode: data_parallel}",
         "parallel: {uneven: false, parallel_mode: data_parallel}", "", "dims: {B: 32, C: 16}", "dims: {B: 30, C: 16}"},
        {"level", kParallel, "parallel: {level: 0}", "parallel: {level: 1}"},
        {"compat", "parallel: {mesh", "strategies: {d: {out_strategy: ((1, 8),)}}\nparallel: {mesh",
         "strategies: {d: {out_strategy: ((1, 8),)}}\nparallel: {compat: mindspore-1.7, mesh"},
        {"keep_out_strategy", "parallel: {mesh", "strategies: {d: {out_strategy: ((1, 8),)}}\nparallel: {mesh",
         "strategies: {d: {out_strategy: ((1, 8),)}}\nparallel: {keep_out_strategy: false, mesh"},
        {"device", kParallel, "parallel: {device: GPU}", "parallel: {device: Ascend}", "", "cluster: dgx-a100\n", ""}}},
      {"a custom operator",
       custom_operator_keys,
       {{"rule", "\"b h, h f -> b f\"", "\"b h, h f -> b f\"", "\"b h, f h -> b f\""},
        {"factors", "h: sum", "h: sum", "h: max", "", kParallel, kCutOverH},
        {"flops", "factors: {h: sum}", "factors: {h: sum}", "factors: {h: sum}, flops: 7*b*h*f"}}},
  };
  return all;
}

TEST(ModelKeysEffectTest, EveryKeyIsWalked) {
  for (const Section& section : sections()) {
    std::set<std::string> walked;
    for (const KeyCase& c : section.cases) walked.insert(c.key);
    for (const KeySpec& key : section.keys()) {
      const bool is_a_setting = section.keys != settings_keys &&
                                std::any_of(settings_keys().begin(), settings_keys().end(),
                                            [&](const KeySpec& setting) { return setting.name == key.name; });
      const bool stands_elsewhere = is_a_setting && (section.keys == operator_keys || section.keys == call_keys);
      EXPECT_TRUE(stands_elsewhere || walked.contains(key.name)) << section.name << ": " << key.name;
    }
  }
}

TEST(ModelKeysEffectTest, NoKeyIsSilent) {
  for (const Section& section : sections()) {
    for (const KeyCase& c : section.cases) {
      SCOPED_TRACE(std::string(section.name) + ": " + c.key);
      std::string first = with(kModel, c.from, c.first);
      std::string second = with(kModel, c.from, c.second);
      if (c.also_from[0] != '\0') {
        first = with(first, c.also_from, c.also_to);
        second = with(second, c.also_from, c.also_to);
      }
      const std::string& a = seen(first);
      const std::string& b = seen(second);
      EXPECT_NE(a, b);
      if (c.fault[0] != '\0') {
        EXPECT_NE(b.find(c.fault), std::string::npos) << b.substr(0, 300);
      } else {
        EXPECT_FALSE(a.starts_with("refused")) << a.substr(0, 300);
      }
    }
  }
}

}  // namespace
}  // namespace shardplan
