#include "planner/overlap/least_cover.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>

namespace shardplan {
namespace {

constexpr std::size_t kNoGiver = std::numeric_limits<std::size_t>::max();
/// Limit for the words of sets that are read; some hundredths of a second.
constexpr std::size_t kMostFlowWork = 40'000'000;

/// Flow network: communications are the givers, kernels the takers; edges between pairs that may overlap have
/// unlimited capacity.
class Flow {
 public:
  Flow(const std::vector<Hideable>& givers, const std::vector<Picoseconds>& takers)
      : givers_(givers), left_(takers), flows_(takers.size()) {
    for (const Hideable& giver : givers) rest_.push_back(giver.time);
  }

  /// False if it would take too long.
  bool run() {
    // Givers with few takers first.
    std::vector<std::size_t> order(givers_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::vector<int> sizes;
    for (const Hideable& giver : givers_) {
      int size = 0;
      for (const std::uint64_t word : giver.beside.words()) size += std::popcount(word);
      sizes.push_back(size);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return sizes[a] < sizes[b]; });
    for (const std::size_t giver : order) {
      for_each(giver, nullptr, [&](std::size_t taker) {
        give(giver, taker, std::min(rest_[giver], left_[taker]));
        return rest_[giver] > 0;
      });
    }
    while (work_ < kMostFlowWork) {
      if (!augment()) return true;
    }
    return false;
  }

  bool is_reached(std::size_t giver) const { return from_taker_[giver] != kUnseen; }
  const std::vector<std::uint64_t>& reached_takers() const { return seen_; }

 private:
  static constexpr std::size_t kUnseen = kNoGiver - 1;

  /// Visits the takers of `giver` that are not in `seen`, in order, while `visit` returns true.
  template <class Visit>
  void for_each(std::size_t giver, const std::vector<std::uint64_t>* seen, const Visit& visit) {
    const std::vector<std::uint64_t>& words = givers_[giver].beside.words();
    work_ += words.size();
    for (std::size_t w = 0; w < words.size(); ++w) {
      std::uint64_t word = words[w];
      if (seen != nullptr) word &= ~(*seen)[w];
      for (; word != 0; word &= word - 1) {
        if (!visit(w * 64 + static_cast<std::size_t>(std::countr_zero(word)))) return;
      }
    }
  }

  void give(std::size_t giver, std::size_t taker, Picoseconds amount) {
    if (amount == 0) return;
    rest_[giver] -= amount;
    left_[taker] -= amount;
    add(giver, taker, amount);
  }

  void add(std::size_t giver, std::size_t taker, Picoseconds amount) {
    auto& flows = flows_[taker];
    const auto found = std::find_if(flows.begin(), flows.end(), [&](const auto& flow) { return flow.first == giver; });
    if (found == flows.end()) {
      flows.emplace_back(giver, amount);
    } else if ((found->second += amount) == 0) {
      flows.erase(found);
    }
  }

  Picoseconds flow(std::size_t giver, std::size_t taker) const {
    for (const auto& [from, amount] : flows_[taker]) {
      if (from == giver) return amount;
    }
    return 0;
  }

  /// One shortest augmenting path from a communication with remaining supply to a kernel with remaining capacity;
  /// false if there is none: then everything reached is one side of the minimum cut.
  bool augment() {
    from_taker_.assign(givers_.size(), kUnseen);
    from_giver_.assign(left_.size(), kNoGiver);
    seen_.assign((left_.size() + 63) / 64, 0);
    std::vector<std::size_t> queue;
    for (std::size_t giver = 0; giver < givers_.size(); ++giver) {
      if (rest_[giver] == 0) continue;
      from_taker_[giver] = kNoGiver;
      queue.push_back(giver);
    }
    for (std::size_t at = 0; at < queue.size(); ++at) {
      const std::size_t giver = queue[at];
      std::size_t end = kNoGiver;
      for_each(giver, &seen_, [&](std::size_t taker) {
        seen_[taker / 64] |= std::uint64_t{1} << taker % 64;
        from_giver_[taker] = giver;
        if (left_[taker] > 0) {
          end = taker;
          return false;
        }
        for (const auto& [other, amount] : flows_[taker]) {
          if (from_taker_[other] != kUnseen) continue;
          from_taker_[other] = taker;
          queue.push_back(other);
        }
        return true;
      });
      if (end == kNoGiver) continue;
      send_to(end);
      return true;
    }
    return false;
  }

  void send_to(std::size_t end) {
    Picoseconds amount = left_[end];
    for (std::size_t taker = end;;) {
      const std::size_t giver = from_giver_[taker];
      if (from_taker_[giver] == kNoGiver) {
        amount = std::min(amount, rest_[giver]);
        break;
      }
      amount = std::min(amount, flow(giver, from_taker_[giver]));
      taker = from_taker_[giver];
    }
    left_[end] -= amount;
    for (std::size_t taker = end;;) {
      const std::size_t giver = from_giver_[taker];
      add(giver, taker, amount);
      if (from_taker_[giver] == kNoGiver) {
        rest_[giver] -= amount;
        return;
      }
      taker = from_taker_[giver];
      add(giver, taker, -amount);
    }
  }

  const std::vector<Hideable>& givers_;
  std::vector<Picoseconds> left_;                                        // remaining capacity of a taker
  std::vector<Picoseconds> rest_;                                        // remaining supply of a giver
  std::vector<std::vector<std::pair<std::size_t, Picoseconds>>> flows_;  // by taker: the flow from each giver
  std::vector<std::size_t> from_taker_, from_giver_;                     // of the search for a path
  std::vector<std::uint64_t> seen_;
  std::size_t work_ = 0;
};

}  // namespace

Cover least_cover(const std::vector<Hideable>& communications, const std::vector<Picoseconds>& kernels) {
  Cover cover{std::vector<char>(communications.size(), 1), std::vector<char>(kernels.size(), 0)};
  Flow flow(communications, kernels);
  if (!flow.run()) return cover;
  const std::vector<std::uint64_t>& reached = flow.reached_takers();
  for (std::size_t op = 0; op < kernels.size(); ++op) cover.kernels[op] = (reached[op / 64] >> op % 64 & 1) != 0;
  for (std::size_t i = 0; i < communications.size(); ++i) {
    const std::vector<std::uint64_t>& beside = communications[i].beside.words();
    bool needs_others = false;
    for (std::size_t w = 0; w < beside.size(); ++w) needs_others = needs_others || (beside[w] & ~reached[w]) != 0;
    cover.communications[i] = !flow.is_reached(i) && needs_others;
  }
  return cover;
}

}  // namespace shardplan
