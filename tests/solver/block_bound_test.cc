#include "solver/block_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "solver/searches/search_list.h"
#include "tests/support/problems.h"

namespace shardplan {
namespace {

constexpr std::size_t kCopies = 40;

/// The same problem with reordered nodes: `order` gives the place of each node.
RepeatedProblem reordered(const RepeatedProblem& repeated, const std::vector<NodeId>& order) {
  RepeatedProblem result = repeated;
  IdVector<NodeId, NodeId> place(order.size());
  for (std::size_t at = 0; at < order.size(); ++at) {
    place[order[at]] = NodeId(at);
    result.problem.nodes[NodeId(at)] = repeated.problem.nodes[order[at]];
    result.ties[NodeId(at)] = repeated.ties[order[at]];
  }
  for (ProblemEdge& edge : result.problem.edges) edge = {place[edge.from], place[edge.to], edge.matrix};
  return result;
}

/// Every second set of copies is in reverse order, as backward operators are.
RepeatedProblem with_sets_turned(const RepeatedProblem& repeated) {
  std::vector<std::vector<NodeId>> members(repeated.problem.nodes.size());
  for (const NodeId node : repeated.ties.ids()) members[repeated.ties[node].value()].push_back(node);
  std::vector<NodeId> order;
  for (const NodeId node : repeated.ties.ids()) order.push_back(node);
  for (std::size_t set = 1; set < members.size(); set += 2) {
    const std::vector<NodeId> turned(members[set].rbegin(), members[set].rend());
    for (std::size_t i = 0; i < turned.size(); ++i) order[members[set][i].value()] = turned[i];
  }
  return reordered(repeated, order);
}

/// The least cost, ignoring memory; nothing if there is no choice.
std::optional<std::int64_t> least_cost(StrategyProblem problem, const SearchOptions& options) {
  for (Bytes& limit : problem.memory_limits) limit = kUnlimitedBytes;
  const PlanResult found = make_search(kDefaultSearch)->search(problem, options);
  EXPECT_TRUE(found.status == PlanStatus::kOptimal || found.status == PlanStatus::kInfeasible);
  return found.choice ? std::optional(found.cost) : std::nullopt;
}

std::optional<BlockBound> bound_of(const RepeatedProblem& repeated, const SearchOptions& options) {
  return block_bound(repeated.problem, repeated.ties, *make_search(kDefaultSearch), options);
}

// No choice costs less than the bound, whatever the order of nodes; usually the best one costs hardly more.
TEST(BlockBoundTest, IsBelowAndNearTheLeastCost) {
  std::size_t bounded = 0, near = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed + 7000);
    RepeatedProblem repeated = random_repeated_problem(random, kCopies, 1 + random.below(4), 2 + random.below(4), 1000);
    if (seed % 2 == 0) repeated = with_sets_turned(repeated);
    SearchOptions options;
    options.objective = {1 + static_cast<std::int64_t>(random.below(3)),
                         1 + static_cast<std::int64_t>(random.below(50))};
    const std::optional<std::int64_t> least = least_cost(repeated.problem, options);
    const std::optional<BlockBound> found = bound_of(repeated, options);
    if (!least || !found) continue;
    ++bounded;
    EXPECT_LE(found->bound, *least);
    EXPECT_LE(found->different, 3u);
    EXPECT_GT(found->blocks, 4u);
    if (static_cast<double>(*least - found->bound) <= 0.01 * static_cast<double>(*least)) ++near;
  }
  EXPECT_GT(bounded, 120u);
  EXPECT_GT(near, bounded * 9 / 10);
}

TEST(BlockBoundTest, FewCopiesHaveNone) {
  Random random(1);
  EXPECT_FALSE(bound_of(random_repeated_problem(random, 12, 2, 3, 1000), {}));
}

// Copies with different costs cannot be counted.
TEST(BlockBoundTest, DifferentCopiesHaveNone) {
  Random random(3);
  RepeatedProblem repeated = random_repeated_problem(random, 100, 2, 3, 1000);
  StrategyProblem& problem = repeated.problem;
  for (const NodeId node : problem.nodes.ids()) {
    StrategyTable table = problem.strategy_tables[problem.nodes[node].strategies];
    table.costs.front().computation += static_cast<std::int64_t>(node.value());
    problem.nodes[node].strategies = problem.strategy_tables.push_back(std::move(table));
  }
  EXPECT_FALSE(bound_of(repeated, {}));
}

// The bound is exact if copies are joined only by edges without costs, except for a forbidden pair: nothing is lost at
// a cut.
TEST(BlockBoundTest, CopiesThatDoNotMeetAreExact) {
  RepeatedProblem repeated;
  StrategyProblem& problem = repeated.problem;
  problem.strategy_tables = {{{{3, 1}, {1, 2}, {0, 9}}}};
  problem.matrices = {{3, 3, {0, 0, kForbidden, 0, 0, 0, 0, 0, 0}}};
  problem.memory_limits = {100};
  for (std::size_t copy = 0; copy < kCopies; ++copy) {
    problem.nodes.push_back({StrategyTableId(0), {}});
    repeated.ties.push_back(NodeId(0));
    if (copy > 0) problem.edges.push_back({NodeId(copy - 1), NodeId(copy), MatrixId(0)});
  }
  const std::optional<BlockBound> found = bound_of(repeated, {});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->bound, 3 * static_cast<std::int64_t>(kCopies));
}

}  // namespace
}  // namespace shardplan
