#include "program/late_issue.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace shardplan {

IssueOrder issued_late(const InstructionTable& table, const IssueOrder& order,
                       std::span<const OverlappedTimeline::Span> spans) {
  const std::vector<std::uint32_t>& old = order.sequence;
  const auto row = [&](std::size_t place) -> const InstructionTable::Row& { return table[old[place]]; };
  std::vector<std::size_t> behind(old.size());  // the position after which each one is moved: its own if it stays
  std::iota(behind.begin(), behind.end(), std::size_t{0});
  IdVector<ValueId, std::size_t> moved(table.num_values(), 0);  // the same for the producer of a value; 0: it stays
  // The loop, and the part after it except for what the loop's last iteration issues.
  std::size_t second = table.loop();
  while (order.reduces_in_last_run && second < old.size() && row(second).is_communication) ++second;
  for (const auto& [first, end_of_region] : {std::pair{std::size_t{0}, table.loop()}, std::pair{second, old.size()}}) {
    std::vector<std::size_t> kernels;
    for (std::size_t place = first; place < end_of_region; ++place) {
      if (row(place).is_timed_kernel()) kernels.push_back(place);
    }
    /// The position after which something that starts at this time is issued in time; 0: the first kernel ends too
    /// late.
    const auto latest = [&](Picoseconds begin) -> std::size_t {
      const auto ends_later =
          std::upper_bound(kernels.begin(), kernels.end(), begin,
                           [&](Picoseconds time, std::size_t place) { return time < spans[place].end; });
      if (ends_later == kernels.begin()) return 0;
      std::size_t place = *std::prev(ends_later);
      while (place + 1 < end_of_region && row(place + 1).pieces > 0) ++place;
      return place;
    };
    for (std::size_t begin = first; begin < end_of_region;) {
      const std::size_t end = std::min(end_of_bucket(order, begin), end_of_region);
      std::size_t to = 0;
      if (!row(begin).is_timed_kernel() && row(begin).pieces == 0) {
        for (std::size_t place = begin; place < end; ++place) {
          for (const ValueId input : table.inputs(old[place])) to = std::max(to, moved[input]);
        }
        if (row(begin).is_communication) to = std::max(to, latest(spans[begin].begin));
      }
      for (std::size_t place = begin; to >= end && place < end; ++place) {
        behind[place] = to;
        for (const ValueId output : table.outputs(old[place])) moved[output] = to;
      }
      begin = end;
    }
  }
  return moved_behind(order, behind);
}

}  // namespace shardplan
