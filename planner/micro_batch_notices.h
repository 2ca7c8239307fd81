#pragma once

#include <string>
#include <vector>

#include "model/model.h"

namespace shardplan {

/// Notices about what a model of one micro-batch (model/planned_model.h) trains otherwise than the whole batch at once
/// would: the loss of a step is the mean of its micro-batches' losses, which is the loss of the batch only if that is a
/// mean over samples that know nothing of each other.
std::vector<std::string> micro_batch_notices(const Model& model);

}  // namespace shardplan
