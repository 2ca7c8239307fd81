#pragma once

#include <string>
#include <vector>

#include "costmodel/calibration/measurements.h"
#include "costmodel/cluster/cluster.h"

namespace shardplan {

/// A constant that was fitted to measurements.
struct FittedConstant {
  std::string name;    // as in the cluster file: "efficiency.matmul", "nvlink.latency"
  std::string before;  // with its unit
  std::string after;
  bool is_at_limit = false;  // an efficiency of 1, and a measurement is faster than the peak allows
};

/// One measured time, and the fitted cluster's prediction.
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

/// The cluster's prediction of every measurement: operators, then collectives.
std::vector<Picoseconds> modelled_times(const Cluster& cluster, const Measurements& measurements);

/// The cluster with the least sum of squared relative differences from the measurements. Fitted are the start of a
/// kernel, all efficiencies, the launch of collectives, and the latency and efficiency of each level. A constant on
/// which no measured time depends is kept, and so is everything else, such as peaks, matrix units and tables.
///
/// The search is that of Hooke and Jeeves (Journal of the ACM 8(2), 1961): one constant after the other is changed by
/// a fraction of itself, and the fraction is halved when nothing helps. Constants that moved far are then put back one
/// by one, in case others explain the times better. It uses `RooflineCosts`, as plans do, and
/// gives the same result on every machine.
Calibration calibrate(const Cluster& cluster, const Measurements& measurements);

}  // namespace shardplan
