#include "planner/overlap/guessed_problem.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

#include "model/read_model.h"
#include "planner/overlap/bound_matrices.h"
#include "planner/overlap/searched_model.h"
#include "tests/fuzz/random_model.h"
#include "tests/support/planned_model.h"
#include "tests/support/problems.h"

namespace shardplan {
namespace {

constexpr const char* kSlowStarts =
    "shardplan: 1\ncluster: small\ndevice:\n  name: d\n  memory: {capacity: 1 GiB, bandwidth: 10 GB/s}\n"
    "  flops: {f32: 10 GFLOP/s, f64: 1 GFLOP/s, f16: 10 GFLOP/s, bf16: 10 GFLOP/s, i8: 10 GFLOP/s}\n  start: 1 us\n"
    "levels:\n  - {name: inner, count: 4, latency: 20 us, bandwidth: 10 GB/s}\n";

/// A random model with the times of its communications in buckets.
struct Joined {
  explicit Joined(const std::string& text)
      : planned(read_model_text(text, "m.yaml"), read_cluster_text(kSlowStarts, "small.yaml")) {
    RedistributionOptions options;
    options.pieces = planned.restrictions.pieces;
    joined =
        coarse_matrices(planned.problem, planned.graph, planned.versions, {*planned.costs, options, false, {}}).on_all;
  }
  SearchedModel model() const {
    return {planned.graph, planned.versions, planned.problem, planned.costs->mesh(), std::nullopt, &joined};
  }
  std::int64_t time(MatrixId matrix, EdgeId edge, const Choice& choice) const {
    const ProblemEdge& ends = planned.problem.problem.edges[edge];
    return planned.problem.problem.matrices[matrix].at(choice.strategy[ends.from].value(),
                                                       choice.strategy[ends.to].value());
  }

  PlannedModel planned;
  IdVector<EdgeId, MatrixId> joined;
};

// With every communication counted fully, a guess differs from the sum by the shares of start-ups alone.
TEST(GuessedProblemTest, CountsAShareOfTheStartUpsThatBucketsShare) {
  int shared = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    const std::string text = random_model(random, 2 + random.below(6));
    SCOPED_TRACE(text);
    const Joined made(text);
    const StrategyProblem& problem = made.planned.problem.problem;
    for (int i = 0; i < 5; ++i) {
      const Choice choice = random_choice(problem, random);
      const Evaluation own = evaluate(problem, choice);
      if (own.forbidden_count > 0) continue;
      Picoseconds start_ups = 0, edges = 0;
      for (const EdgeId edge : problem.edges.ids()) {
        const Picoseconds time = made.time(problem.edges[edge].matrix, edge, choice);
        const Picoseconds without = made.time(made.joined[edge], edge, choice);
        EXPECT_LE(without, time);
        start_ups += time - without;
        ++edges;
      }
      if (start_ups > 0) ++shared;
      const SearchedModel model = made.model();
      EXPECT_EQ(model.guessed_step({100, 100}, choice), own.value({}));
      EXPECT_EQ(model.guessed_step({100, 100, 100, 0}, choice), own.value({}) - start_ups);
      // Each edge's share is rounded up.
      const Picoseconds quarter = own.value({}) - start_ups + start_ups / 4;
      EXPECT_GE(model.guessed_step({100, 100, 100, 25}, choice), quarter);
      EXPECT_LE(model.guessed_step({100, 100, 100, 25}, choice), quarter + edges);
      for (const Guess& guess : {Guess{25, 100}, Guess{50, 0, 10, 20}, Guess{25, 50, 50, 0}}) {
        EXPECT_EQ(evaluate(model.guessed(guess), choice).value({}), model.guessed_step(guess, choice));
      }
    }
  }
  EXPECT_GT(shared, 20);
}

TEST(GuessedProblemTest, ForbiddenTimesStayForbidden) {
  EXPECT_EQ(with_start_ups(kForbidden, 5, 20), kForbidden);
  EXPECT_EQ(with_start_ups(105, 5, 20), 25);
  EXPECT_EQ(with_start_ups(5, 5, 20), 5);
  EXPECT_EQ(with_start_ups(5, 7, 20), 5);
}

}  // namespace
}  // namespace shardplan
