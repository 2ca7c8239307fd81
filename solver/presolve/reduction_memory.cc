#include "solver/presolve/reduction_memory.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "solver/presolve/time_compression.h"
#include "solver/time_profile.h"

namespace shardplan {
namespace {

constexpr Bytes kLargestBytes = std::numeric_limits<Bytes>::max();
constexpr Bytes kLargestSum = Bytes{1} << 62;  // of the bytes that nodes hold at one time

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

/// Disjoint segments in order; what all values of a segment have in common goes to `shared`. Values that need more than
/// any limit are marked for removal.
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
    if (least > kLargestBytes) return graph.set_infeasible();
    shared.add(begin, end, static_cast<Bytes>(least));
    std::vector<std::int64_t> above(sum.size());
    bool is_zero = true;
    for (std::size_t value = 0; value < sum.size(); ++value) {
      if (sum[value] - least > kLargestBytes) graph.mark_for_removal(id, value);
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
  node.is_tidy = true;
}

void mark_what_does_not_fit(ReductionGraph& graph) {
  const RangeMinimum least(graph.memory_limits());
  for (std::size_t id = 0; id < graph.num_nodes(); ++id) {
    if (!graph.node(id).is_alive) continue;
    for (const UsageSegment& segment : graph.node(id).memory) {
      const Bytes room = least.least(segment.begin, segment.end);
      for (std::size_t value = 0; value < segment.bytes->size(); ++value) {
        if ((*segment.bytes)[value] > room) graph.mark_for_removal(id, value);
      }
    }
  }
}

/// The bytes of the values that stay.
std::vector<Bytes> staying_bytes(const ReductionGraph::Node& node, const UsageSegment& segment) {
  std::vector<Bytes> bytes;
  for (std::size_t value = 0; value < segment.bytes->size(); ++value) {
    if (node.marked.empty() || !node.marked[value]) bytes.push_back((*segment.bytes)[value]);
  }
  return bytes;
}

/// Whether no choice holds more than the largest sum at any time.
bool has_small_sums(const ReductionGraph& graph, const std::vector<Bytes>& limits) {
  // Each value that stays fits by itself.
  const Bytes largest = *std::max_element(limits.begin(), limits.end());
  if (largest <= kLargestSum / static_cast<Bytes>(graph.num_alive() + 2)) return true;
  TimeProfile most(limits.size());
  for (std::size_t id = 0; id < graph.num_nodes(); ++id) {
    const ReductionGraph::Node& node = graph.node(id);
    if (!node.is_alive) continue;
    for (const UsageSegment& segment : node.memory) {
      const std::vector<Bytes> bytes = staying_bytes(node, segment);
      if (!bytes.empty()) most.add(segment.begin, segment.end, *std::max_element(bytes.begin(), bytes.end()));
    }
  }
  const std::vector<Int128> sums = most.sums();
  return std::all_of(sums.begin(), sums.end(), [](Int128 sum) { return sum <= kLargestSum; });
}

/// Counts bytes in the largest unit of which all are multiples, which changes nothing.
void enlarge_unit(ReductionGraph& graph) {
  Bytes unit = 0;
  for (std::size_t id = 0; id < graph.num_nodes(); ++id) {
    if (!graph.node(id).is_alive) continue;
    for (const UsageSegment& segment : graph.node(id).memory) {
      for (const Bytes bytes : staying_bytes(graph.node(id), segment)) unit = std::gcd(unit, bytes);
    }
  }
  if (unit <= 1) return;
  for (std::size_t id = 0; id < graph.num_nodes(); ++id) {
    if (!graph.node(id).is_alive) continue;
    for (UsageSegment& segment : graph.node(id).memory) {
      std::vector<Bytes> bytes = *segment.bytes;
      for (Bytes& item : bytes) item /= unit;
      segment.bytes = graph.shared().numbers.intern(std::move(bytes));
    }
  }
  for (Bytes& limit : graph.memory_limits()) limit /= unit;
}

}  // namespace

void tidy_memory(ReductionGraph& graph) {
  std::vector<Bytes>& limits = graph.memory_limits();
  TimeProfile shared(limits.size());
  for (const UsageSegment& segment : graph.fixed_memory()) shared.add(segment.begin, segment.end, (*segment.bytes)[0]);
  graph.fixed_memory().clear();
  for (std::size_t id = 0; id < graph.num_nodes(); ++id) {
    if (!graph.node(id).is_alive || graph.node(id).is_tidy) continue;
    if (graph.gives_up()) return;
    tidy_segments(graph, id, shared);
  }
  const std::vector<Int128> taken = shared.sums();
  for (std::size_t time = 0; time < limits.size(); ++time) {
    if (taken[time] > limits[time]) return graph.set_infeasible();
    limits[time] -= static_cast<Bytes>(taken[time]);
  }
}

void simplify_memory(ReductionGraph& graph) {
  tidy_memory(graph);
  std::vector<Bytes>& limits = graph.memory_limits();
  if (graph.is_infeasible() || limits.empty()) return;
  mark_what_does_not_fit(graph);
  compress_times(graph);
  if (limits.empty() || has_small_sums(graph, limits)) return;
  enlarge_unit(graph);
  if (has_small_sums(graph, limits)) return;
  throw InputError(SourcePlace{}, "memory usages that add up to more than 2^62 bytes; use a larger unit");
}

}  // namespace shardplan
