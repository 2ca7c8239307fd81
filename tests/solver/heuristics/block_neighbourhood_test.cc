#include "solver/heuristics/block_neighbourhood.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/cores.h"

namespace shardplan {
namespace {

TEST(BlockNeighbourhoodTest, ABlockSeesWhatItsMovesCostAndHold) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const CoreSketch sketch = random_core(random, {.max_nodes = 7, .limit_percent = 40});
    const CoreProblem core = core_of(sketch);
    const MoveState state(core, fewest_bytes_choice(core));
    if (sketch.excess(state.choice()) > 0) continue;
    std::vector<std::uint32_t> nodes;
    for (std::uint32_t node = 0; node < core.num_nodes(); ++node) {
      if (random.below(2) == 0) nodes.push_back(node);
    }
    if (nodes.empty()) continue;
    const CoreBlock block = cut_block(state, nodes, std::vector<double>(core.limits.size(), 1));
    const auto whole_of = [&](const CoreChoice& choice) {
      CoreChoice whole = state.choice();
      for (std::size_t at = 0; at < block.nodes.size(); ++at) whole[block.nodes[at]] = choice[at];
      return whole;
    };
    CoreChoice now(nodes.size());
    for (std::size_t at = 0; at < nodes.size(); ++at) now[at] = state.choice()[block.nodes[at]];
    const double rest = sketch.cost(state.choice()) - evaluate(block.core, now).cost;  // of all other nodes and edges
    for (int round = 0; round < 20; ++round) {
      CoreChoice choice;
      for (std::size_t at = 0; at < nodes.size(); ++at) {
        choice.push_back(static_cast<std::uint32_t>(random.below(block.core.num_values(at))));
      }
      const CoreEvaluation evaluation = evaluate(block.core, choice);
      EXPECT_EQ(evaluation.cost + rest, sketch.cost(whole_of(choice))) << describe(sketch);
      EXPECT_EQ(evaluation.excess == 0, sketch.excess(whole_of(choice)) == 0) << describe(sketch);
    }
  }
}

TEST(BlockNeighbourhoodTest, AMoveImprovesOrLeavesTheChoice) {
  int num_better = 0;
  std::uint64_t num_proven = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const CoreSketch sketch = random_core(random, {.max_nodes = 8, .edge_percent = 100, .limit_percent = 40});
    const CoreProblem core = core_of(sketch);
    MoveState state(core, fewest_bytes_choice(core));
    if (!state.is_feasible()) continue;
    const std::optional<CoreChoice> best = brute_force(sketch);
    BlockNeighbourhood blocks(core);
    const Deadline deadline(0, {});
    WorkMeter meter(deadline, UINT64_MAX);
    for (int move = 0; move < 10; ++move) {
      const double before = sketch.cost(state.choice());
      const std::uint64_t proven_before = blocks.num_proven();
      const bool is_better =
          blocks.move(state, random, core.num_nodes(), std::vector<double>(core.limits.size(), 0), meter);
      EXPECT_EQ(is_better, sketch.cost(state.choice()) < before);
      EXPECT_TRUE(sketch.is_feasible(state.choice())) << describe(sketch);
      num_better += is_better;
      // All nodes are connected, so each block is the whole core; one that is proven as it stands is the optimum.
      if (blocks.num_proven() > proven_before) {
        EXPECT_EQ(sketch.cost(state.choice()), sketch.cost(*best)) << describe(sketch);
      }
    }
    num_proven += blocks.num_proven();
    EXPECT_EQ(blocks.num_blocks(), 10u);
  }
  EXPECT_GT(num_better, 10);
  EXPECT_GT(num_proven, 100u);
}

}  // namespace
}  // namespace shardplan
