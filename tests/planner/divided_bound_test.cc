// The bound of a step divided among workers of several devices, compared with every choice of small graphs and many
// choices of others.

#include "planner/divided_bound.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>

#include "base/random.h"
#include "model/read_model.h"
#include "planner/model_planner.h"
#include "planner/placed_plan.h"
#include "tests/support/planned_model.h"

namespace shardplan {
namespace {

/// A chain of products and activations on two or three workers, forward or trained.
std::string chain_on_workers(Random& random, bool is_tiny) {
  const int workers = 2 + static_cast<int>(random.below(2));
  const std::size_t length = is_tiny ? random.below(2) : 2 + random.below(4);
  const bool is_training = !is_tiny && random.below(2) == 0;
  const char* const micro_batches = random.below(2) == 0 ? "1" : "4";
  std::string parameters = "p: [C, C]", operators = "  o: {op: MatMul, in: [x, p], place: {rank: 0}}\n", last = "o";
  for (std::size_t i = 0; i < length; ++i) {
    const std::string place = fmt::format("place: {{rank: {}}}", random.below(static_cast<std::uint64_t>(workers)));
    const std::string name = fmt::format("o{}", i);
    if (random.below(2) == 0) {
      operators += fmt::format("  {}: {{op: Tanh, in: {}, {}}}\n", name, last, place);
    } else {
      parameters += fmt::format(", p{}: [C, C]", i);
      operators += fmt::format("  {}: {{op: MatMul, in: [{}, p{}], {}}}\n", name, last, i, place);
    }
    last = name;
  }
  return fmt::format(
      "shardplan: 1\ndims: {{B: {}, C: {}}}\ninputs: {{x: [B, C]}}\nparameters: {{{}}}\noperators:\n{}"
      "  loss: {{op: ReduceMean, in: {}, place: {{rank: {}}}}}\nloss: loss\n{}parallel: {{device_num: {}, workers: "
      "{}}}\n",
      64 << random.below(6), 64 << random.below(5), parameters, operators, last, workers - 1,
      is_training ? fmt::format("training: {{optimizer: momentum, micro_batches: {}}}\n", micro_batches) : "",
      8 * workers, workers);
}

struct Divided {
  explicit Divided(const std::string& text)
      : planned(read_model_text(text, "m.yaml"), "dgx-a100", {{"x", 8}}),
        workers(static_cast<int>(planned.model.parallel.workers->value)),
        cluster(take_devices(read_cluster("dgx-a100x4"), 8 * workers)) {}

  Picoseconds step(const Choice& choice) const {
    Plan plan;
    plan.model = std::make_shared<const Model>(planned.model);
    plan.graph = std::make_shared<const OperatorGraph>(planned.graph);
    plan.mesh = planned.costs->mesh();
    plan.options.level = Level::kSpeed;
    plan.usable = kUnlimitedBytes;
    plan.program = planned.lowered(choice);
    divide(plan, planned.graph, cluster, workers);
    return plan.time.step();
  }

  /// True if there were few enough choices to try all.
  bool for_every_choice(const std::function<void(const Choice&)>& visit) const {
    const StrategyProblem& problem = planned.problem.problem;
    double choices = 1;
    for (const NodeId node : problem.nodes.ids()) choices *= static_cast<double>(problem.num_strategies(node));
    if (choices > 5000) return false;
    Choice choice;
    for (std::size_t i = 0; i < problem.nodes.size(); ++i) choice.strategy.push_back(StrategyId(0));
    for (;;) {
      if (evaluate(problem, choice).forbidden_count == 0) visit(choice);
      std::size_t at = 0;
      for (; at < problem.nodes.size(); ++at) {
        const NodeId node(at);
        const std::size_t next = choice.strategy[node].value() + 1;
        choice.strategy[node] = StrategyId(next < problem.num_strategies(node) ? next : 0);
        if (next < problem.num_strategies(node)) break;
      }
      if (at == problem.nodes.size()) return true;
    }
  }

  PlannedModel planned;
  int workers;
  Cluster cluster;
};

TEST(DividedBoundTest, NoChoiceOfASmallGraphTakesLess) {
  int seen = 0;
  for (std::uint64_t seed = 1; seed <= 60 && seen < 4; ++seed) {
    Random random(seed);
    const std::string text = chain_on_workers(random, true);
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    const Divided divided(text);
    const Picoseconds bound = least_divided_step(divided.planned.graph, divided.planned.problem, divided.workers);
    EXPECT_GT(bound, 0);
    Picoseconds best = std::numeric_limits<Picoseconds>::max();
    if (!divided.for_every_choice([&](const Choice& choice) { best = std::min(best, divided.step(choice)); })) continue;
    ++seen;
    EXPECT_LE(bound, best);
  }
  EXPECT_GE(seen, 1) << "graphs small enough to try every choice";
}

/// If workers wait for each other and send only single numbers, hardly anything but computation counts.
TEST(DividedBoundTest, IsNearWhereComputationIsAll) {
  const Divided divided(R"(shardplan: 1
dims: {B: 65536, C: 8192}
inputs: {x: [B, C]}
parameters: {p: [C, C]}
operators:
  o:    {op: MatMul, in: [x, p], place: {rank: 0}}
  mean: {op: ReduceMean, in: o, place: {rank: 0}}
  loss: {op: Square, in: mean, place: {rank: 1}}
loss: loss
parallel: {device_num: 16, workers: 2}
)");
  const Picoseconds bound = least_divided_step(divided.planned.graph, divided.planned.problem, divided.workers);
  Picoseconds best = std::numeric_limits<Picoseconds>::max();
  ASSERT_TRUE(divided.for_every_choice([&](const Choice& choice) { best = std::min(best, divided.step(choice)); }));
  EXPECT_LE(bound, best);
  EXPECT_GT(bound, best / 10 * 9);
}

TEST(DividedBoundTest, NoRandomChoiceTakesLess) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Random random(seed);
    const std::string text = chain_on_workers(random, false);
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    const Divided divided(text);
    const Picoseconds bound = least_divided_step(divided.planned.graph, divided.planned.problem, divided.workers);
    for (int i = 0; i < 10; ++i) {
      const Choice choice = divided.planned.random_choice(random);
      if (evaluate(divided.planned.problem.problem, choice).forbidden_count > 0) continue;
      EXPECT_LE(bound, divided.step(choice));
    }
  }
}

TEST(DividedBoundTest, APlanHasIt) {
  Random random(3);
  const auto model = std::make_shared<const Model>(read_model_text(chain_on_workers(random, false), "m.yaml"));
  const Cluster cluster = take_devices(read_cluster("dgx-a100x4"), model->parallel.device_num->value);
  PlanOptions options;
  options.level = Level::kSpeed;
  const Plan plan = ModelPlanner(model, cluster, options).plan(Level::kSpeed, "auto");
  EXPECT_GT(plan.bound.amount, 0);
  EXPECT_LE(plan.bound.amount, plan.cost.amount);
}

/// Orders of this many runs are not made, and a notice says so.
TEST(DividedBoundTest, MicroBatchesThatDoNotOverlapAreSaid) {
  const auto notices = [](const std::string& micro_batches) {
    const auto model = std::make_shared<const Model>(read_model_text(
        "shardplan: 1\ndims: {B: 262144, C: 4}\ninputs: {x: [B, C]}\nparameters: {p: [C, C], q: [C, C]}\noperators:\n"
        "  a: {op: MatMul, in: [x, p], place: {rank: 0}}\n  b: {op: MatMul, in: [a, q], place: {rank: 1}}\n"
        "  loss: {op: ReduceMean, in: b, place: {rank: 1}}\nloss: loss\n"
        "training: {optimizer: sgd, micro_batches: " +
            micro_batches + "}\nparallel: {device_num: 2}\n",
        "m.yaml"));
    PlanOptions options;
    options.level = Level::kSpeed;
    std::string all;
    for (const std::string& text :
         ModelPlanner(model, take_devices(read_cluster("dgx-a100"), 2), options).plan(Level::kSpeed, "auto").notices) {
      all += text + "\n";
    }
    return all;
  };
  EXPECT_NE(notices("262144").find("micro-batches follow each other without overlap: 262144 of them"),
            std::string::npos);
  EXPECT_EQ(notices("4").find("without overlap"), std::string::npos);
}

}  // namespace
}  // namespace shardplan
