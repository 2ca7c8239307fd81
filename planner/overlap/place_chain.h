#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "planner/overlap/concurrency.h"

namespace shardplan {

/// Communications by their positions: for each the operators it waits for, and operators that wait for it. One
/// communication is over before another begins if some operator waits for the first and is waited for by the second.
///
/// They are sorted by how many operators they wait for. For each position the chain knows which operators all
/// communications from there on wait for: for copies in repeated layers these are nearly all that the first one waits
/// for.
class PlaceChain {
 public:
  struct Item {
    const OperatorSet* before = nullptr;  // outlives the chain, as does what `waiting` refers to
    std::span<const OperatorId> waiting;
  };
  explicit PlaceChain(std::vector<Item> items);

  std::size_t size() const { return items_.size(); }
  /// The index of an item in the list that was given.
  std::size_t number(std::size_t place) const { return numbers_[place]; }
  const Item& operator[](std::size_t place) const { return items_[place]; }
  /// The operators that all items from this position on wait for.
  const OperatorSet& before_all(std::size_t place) const { return before_all_[place]; }

 private:
  std::vector<std::size_t> numbers_;
  std::vector<Item> items_;
  std::vector<OperatorSet> before_all_;
};

/// Answers whether any communication of one chain may run at the same time as any of another.
class PlacesBehind {
 public:
  /// The chain must outlive it.
  PlacesBehind(const PlaceChain& chain, std::size_t num_operators);

  /// Whether there is a pair, one of each chain, in which neither is over before the other begins. Pairs that are
  /// `excluded`, given by their numbers, do not count. If consecutive items of a chain wait for nearly the same
  /// operators, the time is linear in the lengths of the chains, instead of the number of pairs.
  bool may_meet(const PlaceChain& others, const std::function<bool(std::size_t, std::size_t)>& excluded) const;

 private:
  const PlaceChain& chain_;
  std::vector<std::uint32_t> first_;  // by operator: the position from which on all items wait for it
};

}  // namespace shardplan
