#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "costmodel/cluster/cluster.h"
#include "operators/operation.h"

namespace shardplan {

/// Times that a user measured on one device or one group, to which `calibrate` fits a cluster's constants:
///
///     shardplan: 1
///     operators:
///       - {op: MatMul, dtype: bf16, operands: [[8192, 4096], [4096, 4096]], time: 1.3 ms}
///       - {op: Softmax, dtype: f16, operands: [[64, 1024, 1024]], axis: -1, time: 160 us}
///     collectives:
///       - {collective: all_reduce, level: nvlink, devices: 8, bytes: 256 MiB, time: 2.1 ms}
struct OperatorMeasurement {
  Operation operation;  // whole, on one device
  Picoseconds time = 0;
};

struct CollectiveMeasurement {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  std::string level;
  std::int64_t devices = 2;  // devices (or groups) of that level; divides its count
  Bytes bytes = 0;           // of the whole tensor of a group, as in `tables` of a cluster file
  Picoseconds time = 0;
};

struct Measurements {
  std::vector<OperatorMeasurement> operators;
  std::vector<CollectiveMeasurement> collectives;
};

/// Reads a file of measurements, or its text under the name `file`, made on devices of `cluster`. Throws InputError
/// with all errors.
Measurements read_measurements(const std::string& path, const Cluster& cluster);
Measurements read_measurements_text(const std::string& text, const std::string& file, const Cluster& cluster);

}  // namespace shardplan
