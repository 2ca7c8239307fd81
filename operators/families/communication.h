#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// What devices exchange in a model that is written per device: AllReduce, AllGather, ReduceScatter, Broadcast, AlltoAll,
/// NeighborExchange, NeighborExchangeV2, with MindSpore's names and attributes. They have no kernel, since no device can
/// compute its result alone: `run_exchange` (simulator/local/exchange.h) makes the results of all members of a group together.
///
/// `group` lists the ranks that take part, in the order in which pieces are taken and put together; empty: all, in
/// order. `rank_size` says how many they are. A model file's reader fills in both.
///
/// Derivatives are those of the sum of what all devices compute: of AllReduce(sum) AllReduce(sum), of AllGather
/// ReduceScatter(sum) and the other way round, of AlltoAll the reverse one, of an exchange with neighbours the one that
/// goes back. So they are in MindSpore (ops/_grad_experimental/grad_comm_ops.py of r2.0), with one exception: there
/// Broadcast hands each device its own gradient; here the root gets the sum of all and the others get zeros.
std::vector<OperatorType> communication_operators();

/// True for the operators above and those of their gradients.
bool is_communication(const OperatorType& type);

/// The ranks that take part in a communication, in the order of the group; `rank_size` of them.
std::vector<std::int64_t> group_ranks(const Operation& operation);

/// Shapes in one list of integers, each after its number of dimensions: ([2, 3], [4]) is (2, 2, 3, 1, 4).
std::vector<std::int64_t> flat_shapes(const std::vector<Shape>& shapes);

/// The eight neighbours of NeighborExchangeV2 in the order of its lists, clockwise from above; what goes to neighbour k
/// arrives there from neighbour (k + 4) % 8.
inline constexpr std::size_t kNumNeighbours = 8;
inline constexpr std::size_t opposite(std::size_t neighbour) { return (neighbour + 4) % kNumNeighbours; }

/// A rectangle of rows and columns.
struct Patch {
  std::int64_t row = 0, column = 0;
  std::int64_t rows = 0, columns = 0;

  bool operator==(const Patch&) const = default;
};
/// The part of x that NeighborExchangeV2 sends towards a neighbour, in positions of x.
Patch sent_patch(const Operation& operation, std::size_t neighbour);
/// The part of y that it receives from a neighbour, in positions of y; x itself begins at `kept_patch`.
Patch received_patch(const Operation& operation, std::size_t neighbour);
Patch kept_patch(const Operation& operation);

}  // namespace shardplan
