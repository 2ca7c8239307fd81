#include "model/planned_model.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "graph/differentiate.h"
#include "graph/padded_positions.h"
#include "graph/per_device.h"
#include "graph/recompute.h"
#include "graph/stored_updates.h"
#include "model/model_source.h"

namespace shardplan {
namespace {

/// The model's graph with what each device has for itself; nothing where that is nothing.
std::optional<OperatorGraph> per_device_graph(const Model& model, std::int64_t num_devices) {
  bool has_own = model.parallel.local_batch_norm;
  for (const GraphTensor& tensor : model.graph.tensors()) {
    if (!tensor.layerwise_parallel) continue;
    has_own = true;
    if (model.parallel.parallel_mode == ParallelMode::kDataParallel) continue;
    throw InputError(
        tensor.place,
        "{}: layerwise_parallel is for parallel_mode data_parallel and hybrid_parallel; elsewhere a parameter is one "
        "tensor of all devices",
        tensor.name);
  }
  if (!has_own) return std::nullopt;
  return with_per_device_parts(model.graph, num_devices, model.parallel.local_batch_norm);
}

/// As stages 2 and 3 of ZeRO do where a mode decides it, unless the user wants gradients reduced in their own type.
bool reduces_wide_with_every_micro_batch(const ParallelOptions& parallel) {
  if (parallel.gradient_fp32_sync && !parallel.gradient_fp32_sync->value) return false;
  if (parallel.gradient_accumulation_shard) return parallel.gradient_accumulation_shard->value;
  return parallel.zero && parallel.zero->value >= 2;
}

}  // namespace

bool is_one_micro_batch(const Model& model) {
  return !model.training || model.training->micro_batches == model.divided_by;
}

Model one_micro_batch(const Model& model) {
  if (is_one_micro_batch(model)) return model;
  const std::int64_t count = model.training->micro_batches;
  const SourcePlace& place = model.training->place;
  const GraphTensor* input = nullptr;
  for (const GraphTensor& tensor : model.graph.tensors()) {
    if (tensor.kind == TensorKind::kInput && !tensor.type.shape.empty() && input == nullptr) input = &tensor;
  }
  if (input == nullptr) throw InputError(place, "training: micro_batches: the model has no input with a batch");
  const auto dim = model.dims.find(model.batch);
  if (dim == model.dims.end()) {
    throw InputError(place,
                     "training: micro_batches: the first dimension of {} is {}; expected the name of a dim, the batch, "
                     "so that it can be divided",
                     input->name, model.batch);
  }
  const auto padded = model.padded_dims.find(model.batch);  // each micro-batch is padded by itself
  const std::int64_t whole = (padded == model.padded_dims.end() ? dim->second : padded->second.real) * model.divided_by;
  if (whole % count != 0) {
    throw InputError(place, "training: micro_batches is {}, which does not divide {} = {}", count, model.batch, whole);
  }
  ModelOverrides overrides = model.overrides;
  overrides.dims[model.batch] = whole / count;
  Model result = model.source->at(overrides);
  result.training = model.training;
  result.divided_by = count;
  return result;
}

OperatorGraph planned_graph(const Model& model, std::int64_t num_devices, std::int64_t most_micro_batches) {
  const std::optional<OperatorGraph> own = per_device_graph(model, num_devices);
  const OperatorGraph& forward = own ? *own : model.graph;
  if (!model.training) return with_stored_updates(forward);
  TrainingOptions training = *model.training;
  training.micro_batches = std::min(training.micro_batches, most_micro_batches);
  const ParallelOptions& parallel = model.parallel;
  const bool asks_for_mean = parallel.gradients_mean && parallel.gradients_mean->value;
  if (!model.local && parallel.gradients_mean && !asks_for_mean) training.summed_means = num_devices;
  training.widens_before_sum = num_devices > 1 && reduces_wide_with_every_micro_batch(parallel);
  if (model.local && parallel.parallel_mode == ParallelMode::kHybridParallel) {
    training.exchanged_over = model.local->group_size;
    training.exchanges_means = asks_for_mean;
    training.not_exchanged = model.not_exchanged;
  }
  OperatorGraph graph = differentiate(forward, training);
  if (model.unpadded) graph = with_padding_of_results(graph);
  return recompute_marked(std::move(graph));
}

}  // namespace shardplan
