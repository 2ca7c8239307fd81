#include "solver/presolve/reduction_memory.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/integer.h"

namespace shardplan {
namespace {

constexpr Bytes kLargestBytes = Bytes{1} << 61;

/// Least items of ranges in constant time after O(n log n) preparation.
class RangeMinimum {
 public:
  explicit RangeMinimum(const std::vector<Bytes>& items) : levels_{items} {
    for (std::size_t width = 1; 2 * width <= items.size(); width *= 2) {
      const std::vector<Bytes>& below = levels_.back();
      std::vector<Bytes> level(items.size() - 2 * width + 1);
      for (std::size_t i = 0; i < level.size(); ++i) level[i] = std::min(below[i], below[i + width]);
      levels_.push_back(std::move(level));
    }
  }
  Bytes least(std::size_t begin, std::size_t end) const {
    std::size_t level = 0;
    while ((std::size_t{2} << level) <= end - begin) ++level;
    return std::min(levels_[level][begin], levels_[level][end - (std::size_t{1} << level)]);
  }

 private:
  std::vector<std::vector<Bytes>> levels_;
};

/// Changes over ranges of times, added up at the end.
class Differences {
 public:
  explicit Differences(std::size_t size) : items_(size + 1, 0) {}
  void add(std::size_t begin, std::size_t end, Bytes bytes) {
    items_[begin] += bytes;
    items_[end] -= bytes;
  }
  std::vector<Int128> sums() const {
    std::vector<Int128> result(items_.size() - 1);
    Int128 sum = 0;
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = sum += items_[i];
    return result;
  }

 private:
  std::vector<Int128> items_;
};

/// Disjoint segments in order; what all values of a segment share goes to `shared`.
void tidy_segments(ReductionGraph& graph, std::size_t id, Differences& shared) {
  ReductionGraph::Node& node = graph.node(id);
  struct Event {
    std::uint32_t time;
    bool is_begin;
    std::uint32_t segment;
  };
  std::vector<Event> events;
  for (std::uint32_t i = 0; i < node.memory.size(); ++i) {
    events.push_back({node.memory[i].begin, true, i});
    events.push_back({node.memory[i].end, false, i});
  }
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.time < b.time; });
  std::vector<Int128> sum(node.costs.size(), 0);
  std::vector<UsageSegment> tidy;
  for (std::size_t at = 0; at < events.size(); ++at) {
    const std::vector<std::int64_t>& bytes = *node.memory[events[at].segment].bytes;
    for (std::size_t value = 0; value < sum.size(); ++value)
      sum[value] += events[at].is_begin ? bytes[value] : -bytes[value];
    if (at + 1 == events.size() || events[at + 1].time == events[at].time) continue;
    const std::uint32_t begin = events[at].time;
    const std::uint32_t end = events[at + 1].time;
    const Int128 least = *std::min_element(sum.begin(), sum.end());
    shared.add(begin, end, static_cast<Bytes>(std::min<Int128>(least, kLargestBytes)));
    std::vector<std::int64_t> above(sum.size());
    bool is_zero = true;
    for (std::size_t value = 0; value < sum.size(); ++value) {
      above[value] = static_cast<Bytes>(std::min<Int128>(sum[value] - least, kLargestBytes));
      is_zero = is_zero && above[value] == 0;
    }
    if (is_zero) continue;
    Numbers list = graph.numbers.intern(std::move(above));
    if (!tidy.empty() && tidy.back().end == begin && tidy.back().bytes == list) {
      tidy.back().end = end;
    } else {
      tidy.push_back({begin, end, std::move(list)});
    }
  }
  node.memory = std::move(tidy);
}

Bytes largest_rise(const Numbers& before, const Numbers& after) {
  const std::size_t count = before ? before->size() : after->size();
  Bytes rise = std::numeric_limits<Bytes>::min();
  for (std::size_t value = 0; value < count; ++value) {
    rise = std::max(rise, (after ? (*after)[value] : 0) - (before ? (*before)[value] : 0));
  }
  return rise;
}

/// For each time whether it can bind. A later time adds nothing to an earlier one if the bytes of no choice rise by
/// more than the limit does (the sum of each node's largest rise tells), and the other way round.
std::vector<bool> binding_times(const ReductionGraph& graph, const std::vector<Bytes>& limits) {
  const std::size_t count = limits.size();
  Differences largest(count);
  std::vector<Int128> rises(count + 1, 0),
      falls(count + 1, 0);  // at most this from time - 1 to time, whatever is chosen
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

void keep_times(ReductionGraph& graph, const std::vector<bool>& is_kept) {
  std::vector<Bytes>& limits = graph.memory_limits();
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

}  // namespace

void simplify_memory(ReductionGraph& graph) {
  std::vector<Bytes>& limits = graph.memory_limits();
  Differences shared(limits.size());
  for (const UsageSegment& segment : graph.fixed_memory()) shared.add(segment.begin, segment.end, (*segment.bytes)[0]);
  graph.fixed_memory().clear();
  for (std::size_t id = 0; id < graph.num_nodes(); ++id) {
    if (!graph.node(id).is_alive) continue;
    if (graph.gives_up()) return;
    tidy_segments(graph, id, shared);
  }
  const std::vector<Int128> taken = shared.sums();
  for (std::size_t time = 0; time < limits.size(); ++time) {
    if (taken[time] > limits[time]) {
      graph.set_infeasible();
      return;
    }
    limits[time] -= static_cast<Bytes>(taken[time]);
  }
  if (limits.empty()) return;
  const RangeMinimum least(limits);
  for (std::size_t id = 0; id < graph.num_nodes(); ++id) {
    if (!graph.node(id).is_alive) continue;
    for (const UsageSegment& segment : graph.node(id).memory) {
      const Bytes room = least.least(segment.begin, segment.end);
      for (std::size_t value = 0; value < segment.bytes->size(); ++value) {
        if ((*segment.bytes)[value] > room) graph.mark_for_removal(id, value);
      }
    }
  }
  keep_times(graph, binding_times(graph, limits));
  if (limits.empty()) return;
  const Bytes largest = *std::max_element(limits.begin(), limits.end());
  if (largest > kLargestBytes / static_cast<Bytes>(graph.num_alive() + 2)) {
    throw InputError(SourcePlace{}, "memory limits of {} bytes that bind are too large for {} nodes; use a larger unit",
                     largest, graph.num_alive());
  }
}

}  // namespace shardplan
