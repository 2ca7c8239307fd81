#pragma once

#include <cstdint>
#include <vector>

namespace shardplan {

/// What counts of each kernel and each communication in a sum that no step falls below in which collectives run beside
/// kernels (`StepBound`), as shares of `kWhole`; by the bound's groups of them.
struct OverlapWeights {
  static constexpr int kWholeLog = 20;
  static constexpr std::int64_t kWhole = std::int64_t{1} << kWholeLog;

  std::vector<std::int64_t> kernels;
  std::vector<std::int64_t> items;                 // communications, at their times on all levels of links
  std::vector<std::vector<std::int64_t>> on_part;  // by part of their times, counted beside (`StepBound::Matrices`)
};

/// What counts of a cost, rounded down; what is forbidden stays so.
std::int64_t weighted_share(std::int64_t cost, std::int64_t weight);

/// The mean of several, each counted so often.
OverlapWeights mean(const std::vector<OverlapWeights>& weights, const std::vector<std::int64_t>& counts);

}  // namespace shardplan
