#include "planner/overlap/link_levels.h"

#include <algorithm>
#include <cstdint>

#include "program/overlapped_timeline.h"

namespace shardplan {

std::vector<int> used_levels(const CostModel& costs) {
  std::vector<AxisRef> axes;
  for (std::size_t axis = 0; axis < costs.mesh().axes().size(); ++axis) {
    if (costs.mesh().axes()[axis].size > 1) axes.push_back(costs.mesh().whole(axis));
  }
  std::vector<int> levels;
  const std::uint32_t links = costs.links(axes);
  for (int level = 0; level < 32; ++level) {
    if ((links >> level & 1) != 0) levels.push_back(level);
  }
  return levels;
}

int busiest_level(const std::vector<int>& levels, const Plan& plan) {
  const std::vector<Picoseconds> busy = overlapped_timeline(plan.program).link_busy;
  const auto time = [&](int level) {
    const auto at = static_cast<std::size_t>(level);
    return at < busy.size() ? busy[at] : 0;
  };
  return *std::max_element(levels.begin(), levels.end(), [&](int a, int b) { return time(a) < time(b); });
}

std::vector<SpeedsTogether> speeds_of(const std::vector<int>& levels, const CostModel& costs) {
  const std::vector<SpeedsTogether> of_levels = costs.speeds_together();
  std::vector<SpeedsTogether> speeds;
  for (const int level : levels) {
    const auto at = static_cast<std::size_t>(level);
    speeds.push_back(at < of_levels.size() ? of_levels[at] : SpeedsTogether{});
  }
  return speeds;
}

}  // namespace shardplan
