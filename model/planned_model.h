#pragma once

#include <cstdint>

#include "model/model.h"

namespace shardplan {

/// The model at the size of one micro-batch; the model itself if it is that already. The batch is the dim that is the
/// first dimension of the model's first input (`Model::batch`); it is divided, the model's source is asked for that size, and
/// everything else follows. So a file says the whole batch, and all that is planned, printed and proven is a
/// micro-batch and a count.
///
/// Throws InputError if that dimension is no dim of the file, or is not divisible.
Model one_micro_batch(const Model& model);
bool is_one_micro_batch(const Model& model);

/// The graph that a plan of the model is for: its own, or with `training:` that of one training step with marked blocks
/// computed again in its backward pass. `model` is of one micro-batch; at most `most_micro_batches` of them run.
/// `num_devices` counts where the model asks for the sum of the devices' gradients instead of their mean, reduces them with
/// every micro-batch, or leaves parameters or statistics to each device (graph/per_device.h; InputError outside data_parallel).
OperatorGraph planned_graph(const Model& model, std::int64_t num_devices = 1,
                            std::int64_t most_micro_batches = INT64_MAX);

}  // namespace shardplan
