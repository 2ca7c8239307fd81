#pragma once

#include <cstdint>

#include "graph/operator_graph.h"

namespace shardplan {

/// Writes into a forward graph what MindSpore's data parallelism leaves to each of `num_devices` devices: parameters of
/// which every device has its own (`GraphTensor::layerwise_parallel`) and, with `local_batch_norm`, the statistics by which
/// batch normalisation in training normalises. Device d computes rows d B/N to (d+1) B/N - 1 of a batch of B, so one device
/// that computes the whole graph gets the same numbers. On N devices:
///
///   y = Conv2D(x [B, c, h, w], weight)   x as [N, B/N, c, h, w], weight [N, o, c, 3, 3], PerDevice.Conv2D
///                                        (operators/per_device.h), the result as [B, o, h, w]
///   t = Tanh(weight)                     PerDevice.Tanh: what is made of a device's own is its own as well
///   BatchNorm(x [B, c, h, w], ...)       parts: N, moving statistics [N, c]
///
/// The operator of each device keeps the name, and NAME.parted and NAME.joined only change shapes. An operand that all
/// devices read alike (a bias that is not its own) stays one tensor, whose gradient is summed over them. Parameters keep
/// their names, too; dimension 0 counts the devices, over which a gradient is never summed (graph/differentiate.h). On one
/// device nothing changes.
///
/// Requires operators without strategies, as data parallelism has them. Throws InputError with all faults: rows that the
/// devices do not divide, an operator that reads something own and does not compute each row of the batch by itself, an
/// output that every device has another of.
OperatorGraph with_per_device_parts(const OperatorGraph& forward, std::int64_t num_devices, bool local_batch_norm);

}  // namespace shardplan
