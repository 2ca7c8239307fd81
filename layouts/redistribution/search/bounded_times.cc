#include "layouts/redistribution/search/bounded_times.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/vector_code.h"

// One row is computed by Dijkstra's algorithm. All rows are computed by Floyd and Warshall's, which takes time cubic in
// the number of states but no queue and no branch: for a few hundred states with some twenty arcs each it takes as long
// as a dozen rows. The bound costs nothing: intermediate states are added from the smallest to the largest, and state k
// only between pairs of states one of which is at least as large. The parts of such a path, from i to k and from k to
// j, only contain states no larger than k. Two smaller states that are not connected yet are connected once all states
// of a size have been added.

namespace shardplan {
namespace {

constexpr std::size_t kTogether = 4;  // intermediate states added at once

/// out[i] = min(out[i], first[r] + rows[r][i]) over all r
SHARDPLAN_VECTOR_CODE void pass_through(const Picoseconds (&first)[kTogether],
                                        const Picoseconds* const (&rows)[kTogether], std::size_t count,
                                        Picoseconds* __restrict out) {
  const Picoseconds* const row0 = rows[0];
  const Picoseconds* const row1 = rows[1];
  const Picoseconds* const row2 = rows[2];
  const Picoseconds* const row3 = rows[3];
  const Picoseconds first0 = first[0], first1 = first[1], first2 = first[2], first3 = first[3];
  for (std::size_t i = 0; i < count; ++i) {
    const Picoseconds sum0 = first0 + row0[i], sum1 = first1 + row1[i], sum2 = first2 + row2[i],
                      sum3 = first3 + row3[i];
    const Picoseconds least01 = sum1 < sum0 ? sum1 : sum0;
    const Picoseconds least23 = sum3 < sum2 ? sum3 : sum2;
    const Picoseconds least = least23 < least01 ? least23 : least01;
    out[i] = least < out[i] ? least : out[i];
  }
}

SHARDPLAN_VECTOR_CODE void pass_through_one(Picoseconds first, const Picoseconds* row, std::size_t count,
                                            Picoseconds* __restrict out) {
  for (std::size_t i = 0; i < count; ++i) {
    const Picoseconds sum = first + row[i];
    out[i] = sum < out[i] ? sum : out[i];
  }
}

/// Lowers the times between all states, except between two before `smaller`, by paths through the states from `begin`
/// to `end`.
void pass_through_states(std::size_t begin, std::size_t end, std::size_t smaller, std::size_t count,
                         std::vector<Picoseconds>& best) {
  constexpr Picoseconds kNoPath = BoundedTimes::kNoPath;
  const auto row = [&](std::size_t state) { return best.data() + state * count; };
  for (std::size_t through = begin; through < end; ++through) {
    for (std::size_t from = begin; from < end; ++from) {
      const Picoseconds first = row(from)[through];
      if (from != through && first < kNoPath) pass_through_one(first, row(through), count, row(from));
    }
  }
  // The rows of these states are now final with respect to all of them, so that each other row needs them once.
  for (std::size_t from = 0; from < count; ++from) {
    if (from >= begin && from < end) continue;
    const std::size_t skipped = from < smaller ? smaller : 0;
    Picoseconds first[kTogether];
    const Picoseconds* rows[kTogether];
    Picoseconds least = kNoPath;
    for (std::size_t i = 0; i < kTogether; ++i) {
      const std::size_t through = std::min(begin + i, end - 1);
      first[i] = row(from)[through];
      rows[i] = row(through) + skipped;
      least = std::min(least, first[i]);
    }
    if (least < kNoPath) pass_through(first, rows, count - skipped, row(from) + skipped);
  }
}

/// Computes the times between states before `begin` that are not connected among themselves, by paths through the
/// states from `begin` to `end`, whose rows and columns are known.
void reach_smaller_states(std::size_t begin, std::size_t end, std::size_t count, std::vector<Picoseconds>& best) {
  for (std::size_t from = 0; from < begin; ++from) {
    Picoseconds* const row = best.data() + from * count;
    for (std::size_t to = 0; to < begin; ++to) {
      if (row[to] != BoundedTimes::kNoPath) continue;
      for (std::size_t through = begin; through < end; ++through) {
        row[to] = std::min(row[to], row[through] + best[through * count + to]);
      }
    }
  }
}

}  // namespace

BoundedTimes::BoundedTimes(std::vector<std::int64_t> sizes, std::vector<std::size_t> first_arc, std::vector<Arc> arcs)
    : sizes_(std::move(sizes)), place_(sizes_.size()), first_arc_(std::move(first_arc)), arcs_(std::move(arcs)) {
  std::vector<std::uint32_t> state_at(sizes_.size());
  std::iota(state_at.begin(), state_at.end(), 0u);
  std::stable_sort(state_at.begin(), state_at.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return sizes_[a] < sizes_[b]; });
  for (std::uint32_t place = 0; place < state_at.size(); ++place) {
    place_[state_at[place]] = place;
    sorted_sizes_.push_back(sizes_[state_at[place]]);
  }
  std::unique_copy(sorted_sizes_.begin(), sorted_sizes_.end(), std::back_inserter(bounds_));
  for (std::size_t state = 0; state < sizes_.size(); ++state) {
    std::stable_sort(arcs_.begin() + static_cast<std::ptrdiff_t>(first_arc_[state]),
                     arcs_.begin() + static_cast<std::ptrdiff_t>(first_arc_[state + 1]),
                     [&](const Arc& a, const Arc& b) { return sizes_[a.target] < sizes_[b.target]; });
  }
}

std::vector<Picoseconds> BoundedTimes::row(std::uint32_t source, std::span<const Picoseconds> times,
                                           LargestOnWay largest) {
  reached_.assign(sizes_.size(), kNoPath);
  reached_[source] = 0;
  next_arc_.assign(first_arc_.begin(), first_arc_.end() - 1);
  queue_.assign(1, {0, source});
  if (largest == LargestOnWay::kAny) {
    settle(INT64_MAX, times);
    return reached_;
  }
  // The bound is the larger of the two ends. Each higher bound admits more states; earlier times stay, except where a
  // path through the new states is shorter.
  std::vector<Picoseconds> row(sizes_.size(), kNoPath);
  for (const std::int64_t bound : bounds_) {
    if (bound < sizes_[source]) continue;
    for (std::uint32_t state = 0; state < sizes_.size(); ++state) {
      if (reached_[state] != kNoPath) relax(state, next_arc_[state], bound, times);
    }
    settle(bound, times);
    for (std::uint32_t state = 0; state < sizes_.size(); ++state) {
      const bool is_bound = sizes_[state] == bound || (sizes_[state] < bound && bound == sizes_[source]);
      const bool is_first = largest == LargestOnWay::kLeast && sizes_[state] < bound && row[state] == kNoPath;
      if (is_bound || is_first) row[state] = reached_[state];
    }
  }
  return row;
}

/// Dijkstra's algorithm among the states within `bound`, continued from its current state.
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

std::vector<Picoseconds> BoundedTimes::all(std::span<const Picoseconds> times, LargestOnWay largest) const {
  const std::size_t count = sizes_.size();
  std::vector<Picoseconds> best(count * count, kNoPath);  // by place
  for (std::uint32_t state = 0; state < count; ++state) {
    Picoseconds* const row = best.data() + place_[state] * count;
    row[place_[state]] = 0;
    for (std::size_t arc = first_arc_[state]; arc < first_arc_[state + 1]; ++arc) {
      Picoseconds& time = row[place_[arcs_[arc].target]];
      time = std::min(time, times[arc]);
    }
  }
  for (std::size_t smaller = 0, end = 0; smaller < count; smaller = end) {
    while (end < count && (largest == LargestOnWay::kAny || sorted_sizes_[end] == sorted_sizes_[smaller])) ++end;
    for (std::size_t begin = smaller; begin < end; begin += kTogether) {
      pass_through_states(begin, std::min(begin + kTogether, end), smaller, count, best);
    }
    if (largest == LargestOnWay::kLeast) reach_smaller_states(smaller, end, count, best);
  }
  return best;
}

}  // namespace shardplan
