// Every key has an effect in a model written per device too: its value changes what is planned or computed, or it is
// rejected. tests/planner/model_keys_effect_test.cc does the same for models in the view of all devices.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "model/local_model.h"
#include "model/read_model.h"
#include "model/syntax/model_keys.h"
#include "planner/job_cluster.h"
#include "report/local_report.h"

namespace shardplan {
namespace {

constexpr char kModel[] = R"(shardplan: 1
model: base
cluster: dgx-a100
dims: {B: 8, C: 4, b: B/group_size}
inputs: {x: {shape: [b, C], begin: [rank*b, 0]}}
constants: {n: group_size}
parameters: {w: {shape: [C, C], begin: [0, 0]}, v: {shape: [C, C]}}
blocks:
  two:
    dims: {c: inferred}
    inputs: {x: [b, c]}
    parameters: {u: [c, c]}
    operators:
      q: {op: Tanh, in: x}
      p: {op: MatMul, in: [q, u]}
    outputs: [p]
operators:
  a:      {op: MatMul, in: [x, w]}
  c:      {op: Tanh, in: a}
  d:      {block: two, in: c}
  e:      {op: MatMul, in: [d, v]}
  seen:   {op: AllReduce, in: e, group: mp, ranks: [0, 1, 2, 3]}
  mean:   {op: ReduceMean, in: e}
  sum:    {op: AllReduce, in: mean}
  loss:   {op: RealDiv, in: [sum, n]}
loss: loss
training: {optimizer: sgd}
outputs: [seen]
parallel: {parallel_mode: hybrid_parallel, device_num: 4, mesh: {dp: 2, mp: 2}}
)";

std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// Everything that a user sees of a model written per device: its costs, every rank's program and its attributes, and
/// where pieces begin; or the errors.
std::string planned_and_printed(const std::string& text) {
  try {
    auto model = std::make_shared<const Model>(read_model_text(text, "m.yaml"));
    if (!model->local) return "not written per device";
    const JobCluster job = job_cluster(*model, {});
    const LocalPlan plan = plan_locally(model, job.cluster);
    std::string out = local_plan_json(plan);
    for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank) out += local_ir(plan, rank);
    for (const std::string& notice : model->notices) out += notice + "\n";
    for (const std::string& notice : job.notices) out += notice + "\n";
    for (const GraphTensor& tensor : plan.ranks.back().plan.graph->tensors()) {
      out += fmt::format("{} {} {}\n", tensor.name, static_cast<int>(tensor.fill.kind), tensor.fill.value);
    }
    for (const GraphOperator& op : plan.ranks.back().plan.graph->operators()) {
      for (const auto& [name, value] : plan.ranks.back().plan.graph->operations()[op.operation].attributes) {
        out += fmt::format("{} {}={}\n", op.name, name, to_string(value));
      }
    }
    const auto ranks = models_of_ranks(*model, job.cluster.num_devices());
    for (const auto& own : ranks) {
      for (const auto& [name, begin] : own->begins) out += fmt::format("{} begins at {}\n", name, to_string(begin));
    }
    return out;
  } catch (const InputError& error) {
    return std::string("refused: ") + error.what();
  }
}

struct KeyCase {
  const char* key;
  const char* from;
  const char* second;
  const char* fault = "";       // where it is rejected
  const char* first = nullptr;  // the model to compare with; the one above if not given
};
struct Section {
  const char* name;
  const KeySpecs& (*keys)();
  std::vector<KeyCase> cases;
};

constexpr char kParallel[] = "device_num: 4,";
constexpr char kNoMeaning[] = "has no meaning in a model written per device";
constexpr char kUse[] = "in: c}";
constexpr char kSgd[] = "{optimizer: sgd}";

const std::vector<Section>& sections() {
  static const std::vector<Section> all = {
      {"an input",
       input_keys,
       {{"shape", "shape: [b, C]", "shape: [2*b, C]", "expected [b, c]"},
        {"dtype", "[b, C], begin", "[b, C], dtype: f64, begin", "Cast one of them"},
        {"strategy", "[b, C], begin", "[b, C], strategy: [4, 1], begin", kNoMeaning},
        {"begin", "rank*b", "(group_size-1-rank)*b"}}},
      {"a parameter",
       parameter_keys,
       {{"shape", "v: {shape: [C, C]}", "v: {shape: [C, 2*C]}"},
        {"dtype", "v: {shape: [C, C]}", "v: {shape: [C, C], dtype: f64}", "Cast one of them"},
        {"strategy", "v: {shape: [C, C]}", "v: {shape: [C, C], strategy: [4, 1]}", kNoMeaning},
        {"begin", "v: {shape: [C, C]}", "v: {shape: [C, C], begin: [0, rank]}"},
        {"requires_grad", "v: {shape: [C, C]}", "v: {shape: [C, C], requires_grad: false}"},
        {"layerwise_parallel", "v: {shape: [C, C]}", "v: {shape: [C, C], layerwise_parallel: true}"},
        {"parallel_optimizer", "v: {shape: [C, C]}", "v: {shape: [C, C], parallel_optimizer: false}", kNoMeaning},
        {"comm_fusion", "v: {shape: [C, C]}", "v: {shape: [C, C], comm_fusion: 1}"},
        {"gradient_strategy", "v: {shape: [C, C]}", "v: {shape: [C, C], gradient_strategy: [4, 1]}", kNoMeaning},
        {"state_strategy", "v: {shape: [C, C]}", "v: {shape: [C, C], state_strategy: [4, 1]}", kNoMeaning},
        {"gradient_dtype", "v: {shape: [C, C]}", "v: {shape: [C, C], gradient_dtype: bf16}"},
        {"state_dtype", "v: {shape: [C, C]}", "v: {shape: [C, C], state_dtype: bf16}", "sgd keeps none"}}},
      {"an operator",
       operator_keys,
       {{"op", "op: Tanh", "op: ReLU"},
        {"in", "{op: Tanh, in: a}", "{op: Tanh, in: x}", "feeds no output"},
        {"out", "{op: Tanh, in: a}", "{op: Tanh, in: a, out: [b, c]}", "results"},
        {"shape", "{op: Tanh, in: a}", "{op: Tanh, in: a, shape: [7]}", "the file says"},
        {"ranks", "ranks: [0, 1, 2, 3]", "ranks: [0, 1]"}}},
      {"the use of a block",
       call_keys,
       {{"block", "{block: two, in: c}", "{block: nn.Dense, in: c, out_channels: C}"},
        {"in", kUse, "in: a}", "feeds no output"},
        {"repeat", kUse, "in: c, repeat: 2}"},
        {"ranks", kUse, "in: c, ranks: [0]}", "as rank 1 of 4 reads the file"},
        {"share", kUse, "in: c, repeat: 2, share: d}"}}},
      {"settings",
       settings_keys,
       {{"in_strategy", kUse, "in: c, in_strategy: ((4, 1),)}", kNoMeaning},
        {"out_strategy", kUse, "in: c, out_strategy: ((4, 1),)}", kNoMeaning},
        {"strategy", kUse, "in: c, strategy: [{dp}, {mp}]}", kNoMeaning},
        {"level", kUse, "in: c, level: 1}", kNoMeaning},
        {"parallel_mode", kUse, "in: c, parallel_mode: data_parallel}", kNoMeaning},
        {"place", kUse, "in: c, place: (\"MS_WORKER\", 1)}", kNoMeaning},
        {"comm_fusion", kUse, "in: c, comm_fusion: 1}"},
        {"recompute", kUse, "in: c, recompute: true}"},
        {"gather_again", kUse, "in: c, gather_again: true}", kNoMeaning},
        {"compiled", kUse, "in: c, compiled: false}"},
        {"device", kUse, "in: c, device: Ascend}", "device is Ascend"},
        {"gradient_strategy", kUse, "in: c, gradient_strategy: [4, 1]}", kNoMeaning},
        {"state_strategy", kUse, "in: c, state_strategy: [4, 1]}", kNoMeaning},
        {"gradient_dtype", kUse, "in: c, gradient_dtype: bf16}"},
        {"state_dtype", kUse, "in: c, state_dtype: bf16}", "sgd keeps none"},
        {"parallel_optimizer", kUse, "in: c, parallel_optimizer: false}", kNoMeaning},
        {"requires_grad", kUse, "in: c, requires_grad: false}"}}},
      {"training",
       training_keys,
       {{"optimizer", kSgd, "{optimizer: adam}"},
        {"learning_rate", kSgd, "{optimizer: sgd, learning_rate: 0.5}"},
        {"momentum", kSgd, "{optimizer: momentum, momentum: 0.5}", "", "{optimizer: momentum}"},
        {"beta1", kSgd, "{optimizer: adamw, beta1: 0.5}", "", "{optimizer: adamw}"},
        {"beta2", kSgd, "{optimizer: adamw, beta2: 0.5}", "", "{optimizer: adamw}"},
        {"eps", kSgd, "{optimizer: adamw, eps: 0.5}", "", "{optimizer: adamw}"},
        {"weight_decay", kSgd, "{optimizer: adamw, weight_decay: 0.5}", "", "{optimizer: adamw}"},
        {"clip_norm", kSgd, "{optimizer: sgd, clip_norm: 0.5}"},
        {"micro_batches", kSgd, "{optimizer: sgd, micro_batches: 2}", "is for models in the view of all devices"},
        {"mixed_precision", kSgd, "{optimizer: sgd, mixed_precision: bf16}"},
        {"gradient_dtype", kSgd, "{optimizer: sgd, gradient_dtype: bf16}"},
        {"state_dtype", kSgd, "{optimizer: momentum, state_dtype: bf16}", "", "{optimizer: momentum}"},
        {"master_copy", kSgd, "{optimizer: sgd, mixed_precision: bf16, master_copy: false}", "",
         "{optimizer: sgd, mixed_precision: bf16}"},
        {"recompute", kSgd, "{optimizer: sgd, recompute: d}"}}},
      {"parallel",
       parallel_keys,
       {{"parallel_mode", "hybrid_parallel", "stand_alone"},
        {"search_mode", kParallel, "device_num: 4, search_mode: ilp,", kNoMeaning},
        {"device_num", "device_num: 4", "device_num: 2", "mesh"},
        {"workers", kParallel, "device_num: 4, workers: 2,", kNoMeaning},
        {"gradients_mean", kParallel, "device_num: 4, gradients_mean: true,"},
        {"gradient_fp32_sync", kParallel, "device_num: 4, gradient_fp32_sync: false,", "gradient_fp32_sync is for"},
        {"parameter_broadcast", kParallel, "device_num: 4, parameter_broadcast: true,", kNoMeaning},
        {"batch_norm", kParallel, "device_num: 4, batch_norm: local,", "batch_norm local is for"},
        {"full_batch", kParallel, "device_num: 4, full_batch: true,", kNoMeaning},
        {"dataset_strategy", kParallel, "device_num: 4, dataset_strategy: full_batch,", kNoMeaning},
        {"enable_parallel_optimizer", kParallel, "device_num: 4, enable_parallel_optimizer: true,", kNoMeaning},
        {"zero", kParallel, "device_num: 4, zero: 1,", "zero is for parallel_mode data_parallel"},
        {"reshard_after_forward", kParallel, "device_num: 4, reshard_after_forward: false,",
         "reshard_after_forward is for parallel_mode data_parallel"},
        {"gather_again", kParallel, "device_num: 4, gather_again: true,", kNoMeaning},
        {"gradient_accumulation_shard", kParallel, "device_num: 4, gradient_accumulation_shard: false,",
         "gradient_accumulation_shard is for parallel_mode data_parallel"},
        {"comm_fusion", kParallel, "device_num: 4, comm_fusion: {openstate: true},", kNoMeaning},
        {"strategy_ckpt_save_file", kParallel, "device_num: 4, strategy_ckpt_save_file: s,", kNoMeaning},
        {"strategy_ckpt_load_file", kParallel, "device_num: 4, strategy_ckpt_load_file: s,", "is for auto_parallel"},
        {"mesh", "{dp: 2, mp: 2}", "{mp: 2, dp: 2}"},
        {"level", kParallel, "device_num: 4, level: 1,", kNoMeaning},
        {"attention", kParallel, "device_num: 4, attention: fused,", kNoMeaning},
        {"layers", kParallel, "device_num: 4, layers: uniform,", kNoMeaning},
        {"uneven", kParallel, "device_num: 4, uneven: false,", kNoMeaning},
        {"compat", kParallel, "device_num: 4, compat: mindspore-1.7,", kNoMeaning},
        {"keep_out_strategy", kParallel, "device_num: 4, keep_out_strategy: false,", kNoMeaning},
        {"device", kParallel, "device_num: 4, device: Ascend,", "device is Ascend"}}},
      {"the file",
       []() -> const KeySpecs& {
         static const KeySpecs keys = {{"mode", ValueForm::kText, "", {}}, {"dims", ValueForm::kText, "", {}}};
         return keys;
       },
       {{"mode", "model: base", "mode: pynative", kNoMeaning}, {"dims", "C: 4", "C: 8"}}},
  };
  return all;
}

TEST(LocalKeysEffectTest, EveryKeyIsWalked) {
  for (const Section& section : sections()) {
    for (const KeySpec& key : section.keys()) {
      const auto is_in = [&](const std::vector<KeyCase>& cases) {
        return std::any_of(cases.begin(), cases.end(), [&](const KeyCase& c) { return key.name == c.key; });
      };
      const bool is_a_setting = std::any_of(sections().begin(), sections().end(), [&](const Section& other) {
        return other.keys == settings_keys && is_in(other.cases);
      });
      EXPECT_TRUE(is_in(section.cases) || is_a_setting) << section.name << ": " << key.name;
    }
  }
}

TEST(LocalKeysEffectTest, NoKeyIsSilent) {
  const std::string before = planned_and_printed(kModel);
  ASSERT_FALSE(before.starts_with("refused")) << before;
  for (const Section& section : sections()) {
    for (const KeyCase& c : section.cases) {
      SCOPED_TRACE(std::string(section.name) + ": " + c.key);
      const std::string after = planned_and_printed(with(kModel, c.from, c.second));
      EXPECT_NE(c.first == nullptr ? before : planned_and_printed(with(kModel, c.from, c.first)), after);
      EXPECT_NE(after.find(c.fault), std::string::npos) << after.substr(0, 300);
      EXPECT_EQ(after.starts_with("refused"), c.fault[0] != '\0') << after.substr(0, 300);
    }
  }
}

}  // namespace
}  // namespace shardplan
