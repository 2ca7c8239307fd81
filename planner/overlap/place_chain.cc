#include "planner/overlap/place_chain.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace shardplan {
namespace {

std::size_t num_members(const OperatorSet& set) {
  std::size_t count = 0;
  for (const std::uint64_t word : set.words()) count += static_cast<std::size_t>(std::popcount(word));
  return count;
}

bool has_any(const OperatorSet& set, std::span<const OperatorId> of) {
  return std::any_of(of.begin(), of.end(), [&](OperatorId op) { return set.contains(op); });
}

}  // namespace

PlaceChain::PlaceChain(std::vector<Item> items) : numbers_(items.size()), before_all_(items.size()) {
  std::vector<std::size_t> sizes;
  for (const Item& item : items) sizes.push_back(num_members(*item.before));
  std::iota(numbers_.begin(), numbers_.end(), std::size_t{0});
  std::stable_sort(numbers_.begin(), numbers_.end(), [&](std::size_t a, std::size_t b) { return sizes[a] < sizes[b]; });
  for (const std::size_t number : numbers_) items_.push_back(items[number]);
  for (std::size_t place = items_.size(); place-- > 0;) {
    before_all_[place] = *items_[place].before;
    if (place + 1 < items_.size()) before_all_[place] &= before_all_[place + 1];
  }
}

PlacesBehind::PlacesBehind(const PlaceChain& chain, std::size_t num_operators)
    : chain_(chain), first_(num_operators, static_cast<std::uint32_t>(chain.size())) {
  OperatorSet seen(num_operators);
  for (std::size_t place = 0; place < chain.size(); ++place) {
    OperatorSet more = chain.before_all(place);
    more -= seen;
    more.for_each([&](OperatorId op) { first_[op.value()] = static_cast<std::uint32_t>(place); });
    seen |= more;
  }
}

// For each of the others it is looked up from which position on it is over before all items of this chain. So at a
// position of this chain only the others that it is not over before are left, starting from the first; if one of them
// starts only after the item at this position, and so do all after it, none is left.
bool PlacesBehind::may_meet(const PlaceChain& others,
                            const std::function<bool(std::size_t, std::size_t)>& excluded) const {
  std::vector<std::uint32_t> over_before(others.size(), static_cast<std::uint32_t>(chain_.size()));
  for (std::size_t at = 0; at < others.size(); ++at) {
    for (const OperatorId op : others[at].waiting) over_before[at] = std::min(over_before[at], first_[op.value()]);
  }
  std::size_t begin = 0;
  for (std::size_t place = 0; place < chain_.size(); ++place) {
    while (begin < others.size() && over_before[begin] <= place) ++begin;
    const PlaceChain::Item& item = chain_[place];
    for (std::size_t at = begin; at < others.size(); ++at) {
      if (over_before[at] <= place) continue;
      if (has_any(others.before_all(at), item.waiting)) break;
      const PlaceChain::Item& other = others[at];
      if (has_any(*other.before, item.waiting) || has_any(*item.before, other.waiting)) continue;
      if (!excluded(chain_.number(place), others.number(at))) return true;
    }
  }
  return false;
}

}  // namespace shardplan
