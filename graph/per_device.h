#pragma once

#include <cstdint>

#include "graph/operator_graph.h"

namespace shardplan {

/// Writes into a forward graph the values that MindSpore's data parallelism keeps separately on each of `num_devices`
/// devices: parameters of which every device has its own (`GraphTensor::layerwise_parallel`) and, with
/// `local_batch_norm`, the statistics of batch normalisation in training. Device d computes rows d B/N to
/// (d+1) B/N - 1 of a batch of B, so one device that computes the whole graph gets the same numbers. On N devices:
///
///   y = Conv2D(x [B, c, h, w], weight)   x as [N, B/N, c, h, w], weight [N, o, c, 3, 3], PerDevice.Conv2D
///                                        (operators/per_device.h), the result as [B, o, h, w]
///   t = Tanh(weight)                     PerDevice.Tanh: computed from per-device values only
///   BatchNorm(x [B, c, h, w], ...)       parts: N, moving statistics [N, c]
///
/// The per-device operator keeps the name; NAME.parted and NAME.joined only change shapes. An operand that is the same
/// on all devices (a shared bias) stays one tensor, whose gradient is summed over the devices. Parameters keep their
/// names too; dimension 0 counts the devices, and gradients are never summed over it (graph/differentiate.h). On one
/// device nothing changes.
///
/// Requires operators without strategies, as in data parallelism. Throws InputError with all faults: rows that the
/// devices do not divide, an operator that reads per-device values and does not compute each row of the batch
/// separately, an output that differs between devices.
OperatorGraph with_per_device_parts(const OperatorGraph& forward, std::int64_t num_devices, bool local_batch_norm);

}  // namespace shardplan
