// Frameworks that take a few degrees for the whole model. Sources of the options:
//   Megatron-LM   megatron/training/arguments.py, megatron/core/transformer/transformer_config.py (cp_comm_type) and the
//                 README of Megatron-FSDP
//   torchtitan    torchtitan/config/configs.py, ParallelismConfig and TrainingConfig
//   DeepSpeed     its configuration as JSON, or as the same dictionary
//   vLLM          the engine arguments of `vllm serve`

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "graph/stored_updates.h"
#include "layouts/layout_axes.h"
#include "report/export/context_exchange.h"
#include "report/export/export.h"
#include "report/export/exported_plan.h"
#include "report/export/kept_types.h"
#include "report/export/nearest_kind.h"
#include "report/export/python_text.h"
#include "report/export/uniform_plan.h"

namespace shardplan {
namespace {

constexpr char kForInference[] = "the plan is for inference";

/// What a framework says of a plan besides its degrees.
struct FrameworkWords {
  std::vector<std::string> how_to;
  std::vector<std::string> misfits = {};      // why its program cannot run the model at all: said first
  std::vector<std::string> differences = {};  // of types, recomputation and the like
  bool reduces_otherwise = false;             // gradients in another type, which costs another time
};

/// The nearest degrees, the framework's other stages of ZeRO, and their costs if there is a planner to plan them.
struct NearestKind {
  GlobalDegrees degrees;
  std::vector<GlobalDegrees> others = {};
  std::optional<KindCosts> costs = {};
};

/// Of the framework's stages of ZeRO the nearest at which a plan fits. `reduces_wide` tells of a stage how it reduces.
template <class ReducesWide>
NearestKind nearest_kind(const Plan& plan, GlobalDegrees degrees, const std::vector<int>& stages,
                         const ModelPlanner* planner, const ReducesWide& reduces_wide) {
  NearestKind kind;
  kind.others = other_stages(plan, degrees, stages);
  kind.degrees = std::move(degrees);
  kind.degrees.reduces_wide = reduces_wide(kind.degrees.zero);
  for (GlobalDegrees& other : kind.others) other.reduces_wide = reduces_wide(other.zero);
  if (planner == nullptr) return kind;
  kind.costs.emplace(plan, *planner);
  take_fitting(kind.degrees, kind.others, *kind.costs);
  return kind;
}

/// The first lines: whether the plan is of this kind, and the differences.
ExportedText opening(const Plan& plan, NearestKind& kind, const UniformPlan& uniform, const FrameworkWords& words) {
  refuse_own_tensors(*plan.graph);
  ExportedText result;
  for (const auto* lines : {&words.misfits, &uniform.differences, &words.differences}) {
    result.cannot_say.insert(result.cannot_say.end(), lines->begin(), lines->end());
  }
  result.text = python_comment(export_title(plan));
  for (const std::string& line : words.how_to) result.text += python_comment(line);
  const std::string text = degrees_text(uniform, kind.degrees);
  if (result.cannot_say.empty()) {
    result.text += python_comment("The plan is of this kind: " + text + ".");
    return result;
  }
  const bool is_of_kind = uniform.differences.empty() && !words.reduces_otherwise;
  if (is_of_kind || !kind.costs) {
    result.text += python_comment("The nearest plan of this kind is " + text + ". Where this plan differs:");
  } else {
    result.nearest =
        fmt::format("the nearest plan of this kind, {}, {}", text, cost_text(kind.degrees, kind.others, *kind.costs));
    result.text += python_comment("T" + result.nearest.substr(1) + ".");
    result.text += python_comment("Where this plan differs:");
  }
  for (const std::string& difference : result.cannot_say) result.text += python_comment("  " + difference);
  return result;
}

/// Whether the norms have a sequence dimension that could be sharded.
bool has_sequence(const OperatorGraph& graph) {
  for (const GraphOperator& op : graph.operators()) {
    if (graph.operations()[op.operation].type->role != OperatorRole::kTokenNorm) continue;
    if (graph.tensor(op.results[0]).type.shape.size() >= 3) return true;
  }
  return false;
}

std::string bash_array(std::string_view name, const std::vector<std::string>& options) {
  return fmt::format("{}=(\n  {}\n)\n", name, fmt::join(options, "\n  "));
}

/// The first cache into which keys or values are written.
std::optional<TensorId> written_cache(const OperatorGraph& graph) {
  for (const OperatorId id : graph.operators().ids()) {
    if (graph.operation(id).type->name == "KVCacheScatterUpdate") return graph.operators()[id].operands[0];
  }
  return std::nullopt;
}

/// In how many pieces over the axes of tensor parallelism the largest caches have their tokens, as far as the heads
/// leave any: vLLM shards tokens only where devices would hold the same heads.
std::int64_t pieces_of_tokens(const Plan& plan, const std::vector<AxisRef>& tensor) {
  std::int64_t pieces = 1;
  Bytes largest = 0;
  for (const Binding& given : plan.program.given) {
    if (!is_cache(*plan.graph, given.tensor)) continue;
    const TensorType& type = plan.graph->tensor(given.tensor).type;
    const TensorLayout& layout = plan.program.values[given.value].layout;
    if (type.bytes() <= largest) continue;
    largest = type.bytes();
    const std::size_t tokens = token_dimension(*plan.graph, given.tensor);
    const std::int64_t heads = tokens > 1 ? type.shape[tokens - 1] : 1;
    const std::int64_t alike = num_pieces(tensor) / std::gcd(num_pieces(tensor), heads);
    pieces = std::gcd(alike, common_pieces(axes_along(layout.dimensions[tokens]), tensor));
  }
  return pieces;
}

const TrainingOptions* training_of(const Plan& plan) {
  return plan.model && plan.model->training ? &*plan.model->training : nullptr;
}

/// Adds "gradients are kept as bf16" for a type of less than 4 bytes, for which a framework has no option.
void refuse_short(const std::optional<DataType>& type, const char* what, std::vector<std::string>& differences) {
  if (is_short(type)) differences.push_back(fmt::format("{} are kept as {}", what, to_string(*type)));
}

/// For frameworks that reduce gradients as they keep them.
void refuse_short_sums(DataType reduced, KeptTypes& kept) {
  kept.differences.push_back(
      fmt::format("gradients are reduced as {}, kept as {}", to_string(reduced), to_string(*kept.gradients)));
}

/// These frameworks train with equal batches on all devices. Throws InputError.
void check_batch(const Plan& plan, const UniformPlan& uniform) {
  const std::int64_t rows = uniform.global_batch / plan.graph->micro_batches();
  if (rows % uniform.data == 0) return;
  throw InputError(SourcePlace{},
                   "the nearest plan of this kind shards the batch over {} devices, but {} rows are not in {} equal "
                   "pieces; plan with another batch, or export to jax, dtensor or mindspore",
                   uniform.data, rows, uniform.data);
}

void refuse_narrow_weights(KeptTypes& kept) {
  if (kept.narrow_weights) kept.differences.emplace_back("weights of two bytes have no master copy in f32");
}

/// For frameworks whose models are of two bytes throughout.
void refuse_autocast(const Plan& plan, KeptTypes& kept) {
  if (!plan.model || !plan.model->autocast) return;
  kept.differences.push_back(fmt::format("only products compute in {} (autocast)", to_string(*plan.model->autocast)));
}

/// The names that are no whole layers ("layers.*"): parts of layers, single operators.
std::vector<std::string> parts_of_layers(const std::vector<std::string>& names) {
  std::vector<std::string> parts;
  for (const std::string& name : names) {
    const bool is_layers = name.ends_with(".*") && std::ranges::count(name, '*') == 1;
    if (name.find('.') != std::string::npos && !is_layers) parts.push_back(name);
  }
  return parts;
}

std::vector<std::string> recomputed_parts(const Plan& plan) { return parts_of_layers(recomputed_names(plan)); }

/// Says which parts of layers are meant, for frameworks that take whole layers or a selection of their own.
void refuse_parts(std::vector<std::string> parts, std::string_view what, std::vector<std::string>& differences) {
  constexpr std::size_t kMostNamed = 3;
  if (parts.empty()) return;
  const std::size_t more = parts.size() - std::min(parts.size(), kMostNamed);
  parts.resize(parts.size() - more);
  differences.push_back(
      fmt::format("{}: {}{}", what, fmt::join(parts, ", "), more > 0 ? fmt::format(" and {} more", more) : ""));
}

/// Whether products of weights multiply in f8. Frameworks choose these by themselves, in whole layers.
bool has_float8(const Plan& plan, std::vector<std::string>& differences) {
  if (!plan.model || plan.model->fp8.empty()) return false;
  refuse_parts(parts_of_layers(plan.model->fp8), "products in f8", differences);
  return true;
}

void append(const std::vector<std::string>& lines, std::vector<std::string>& differences) {
  differences.insert(differences.end(), lines.begin(), lines.end());
}

/// What is wrong with a network without attention: these programs run transformers.
std::vector<std::string> other_network(const OperatorGraph& graph, const char* program) {
  bool attends = false;
  for (const OperatorId op : graph.operators().ids()) {
    const OperatorType& type = *graph.operation(op).type;
    attends = attends || type.role == OperatorRole::kAttention || type.name == "Softmax";
  }
  if (attends) return {};
  return {fmt::format("the network: {} runs transformers, and it has no attention", program)};
}

/// The same, and a plan for inference, for programs that train.
std::vector<std::string> untrainable(const OperatorGraph& graph, const char* program) {
  std::vector<std::string> lines;
  if (!graph.is_training()) lines.emplace_back(kForInference);
  append(other_network(graph, program), lines);
  return lines;
}

/// Megatron-LM's name of a type.
std::string_view megatron_name(DataType type) {
  switch (type) {
    case DataType::kBF16:
      return "bf16";
    case DataType::kF16:
      return "fp16";
    case DataType::kF8E4M3:
      return "fp8";
    default:
      return "fp32";
  }
}

/// Megatron-FSDP shards weights, and sums of gradients, which there are over micro-batches only.
bool is_megatron_fsdp(const Plan& plan, int zero) {
  return zero == 3 || (zero == 2 && plan.graph->micro_batches() > 1);
}

}  // namespace

ExportedText export_megatron(const Plan& plan, const ModelPlanner* planner) {
  KeptTypes kept = kept_types(*plan.graph);
  // Megatron-FSDP has a type for what it reduces; otherwise one buffer is reduced and has the sum over micro-batches.
  const std::optional<DataType> reduced = short_sums(plan, kept);
  const TrainingOptions* const training = training_of(plan);
  const auto reduces_wide = [&](int zero) {
    if (!reduced || training == nullptr || training->mixed_precision != reduced) return true;
    return is_megatron_fsdp(plan, zero) ? reduced != DataType::kBF16 : plan.graph->micro_batches() > 1;
  };
  GlobalDegrees nearest = nearest_degrees(plan);
  nearest.gathers_again = nearest.sequence;  // its ColumnParallelLinear keeps its shard of the sequence
  NearestKind kind = nearest_kind(plan, std::move(nearest), {0, 1, 2, 3}, planner, reduces_wide);
  const GlobalDegrees degrees = kind.degrees;
  const UniformPlan uniform = uniform_plan(plan, degrees);
  check_batch(plan, uniform);
  const bool is_fsdp = is_megatron_fsdp(plan, degrees.zero);
  // Options for these types need its precision-aware optimizer, which is distributed and keeps moments.
  const bool is_precise = (is_short(kept.gradients) || is_short(kept.moments)) && degrees.zero > 0 && kept.moments;
  if (!is_precise || kept.gradients == DataType::kF16) refuse_short(kept.gradients, "gradients", kept.differences);
  if (!is_precise) refuse_short(kept.moments, "moments", kept.differences);
  if (reduced && degrees.reduces_wide) refuse_short_sums(*reduced, kept);
  refuse_narrow_weights(kept);
  refuse_autocast(plan, kept);
  refuse_parts(recomputed_parts(plan), "recomputed", kept.differences);
  if (std::optional<std::string> untrained = untrained_weights(plan)) kept.differences.push_back(*std::move(untrained));
  const bool is_float8 = has_float8(plan, kept.differences);
  ContextExchange exchange = context_exchange(plan, degrees);
  if (exchange == ContextExchange::kHeads && !has_heads_for_all(*plan.graph, degrees))
    exchange = ContextExchange::kKeys;
  if (uniform.context > 1) append(other_exchanges(plan, degrees, exchange), kept.differences);
  ExportedText result =
      opening(plan, kind, uniform,
              {{"How to use it: source this file, then",
                "  torchrun ... pretrain_gpt.py \"${MEGATRON[@]}\" and the options of model and data"},
               untrainable(*plan.graph, "pretrain_gpt.py"),
               kept.differences,
               reduced && degrees.reduces_wide});
  std::vector<std::string> options{fmt::format("--tensor-model-parallel-size {}", uniform.tensor),
                                   "--pipeline-model-parallel-size 1",
                                   fmt::format("--context-parallel-size {}", uniform.context),
                                   fmt::format("--micro-batch-size {}", uniform.micro_batch),
                                   fmt::format("--global-batch-size {}", uniform.global_batch)};
  if (uniform.experts > 1) {
    options.push_back(fmt::format("--expert-model-parallel-size {}", uniform.experts));
    const std::int64_t of_each = uniform.tensor / common_pieces(degrees.tensor, degrees.experts);
    options.push_back(fmt::format("--expert-tensor-parallel-size {}", of_each));
  }
  if (uniform.context > 1) {  // by default keys and values go around a ring
    const bool is_by_heads = exchange == ContextExchange::kHeads;
    options.push_back(fmt::format("--cp-comm-type {}", is_by_heads ? "a2a" : "all_gather"));
  }
  if (degrees.sequence) options.emplace_back("--sequence-parallel");
  if (degrees.zero > 0) options.emplace_back("--use-distributed-optimizer");
  if (is_fsdp) {
    options.emplace_back("--use-megatron-fsdp");
    options.push_back(
        fmt::format("--data-parallel-sharding-strategy {}", degrees.zero == 2 ? "optim_grads" : "optim_grads_params"));
    options.emplace_back("--no-gradient-accumulation-fusion");
    options.emplace_back("--ckpt-format fsdp_dtensor");
  }
  if (is_precise) {
    options.emplace_back("--use-precision-aware-optimizer");
    if (kept.gradients == DataType::kBF16) options.emplace_back("--main-grads-dtype bf16 --grad-reduce-in-bf16");
    options.push_back(fmt::format("--exp-avg-dtype {}", megatron_name(*kept.moments)));
    options.push_back(fmt::format("--exp-avg-sq-dtype {}", megatron_name(*kept.moments)));
  }
  if (plan.is_overlapped && uniform.data > 1) options.emplace_back("--overlap-grad-reduce");
  if (plan.is_overlapped && degrees.zero > 0) options.emplace_back("--overlap-param-gather");
  if (training != nullptr) {
    if (training->clip_norm > 0) options.push_back(fmt::format("--clip-grad {}", training->clip_norm));
    // The defaults reduce bf16 as f32, and f16 as it is.
    const bool is_short_bf16 = !degrees.reduces_wide && reduced == DataType::kBF16;
    if (is_short_bf16) options.emplace_back("--grad-reduce-in-bf16");
    if (is_short_bf16 && is_fsdp) {
      options.emplace_back("--megatron-fsdp-grad-comm-dtype bf16 --megatron-fsdp-main-grads-dtype fp32");
    }
    const bool is_wide = kept.gradients == DataType::kF32 && degrees.reduces_wide;
    if (training->mixed_precision == DataType::kF16 && is_wide) {
      options.emplace_back("--accumulate-allreduce-grads-in-fp32");
    }
    if (training->mixed_precision == DataType::kBF16) options.emplace_back("--bf16");
    if (training->mixed_precision == DataType::kF16) options.emplace_back("--fp16");
    if (is_float8) options.emplace_back("--fp8-format hybrid --fp8-recipe tensorwise");
    if (!recomputed_names(plan).empty()) {
      options.emplace_back(recomputed_parts(plan).empty()
                               ? "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1"
                               : "--recompute-granularity selective");
    }
  }
  result.text += bash_array("MEGATRON", options);
  return result;
}

ExportedText export_torchtitan(const Plan& plan, const ModelPlanner* planner) {
  GlobalDegrees nearest = nearest_degrees(plan);
  // Its tensor parallelism always shards the sequence of norms.
  nearest.sequence = !nearest.tensor.empty() && has_sequence(*plan.graph);
  nearest.must_keep = keeps_gathered(plan, nearest);
  if (!uniform_plan(plan, nearest).differences.empty()) {
    nearest.replicas = zero_replicas(plan, nearest);
    nearest.must_keep = keeps_gathered(plan, nearest);  // compares with what is sharded over the others
  }
  // training.mixed_precision_reduce only takes float32.
  const auto reduces_wide = [](int /*zero*/) { return true; };
  NearestKind kind = nearest_kind(plan, std::move(nearest), {0, 2, 3}, planner, reduces_wide);
  const GlobalDegrees degrees = kind.degrees;
  const UniformPlan uniform = uniform_plan(plan, degrees);
  check_batch(plan, uniform);
  KeptTypes kept = kept_types(*plan.graph);
  // A model of bf16 has gradients and moments of bf16.
  const bool is_narrow =
      kept.narrow_weights == DataType::kBF16 && kept.gradients == DataType::kBF16 && kept.moments == DataType::kBF16;
  if (!is_narrow) {
    refuse_short(kept.gradients, "gradients", kept.differences);
    refuse_short(kept.moments, "moments", kept.differences);
    refuse_narrow_weights(kept);
  }
  const std::optional<DataType> reduced = short_sums(plan, kept);
  if (reduced) refuse_short_sums(*reduced, kept);
  refuse_autocast(plan, kept);
  refuse_parts(recomputed_parts(plan), "recomputed", kept.differences);
  if (std::optional<std::string> untrained = untrained_weights(plan)) kept.differences.push_back(*std::move(untrained));
  const bool is_float8 = has_float8(plan, kept.differences);
  // Its context parallelism gathers keys and values (context_parallel_rotate_method).
  if (uniform.context > 1) append(other_exchanges(plan, degrees, ContextExchange::kKeys), kept.differences);
  ExportedText result = opening(plan, kind, uniform,
                                {{"How to use it: source this file, then",
                                  "  ./run_train.sh \"${TORCHTITAN[@]}\" and the options of model and data"},
                                 untrainable(*plan.graph, "torchtitan"),
                                 kept.differences,
                                 reduced.has_value()});
  const bool is_sharded = degrees.zero > 0;
  const std::int64_t replicas = is_sharded ? num_pieces(degrees.replicas) : uniform.data;
  std::vector<std::string> options{fmt::format("--parallelism.data_parallel_replicate_degree {}", replicas),
                                   fmt::format("--parallelism.data_parallel_shard_degree {}", uniform.data / replicas),
                                   fmt::format("--parallelism.tensor_parallel_degree {}", uniform.tensor),
                                   fmt::format("--parallelism.context_parallel_degree {}", uniform.context),
                                   "--parallelism.pipeline_parallel_degree 1",
                                   fmt::format("--training.local_batch_size {}", uniform.micro_batch),
                                   fmt::format("--training.global_batch_size {}", uniform.global_batch)};
  if (uniform.experts > 1) {
    options.push_back(fmt::format("--parallelism.expert_parallel_degree {}", uniform.experts));
  }
  if (is_narrow) options.emplace_back("--training.dtype bfloat16");
  if (is_sharded) {
    // Weights gathered once a step stay gathered between forward and backward pass.
    const bool is_resharded = degrees.zero == 3 && !degrees.must_keep;
    options.push_back(fmt::format("--parallelism.fsdp_reshard_after_forward {}", is_resharded ? "always" : "never"));
  }
  if (is_float8) {
    options.emplace_back("--model.converters float8");
    if (is_sharded) options.emplace_back("--float8.enable_fsdp_float8_all_gather");
  }
  if (const TrainingOptions* const training = training_of(plan)) {
    if (training->clip_norm > 0) options.push_back(fmt::format("--training.max_norm {}", training->clip_norm));
    if (!recomputed_names(plan).empty()) {
      options.emplace_back(
          recomputed_parts(plan).empty()
              ? "--activation_checkpoint.mode full"
              : "--activation_checkpoint.mode selective --activation_checkpoint.selective_ac_option op");
    }
  }
  result.text += bash_array("TORCHTITAN", options);
  return result;
}

ExportedText export_deepspeed(const Plan& plan, const ModelPlanner* planner) {
  GlobalDegrees nearest = nearest_degrees(plan);
  // DeepSpeed replicates norms, and this configuration shards no sequence.
  nearest.sequence = false;
  nearest.context.clear();
  nearest.experts.clear();
  const auto reduces_wide = [](int /*zero*/) { return false; };
  NearestKind kind = nearest_kind(plan, std::move(nearest), {0, 1, 2, 3}, planner, reduces_wide);
  const GlobalDegrees degrees = kind.degrees;
  const UniformPlan uniform = uniform_plan(plan, degrees);
  check_batch(plan, uniform);
  KeptTypes kept = kept_types(*plan.graph);
  refuse_short(kept.moments, "moments", kept.differences);
  refuse_narrow_weights(kept);
  if (plan.model && !plan.model->fp8.empty()) {
    kept.differences.push_back(fmt::format("products of {} multiply in f8", fmt::join(plan.model->fp8, ", ")));
  }
  if (std::optional<std::string> untrained = untrained_weights(plan)) kept.differences.push_back(*std::move(untrained));
  // Its section activation_checkpointing only configures checkpoints that the program makes.
  if (std::optional<std::string> recomputed = recomputed_operators(plan)) {
    kept.differences.push_back(*std::move(recomputed));
  }
  std::vector<std::string> misfits;
  if (!plan.graph->is_training()) misfits.emplace_back(kForInference);
  if (uniform.tensor > 1) append(other_network(*plan.graph, "DeepSpeed's AutoTP"), misfits);
  ExportedText result = opening(plan, kind, uniform,
                                {{"How to use it, as plan.py beside your program:",
                                  "  deepspeed.initialize(model=model, model_parameters=model.parameters(), "
                                  "config=plan.CONFIG)"},
                                 std::move(misfits),
                                 kept.differences});
  // All devices that do not share a model's tensor shards are data parallel.
  const std::int64_t ranks = uniform.data;
  const std::int64_t rows = uniform.global_batch / plan.graph->micro_batches();
  const std::int64_t micro_batch = std::max<std::int64_t>(1, rows / ranks);
  const std::int64_t accumulated = std::max<std::int64_t>(1, uniform.global_batch / (micro_batch * ranks));
  result.text += fmt::format(
      "CONFIG = {{\n"
      "    \"train_batch_size\": {},\n"
      "    \"train_micro_batch_size_per_gpu\": {},\n"
      "    \"gradient_accumulation_steps\": {},\n"
      "    \"zero_optimization\": {{\"stage\": {}, \"overlap_comm\": {}}},\n",
      micro_batch * ranks * accumulated, micro_batch, accumulated, degrees.zero, plan.is_overlapped ? "True" : "False");
  if (uniform.tensor > 1) {
    result.text += fmt::format("    \"tensor_parallel\": {{\"autotp_size\": {}}},\n", uniform.tensor);
  }
  if (const TrainingOptions* const training = training_of(plan)) {
    if (training->mixed_precision == DataType::kBF16) result.text += "    \"bf16\": {\"enabled\": True},\n";
    if (training->mixed_precision == DataType::kF16) result.text += "    \"fp16\": {\"enabled\": True},\n";
    if (const auto& autocast = plan.model->autocast) {
      // Without modules in lower precision its collectives keep the types of weights and gradients.
      result.text += fmt::format(
          "    \"torch_autocast\": {{\"enabled\": True, \"dtype\": \"{}\", "
          "\"lower_precision_safe_modules\": []}},\n",
          autocast == DataType::kBF16 ? "bfloat16" : "float16");
    }
    if (is_short(kept.gradients)) {
      result.text +=
          fmt::format("    \"data_types\": {{\"grad_accum_dtype\": \"{}\"}},\n", megatron_name(*kept.gradients));
    }
    if (training->clip_norm > 0) result.text += fmt::format("    \"gradient_clipping\": {},\n", training->clip_norm);
  }
  result.text += "}\n";
  return result;
}

ExportedText export_vllm(const Plan& plan, const ModelPlanner* planner) {
  GlobalDegrees degrees = nearest_degrees(plan);
  // Its engines replicate norms and shard no sequence; those of different batches share nothing.
  degrees.sequence = false;
  degrees.context.clear();
  degrees.zero = 0;
  // Experts are on all devices, or whole on those of each batch.
  if (num_pieces(degrees.experts) != plan.mesh.num_devices()) degrees.experts.clear();
  degrees.cache_tokens = pieces_of_tokens(plan, degrees.tensor);
  const UniformPlan uniform = uniform_plan(plan, degrees);
  std::vector<std::string> misfits, own;
  if (plan.graph->is_training()) misfits.emplace_back("the plan is for training");
  append(other_network(*plan.graph, "vLLM"), misfits);
  const bool is_float8 = has_float8(plan, own);
  if (plan.model && !plan.model->int8_weights.empty()) {
    own.push_back(fmt::format("weights of {} are stored in i8", fmt::join(plan.model->int8_weights, ", ")));
  }
  NearestKind kind = nearest_kind(plan, degrees, {}, planner, [](int /*zero*/) { return false; });
  ExportedText result = opening(plan, kind, uniform,
                                {{"How to use it: source this file, then", "  vllm serve MODEL \"${VLLM[@]}\""},
                                 std::move(misfits),
                                 std::move(own)});
  std::vector<std::string> options{fmt::format("--tensor-parallel-size {}", uniform.tensor),
                                   fmt::format("--data-parallel-size {}", uniform.data),
                                   fmt::format("--max-num-seqs {}", uniform.micro_batch)};
  if (degrees.cache_tokens > 1) {
    options.push_back(fmt::format("--decode-context-parallel-size {}", degrees.cache_tokens));
  }
  if (uniform.experts > 1) options.emplace_back("--enable-expert-parallel");
  if (is_float8) options.emplace_back("--quantization fp8");
  if (const std::optional<TensorId> cache = written_cache(*plan.graph)) {
    const TensorType& type = plan.graph->tensor(*cache).type;
    options.push_back(fmt::format("--max-model-len {}", type.shape[token_dimension(*plan.graph, *cache)]));
    if (type.dtype == DataType::kF8E4M3) options.emplace_back("--kv-cache-dtype fp8");
  }
  result.text += bash_array("VLLM", options);
  return result;
}

}  // namespace shardplan
