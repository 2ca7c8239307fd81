#pragma once

#include <string>
#include <vector>

#include "graph/tensor_versions.h"
#include "model/model.h"
#include "strategies/user_strategy.h"

namespace shardplan {

/// Adds to the user's own strategies in `decided` what the parallel modes say.
///
/// - data_parallel, semi_auto_parallel, and blocks of mode data_parallel: an operator without a strategy cuts the batch
///   over all devices. An operator whose strategy is decided (by the user in semi_auto_parallel, or so) has its backward
///   operators laid out as itself: the gradient of each tensor lies as the tensor does, and that of a parameter is a
///   partial sum until its update reads it, so that it is summed by one collective. With gradient_fp32_sync: false that is
///   done before a gradient of two bytes becomes f32.
/// - A parameter that the user stores in further pieces (ZeRO-3) is gathered for the forward and again for the backward pass;
///   over micro-batches its gradient is summed in those pieces.
/// - A parameter whose readers are all decided is stored as the first of them reads it, under pure data parallelism
///   whole (but each device's own part of one with layerwise_parallel), and so are its states. What updates it has that
///   layout, too, or that of the states where the parallel optimizer cuts them further.
/// - enable_parallel_optimizer, in any mode: optimizer states in pieces (strategies/parallel_optimizer.h).
/// - zero, in data_parallel and semi_auto_parallel, by stage:
///       1  optimizer states and updates in pieces (`zero_layout`) over all devices that hold the same part of a parameter
///       2  sums of gradients over micro-batches as well: each is scattered with every micro-batch
///       3  weights as well, but those that the user stores himself: gathered for the forward, again for the backward pass
///   reshard_after_forward: false keeps what is gathered for the backward pass.
///   A parameter's own state_strategy and gradient_strategy come before all of these.
///   gradient_accumulation_shard replaces what a stage says of sums over micro-batches, also of a user's own ZeRO-3.
/// - stand_alone: all work on every device (there is one).
///
/// What is left open is searched. Throws InputError with all inputs whose batch the devices do not divide, and under
/// compat: mindspore-1.7 with all parameters that operators with strategies read in several layouts (elsewhere these
/// are a notice) and all sharded blocks that cut more than one dimension, or over a part of the devices.
///
/// Returns the operators that are decided for good: their tensors' layouts follow.
IdVector<OperatorId, char> decide_by_mode(UserStrategies& decided, const Model& model, const OperatorGraph& graph,
                                          const DeviceMesh& mesh, const std::vector<AxisRef>& pieces,
                                          std::vector<std::string>& notices);

/// The layouts of versions that follow: where all readers are decided and take a version alike it is held so, but for what
/// the user says of it (`TensorVersion::Keeping`), and an output is as its operator leaves it, or whole where that is a partial
/// sum. `reshard_after_forward`: a parameter in pieces is in pieces between the forward and the backward pass as well.
IdVector<VersionId, RareValue<TensorLayout>> layouts_by_mode(const UserStrategies& decided,
                                                             const IdVector<OperatorId, char>& is_decided,
                                                             const OperatorGraph& graph, const TensorVersions& versions,
                                                             const DeviceMesh& mesh, bool reshard_after_forward);

}  // namespace shardplan
