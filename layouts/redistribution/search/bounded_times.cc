#include "layouts/redistribution/search/bounded_times.h"

#include <algorithm>
#include <utility>

namespace shardplan {

BoundedTimes::BoundedTimes(std::vector<std::int64_t> sizes, std::vector<std::size_t> first_arc, std::vector<Arc> arcs)
    : sizes_(std::move(sizes)), bounds_(sizes_), first_arc_(std::move(first_arc)), arcs_(std::move(arcs)) {
  std::sort(bounds_.begin(), bounds_.end());
  bounds_.erase(std::unique(bounds_.begin(), bounds_.end()), bounds_.end());
  for (std::size_t state = 0; state < sizes_.size(); ++state) {
    std::stable_sort(arcs_.begin() + static_cast<std::ptrdiff_t>(first_arc_[state]),
                     arcs_.begin() + static_cast<std::ptrdiff_t>(first_arc_[state + 1]),
                     [&](const Arc& a, const Arc& b) { return sizes_[a.target] < sizes_[b.target]; });
  }
}

std::vector<Picoseconds> BoundedTimes::row(std::uint32_t source, std::span<const Picoseconds> times, bool bounded) {
  reached_.assign(sizes_.size(), kNoPath);
  reached_[source] = 0;
  next_arc_.assign(first_arc_.begin(), first_arc_.end() - 1);
  queue_.assign(1, {0, source});
  if (!bounded) {
    settle(INT64_MAX, times);
    return reached_;
  }
  // The bound is the larger of the two ends. Each higher bound admits some more states; times so far stay, except where
  // a path through the new states is shorter.
  std::vector<Picoseconds> row(sizes_.size(), kNoPath);
  for (const std::int64_t bound : bounds_) {
    if (bound < sizes_[source]) continue;
    for (std::uint32_t state = 0; state < sizes_.size(); ++state) {
      if (reached_[state] != kNoPath) relax(state, next_arc_[state], bound, times);
    }
    settle(bound, times);
    for (std::uint32_t state = 0; state < sizes_.size(); ++state) {
      const bool is_bound = sizes_[state] == bound || (sizes_[state] < bound && bound == sizes_[source]);
      if (is_bound) row[state] = reached_[state];
    }
  }
  return row;
}

/// Dijkstra's algorithm among the states that are no larger than `bound`, from where it stands.
void BoundedTimes::settle(std::int64_t bound, std::span<const Picoseconds> times) {
  while (!queue_.empty()) {
    std::pop_heap(queue_.begin(), queue_.end());
    const auto [time, state] = queue_.back();
    queue_.pop_back();
    if (time == reached_[state]) relax(state, first_arc_[state], bound, times);
  }
}

void BoundedTimes::relax(std::uint32_t state, std::size_t arc, std::int64_t bound, std::span<const Picoseconds> times) {
  for (; arc < first_arc_[state + 1]; ++arc) {
    const std::uint32_t target = arcs_[arc].target;
    if (sizes_[target] > bound) break;
    const Picoseconds time = reached_[state] + times[arc];
    if (time >= reached_[target]) continue;
    reached_[target] = time;
    queue_.push_back({time, target});
    std::push_heap(queue_.begin(), queue_.end());
  }
  next_arc_[state] = arc;
}

}  // namespace shardplan
