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
//
// Several intermediate states are added at once, so that rows are read and written less often. Times are doubles here,
// whose minimum is one instruction; they are exact below 2^53.

namespace shardplan {
namespace {

constexpr std::size_t kTogether = 8;  // intermediate states added at once
constexpr double kNowhere = 0x1p60;   // no path; two of them can be added
constexpr double kLargestExact = 0x1p53;

/// out[i] = min(out[i], first[r] + rows[r][i]) over all r
SHARDPLAN_VECTOR_CODE void pass_through(const double (&first)[kTogether], const double* const (&rows)[kTogether],
                                        std::size_t count, double* __restrict out) {
  const auto [row0, row1, row2, row3, row4, row5, row6, row7] = rows;
  const auto [first0, first1, first2, first3, first4, first5, first6, first7] = first;
  const auto least_of = [](double a, double b) { return b < a ? b : a; };
  for (std::size_t i = 0; i < count; ++i) {
    const double least01 = least_of(first0 + row0[i], first1 + row1[i]);
    const double least23 = least_of(first2 + row2[i], first3 + row3[i]);
    const double least45 = least_of(first4 + row4[i], first5 + row5[i]);
    const double least67 = least_of(first6 + row6[i], first7 + row7[i]);
    out[i] = least_of(out[i], least_of(least_of(least01, least23), least_of(least45, least67)));
  }
}

SHARDPLAN_VECTOR_CODE void pass_through_one(double first, const double* row, std::size_t count,
                                            double* __restrict out) {
  for (std::size_t i = 0; i < count; ++i) {
    const double sum = first + row[i];
    out[i] = sum < out[i] ? sum : out[i];
  }
}

/// Times between all states, by place.
class AllTimes {
 public:
  explicit AllTimes(std::size_t count) : count_(count), times_(count * count, kNowhere) {}

  double* row(std::size_t from) { return times_.data() + from * count_; }
  std::vector<Picoseconds> rounded() const {
    std::vector<Picoseconds> result(times_.size());
    std::ranges::transform(times_, result.begin(), [](double time) {
      return time < kNowhere ? static_cast<Picoseconds>(time) : BoundedTimes::kNoPath;
    });
    return result;
  }

  /// Lowers the times between all states, except between two before `smaller`, by paths through the states from `begin`
  /// to `end`, at most kTogether of them.
  void pass_through_states(std::size_t begin, std::size_t end, std::size_t smaller) {
    for (std::size_t through = begin; through < end; ++through) {
      for (std::size_t from = begin; from < end; ++from) {
        const double first = row(from)[through];
        if (from != through && first < kNowhere) pass_through_one(first, row(through), count_, row(from));
      }
    }
    // The rows of these states are now final with respect to all of them, so that each other row needs them once.
    for (std::size_t from = 0; from < count_; ++from) {
      if (from >= begin && from < end) continue;
      const std::size_t skipped = from < smaller ? smaller : 0;
      double first[kTogether];
      const double* rows[kTogether];
      double least = kNowhere;
      for (std::size_t i = 0; i < kTogether; ++i) {
        const std::size_t through = std::min(begin + i, end - 1);
        first[i] = row(from)[through];
        rows[i] = row(through) + skipped;
        least = std::min(least, first[i]);
      }
      if (least < kNowhere) pass_through(first, rows, count_ - skipped, row(from) + skipped);
    }
  }

  /// Computes the times between states before `begin` that are not connected among themselves, by paths through the
  /// states from `begin` to `end`, whose rows and columns are known.
  void reach_smaller_states(std::size_t begin, std::size_t end) {
    for (std::size_t from = 0; from < begin; ++from) {
      double* const times = row(from);
      for (std::size_t to = 0; to < begin; ++to) {
        if (times[to] < kNowhere) continue;
        for (std::size_t through = begin; through < end; ++through) {
          times[to] = std::min(times[to], times[through] + row(through)[to]);
        }
      }
    }
  }

 private:
  std::size_t count_;
  std::vector<double> times_;
};

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
  const Picoseconds longest = times.empty() ? 0 : *std::ranges::max_element(times);
  if (static_cast<double>(longest) * static_cast<double>(count) >= kLargestExact) return all_one_by_one(times, largest);
  AllTimes all(count);
  for (std::uint32_t state = 0; state < count; ++state) {
    double* const row = all.row(place_[state]);
    row[place_[state]] = 0;
    for (std::size_t arc = first_arc_[state]; arc < first_arc_[state + 1]; ++arc) {
      double& time = row[place_[arcs_[arc].target]];
      time = std::min(time, static_cast<double>(times[arc]));
    }
  }
  for (std::size_t smaller = 0, end = 0; smaller < count; smaller = end) {
    while (end < count && (largest == LargestOnWay::kAny || sorted_sizes_[end] == sorted_sizes_[smaller])) ++end;
    for (std::size_t begin = smaller; begin < end; begin += kTogether) {
      all.pass_through_states(begin, std::min(begin + kTogether, end), smaller);
    }
    if (largest == LargestOnWay::kLeast) all.reach_smaller_states(smaller, end);
  }
  return all.rounded();
}

std::vector<Picoseconds> BoundedTimes::all_one_by_one(std::span<const Picoseconds> times, LargestOnWay largest) const {
  const std::size_t count = sizes_.size();
  std::vector<Picoseconds> result(count * count, kNoPath);
  BoundedTimes searched = *this;
  for (std::uint32_t source = 0; source < count; ++source) {
    const std::vector<Picoseconds> row = searched.row(source, times, largest);
    for (std::uint32_t state = 0; state < count; ++state) result[place_[source] * count + place_[state]] = row[state];
  }
  return result;
}

}  // namespace shardplan
