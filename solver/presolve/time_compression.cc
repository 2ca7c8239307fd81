#include "solver/presolve/time_compression.h"

#include <algorithm>
#include <limits>

#include "solver/time_profile.h"

// The limit at the second of two neighbouring times implies the limit at the first if no choice's memory falls, from
// the first to the second, by more than the limit does. The largest fall (rise) is bounded node by node, over its
// values; these sums hold for all choices at once, so a time can be removed even if both limits bind.
//
// Kept times form a stack: a new time is compared with the last kept one, which it may imply and remove, and so on.
// Each time is pushed and removed at most once, so this is linear in times and segments.

namespace shardplan {
namespace {

Bytes largest_rise(const Numbers& before, const Numbers& after) {
  const std::size_t count = before ? before->size() : after->size();
  Bytes rise = std::numeric_limits<Bytes>::min();
  for (std::size_t value = 0; value < count; ++value) {
    rise = std::max(rise, (after ? (*after)[value] : 0) - (before ? (*before)[value] : 0));
  }
  return rise;
}

/// For each time whether it must be kept.
std::vector<bool> binding_times(const ReductionGraph& graph, const std::vector<Bytes>& limits) {
  const std::size_t count = limits.size();
  TimeProfile largest(count);
  // The largest rise and fall of bytes from time - 1 to time, over all choices.
  std::vector<Int128> rises(count + 1, 0), falls(count + 1, 0);
  const auto change = [&](std::size_t time, const Numbers& before, const Numbers& after) {
    rises[time] += largest_rise(before, after);
    falls[time] += largest_rise(after, before);
  };
  for (std::size_t id = 0; id < graph.num_nodes(); ++id) {
    if (!graph.node(id).is_alive) continue;
    const std::vector<UsageSegment>& memory = graph.node(id).memory;
    for (std::size_t at = 0; at < memory.size(); ++at) {
      largest.add(memory[at].begin, memory[at].end,
                  *std::max_element(memory[at].bytes->begin(), memory[at].bytes->end()));
      const bool joins = at > 0 && memory[at - 1].end == memory[at].begin;
      change(memory[at].begin, joins ? memory[at - 1].bytes : nullptr, memory[at].bytes);
      if (at + 1 == memory.size() || memory[at + 1].begin != memory[at].end)
        change(memory[at].end, memory[at].bytes, nullptr);
    }
  }
  const std::vector<Int128> most = largest.sums();
  // A stack of kept times, each with the rises and falls since the kept time before.
  struct Kept {
    std::size_t time;
    Int128 rise, fall;
  };
  std::vector<Kept> kept;
  Int128 rise = 0;
  Int128 fall = 0;
  for (std::size_t time = 0; time < count; ++time) {
    rise += rises[time];
    fall += falls[time];
    if (most[time] <= limits[time]) continue;
    bool is_needed = true;
    while (!kept.empty() && is_needed) {
      const Int128 more_room = static_cast<Int128>(limits[time]) - limits[kept.back().time];
      if (rise <= more_room) {
        is_needed = false;
      } else if (fall <= -more_room) {
        rise += kept.back().rise;
        fall += kept.back().fall;
        kept.pop_back();
      } else {
        break;
      }
    }
    if (!is_needed) continue;
    kept.push_back({time, rise, fall});
    rise = fall = 0;
  }
  std::vector<bool> is_kept(count, false);
  for (const Kept& item : kept) is_kept[item.time] = true;
  return is_kept;
}

}  // namespace

void compress_times(ReductionGraph& graph) {
  std::vector<Bytes>& limits = graph.memory_limits();
  const std::vector<bool> is_kept = binding_times(graph, limits);
  std::vector<std::uint32_t> renumbered(limits.size() + 1, 0);
  std::vector<Bytes> kept_limits;
  for (std::size_t time = 0; time < limits.size(); ++time) {
    renumbered[time] = static_cast<std::uint32_t>(kept_limits.size());
    if (is_kept[time]) kept_limits.push_back(limits[time]);
  }
  renumbered[limits.size()] = static_cast<std::uint32_t>(kept_limits.size());
  if (kept_limits.size() == limits.size()) return;
  limits = std::move(kept_limits);
  for (std::size_t id = 0; id < graph.num_nodes(); ++id) {
    ReductionGraph::Node& node = graph.node(id);
    if (!node.is_alive || node.memory.empty()) continue;
    std::vector<UsageSegment> memory;
    for (UsageSegment& segment : node.memory) {
      segment.begin = renumbered[segment.begin];
      segment.end = renumbered[segment.end];
      if (segment.begin == segment.end) continue;
      if (!memory.empty() && memory.back().end == segment.begin && memory.back().bytes == segment.bytes) {
        memory.back().end = segment.end;
      } else {
        memory.push_back(std::move(segment));
      }
    }
    if (memory.size() != node.memory.size()) node.is_changed = true;
    node.memory = std::move(memory);
  }
}

}  // namespace shardplan
