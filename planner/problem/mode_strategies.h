#pragma once

#include <string>
#include <vector>

#include "graph/tensor_versions.h"
#include "model/model.h"
#include "strategies/user_strategy.h"

namespace shardplan {

/// Adds to the user's own strategies in `decided` what the parallel modes prescribe.
///
/// - data_parallel, semi_auto_parallel, and blocks of mode data_parallel: an operator without a strategy shards the
///   batch over all devices. The backward operators of an operator whose strategy is decided (here, or by the user in
///   semi_auto_parallel) have the same layouts: the gradient of each tensor is laid out as the tensor, and that of a
///   parameter is a partial sum that its update reads, so that one collective reduces it (right behind its producer:
///   graph/tensor_versions.h). With gradient_fp32_sync: false it is reduced before a two-byte gradient becomes f32.
/// - A parameter that the user stores further sharded (ZeRO-3) is gathered for the forward and again for the backward
///   pass; over micro-batches its gradient is summed in that layout.
/// - A parameter whose readers are all decided is stored as the first of them reads it (under pure data parallelism
///   replicated, except for layerwise_parallel), and so are its states. Its update has the same layout, or that of
///   the states if the parallel optimizer shards them further.
/// - enable_parallel_optimizer, in any mode: optimizer states are sharded (strategies/parallel_optimizer.h).
/// - zero, in data_parallel and semi_auto_parallel, by stage:
///       1  optimizer states and updates are sharded (`zero_layout`) over all devices that hold the same part of a
///          parameter
///       2  also sums of gradients over micro-batches: each gradient is reduce-scattered with every micro-batch, in
///          the type of its sum (`TrainingOptions::widens_before_sum`)
///       3  also weights, except those that the user stores otherwise: gathered for the forward, again for the
///          backward pass
///   reshard_after_forward: false keeps the gathered weight for the backward pass.
///   A parameter's own state_strategy and gradient_strategy take precedence.
///   gradient_accumulation_shard overrides what a stage says about sums over micro-batches, also for the user's own
///   ZeRO-3.
/// - stand_alone: all work on every device (there is one).
///
/// What is left open is searched. Throws InputError with all inputs whose batch the devices do not divide. Under
/// compat: mindspore-1.7 it also throws for all parameters that operators with strategies read in several layouts
/// (otherwise these cause a notice), and for all sharded blocks that shard more than one dimension, or over only a
/// part of the devices.
///
/// Returns the operators that are finally decided: their tensors' layouts follow.
IdVector<OperatorId, char> decide_by_mode(UserStrategies& decided, const Model& model, const OperatorGraph& graph,
                                          const DeviceMesh& mesh, const std::vector<AxisRef>& pieces,
                                          std::vector<std::string>& notices);

}  // namespace shardplan
