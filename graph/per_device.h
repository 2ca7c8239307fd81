#pragma once

#include <cstdint>

#include "graph/operator_graph.h"

namespace shardplan {

/// Writes into a forward graph what MindSpore's data parallelism leaves to each of `num_devices` devices: parameters of
/// which every device has its own (`GraphTensor::layerwise_parallel`) and, with `local_batch_norm`, the statistics by which
/// batch normalisation in training normalises. Device d computes rows d B/N to (d+1) B/N - 1 of a batch of B, so one device
/// that computes the whole graph gets the same numbers. On N devices:
///
///   y = MatMul(x [B, k], w [k, n])       x as [N, B/N, k], w [N, k, n], BatchMatMul, the result as [B, n]
///   y = Add(x [B, n], b [n])             x as [N, B/N, n], b [N, n] as [N, 1, n], Add, the result as [B, n]
///   BatchNorm(x [B, c, h, w], ...)       parts: N, moving statistics [N, c]
///
/// The product or sum keeps the operator's name; what only changes shapes is NAME.parted and NAME.joined. Parameters keep their
/// names, too; dimension 0 counts the devices, over which a gradient is never summed (graph/differentiate.h). On one device
/// nothing changes.
///
/// Requires operators without strategies, as data parallelism has them. Throws InputError with all faults: rows that the
/// devices do not divide, a reader of another kind.
OperatorGraph with_per_device_parts(const OperatorGraph& forward, std::int64_t num_devices, bool local_batch_norm);

}  // namespace shardplan
