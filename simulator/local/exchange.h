#pragma once

#include <span>
#include <vector>

#include "program/local_program.h"
#include "simulator/execute/data.h"

namespace shardplan {

/// One rank's inputs and results of a communication.
struct ExchangeMember {
  const Operation* operation = nullptr;
  std::vector<const TensorValues*> operands;
  std::vector<TensorValues> results;  // filled by `run_exchange`
};

/// Runs a communication operator (operators/families/communication.h) on all members of its group, given in the group's
/// order. Summands are added in that order.
///
///   AllReduce           every member gets the sum (product, maximum, minimum) of all x
///   FusedAllReduce      the same for each of several tensors
///   AllGather           the x of all members, concatenated along dimension 0
///   ReduceScatter       the i-th of equal pieces of that sum along dimension 0
///   Broadcast           the root's x
///   AlltoAll            the i-th piece of each member's x along split_dim, concatenated along concat_dim
///   NeighborExchange    what the ranks of recv_rank_ids send; zeros if there is none
///   NeighborExchangeV2  x surrounded by rows and columns of the neighbours; a corner that nobody sends is zero
///
/// Requires: `sends` are those of `neighbour_sends` for the last two, and empty for all others.
void run_exchange(std::span<ExchangeMember> members, std::span<const NeighbourSend> sends);

}  // namespace shardplan
