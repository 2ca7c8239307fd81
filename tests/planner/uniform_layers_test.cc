// Uniform layers: the small problem has the costs of the whole one, and its choices are plans.
#include "planner/problem/uniform_layers.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/read_model.h"
#include "planner/job_cluster.h"
#include "planner/model_planner.h"
#include "planner/problem/plan_choice.h"
#include "solver/block_bound.h"
#include "solver/searches/search_list.h"
#include "tests/support/marked_model.h"
#include "tests/support/planned_model.h"

namespace shardplan {
namespace {

/// The choice of the free problem in which every operator and version has the same strategy as in the uniform one.
Choice free_choice(const PlannedModel& model, const ModelProblem& uniform, const Choice& choice) {
  Choice result;
  result.strategy.resize(model.problem.problem.nodes.size(), StrategyId(0));
  for (const OperatorId op : model.graph.operators().ids()) {
    EXPECT_EQ(*uniform.strategies[op], *model.problem.strategies[op]);
    result.strategy[model.problem.operator_nodes[op]] = choice.strategy[uniform.operator_nodes[op]];
  }
  for (const VersionId id : model.versions.all.ids()) {
    if (!model.problem.version_nodes[id]) continue;
    result.strategy[*model.problem.version_nodes[id]] = choice.strategy[*uniform.version_nodes[id]];
  }
  return result;
}

TEST(UniformLayersTest, EvaluatesAsTheFreeProblemDoes) {
  struct Case {
    std::string text;
    std::string cluster;
    std::vector<MeshAxis> axes;
  };
  std::vector<Case> cases;
  for (const char* training : {"", ", mixed_precision: f16, clip_norm: 1", ", micro_batches: 2",
                               ", recompute: [layers.*]", ", recompute: [layers.*.gelu, layers.*.drop]"}) {
    cases.push_back({layered_model(training), "ascend-910", {{"dp", 2}, {"mp", 4}}});
  }
  for (Case& item : cases) item.text.replace(item.text.find("L: 3"), 4, "L: 7");
  for (const Case& item : cases) {
    const PlannedModel model(read_model_text(item.text, "m.yaml"), item.cluster, item.axes);
    const ModelProblem uniform =
        with_uniform_layers(model.problem, model.graph, model.versions, repeat_classes(model.graph));
    check_problem(uniform.problem);
    EXPECT_LT(2 * uniform.problem.nodes.size(), model.problem.problem.nodes.size());
    EXPECT_LT(uniform.problem.memory_limits.size(), model.problem.problem.memory_limits.size());
    Random random(11);
    for (int round = 0; round < 20; ++round) {
      Choice choice;
      for (const NodeId node : uniform.problem.nodes.ids()) {
        choice.strategy.push_back(StrategyId(random.below(uniform.problem.num_strategies(node))));
      }
      const Evaluation found = evaluate(uniform.problem, choice);
      const Evaluation expected = evaluate(model.problem.problem, free_choice(model, uniform, choice));
      EXPECT_EQ(found.peak_bytes, expected.peak_bytes);
      EXPECT_EQ(found.worst_excess, expected.worst_excess);
      EXPECT_EQ(found.forbidden_count == 0, expected.forbidden_count == 0);
      if (expected.forbidden_count == 0) {
        EXPECT_EQ(found.cost, expected.cost);
      }
    }
    SearchOptions options;
    options.limits.work = 50'000'000;
    const PlanResult result = make_search(kDefaultSearch)->search(uniform.problem, options);
    ASSERT_TRUE(result.choice.has_value());
    const Choice expanded = free_choice(model, uniform, *result.choice);
    EXPECT_EQ(evaluate(model.problem.problem, expanded).cost, evaluate(uniform.problem, *result.choice).cost);
    EXPECT_EQ(evaluate(model.problem.problem, expanded).peak_bytes,
              evaluate(uniform.problem, *result.choice).peak_bytes);
    // And back: the plan's decisions are this choice, in either problem.
    IdVector<OperatorId, Strategy> strategies;
    for (const OperatorId op : model.graph.operators().ids()) {
      strategies.push_back(uniform.strategy(op, *result.choice));
    }
    const auto layouts = version_layouts(model.graph, model.versions, uniform, *result.choice, model.costs->mesh());
    EXPECT_EQ(find_choice(model.versions, uniform, strategies, layouts), result.choice);
    EXPECT_EQ(find_choice(model.versions, model.problem, strategies, layouts), expanded);
  }
}

PlanOptions uniform_options(std::uint64_t work = 50'000'000) {
  PlanOptions options;
  options.uniform_layers = true;
  options.work_limit = work;
  return options;
}

TEST(UniformLayersTest, PlansHaveOneStrategyForAllCopies) {
  const auto model = std::make_shared<const Model>(
      read_model_text(layered_model(", mixed_precision: f16") + "cluster: ascend-910\n", "m.yaml"));
  const ModelPlanner planner(model, job_cluster(*model, {}).cluster, uniform_options(30'000'000));
  const RepeatClasses classes = repeat_classes(planner.graph());
  for (const Level level : kLevels) {
    SCOPED_TRACE("level " + std::to_string(number_of(level)));
    const Plan plan = planner.plan(level, kDefaultSearch);
    ASSERT_FALSE(plan.strategies.empty());
    EXPECT_TRUE(plan.fits());
    ASSERT_TRUE(plan.free_bound.has_value());
    EXPECT_LE(plan.free_bound->amount, plan.bound.amount);
    EXPECT_LE(plan.bound.amount, plan.cost.amount);
    // Copies with different candidates are decided separately; there are few.
    std::map<RepeatClassId, Strategy> first;
    std::size_t others = 0;
    for (const OperatorId op : planner.graph().operators().ids()) {
      const Strategy& strategy = first.try_emplace(classes.operators[op], plan.strategies[op]).first->second;
      others += strategy == plan.strategies[op] ? 0 : 1;
    }
    EXPECT_LE(others, planner.graph().operators().size() / 10);
  }
}

// A deep model is planned like a shallow one: the same layers, and the times of a chain of them.
TEST(UniformLayersTest, TheProblemDoesNotGrowWithTheNumberOfLayers) {
  const auto problem_of = [](const char* layers) {
    std::string text = layered_model(", mixed_precision: f16, clip_norm: 1");
    text.replace(text.find("L: 3"), 4, layers);
    const PlannedModel model(read_model_text(text, "m.yaml"), "ascend-910", {{"dp", 2}, {"mp", 4}});
    return with_uniform_layers(model.problem, model.graph, model.versions, repeat_classes(model.graph)).problem;
  };
  const StrategyProblem few = problem_of("L: 8"), many = problem_of("L: 60");
  EXPECT_EQ(few.nodes.size(), many.nodes.size());
  EXPECT_EQ(few.edges.size(), many.edges.size());
  EXPECT_EQ(few.memory_limits.size(), many.memory_limits.size());
}

// Many free layers are searched starting from the best uniform choice: hardly any work suffices to be as good.
TEST(UniformLayersTest, ManyFreeLayersAreNoWorseThanUniformOnes) {
  std::string text = layered_model("") + "parallel: {mesh: {dp: 2, mp: 4}}\ncluster: ascend-910\n";
  text.replace(text.find("L: 3"), 4, "L: 400");
  const auto model = std::make_shared<const Model>(read_model_text(text, "m.yaml"));
  const auto planned = [&](bool uniform) {
    PlanOptions options = uniform_options(300'000);
    options.uniform_layers = uniform;
    return ModelPlanner(model, job_cluster(*model, {}).cluster, options).plan(Level::kSpeed, kDefaultSearch);
  };
  const Plan uniform = planned(true), free = planned(false);
  EXPECT_FALSE(uniform.free_bound.has_value());  // for this many operators it is not computed
  EXPECT_LE(free.time.additive(), uniform.time.additive());
  EXPECT_LE(free.bound.amount, uniform.cost.amount);
}

// What is shared between layers costs next to nothing: a few of them give as tight a bound as the search of all does.
TEST(UniformLayersTest, AFewBlocksBoundAllFreeLayers) {
  for (const char* training : {"", ", mixed_precision: f16, clip_norm: 1", ", recompute: [layers.*]"}) {
    SCOPED_TRACE(training);
    std::string text = layered_model(training);
    text.replace(text.find("L: 3"), 4, "L: 40");
    const PlannedModel model(read_model_text(text, "m.yaml"), "ascend-910", {{"dp", 2}, {"mp", 4}});
    const auto ties = uniform_ties(model.problem, model.graph, model.versions, repeat_classes(model.graph));
    const auto search = make_search(kDefaultSearch);
    for (const Objective& objective : {Objective{1, 1}, Objective{0, 1}, Objective{1, 1000}}) {
      SearchOptions options;
      options.objective = objective;
      options.limits.work = 200'000'000;
      const PlanResult whole = search->search(model.problem.problem, options);
      const std::optional<BlockBound> blocks = block_bound(model.problem.problem, ties, *search, options);
      ASSERT_TRUE(whole.choice && blocks);
      EXPECT_LE(blocks->bound, whole.cost);
      EXPECT_GE(static_cast<double>(blocks->bound), 0.999 * static_cast<double>(whole.lower_bound));
      EXPECT_LE(blocks->different, 3u);
    }
  }
}

// Then free layers take the strategies of uniform ones, and are not searched themselves.
TEST(UniformLayersTest, ManyFreeLayersAreProvenByBlocks) {
  std::string text = layered_model("") + "parallel: {mesh: {dp: 2, mp: 4}}\ncluster: ascend-910\n";
  text.replace(text.find("L: 3"), 4, "L: 400");
  const auto model = std::make_shared<const Model>(read_model_text(text, "m.yaml"));
  for (const Level level : {Level::kRatio, Level::kSpeed}) {
    SCOPED_TRACE("level " + std::to_string(number_of(level)));
    const auto planned = [&](bool uniform) {
      PlanOptions options;
      options.level = level;
      options.overlap = false;
      options.uniform_layers = uniform;
      return ModelPlanner(model, job_cluster(*model, {}).cluster, options).plan(level, kDefaultSearch);
    };
    const Plan uniform = planned(true), free = planned(false);
    const bool is_by_blocks =
        std::any_of(free.statistics.begin(), free.statistics.end(),
                    [](const StageStatistics& stage) { return stage.stage == "blocks of layers"; });
    EXPECT_TRUE(is_by_blocks);
    EXPECT_LE(free.bound.amount, free.cost.amount);
    EXPECT_LE(static_cast<double>(free.cost.amount - free.bound.amount), 3e-4 * static_cast<double>(free.bound.amount));
    EXPECT_EQ(free.cost.amount, uniform.cost.amount);
  }
}

TEST(UniformLayersTest, AUserStrategyForOneCopyLeavesItAlone) {
  std::string text = layered_model("");
  text +=
      "strategies: {layers.1.gelu: {in_strategy: ((1, 4),)}}\nparallel: {mesh: {dp: 2, mp: 4}}\ncluster: ascend-910\n";
  const auto model = std::make_shared<const Model>(read_model_text(text, "m.yaml"));
  PlanOptions options = uniform_options();
  options.level = Level::kSpeed;
  const ModelPlanner planner(model, job_cluster(*model, {}).cluster, options);
  const Plan plan = planner.plan(Level::kSpeed, kDefaultSearch);
  const auto strategy = [&](const char* name) { return plan.strategies[*planner.graph().find_operator(name)]; };
  EXPECT_EQ(num_pieces(strategy("layers.1.gelu").factors[1]), 4);
  EXPECT_EQ(strategy("layers.0.gelu"), strategy("layers.2.gelu"));
}

TEST(UniformLayersTest, AForcedStrategyIsThatOfAllCopies) {
  const auto model = std::make_shared<const Model>(
      read_model_text(layered_model("") + "parallel: {mesh: {dp: 2, mp: 4}}\ncluster: ascend-910\n", "m.yaml"));
  const auto forced = [&](bool uniform) {
    PlanOptions options = uniform_options();
    options.uniform_layers = uniform;
    const ModelPlanner planner(model, job_cluster(*model, {}).cluster, options);
    const OperatorId op = *planner.graph().find_operator("layers.1.gelu");
    std::vector<Strategy> strategies = planner.alternatives(op);
    return planner.forced(planner.plan(Level::kSpeed, kDefaultSearch), op, strategies);
  };
  const auto all = forced(true), one = forced(false);
  ASSERT_EQ(all.size(), one.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(all[i].has_value(), one[i].has_value());
    if (all[i]) {
      EXPECT_GE(all[i]->time.additive(), one[i]->time.additive());
    }
  }
}

}  // namespace
}  // namespace shardplan
