#include "program/yielding.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>
#include <vector>

namespace shardplan {
namespace {

constexpr std::size_t kMostLevels = 32;

}  // namespace

IssueOrder yielding(const InstructionTable& table, const IssueOrder& order,
                    std::span<const OverlappedTimeline::Span> spans) {
  const std::vector<std::uint32_t>& old = order.sequence;
  std::vector<char> is_awaited(old.size(), 0);  // by place
  IdVector<ValueId, char> is_needed(table.num_values(), 0);
  for (std::size_t end = old.size(); end > 0;) {
    std::size_t begin = end - 1;
    const std::uint32_t bucket = order.buckets[old[begin]];
    while (bucket > 0 && begin > 0 && order.buckets[old[begin - 1]] == bucket) --begin;
    bool is_one = begin < table.loop();
    for (std::size_t place = begin; place < end; ++place) {
      is_one = is_one || table[old[place]].is_timed_kernel();
      for (const ValueId output : table.outputs(old[place])) is_one = is_one || is_needed[output] != 0;
    }
    for (std::size_t place = begin; place < end; ++place) {
      is_awaited[place] = is_one;
      for (const ValueId input : table.inputs(old[place])) is_needed[input] = is_needed[input] != 0 || is_one;
    }
    end = begin;
  }
  // By level of links: when each awaited communication is ready, and the last position ready by then.
  std::array<std::vector<std::pair<Picoseconds, std::size_t>>, kMostLevels> ready;
  IdVector<ValueId, Picoseconds> made(table.num_values(), 0);
  Picoseconds kernels = 0;
  const auto for_each_level = [&](std::size_t i, const auto& act) {
    for (std::uint32_t links = table[i].links; links != 0; links &= links - 1) {
      act(static_cast<std::size_t>(std::countr_zero(links)));
    }
  };
  for (std::size_t begin = 0; begin < old.size();) {
    const std::size_t end = end_of_bucket(order, begin);
    Picoseconds time = kernels;  // its time of issue
    for (std::size_t place = begin; place < end; ++place) {
      for (const ValueId input : table.inputs(old[place])) time = std::max(time, made[input]);
    }
    for (std::size_t place = begin; place < end; ++place) {
      for (const ValueId output : table.outputs(old[place])) made[output] = spans[place].end;
      if (table[old[place]].is_timed_kernel()) kernels = spans[place].end;
    }
    if (is_awaited[begin] != 0 && begin >= table.loop()) {
      for_each_level(old[begin], [&](std::size_t level) { ready[level].emplace_back(time, end - 1); });
    }
    begin = end;
  }
  for (auto& of_level : ready) {
    std::sort(of_level.begin(), of_level.end());
    for (std::size_t n = 1; n < of_level.size(); ++n) {
      of_level[n].second = std::max(of_level[n].second, of_level[n - 1].second);
    }
  }
  // The position after which each one is moved: its own if it stays.
  std::vector<std::size_t> behind(old.size());
  IdVector<ValueId, std::size_t> moved(table.num_values(), 0);
  for (std::size_t begin = 0; begin < old.size();) {
    const std::size_t end = end_of_bucket(order, begin);
    std::size_t to = 0;
    for (std::size_t place = begin; is_awaited[begin] == 0 && place < end; ++place) {
      for (const ValueId input : table.inputs(old[place])) to = std::max(to, moved[input]);
      for_each_level(old[place], [&](std::size_t level) {
        const auto& of_level = ready[level];
        const auto later = std::upper_bound(of_level.begin(), of_level.end(), spans[place].begin,
                                            [](Picoseconds time, const auto& one) { return time < one.first; });
        if (later != of_level.begin()) to = std::max(to, std::prev(later)->second);
      });
    }
    const bool goes = to >= end;
    for (std::size_t place = begin; place < end; ++place) {
      behind[place] = goes ? to : place;
      for (const ValueId output : table.outputs(old[place])) moved[output] = goes ? to : 0;
    }
    begin = end;
  }
  return moved_behind(order, behind);
}

}  // namespace shardplan
