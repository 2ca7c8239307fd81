#include "planner/problem/plan_choice.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/read_model.h"
#include "tests/support/planned_model.h"

namespace shardplan {
namespace {

/// `shared` has two readers, which may read it in different layouts.
PlannedModel perceptron(const std::string& more) {
  return PlannedModel(read_model_text("shardplan: 1\n"
                                      "inputs: {x: [16, 32]}\n"
                                      "parameters: {first: [32, 32], shared: [32, 32]}\n"
                                      "operators:\n"
                                      "  a:    {op: MatMul, in: [x, first]}\n"
                                      "  b:    {op: ReLU, in: a}\n"
                                      "  c:    {op: MatMul, in: [b, shared]}\n"
                                      "  d:    {op: MatMul, in: [c, shared], transpose_b: true}\n"
                                      "  loss: {op: ReduceMean, in: d}\n"
                                      "loss: loss\n" +
                                          more,
                                      "m.yaml"),
                      "ascend-910", {{"a", 2}, {"b", 4}});
}

TEST(PlanChoiceTest, WeightsThatNothingUpdatesAreStoredAsTheyAreRead) {
  const PlannedModel model = perceptron("");
  Random random(3);
  int stored_smaller = 0, read_differently = 0;
  for (int round = 0; round < 100; ++round) {
    SCOPED_TRACE(round);
    const Choice choice = model.random_choice(random);
    const DeviceMesh& mesh = model.costs->mesh();
    const auto chosen = version_layouts(model.graph, model.versions, model.problem, choice, mesh);
    const Decisions decisions = decisions_of(model.graph, model.versions, model.problem, choice, mesh);
    for (const VersionId id : chosen.ids()) {
      const TensorVersion& version = model.versions.all[id];
      const GraphTensor& tensor = model.graph.tensor(version.tensor);
      const bool is_weight = version.kind == TensorVersion::Kind::kStored && tensor.kind == TensorKind::kParameter;
      if (!is_weight) {
        EXPECT_EQ(decisions.versions[id], chosen[id]);
      } else if (decisions.versions[id] != chosen[id]) {
        ++stored_smaller;
        EXPECT_LT(local_bytes(tensor.type, decisions.versions[id]), local_bytes(tensor.type, chosen[id]));
      } else {
        read_differently += tensor.name == "shared" ? 1 : 0;
      }
    }
    // It is a choice of the problem, and one that costs no more.
    const auto same = find_choice(model.versions, model.problem, decisions.strategies, decisions.versions);
    ASSERT_TRUE(same);
    const Evaluation before = evaluate(model.problem.problem, choice), after = evaluate(model.problem.problem, *same);
    EXPECT_LE(after.cost.communication, before.cost.communication);
    EXPECT_EQ(after.cost.computation, before.cost.computation);
    EXPECT_LE(after.peak_bytes, before.peak_bytes);
  }
  EXPECT_GT(stored_smaller, 20);
  EXPECT_GT(read_differently, 20);
}

TEST(PlanChoiceTest, TrainedWeightsAreStoredAsChosen) {
  const PlannedModel model = perceptron("training: {optimizer: sgd}\n");
  Random random(3);
  for (int round = 0; round < 20; ++round) {
    const Choice choice = model.random_choice(random);
    EXPECT_EQ(decisions_of(model.graph, model.versions, model.problem, choice, model.costs->mesh()).versions,
              version_layouts(model.graph, model.versions, model.problem, choice, model.costs->mesh()));
  }
}

}  // namespace
}  // namespace shardplan
