#pragma once

#include <span>
#include <vector>

#include "program/local_program.h"
#include "simulator/execute/data.h"

namespace shardplan {

/// What one rank brings to a communication, and what it takes away.
struct ExchangeMember {
  const Operation* operation = nullptr;
  std::vector<const TensorValues*> operands;
  std::vector<TensorValues> results;  // filled by `run_exchange`
};

/// Runs a communication operator (operators/families/communication.h) on all members of its group, which stand in the
/// group's order. Summands are added in that order.
///
///   AllReduce           every member gets the sum (product, maximum, minimum) of all x
///   FusedAllReduce      that of each of several tensors
///   AllGather           the x of all, one behind the other along dimension 0
///   ReduceScatter       of that sum the i-th of equal pieces along dimension 0
///   Broadcast           the root's x
///   AlltoAll            of each member's x the i-th piece along split_dim, put together along concat_dim
///   NeighborExchange    what the ranks of recv_rank_ids send; zeros where there is none
///   NeighborExchangeV2  x with rows and columns of the neighbours around it; a corner that nobody sends is zero
///
/// Requires: `sends` are those of `neighbour_sends` for the two last, and empty for all others.
void run_exchange(std::span<ExchangeMember> members, std::span<const NeighbourSend> sends);

}  // namespace shardplan
