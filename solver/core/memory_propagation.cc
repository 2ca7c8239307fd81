#include "solver/core/memory_propagation.h"

#include <algorithm>
#include <limits>

#include "solver/core/slack.h"

namespace shardplan {

bool propagate_memory(const CoreProblem& core, std::vector<std::uint8_t>& alive) {
  if (core.limits.empty()) {
    for (std::size_t node = 0; node < core.num_nodes(); ++node) {
      const auto begin = alive.begin() + core.first_value[node];
      if (std::find(begin, alive.begin() + core.first_value[node + 1], 1) == alive.begin() + core.first_value[node + 1])
        return false;
    }
    return true;
  }
  std::vector<std::int64_t> least(core.segments.size());
  for (;;) {
    Slack slack(core.limits);
    for (std::size_t node = 0; node < core.num_nodes(); ++node) {
      const std::uint8_t* const is_alive = alive.data() + core.first_value[node];
      if (std::find(is_alive, is_alive + core.num_values(node), 1) == is_alive + core.num_values(node)) return false;
      for (std::uint32_t at = core.first_segment[node]; at < core.first_segment[node + 1]; ++at) {
        const CoreSegment& segment = core.segments[at];
        least[at] = std::numeric_limits<std::int64_t>::max();
        for (std::size_t value = 0; value < core.num_values(node); ++value) {
          if (is_alive[value]) least[at] = std::min(least[at], core.bytes[segment.bytes + value]);
        }
        if (least[at] != 0) slack.add(segment.begin, segment.end, -least[at]);
      }
    }
    if (slack.least(0, core.limits.size()) < 0) return false;
    bool is_removed = false;
    for (std::size_t node = 0; node < core.num_nodes(); ++node) {
      std::uint8_t* const is_alive = alive.data() + core.first_value[node];
      for (std::uint32_t at = core.first_segment[node]; at < core.first_segment[node + 1]; ++at) {
        const CoreSegment& segment = core.segments[at];
        const std::int64_t room = slack.least(segment.begin, segment.end) + least[at];
        for (std::size_t value = 0; value < core.num_values(node); ++value) {
          if (!is_alive[value] || core.bytes[segment.bytes + value] <= room) continue;
          is_alive[value] = 0;
          is_removed = true;
        }
      }
    }
    if (!is_removed) return true;
  }
}

}  // namespace shardplan
