#include "planner/overlap/overlap_weights.h"

#include <numeric>

#include "base/integer.h"
#include "solver/strategy_problem.h"

namespace shardplan {

std::int64_t weighted_share(std::int64_t cost, std::int64_t weight) {
  if (cost >= kForbidden) return kForbidden;
  return static_cast<std::int64_t>(Int128{cost} * weight >> OverlapWeights::kWholeLog);
}

OverlapWeights mean(const std::vector<OverlapWeights>& weights, const std::vector<std::int64_t>& counts) {
  const std::int64_t all = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  OverlapWeights result = weights.front();
  const auto average = [&](std::vector<std::int64_t>& items, std::vector<std::int64_t> OverlapWeights::*which) {
    for (std::size_t item = 0; item < items.size(); ++item) {
      std::int64_t sum = 0;
      for (std::size_t i = 0; i < weights.size(); ++i) sum += counts[i] * (weights[i].*which)[item];
      items[item] = sum / all;
    }
  };
  average(result.kernels, &OverlapWeights::kernels);
  average(result.items, &OverlapWeights::items);
  for (std::size_t part = 0; part < result.on_part.size(); ++part) {
    std::vector<std::int64_t>& items = result.on_part[part];
    for (std::size_t item = 0; item < items.size(); ++item) {
      std::int64_t sum = 0;
      for (std::size_t i = 0; i < weights.size(); ++i) sum += counts[i] * weights[i].on_part[part][item];
      items[item] = sum / all;
    }
  }
  return result;
}

}  // namespace shardplan
