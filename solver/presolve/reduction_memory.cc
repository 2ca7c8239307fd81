#include "solver/presolve/reduction_memory.h"

#include <algorithm>

#include "base/error.h"
#include "solver/presolve/time_compression.h"
#include "solver/time_profile.h"

namespace shardplan {
namespace {

constexpr Bytes kLargestBytes = Bytes{1} << 61;

/// Range minima in constant time after O(n log n) preparation.
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

/// Disjoint segments in order; what all values of a segment have in common goes to `shared`.
void tidy_segments(ReductionGraph& graph, std::size_t id, TimeProfile& shared) {
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
    Numbers list = graph.shared().numbers.intern(std::move(above));
    if (!tidy.empty() && tidy.back().end == begin && tidy.back().bytes == list) {
      tidy.back().end = end;
    } else {
      tidy.push_back({begin, end, std::move(list)});
    }
  }
  node.memory = std::move(tidy);
}

}  // namespace

void simplify_memory(ReductionGraph& graph) {
  std::vector<Bytes>& limits = graph.memory_limits();
  TimeProfile shared(limits.size());
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
  compress_times(graph);
  if (limits.empty()) return;
  const Bytes largest = *std::max_element(limits.begin(), limits.end());
  if (largest > kLargestBytes / static_cast<Bytes>(graph.num_alive() + 2)) {
    throw InputError(SourcePlace{}, "memory limits of {} bytes that bind are too large for {} nodes; use a larger unit",
                     largest, graph.num_alive());
  }
}

}  // namespace shardplan
