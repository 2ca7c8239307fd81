#include "planner/overlap/step_proof.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

#include "model/read_model.h"
#include "tests/fuzz/random_model.h"
#include "tests/support/planned_model.h"
#include "tests/support/problems.h"

namespace shardplan {
namespace {

constexpr const char* kCluster =
    "shardplan: 1\ncluster: small\ndevice:\n  name: d\n  memory: {capacity: 1 GiB, bandwidth: 10 GB/s}\n"
    "  flops: {f32: 10 GFLOP/s, f64: 1 GFLOP/s, f16: 10 GFLOP/s, bf16: 10 GFLOP/s, i8: 10 GFLOP/s}\n  start: 1 us\n"
    "levels:\n  - {name: inner, count: 4, latency: 1 us, bandwidth: 100 MB/s}\n";

/// The bound if nothing joins, with all nodes free.
struct Bounded {
  explicit Bounded(const PlannedModel& planned)
      : ties([&] {
          IdVector<NodeId, NodeId> own;
          for (const NodeId node : planned.problem.problem.nodes.ids()) own.push_back(node);
          return own;
        }()),
        bound(planned.graph, planned.versions, planned.problem, matrices(planned.problem.problem), ties, {{}}, false) {}

  static StepBound::Matrices matrices(const StrategyProblem& problem) {
    StepBound::Matrices own;
    for (const ProblemEdge& edge : problem.edges) {
      own.on_all.push_back(edge.matrix);
      own.joins.push_back(0);
    }
    return own;
  }

  IdVector<NodeId, NodeId> ties;
  StepBound bound;
};

TEST(StepProofTest, NoChoiceHasASmallerSumAndRoundsRaiseTheBound) {
  int models = 0, raised = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    const std::string text = random_model(random, 1 + random.below(8));
    SCOPED_TRACE(text);
    const PlannedModel planned(read_model_text(text, "m.yaml"), read_cluster_text(kCluster, "small.yaml"));
    const StrategyProblem& problem = planned.problem.problem;
    double choices = 1;
    for (const NodeId node : problem.nodes.ids()) choices *= static_cast<double>(problem.num_strategies(node));
    if (choices > 10'000) continue;
    ++models;
    const Bounded bounded(planned);
    StepProof proof{bounded.bound, std::nullopt, {}, Picoseconds{1} << 60, 0, 1};
    proof.options.level = Level::kSpeed;
    const Choice start = planned.random_choice(random);
    if (evaluate(problem, start).forbidden_count > 0) continue;
    const std::optional<LevelResult> first = least_sum(proof, bounded.bound.weights_of_slowdown(), start);
    ASSERT_TRUE(first && first->choice);
    proof.known = first->bound.amount;
    proof.most_rounds = 8;
    // As for any plan, the step is no less than any weighted sum of its choice.
    const StepBound::Times times = bounded.bound.times_of(*first->choice);
    proof.shortest = 0;
    for (const OverlapWeights& weights : bounded.bound.weights_at(times)) {
      proof.shortest = std::max(proof.shortest, StepBound::sum(weights, times));
    }
    const ProvenStep proven = prove_step(proof, {*first->choice});
    EXPECT_GE(proven.bound, proof.known);
    EXPECT_LE(proven.rounds, proof.most_rounds);
    if (proven.bound > proof.known) ++raised;
    for_each_choice(problem, [&](const Choice& choice) {
      if (evaluate(problem, choice).forbidden_count > 0) return;
      ASSERT_GE(StepBound::sum(proven.weights, bounded.bound.times_of(choice)), proven.bound);
    });
  }
  EXPECT_GT(models, 10);
  EXPECT_GT(raised, 0);
}

TEST(StepProofTest, MeansOfTimesAndWeightsAreMeans) {
  const StepBound::Times a{{10, 20}, {4}, {{8}}}, b{{30, 0}, {0}, {{0}}};
  const StepBound::Times mixed = StepBound::mean({a, b}, {3, 1});
  EXPECT_EQ(mixed.kernels, (std::vector<Picoseconds>{15, 15}));
  EXPECT_EQ(mixed.items, (std::vector<Picoseconds>{3}));
  EXPECT_EQ(mixed.on_part, (std::vector<std::vector<Picoseconds>>{{6}}));
}

}  // namespace
}  // namespace shardplan
