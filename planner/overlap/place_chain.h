#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "planner/overlap/concurrency.h"

namespace shardplan {

/// Communications by where they stand: of each the operators that it waits for, and those that wait for it. One is over
/// before another begins if an operator waits for the one and is waited for by the other.
///
/// They stand in a row, in the order of how much is before them, and for each it is known what is before it and before all
/// that stand behind it as well: of copies in repeated layers that is nearly all that is before it.
class PlaceChain {
 public:
  struct Item {
    const OperatorSet* before = nullptr;  // outlives the chain, as what `waiting` refers to does
    std::span<const OperatorId> waiting;
  };
  explicit PlaceChain(std::vector<Item> items);

  std::size_t size() const { return items_.size(); }
  /// The number that the item at a place has in the list given.
  std::size_t number(std::size_t place) const { return numbers_[place]; }
  const Item& operator[](std::size_t place) const { return items_[place]; }
  /// What all from this place on wait for.
  const OperatorSet& before_all(std::size_t place) const { return before_all_[place]; }

 private:
  std::vector<std::size_t> numbers_;
  std::vector<Item> items_;
  std::vector<OperatorSet> before_all_;
};

/// To ask of some of them whether any may run at the same time as any of some others.
class PlacesBehind {
 public:
  /// The chain must outlive it.
  PlacesBehind(const PlaceChain& chain, std::size_t num_operators);

  /// Whether for one of these and one of the others neither is over before the other begins. Pairs that are `excluded`, by
  /// their numbers, are no such pair. Where nearly all that is before one is before all behind it, it takes a time of as
  /// many steps as there are of both, not of as many as there are pairs.
  bool may_meet(const PlaceChain& others, const std::function<bool(std::size_t, std::size_t)>& excluded) const;

 private:
  const PlaceChain& chain_;
  std::vector<std::uint32_t> first_;  // by operator: from which place on all wait for it
};

}  // namespace shardplan
