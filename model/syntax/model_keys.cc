#include "model/syntax/model_keys.h"

#include <fmt/format.h>

#include <algorithm>

// The tables of keys, map by map: {key, form of its value, one line of description, allowed words}. The reader, the
// JSON Schema, near-miss hints in errors and the test that shows an effect of each key all read these tables.

namespace shardplan {
namespace {

const std::vector<std::string> kModes = {"stand_alone", "data_parallel", "semi_auto_parallel", "auto_parallel",
                                         "hybrid_parallel"};

constexpr char kGradientStrategy[] =
    "of a trained parameter: the layout of its gradient for the update, and of its sum over micro-batches";
constexpr char kStateStrategy[] =
    "of a trained parameter: the layout in which its optimizer states are stored and updated";
constexpr char kGatherAgain[] =
    "gathered activations that the backward pass reads again. true: kept sharded and gathered again; false: kept "
    "gathered";
constexpr char kGradientType[] = "type in which gradients are summed and held; default: f32";
constexpr char kParallelOptimizer[] = "false: the mode does not shard its optimizer states; default: true";
constexpr char kStateType[] = "type in which moments are stored (not a master copy); default: f32";

KeySpecs joined(KeySpecs a, const KeySpecs& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

const KeySpecs& file_keys() {
  static const KeySpecs keys = {
      {"shardplan", ValueForm::kWhole, "format version: 1", {}},
      {"model", ValueForm::kText, "the model's name", {}},
      {"dims", ValueForm::kDims, "named sizes: numbers or expressions of other names", {}},
      {"dtype", ValueForm::kDataType, "default dtype of tensors; f32 if not given", {}},
      {"autocast",
       ValueForm::kText,
       "products compute in this type, norms, softmaxes and losses in f32, as under torch.autocast",
       {"f16", "bf16"}},
      {"fp8",
       ValueForm::kNames,
       "blocks or operators whose products of weights multiply in f8e4m3; * matches any one component of a name",
       {}},
      {"int8_weights",
       ValueForm::kNames,
       "in inference, blocks or operators whose products' weights are stored in i8 and widened as they are read",
       {}},
      {"inputs", ValueForm::kTensors, "tensors with new values in each step", {}},
      {"constants", ValueForm::kConstants, "tensors generated on each device, never communicated", {}},
      {"parameters", ValueForm::kTensors, "tensors stored between steps", {}},
      {"blocks", ValueForm::kBlocks, "parts of the model, used by name", {}},
      {"operators", ValueForm::kOperators, "the operators and uses of blocks", {}},
      {"outputs", ValueForm::kNames, "results of the model; default: those that no operator reads", {}},
      {"loss", ValueForm::kName, "the scalar that training minimises", {}},
      {"training", ValueForm::kTraining, "training options; without them only the forward pass runs", {}},
      {"strategies",
       ValueForm::kStrategies,
       "decisions of the user, by full name; * matches any one component of a name",
       {}},
      {"parallel", ValueForm::kParallel, "modes and options, with MindSpore's names", {}},
      {"mode",
       ValueForm::kText,
       "graph (default): what has no strategy is searched; pynative: it is data parallel",
       {"graph", "pynative"}},
      {"cluster", ValueForm::kText, "a preset, with xN for N nodes, or the path of a cluster file", {}},
      {"custom_operators", ValueForm::kCustomOperators, "operators of your own, defined by their sharding rules", {}},
  };
  return keys;
}

const KeySpecs& dim_keys() {
  static const KeySpecs keys = {
      {"size", ValueForm::kExpression, "the size without padding", {}},
      {"pad", ValueForm::kWhole, "the size is rounded up to a multiple of this; results do not change", {}},
  };
  return keys;
}

const KeySpecs& block_keys() {
  static const KeySpecs keys = {
      {"dims",
       ValueForm::kBlockDims,
       "sizes of the block: inferred (from the inputs), given (by the caller) or expressions",
       {}},
      {"inputs", ValueForm::kTensors, "tensors that a caller passes, in this order", {}},
      {"constants", ValueForm::kConstants, "tensors generated on each device, never communicated", {}},
      {"parameters", ValueForm::kTensors, "tensors stored between steps; each use of the block has its own", {}},
      {"operators", ValueForm::kOperators, "the operators and uses of blocks", {}},
      {"outputs", ValueForm::kNames, "results of the block; default: the one that no operator reads", {}},
  };
  return keys;
}

const KeySpecs& input_keys() {
  static const KeySpecs keys = {
      {"shape", ValueForm::kShape, "sizes, as numbers or expressions of dims", {}},
      {"dtype", ValueForm::kDataType, "default: the model's dtype", {}},
      {"strategy", ValueForm::kEntry, "its layout", {}},
      {"begin",
       ValueForm::kShape,
       "in a model written per device: where a rank's piece begins in the global tensor",
       {}},
  };
  return keys;
}

const KeySpecs& parameter_keys() {
  static const KeySpecs keys =
      joined(input_keys(),
             {
                 {"requires_grad", ValueForm::kFlag, "false: not trained", {}},
                 {"layerwise_parallel",
                  ValueForm::kFlag,
                  "true: each device has its own copy; in data_parallel it is trained on that device's part of the "
                  "batch, in a model written per device its gradient is not exchanged",
                  {}},
                 {"parallel_optimizer", ValueForm::kFlag, kParallelOptimizer, {}},
                 {"comm_fusion", ValueForm::kWhole, "fusion id of its gradient; 0: never joined", {}},
                 {"gradient_strategy", ValueForm::kEntry, kGradientStrategy, {}},
                 {"state_strategy", ValueForm::kEntry, kStateStrategy, {}},
                 {"gradient_dtype", ValueForm::kText, kGradientType, gradient_types()},
                 {"state_dtype", ValueForm::kText, kStateType, state_types()},
             });
  return keys;
}

const KeySpecs& constant_keys() {
  static const KeySpecs keys = {
      {"shape", ValueForm::kShape, "sizes, as numbers or expressions of dims", {}},
      {"dtype", ValueForm::kDataType, "default: the model's dtype", {}},
      {"fill",
       ValueForm::kText,
       "zeros, ones, iota (0, 1, ... along the last dimension), causal (0 and -1e9), or a number",
       {}},
  };
  return keys;
}

const KeySpecs& settings_keys() {
  static const KeySpecs keys = {
      {"in_strategy", ValueForm::kEntries, "one entry per input", {}},
      {"out_strategy", ValueForm::kEntries, "one entry per result", {}},
      {"strategy", ValueForm::kEntry, "of a tensor: its layout", {}},
      {"level", ValueForm::kWhole, "0 ratio, 1 memory, 2 speed; searched separately from the rest", {"0", "1", "2"}},
      {"parallel_mode",
       ValueForm::kText,
       "mode of the block's inside",
       {"data_parallel", "semi_auto_parallel", "auto_parallel"}},
      {"place",
       ValueForm::kPlace,
       "the worker that computes it, as {role: MS_WORKER, rank: 3} or (\"MS_WORKER\", 3); 0 if not given",
       {}},
      {"comm_fusion", ValueForm::kWhole, "of a block or parameter: fusion id of its gradients; 0: never joined", {}},
      {"recompute", ValueForm::kFlag, "true: recomputed in the backward pass", {}},
      {"gather_again", ValueForm::kFlag, kGatherAgain, {}},
      {"compiled",
       ValueForm::kFlag,
       "of a block or operator; false: its elementwise operators are not fused, whatever the cluster's fusion",
       {}},
      {"requires_grad", ValueForm::kFlag, "of a block or parameter; false: not trained", {}},
      {"device", ValueForm::kText, "the kind of device", device_names()},
      {"gradient_strategy", ValueForm::kEntry, kGradientStrategy, {}},
      {"state_strategy", ValueForm::kEntry, kStateStrategy, {}},
      {"gradient_dtype", ValueForm::kText, kGradientType, gradient_types()},
      {"state_dtype", ValueForm::kText, kStateType, state_types()},
      {"parallel_optimizer", ValueForm::kFlag, kParallelOptimizer, {}},
  };
  return keys;
}

const KeySpecs& operator_keys() {
  static const KeySpecs keys = joined(
      {
          {"op", ValueForm::kText, "MindSpore's primitive; `shardplan operators` lists them", {}},
          {"in", ValueForm::kInputs, "the tensors it reads; a number is a scalar", {}},
          {"out", ValueForm::kNames, "names of several results; a single result has the operator's name", {}},
          {"shape", ValueForm::kShape, "expected shape of its result; of Reshape: the target shape", {}},
          {"ranks", ValueForm::kShape, "in a model written per device: the ranks that have it; default: all", {}},
      },
      settings_keys());
  return keys;
}

const KeySpecs& call_keys() {
  static const KeySpecs keys = joined(
      {
          {"block", ValueForm::kText, "a block of this file, or a built-in one such as nn.Dense", {}},
          {"in", ValueForm::kInputs, "the tensors it reads; a number is a scalar", {}},
          {"repeat",
           ValueForm::kExpression,
           "number of copies NAME.0, NAME.1, ...; the results of each are the first inputs of the next",
           {}},
          {"ranks", ValueForm::kShape, "in a model written per device: the ranks that have it; default: all", {}},
          {"share",
           ValueForm::kName,
           "takes the parameters of that use of the block; a repeated block with its own name shares them among all "
           "copies",
           {}},
      },
      settings_keys());
  return keys;
}

const KeySpecs& place_keys() {
  static const KeySpecs keys = {
      {"role", ValueForm::kText, "", {"MS_WORKER"}},
      {"rank", ValueForm::kWhole, "the worker's number", {}},
  };
  return keys;
}

const KeySpecs& training_keys() {
  static const KeySpecs keys = {
      {"optimizer", ValueForm::kText, "", {"sgd", "momentum", "adam", "adamw"}},
      {"learning_rate", ValueForm::kNumber, "0.001", {}},
      {"momentum", ValueForm::kNumber, "of optimizer momentum; default: 0.9", {}},
      {"beta1", ValueForm::kNumber, "of adam and adamw; default: 0.9", {}},
      {"beta2", ValueForm::kNumber, "of adam and adamw; default: 0.999", {}},
      {"eps", ValueForm::kNumber, "of adam and adamw; default: 1e-8", {}},
      {"weight_decay", ValueForm::kNumber, "0", {}},
      {"clip_norm", ValueForm::kNumber, "gradients are scaled down to this global norm; 0: no clipping", {}},
      {"micro_batches", ValueForm::kWhole, "number of parts in which the batch is computed; default: 1", {}},
      {"mixed_precision", ValueForm::kText, "type of weights and activations", {"f16", "bf16"}},
      {"gradient_dtype", ValueForm::kText, kGradientType, gradient_types()},
      {"state_dtype", ValueForm::kText, kStateType, state_types()},
      {"master_copy", ValueForm::kFlag, "false: two-byte parameters are updated directly, without a copy in f32", {}},
      {"recompute",
       ValueForm::kNames,
       "blocks (but for their outputs) or operators recomputed in the backward pass",
       {}},
  };
  return keys;
}

const KeySpecs& parallel_keys() {
  static const KeySpecs keys = {
      {"parallel_mode", ValueForm::kText,
       "auto_parallel (default): the search decides; semi_auto_parallel: operators without a strategy are data "
       "parallel; "
       "data_parallel; stand_alone: one device; hybrid_parallel: the model is written per device, and gradients are "
       "summed over all devices",
       kModes},
      {"search_mode",
       ValueForm::kText,
       "auto",
       {"sharding_propagation", "dynamic_programming", "ilp", "local", "auto"}},
      {"device_num", ValueForm::kWhole, "number of devices; default: the cluster's", {}},
      {"workers",
       ValueForm::kWhole,
       "number of workers of `place` among which the devices are divided; default: one per device",
       {}},
      {"gradients_mean",
       ValueForm::kFlag,
       "the mean of the devices' gradients (true, the default of data_parallel) or their sum (false, that of "
       "hybrid_parallel)",
       {}},
      {"gradient_fp32_sync",
       ValueForm::kFlag,
       "in data_parallel and semi_auto_parallel. true (default): two-byte gradients are summed as f32",
       {}},
      {"parameter_broadcast",
       ValueForm::kFlag,
       "true: before the first step, the first device of those that store the same piece sends it to the others; "
       "false: "
       "all start with equal values",
       {}},
      {"batch_norm",
       ValueForm::kText,
       "in data_parallel. global (default): batch normalisation over the whole batch; local: on each device over its "
       "part, as in MindSpore",
       {"global", "local"}},
      {"full_batch", ValueForm::kFlag, "true: every device holds the complete inputs; default: false", {}},
      {"dataset_strategy", ValueForm::kEntries, "data_parallel, full_batch, or one entry per input", {}},
      {"enable_parallel_optimizer", ValueForm::kFlag, "true: optimizer states are sharded; default: false", {}},
      {"zero",
       ValueForm::kWhole,
       "in data_parallel and semi_auto_parallel: ZeRO stage. 0 (default): nothing sharded; 1: optimizer states and "
       "updates; 2: also sums of gradients over micro-batches; 3: also weights. In auto_parallel it is searched",
       {"0", "1", "2", "3"}},
      {"reshard_after_forward",
       ValueForm::kFlag,
       "weights stored sharded. true (default): gathered again for the backward pass; false: kept gathered until then",
       {}},
      {"gather_again", ValueForm::kFlag, kGatherAgain, {}},
      {"gradient_accumulation_shard",
       ValueForm::kFlag,
       "sharded gradients. true: reduced over the devices with every micro-batch; false: once per step; default: by "
       "the "
       "ZeRO stage",
       {}},
      {"comm_fusion",
       ValueForm::kCommFusion,
       "which collectives of gradients and updated weights run as one, as in MindSpore; default: the fastest buckets",
       {}},
      {"strategy_ckpt_save_file",
       ValueForm::kText,
       "file to which the strategies and parameter layouts of every plan are written",
       {}},
      {"strategy_ckpt_load_file",
       ValueForm::kText,
       "such a file: what it names keeps its strategy, the rest is searched",
       {}},
      {"mesh",
       ValueForm::kMesh,
       "axes, major to minor; default: the cluster's levels; auto: every way to split these levels is tried",
       {}},
      {"level", ValueForm::kWhole, "0 ratio (the default), 1 memory, 2 speed", {"0", "1", "2"}},
      {"attention",
       ValueForm::kText,
       "as written (default); fused: products, scale, biases, mask, softmax and dropout are one FlashAttention",
       {"as written", "fused"}},
      {"layers",
       ValueForm::kText,
       "uniform (default): all copies of a repeated block have the same strategies; free: every copy has its own",
       {"uniform", "free"}},
      {"uneven",
       ValueForm::kFlag,
       "true (default): a size that the devices do not divide may be sharded into unequal pieces; false: never",
       {}},
      {"compat", ValueForm::kText, "apply the restrictions of `shard` that this version documents", {"mindspore-1.7"}},
      {"keep_out_strategy",
       ValueForm::kFlag,
       "default: true; false: in training a block's out_strategy is replaced by data parallel",
       {}},
      {"device", ValueForm::kText,
       "default cluster: Ascend is ascend-910, GPU dgx-a100, CPU is planned as if it were Ascend", device_names()},
  };
  return keys;
}

const KeySpecs& custom_operator_keys() {
  static const KeySpecs keys = {
      {"rule", ValueForm::kText, "sharding rule, as in \"b s h, h f -> b s f\"", {}},
      {"factors",
       ValueForm::kFactors,
       "factors that no result has: combined by sum, max, min; whole: must not be sharded",
       {}},
      {"flops", ValueForm::kExpression, "expression of the factors' sizes; default: twice their product", {}},
  };
  return keys;
}

const std::vector<std::string>& gradient_types() {
  static const std::vector<std::string> types = {"f32", "bf16", "f16"};
  return types;
}

const std::vector<std::string>& state_types() {
  static const std::vector<std::string> types = {"f32", "bf16", "f16", "f8e4m3"};
  return types;
}

const std::vector<std::string>& device_names() {
  static const std::vector<std::string> names = {"Ascend", "GPU", "CPU"};
  return names;
}

std::vector<std::string> key_names(const KeySpecs& specs) {
  std::vector<std::string> names;
  for (const KeySpec& spec : specs) names.push_back(spec.name);
  return names;
}

std::string_view other_recompute_word(std::string_view key) {
  if (key == "mp_comm_recompute") {
    return "gather_again: true or false says whether what was gathered is gathered again in the backward pass";
  }
  if (key == "parallel_optimizer_comm_recompute") {
    return "parallel: {zero: 3, reshard_after_forward: true or false} says whether weights are gathered again in the "
           "backward pass";
  }
  return {};
}

void check_model_keys(const YamlDocument& document, const YamlNode& node, const KeySpecs& known, std::string_view where,
                      std::vector<Diagnostic>& faults) {
  std::size_t at = faults.size();
  check_keys(document, node, key_names(known), where, faults);
  const auto has = [](const KeySpecs& keys, const std::string& name) {
    return std::any_of(keys.begin(), keys.end(), [&](const KeySpec& key) { return key.name == name; });
  };
  for (const YamlEntry& entry : node.entries) {
    const std::string& key = entry.key.text;
    if (has(known, key)) continue;
    std::string& hint = faults[at++].hint;  // one fault for each
    if (has(parallel_keys(), key)) {
      hint = fmt::format("{} is a key of parallel", key);
    } else if (has(training_keys(), key)) {
      hint = fmt::format("{} is a key of training", key);
    } else if (has(file_keys(), key) && !where.empty()) {
      hint = fmt::format("{} is a key of the file itself", key);
    } else {
      hint = other_recompute_word(key);
    }
  }
}

}  // namespace shardplan
