#include "solver/heuristics/restriction_heuristic.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "solver/bounds/elimination.h"
#include "solver/core/restricted_core.h"

namespace shardplan {
namespace {

constexpr std::uint64_t kWork = 50'000'000;  // of elimination
constexpr std::size_t kMostRestrictedEntries = std::size_t{1} << 22;
constexpr double kValuesPerNode[] = {16, 8, 5, 3, 2, 1.5, 1.2};  // on average, tried in this order

}  // namespace

std::vector<std::uint8_t> promising_values(const CoreProblem& core, const DualBound& dual, double values_per_node) {
  std::vector<double> excess(core.costs.size());
  for (std::size_t node = 0; node < core.num_nodes(); ++node) {
    for (std::size_t value = 0; value < core.num_values(node); ++value) {
      excess[core.first_value[node] + value] = dual.reduced_cost(node, value);
    }
  }
  std::vector<double> sorted = excess;
  const auto count = static_cast<std::size_t>(values_per_node * static_cast<double>(core.num_nodes()));
  const auto place = sorted.begin() + static_cast<std::ptrdiff_t>(std::min(count, sorted.size() - 1));
  std::nth_element(sorted.begin(), place, sorted.end());
  std::vector<std::uint8_t> promising(excess.size());
  for (std::size_t at = 0; at < excess.size(); ++at) promising[at] = dual.alive()[at] && excess[at] <= *place;
  return promising;
}

std::optional<RestrictedChoice> restriction_heuristic(const CoreProblem& core, const DualBound& dual, WorkMeter& meter,
                                                      std::size_t first_share) {
  for (std::size_t share = first_share; share < std::size(kValuesPerNode); ++share) {
    const auto count = static_cast<std::size_t>(kValuesPerNode[share] * static_cast<double>(core.num_nodes()));
    if (count >= core.costs.size()) continue;
    if (!meter.spend(3 * core.costs.size())) return std::nullopt;
    const auto likely =
        restrict_core(core, promising_values(core, dual, kValuesPerNode[share]), kMostRestrictedEntries);
    if (!likely) continue;
    const Elimination elimination(likely->core);
    if (!elimination.is_possible() || elimination.work() > static_cast<double>(kWork)) continue;
    std::vector<double> costs = likely->core.costs;
    for (std::size_t node = 0; node < core.num_nodes(); ++node) {
      for (std::uint32_t at = likely->core.first_value[node]; at < likely->core.first_value[node + 1]; ++at) {
        costs[at] += dual.price_of_bytes(node, likely->values[at]);
      }
    }
    WorkMeter part = meter.part(kWork);
    const auto found = elimination.run(costs, part);
    meter.merge(part);
    if (found) return RestrictedChoice{likely->expand(found->choice), share};
  }
  return std::nullopt;
}

}  // namespace shardplan
