#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/operator_graph.h"

namespace shardplan {

/// One operator of one rank.
struct LocalOperator {
  std::int64_t rank = 0;
  OperatorId op;

  bool operator==(const LocalOperator&) const = default;
};

/// The operators of one step: one that a single rank computes alone, or a communication with all its members, in the
/// order of the group.
using LocalStep = std::vector<LocalOperator>;

/// A model written per device as one order of steps that every rank can follow: each rank runs its own graph in
/// program order and waits at a communication for the other members of the group. Holds pointers to the graphs, by
/// rank, which must outlive it.
struct LocalProgram {
  std::vector<const OperatorGraph*> graphs;
  std::vector<LocalStep> steps;
};

/// Throws InputError at the place of a communication that cannot happen, instead of a deadlock:
///   - members of a group that meet in different operators, or in equal ones with other shapes, types or attributes;
///   - something sent to a rank that does not receive it, or receives another shape;
///   - ranks that wait for one that has ended, or for each other; all waiting ranks are named.
LocalProgram local_program(std::vector<const OperatorGraph*> graphs);

/// A transfer from one rank to another in an exchange with neighbours.
struct NeighbourSend {
  std::size_t from = 0;  // members of the step
  std::size_t sent = 0;  // index of the sender's input, or neighbour
  std::size_t to = 0;
  std::size_t received = 0;  // index of the receiver's result, or neighbour
};
/// All sends of a NeighborExchange or NeighborExchangeV2. (For its gradient they are reversed: what arrives is added
/// to what was sent.) Several inputs from one rank to another are received in their order. Throws InputError as
/// above.
std::vector<NeighbourSend> neighbour_sends(const LocalProgram& program, const LocalStep& step);

/// "0 to 7", "0, 2 and 5".
std::string ranks_text(std::vector<std::int64_t> ranks);

}  // namespace shardplan
