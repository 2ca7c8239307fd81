#include "solver/core/core_problem.h"

#include <gtest/gtest.h>

#include "tests/support/cores.h"

namespace shardplan {
namespace {

TEST(CoreProblemTest, EvaluateAddsCostsAndExcess) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const CoreSketch sketch = random_core(random);
    const CoreProblem core = core_of(sketch);
    for (int round = 0; round < 10; ++round) {
      const CoreChoice choice = random_choice(sketch, random);
      const CoreEvaluation evaluation = evaluate(core, choice);
      EXPECT_EQ(evaluation.cost, sketch.cost(choice)) << describe(sketch);
      EXPECT_EQ(evaluation.excess, sketch.excess(choice)) << describe(sketch);
    }
  }
}

TEST(CoreProblemTest, BothEndsSeeTheSameEdge) {
  Random random(7);
  const CoreSketch sketch = random_core(random, {.max_nodes = 8, .edge_percent = 80});
  const CoreProblem core = core_of(sketch);
  std::uint64_t entries = core.costs.size();
  for (std::uint32_t node = 0; node < core.num_nodes(); ++node) {
    for (std::uint32_t slot = core.first_neighbour[node]; slot < core.first_neighbour[node + 1]; ++slot) {
      const CoreNeighbour& neighbour = core.neighbours[slot];
      const CoreNeighbour& reverse = core.neighbours[neighbour.reverse];
      EXPECT_EQ(reverse.node, node);
      EXPECT_EQ(reverse.reverse, slot);
      for (std::size_t a = 0; a < core.num_values(node); ++a) {
        for (std::size_t b = 0; b < core.num_values(neighbour.node); ++b) {
          EXPECT_EQ(core.edge_cost(neighbour, a, b), core.edge_cost(reverse, b, a));
        }
      }
      const CoreMatrix& matrix = (*core.matrices)[neighbour.matrix];
      entries += core.num_values(node) + std::size_t{matrix.row_classes} * matrix.column_classes / 2;
    }
  }
  EXPECT_EQ(core.sweep_work, entries);
}

}  // namespace
}  // namespace shardplan
