#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/model.h"

namespace shardplan {

/// A model written per device as each of `num_devices` ranks reads it, in the order of the ranks. Throws InputError with
/// the faults of the first rank that finds any, and where the model has micro-batches, which are not supported here, too
/// many operators for a graph on each rank, or a `clip_norm` of pieces that overlap or are not exchanged.
/// Requires: `model.local`.
std::vector<std::shared_ptr<const Model>> models_of_ranks(const Model& model, std::int64_t num_devices);

}  // namespace shardplan
