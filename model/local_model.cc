#include "model/local_model.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "model/model_source.h"

namespace shardplan {
namespace {

constexpr std::int64_t kMostOperators = 2'000'000;  // every rank has a graph of its own

/// A part of a parameter of all devices: where it begins, and its shape.
using Box = std::pair<Shape, Shape>;

bool overlap(const Box& a, const Box& b) {
  if (a.first.size() != b.first.size()) return true;
  for (std::size_t d = 0; d < a.first.size(); ++d) {
    if (a.first[d] + a.second[d] <= b.first[d] || b.first[d] + b.second[d] <= a.first[d]) return false;
  }
  return true;
}

/// The part that a rank holds, if the file says which; a parameter without `begin` is each rank's own.
std::optional<Box> box_of(const Model& model, const GraphTensor& parameter) {
  const auto begin = model.begins.find(parameter.name);
  if (begin == model.begins.end() || begin->second.size() != parameter.type.shape.size()) return std::nullopt;
  return Box{begin->second, parameter.type.shape};
}

/// Where the norm of all gradients is needed: says of each rank's parameters that are not exchanged how many ranks hold
/// the same piece, so that each is counted once.
void count_holders(const std::vector<std::shared_ptr<Model>>& ranks) {
  const auto is_own = [&](const Model& model, const GraphTensor& tensor) {
    const bool is_exchanged =
        model.parallel.parallel_mode == ParallelMode::kHybridParallel && !model.not_exchanged.contains(tensor.name);
    return tensor.kind == TensorKind::kParameter && tensor.requires_grad && is_floating(tensor.type.dtype) &&
           !is_exchanged;
  };
  std::map<std::string, std::map<Box, std::int64_t>> boxes;  // and how many ranks hold each
  std::map<std::string, std::int64_t> holders;
  for (const auto& model : ranks) {
    for (const GraphTensor& tensor : model->graph.tensors()) {
      if (!is_own(*model, tensor)) continue;
      holders[tensor.name] = 1;
      if (const auto box = box_of(*model, tensor)) ++boxes[tensor.name][*box];
    }
  }
  const SourcePlace& place = ranks[0]->training->place;
  for (const auto& [name, held] : boxes) {
    if (ranks[0]->parallel.parallel_mode == ParallelMode::kStandAlone && held.size() > 1) {
      throw InputError(place,
                       "training: clip_norm: {} is in pieces (begin), but in stand_alone ranks exchange nothing, so "
                       "that each would clip by a norm of its own; hybrid_parallel adds them up",
                       name);
    }
    for (auto a = held.begin(); a != held.end(); ++a) {
      const auto other =
          std::find_if(std::next(a), held.end(), [&](const auto& b) { return overlap(a->first, b.first); });
      if (other == held.end()) continue;
      throw InputError(place,
                       "training: clip_norm: the piece {} of {} that begins at {} overlaps the piece {} that begins at "
                       "{}; the norm counts equal pieces once, and all others must be apart",
                       to_string(a->first.second), name, to_string(a->first.first), to_string(other->first.second),
                       to_string(other->first.first));
    }
  }
  if (ranks[0]->parallel.parallel_mode == ParallelMode::kStandAlone) return;
  for (const auto& model : ranks) {
    model->training->piece_holders = holders;
    for (const GraphTensor& tensor : model->graph.tensors()) {
      if (!is_own(*model, tensor)) continue;
      const auto box = box_of(*model, tensor);
      if (box) model->training->piece_holders[tensor.name] = boxes[tensor.name][*box];
    }
  }
}

}  // namespace

std::vector<std::shared_ptr<const Model>> models_of_ranks(const Model& model, std::int64_t num_devices) {
  SHARDPLAN_CHECK(model.local.has_value());
  if (model.training && model.training->micro_batches > 1) {
    throw InputError(
        model.training->place,
        "training: micro_batches is for models in the view of all devices; one step of a model written per "
        "device is one batch");
  }
  const auto operators = static_cast<std::int64_t>(model.graph.operators().size());
  if (operators * num_devices > kMostOperators) {
    throw InputError(model.parallel.parallel_mode_place,
                     "{} operators on each of {} ranks: more than {} together in a model written per device", operators,
                     num_devices, kMostOperators);
  }
  std::vector<std::shared_ptr<Model>> ranks;
  for (std::int64_t rank = 0; rank < num_devices; ++rank) {
    ModelOverrides overrides = model.overrides;
    overrides.local = LocalView{rank, num_devices};
    ranks.push_back(std::make_shared<Model>(model.source->at(overrides)));
  }
  if (model.training && model.training->clip_norm > 0) count_holders(ranks);
  return {ranks.begin(), ranks.end()};
}

}  // namespace shardplan
