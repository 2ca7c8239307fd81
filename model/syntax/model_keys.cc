#include "model/syntax/model_keys.h"

// The tables of keys, map by map: {key, form of its value, one line of description, allowed words}. The reader, the
// JSON Schema, near-miss hints in errors and the test that shows an effect of each key all read these tables.

namespace shardplan {
namespace {

const std::vector<std::string> kModes = {"stand_alone", "data_parallel", "semi_auto_parallel", "auto_parallel",
                                         "hybrid_parallel"};

constexpr char kGradientStrategy[] =
    "of a trained parameter: how its gradient is held for the update; over micro-batches: summed in these pieces";
constexpr char kStateStrategy[] = "of a trained parameter: how its optimizer states are stored and updated";
constexpr char kGatherAgain[] =
    "of activations that are gathered to be read: true: kept as they were before, and gathered again for the backward "
    "pass; false: kept as gathered";
constexpr char kGradientType[] = "in which gradients are summed and held; f32";
constexpr char kStateType[] = "in which moments are stored, but not a master copy; f32";

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
      {"dtype", ValueForm::kDataType, "of tensors that do not say one; f32", {}},
      {"inputs", ValueForm::kTensors, "tensors that get new values in each step", {}},
      {"constants", ValueForm::kConstants, "made on each device, never communicated", {}},
      {"parameters", ValueForm::kTensors, "stored between steps", {}},
      {"blocks", ValueForm::kBlocks, "parts of the model that are used by name", {}},
      {"operators", ValueForm::kOperators, "what is computed", {}},
      {"outputs", ValueForm::kNames, "results that are wanted; without it those that nobody uses", {}},
      {"loss", ValueForm::kName, "the scalar that training makes small", {}},
      {"training", ValueForm::kTraining, "how it is trained; without it only the forward pass runs", {}},
      {"strategies", ValueForm::kStrategies, "what the user decides, by full name; * is one part of a name", {}},
      {"parallel", ValueForm::kParallel, "modes and options, with MindSpore's names", {}},
      {"mode",
       ValueForm::kText,
       "graph (the default): all is searched; pynative: what is not sharded is data parallel",
       {"graph", "pynative"}},
      {"cluster", ValueForm::kText, "a preset, perhaps with xN for N nodes, or a file's path", {}},
      {"custom_operators", ValueForm::kCustomOperators, "own operators, by their rules", {}},
  };
  return keys;
}

const KeySpecs& dim_keys() {
  static const KeySpecs keys = {
      {"size", ValueForm::kExpression, "the model's", {}},
      {"pad", ValueForm::kWhole, "the size is rounded up to a multiple of this; what is computed stays the same", {}},
  };
  return keys;
}

const KeySpecs& block_keys() {
  static const KeySpecs keys = {
      {"dims",
       ValueForm::kBlockDims,
       "own sizes: inferred (from the inputs), given (by the caller) or expressions",
       {}},
      {"inputs", ValueForm::kTensors, "what a caller passes, in this order", {}},
      {"constants", ValueForm::kConstants, "made on each device, never communicated", {}},
      {"parameters", ValueForm::kTensors, "stored between steps; each use has its own", {}},
      {"operators", ValueForm::kOperators, "what is computed", {}},
      {"outputs", ValueForm::kNames, "results; without it the one that nobody uses", {}},
  };
  return keys;
}

const KeySpecs& input_keys() {
  static const KeySpecs keys = {
      {"shape", ValueForm::kShape, "sizes, as numbers or expressions of dims", {}},
      {"dtype", ValueForm::kDataType, "the model's dtype if not given", {}},
      {"strategy", ValueForm::kEntry, "how it is laid out", {}},
      {"begin",
       ValueForm::kShape,
       "in a model written per device: where a rank's piece begins in the tensor of all devices",
       {}},
  };
  return keys;
}

const KeySpecs& parameter_keys() {
  static const KeySpecs keys = joined(
      input_keys(), {
                        {"requires_grad", ValueForm::kFlag, "false: it is not trained", {}},
                        {"layerwise_parallel",
                         ValueForm::kFlag,
                         "true: every device has its own; in data_parallel it is trained by its part of the batch, "
                         "in a model written per device its gradient is not exchanged",
                         {}},
                        {"parallel_optimizer", ValueForm::kFlag, "false: its states are not cut", {}},
                        {"comm_fusion", ValueForm::kWhole, "fusion id of its gradient; 0: joined to none", {}},
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
      {"dtype", ValueForm::kDataType, "the model's dtype if not given", {}},
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
      {"strategy", ValueForm::kEntry, "of a tensor: how it is laid out", {}},
      {"level", ValueForm::kWhole, "0 ratio, 1 memory, 2 speed; a search of its own", {"0", "1", "2"}},
      {"parallel_mode",
       ValueForm::kText,
       "of what is inside",
       {"data_parallel", "semi_auto_parallel", "auto_parallel"}},
      {"place",
       ValueForm::kPlace,
       "the worker that computes it, as {role: MS_WORKER, rank: 3} or (\"MS_WORKER\", 3); 0 if not given",
       {}},
      {"comm_fusion", ValueForm::kWhole, "of a block or parameter: fusion id of its gradients; 0: joined to none", {}},
      {"recompute", ValueForm::kFlag, "true: computed again in the backward pass", {}},
      {"gather_again", ValueForm::kFlag, kGatherAgain, {}},
      {"device", ValueForm::kText, "what the job runs on", device_names()},
      {"gradient_strategy", ValueForm::kEntry, kGradientStrategy, {}},
      {"state_strategy", ValueForm::kEntry, kStateStrategy, {}},
      {"gradient_dtype", ValueForm::kText, kGradientType, gradient_types()},
      {"state_dtype", ValueForm::kText, kStateType, state_types()},
  };
  return keys;
}

const KeySpecs& operator_keys() {
  static const KeySpecs keys = joined(
      {
          {"op", ValueForm::kText, "MindSpore's primitive; `shardplan operators` lists them", {}},
          {"in", ValueForm::kInputs, "the tensors it reads; a number is a scalar", {}},
          {"out", ValueForm::kNames, "names of several results; one is called as the operator", {}},
          {"shape", ValueForm::kShape, "what its result must have; of Reshape: the target", {}},
          {"ranks", ValueForm::kShape, "in a model written per device: the ranks that have it; all if not given", {}},
      },
      settings_keys());
  return keys;
}

const KeySpecs& call_keys() {
  static const KeySpecs keys = joined(
      {
          {"block", ValueForm::kText, "of this file, or a built-in one as nn.Dense", {}},
          {"in", ValueForm::kInputs, "the tensors it reads; a number is a scalar", {}},
          {"repeat", ValueForm::kExpression, "so many copies, each fed by the one before: NAME.0, NAME.1, ...", {}},
          {"ranks", ValueForm::kShape, "in a model written per device: the ranks that have it; all if not given", {}},
          {"share",
           ValueForm::kName,
           "has the parameters of that use of the block; of a repeat its own name: all copies have the first one's",
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
      {"momentum", ValueForm::kNumber, "0.9", {}},
      {"beta1", ValueForm::kNumber, "0.9", {}},
      {"beta2", ValueForm::kNumber, "0.999", {}},
      {"eps", ValueForm::kNumber, "1e-8", {}},
      {"weight_decay", ValueForm::kNumber, "0", {}},
      {"clip_norm", ValueForm::kNumber, "gradients are scaled down to this global norm; 0: they are not", {}},
      {"micro_batches", ValueForm::kWhole, "the batch is computed in so many parts; 1", {}},
      {"mixed_precision", ValueForm::kText, "type of weights and activations", {"f16", "bf16"}},
      {"gradient_dtype", ValueForm::kText, kGradientType, gradient_types()},
      {"state_dtype", ValueForm::kText, kStateType, state_types()},
      {"master_copy", ValueForm::kFlag, "false: parameters of two bytes are updated as they are, not in f32", {}},
      {"recompute", ValueForm::kNames, "blocks or operators computed again in the backward pass", {}},
  };
  return keys;
}

const KeySpecs& parallel_keys() {
  static const KeySpecs keys = {
      {"parallel_mode", ValueForm::kText,
       "auto_parallel (the default): the search decides; semi_auto_parallel: what has no strategy is data parallel; "
       "data_parallel; stand_alone: on one device; hybrid_parallel: the model is written per device, and gradients are "
       "summed over all",
       kModes},
      {"search_mode",
       ValueForm::kText,
       "auto",
       {"sharding_propagation", "dynamic_programming", "ilp", "local", "auto"}},
      {"device_num", ValueForm::kWhole, "the cluster's", {}},
      {"workers", ValueForm::kWhole, "of `place`: the devices are divided among so many; each is one if not given", {}},
      {"gradients_mean",
       ValueForm::kFlag,
       "the mean of the devices' gradients (true, the default of data_parallel) or their sum (false, that of "
       "hybrid_parallel)",
       {}},
      {"gradient_fp32_sync",
       ValueForm::kFlag,
       "of data_parallel and semi_auto_parallel: true (the default): gradients of two bytes are summed as f32",
       {}},
      {"parameter_broadcast",
       ValueForm::kFlag,
       "true: the first device of those that store the same sends it to the others before the first step; false: all "
       "begin with the same",
       {}},
      {"batch_norm",
       ValueForm::kText,
       "of data_parallel: global (the default): batch normalisation by the whole batch; local: on each device by its "
       "part, as in MindSpore",
       {"global", "local"}},
      {"full_batch", ValueForm::kFlag, "true: every device has the whole inputs; false", {}},
      {"dataset_strategy", ValueForm::kEntries, "data_parallel, full_batch, or one entry per input", {}},
      {"enable_parallel_optimizer", ValueForm::kFlag, "true: optimizer states are in pieces; false", {}},
      {"zero",
       ValueForm::kWhole,
       "of data_parallel and semi_auto_parallel: the stage of ZeRO. 0: nothing in pieces (as these modes do); 1: "
       "optimizer states and updates; 2: sums of gradients over micro-batches too; 3: weights too. In auto_parallel it "
       "is searched",
       {"0", "1", "2", "3"}},
      {"reshard_after_forward",
       ValueForm::kFlag,
       "of weights in pieces: true (the default): gathered again for the backward pass; false: kept whole until then",
       {}},
      {"gather_again", ValueForm::kFlag, kGatherAgain, {}},
      {"gradient_accumulation_shard",
       ValueForm::kFlag,
       "with gradients in pieces: true: summed over the devices with every micro-batch; false: once a step; as the "
       "stage of ZeRO says",
       {}},
      {"comm_fusion",
       ValueForm::kCommFusion,
       "which collectives of gradients and updated weights run as one, as in MindSpore; wherever that is fastest",
       {}},
      {"strategy_ckpt_save_file",
       ValueForm::kText,
       "a file that every plan's strategies and parameter layouts are written to",
       {}},
      {"strategy_ckpt_load_file",
       ValueForm::kText,
       "such a file: what it names keeps the strategies it has there, the rest is searched",
       {}},
      {"mesh",
       ValueForm::kMesh,
       "axes, major to minor; the cluster's levels if not given; auto: these, every way to cut them tried",
       {}},
      {"level", ValueForm::kWhole, "0 ratio (the default), 1 memory, 2 speed", {"0", "1", "2"}},
      {"attention",
       ValueForm::kText,
       "as written (the default); fused: products, scale, biases, mask, softmax and dropout are one FlashAttention",
       {"as written", "fused"}},
      {"layers",
       ValueForm::kText,
       "uniform (the default): all copies of a repeated block have the same strategies; free: every copy has its own",
       {"uniform", "free"}},
      {"uneven",
       ValueForm::kFlag,
       "true (the default): a size that no equal cut of the devices fits may be cut in unequal pieces; false",
       {}},
      {"compat", ValueForm::kText, "the limits of shard that this version documents hold", {"mindspore-1.7"}},
      {"keep_out_strategy",
       ValueForm::kFlag,
       "true; false: a block's out_strategy gives way to data parallel in training",
       {}},
      {"device", ValueForm::kText,
       "without a cluster: Ascend is ascend-910, GPU dgx-a100, CPU is planned as if it were Ascend", device_names()},
  };
  return keys;
}

const KeySpecs& custom_operator_keys() {
  static const KeySpecs keys = {
      {"rule", ValueForm::kText, "as in \"b s h, h f -> b s f\"", {}},
      {"factors", ValueForm::kFactors, "how the factors that no result has end: sum, max, min, whole", {}},
      {"flops", ValueForm::kExpression, "of the factors' sizes; twice their product if not given", {}},
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

}  // namespace shardplan
