#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/index.h"
#include "base/shared_vector.h"
#include "base/units.h"

namespace shardplan {

using NodeId = Index<struct NodeTag>;
using EdgeId = Index<struct EdgeTag>;
using StrategyId = Index<struct StrategyTag>;  // position in one node's list of strategies
using StrategyTableId = Index<struct StrategyTableTag>;
using UsageTableId = Index<struct UsageTableTag>;
using MatrixId = Index<struct MatrixTag>;

/// A cost of at least this much forbids a strategy or a pair, and a choice that contains one is not feasible; whoever
/// builds a problem clamps entries to it. Sixteen of them still fit in 64 bits.
inline constexpr std::int64_t kForbidden = std::int64_t{1} << 58;

/// A memory limit that never binds.
inline constexpr Bytes kUnlimitedBytes = std::int64_t{1} << 60;

/// The cost of a node or an edge, per device. The parts stay separate until an `Objective` combines them.
struct Cost {
  Picoseconds computation = 0;
  Picoseconds communication = 0;

  bool operator==(const Cost&) const = default;
};

/// The costs of a node's strategies. Shared by all equal nodes.
struct StrategyTable {
  std::vector<Cost> costs;  // by StrategyId; a `communication` of kForbidden forbids the strategy

  bool operator==(const StrategyTable&) const = default;
};

/// Bytes per strategy of something that a node holds. Shared by all equal nodes.
struct UsageTable {
  std::vector<Bytes> bytes;  // by StrategyId

  bool operator==(const UsageTable&) const = default;
};

/// Cost of every pair of strategies of two neighbours (a redistribution's communication, or kForbidden). Shared by
/// all equal edges, and by copies of the problem. Row-major: `costs[row * columns + column]`, rows are the strategies of
/// the edge's `from`.
struct CostMatrix {
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
  SharedVector<std::int64_t> costs;  // picoseconds of communication

  std::int64_t at(std::size_t row, std::size_t column) const { return costs[row * columns + column]; }
  bool operator==(const CostMatrix&) const = default;
};

/// Bytes held over the half-open live range [begin, end) of schedule times; an empty range holds nothing.
struct MemoryUse {
  UsageTableId usage;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  bool operator==(const MemoryUse&) const = default;
};

struct ProblemNode {
  StrategyTableId strategies;
  std::vector<MemoryUse> memory;  // usually one entry, or none
};

struct ProblemEdge {
  NodeId from;
  NodeId to;
  MatrixId matrix;
};

/// All that a search sees: choose one strategy per node, at least cost, such that no edge is kForbidden and at each
/// time the bytes in use are within that time's limit. This is the format of the ASPLOS/EuroSys 2025 contest on
/// intra-operator parallelism, with shared tables and several memory uses per node.
///
/// Invariants (`check_problem`): every index is in range, every table of a node has the same number (at least one) of
/// strategies, matrices match their ends, no cost or usage is negative, live ranges lie within `memory_limits`.
struct StrategyProblem {
  std::string name;
  IdVector<StrategyTableId, StrategyTable> strategy_tables;
  IdVector<UsageTableId, UsageTable> usage_tables;
  IdVector<MatrixId, CostMatrix> matrices;
  IdVector<NodeId, ProblemNode> nodes;
  IdVector<EdgeId, ProblemEdge> edges;  // several edges between one pair of nodes add up
  std::vector<Bytes> memory_limits;     // by time

  std::size_t num_strategies(NodeId node) const { return strategy_tables[nodes[node].strategies].costs.size(); }
};

/// What is minimised: computation_weight * computation + communication_weight * communication.
struct Objective {
  std::int64_t computation_weight = 1;
  std::int64_t communication_weight = 1;

  bool operator==(const Objective&) const = default;
};

struct Choice {
  IdVector<NodeId, StrategyId> strategy;

  bool operator==(const Choice&) const = default;
};

/// The cost of a choice, and whether it is feasible.
struct Evaluation {
  bool feasible = false;            // no kForbidden, no time over its limit
  std::size_t forbidden_count = 0;  // strategies and pairs of cost kForbidden in it; not included in `cost`
  Cost cost;
  Bytes peak_bytes = 0;       // over all times
  std::size_t peak_time = 0;  // the first time of the peak
  Bytes worst_excess = 0;     // the largest excess over a limit; at most 0 if it fits

  /// The objective of `cost`; saturates instead of overflowing.
  std::int64_t value(const Objective& objective) const;
};

/// The only definition of cost and feasibility; linear in the problem.
Evaluation evaluate(const StrategyProblem& problem, const Choice& choice);

/// Throws InputError naming the first violated invariant of `StrategyProblem` (a problem read from a file may be
/// hostile).
void check_problem(const StrategyProblem& problem);

}  // namespace shardplan
