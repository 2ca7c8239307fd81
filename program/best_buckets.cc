#include "program/best_buckets.h"

#include <algorithm>
#include <tuple>

namespace shardplan {
namespace {

/// A bucket that takes this many start-ups is long enough.
constexpr Picoseconds kStarts = 1000;

/// One way to split a prefix into buckets.
struct State {
  Picoseconds link = 0;  // when the link is free again
  Picoseconds step = 0;  // lower bound on the end of the step
  std::size_t buckets = 0;
  std::size_t begin = 0;     // of the last bucket
  std::size_t previous = 0;  // the state of the prefix before it
};

/// Keeps the Pareto-optimal states, by the time at which the link is free.
void keep_best(std::vector<State>& states) {
  std::sort(states.begin(), states.end(), [](const State& a, const State& b) {
    return std::tie(a.link, a.step, a.buckets) < std::tie(b.link, b.step, b.buckets);
  });
  std::vector<State> kept;
  for (const State& state : states) {
    if (kept.empty() || state.step < kept.back().step) kept.push_back(state);
  }
  states = std::move(kept);
}

}  // namespace

std::vector<std::size_t> best_buckets(std::span<const WaitingCollective> collectives,
                                      const std::function<Picoseconds(Bytes)>& time) {
  const std::size_t count = collectives.size();
  if (count == 0) return {};
  std::vector<std::vector<State>> prefixes(count + 1);
  prefixes[0] = {State{}};
  const Picoseconds long_enough = kStarts * time(1);
  for (std::size_t end = 1; end <= count; ++end) {
    const Picoseconds ready = collectives[end - 1].ready;
    Bytes bytes = 0;
    Picoseconds tail = 0;
    for (std::size_t begin = end; begin-- > 0;) {
      bytes += collectives[begin].bytes;
      tail = std::max(tail, collectives[begin].tail);
      const Picoseconds takes = time(bytes);
      bool is_waiting = false;
      for (std::size_t s = 0; s < prefixes[begin].size(); ++s) {
        const State& before = prefixes[begin][s];
        const Picoseconds link = std::max(before.link, ready) + takes;
        prefixes[end].push_back({link, std::max(before.step, link + tail), before.buckets + 1, begin, s});
        is_waiting = is_waiting || before.link > ready;
      }
      // If the link is free before the last member is ready, a longer bucket ends no earlier and delays more.
      if (!is_waiting || takes >= long_enough) break;
    }
    keep_best(prefixes[end]);
  }
  const auto& last = prefixes[count];
  const auto best = std::min_element(last.begin(), last.end(), [](const State& a, const State& b) {
    return std::tie(a.step, a.link, a.buckets) < std::tie(b.step, b.link, b.buckets);
  });
  std::vector<std::size_t> begins;
  const State* state = &*best;
  while (true) {
    begins.push_back(state->begin);
    if (state->begin == 0) break;
    state = &prefixes[state->begin][state->previous];
  }
  std::reverse(begins.begin(), begins.end());
  return begins;
}

}  // namespace shardplan
