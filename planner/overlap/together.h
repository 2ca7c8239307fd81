#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "planner/overlap/concurrency.h"

namespace shardplan {

/// A communication as others see it: the operators that it waits for, and operators that wait for it.
struct PlacedCommunication {
  const OperatorSet* before = nullptr;
  std::span<const OperatorId> waiting;
  std::size_t group = 0;
};

/// For each group of communications the groups with which it may run at the same time, perhaps itself: some member of
/// the one with some other member of the other. Two communications may not if one is over before the other begins: if
/// some operator waits for the one and is waited for by the other, or if the pair, earlier one first, is in `known`.
/// Time: (communications + operators) * communications / 64 steps; memory: (operators + groups) * communications / 8
/// bytes.
std::vector<OperatorSet> together(std::span<const PlacedCommunication> communications, std::size_t num_groups,
                                  std::span<const std::pair<std::size_t, std::size_t>> known,
                                  std::size_t num_operators);

}  // namespace shardplan
