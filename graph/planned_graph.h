#pragma once

#include "graph/model.h"

namespace shardplan {

/// The graph that a plan of the model is for: its own, or with `training:` that of one training step, marked blocks
/// computed again in its backward pass.
OperatorGraph planned_graph(const Model& model);

}  // namespace shardplan
