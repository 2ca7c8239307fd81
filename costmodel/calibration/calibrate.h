#pragma once

#include <string>
#include <vector>

#include "costmodel/calibration/measurements.h"
#include "costmodel/cluster/cluster.h"

namespace shardplan {

/// A constant that measurements decided.
struct FittedConstant {
  std::string name;    // as in the cluster file: "efficiency.matmul", "nvlink.latency"
  std::string before;  // with its unit
  std::string after;
  bool is_at_limit = false;  // an efficiency of 1: what was measured is faster than the peak allows
};

/// What one measurement took, and what the fitted cluster says of it.
struct Residual {
  std::string what;  // "MatMul [8192, 4096] [4096, 4096] bf16", "all_reduce over 8 of nvlink, 256 MiB"
  Picoseconds measured = 0;
  Picoseconds modelled = 0;
};

struct Calibration {
  Cluster cluster;  // with the fitted constants and their sources
  std::vector<FittedConstant> constants;
  std::vector<Residual> residuals;  // in the order of the measurements
};

/// What the cluster says of every measurement: operators, then collectives.
std::vector<Picoseconds> modelled_times(const Cluster& cluster, const Measurements& measurements);

/// The cluster whose times come nearest to what was measured: least sum of squared relative differences. Fitted are the
/// start of a kernel and the efficiencies of memory, matmul, convolution and attention; of each level its latency and
/// efficiency. A constant on which no measured time depends stays as it was. Peaks, matrix units and fills are facts of
/// the device, and stay.
///
/// The search is Hooke and Jeeves's (Journal of the ACM 8(2), 1961): one constant after the other is moved by a share of
/// itself, the share halves when nothing helps. It asks `RooflineCosts`, as plans do, and is the same on every machine.
Calibration calibrate(const Cluster& cluster, const Measurements& measurements);

}  // namespace shardplan
