#pragma once

#include <cstdint>
#include <vector>

namespace shardplan {

/// The weights of kernels and communications in a weighted sum that is a lower bound on the overlapped step
/// (`StepBound`), as fractions of `kWhole`; indexed by the bound's groups.
struct OverlapWeights {
  static constexpr int kWholeLog = 20;
  static constexpr std::int64_t kWhole = std::int64_t{1} << kWholeLog;

  std::vector<std::int64_t> kernels;
  std::vector<std::int64_t> items;  // communications, with their times on all levels of links
  std::vector<std::vector<std::int64_t>>
      on_part;  // by part of their times (`StepBound::Matrices`), in addition to `items`
};

/// The weighted cost, rounded down; a forbidden cost stays forbidden.
std::int64_t weighted_share(std::int64_t cost, std::int64_t weight);

/// The mean of several weights, each repeated `counts` times.
OverlapWeights mean(const std::vector<OverlapWeights>& weights, const std::vector<std::int64_t>& counts);

}  // namespace shardplan
