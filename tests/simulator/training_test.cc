#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "graph/differentiate.h"
#include "model/read_model.h"
#include "planner/model_planner.h"
#include "simulator/execute/simulate.h"
#include "simulator/proof/prove.h"
#include "tests/support/proofs.h"
#include "tests/support/random_plan.h"

namespace shardplan {
namespace {

/// Random plans and the plans of all levels compute the same as one device, over two steps.
void prove_plans(const std::string& text, int random_plans) {
  const PlannedModel planned(read_model_text(text, "model.yaml"), "ascend-910", {{"x", 2}, {"y", 4}});
  const ProofOptions options{.validation = {.steps = 2}, .shrink = false};
  for (int i = 0; i < random_plans; ++i) {
    EXPECT_EQ(outcome(prove(random_plan(planned, static_cast<std::uint64_t>(i)), options)), "proven") << "plan " << i;
  }
  const ModelPlanner planning(std::make_shared<const Model>(planned.model), read_cluster("ascend-910"), {});
  for (const Level level : kLevels) {
    EXPECT_EQ(outcome(prove(planning.plan(level, "auto"), options)), "proven") << to_string(level);
  }
}

const std::string kNormalised = R"(
shardplan: 1
model: normalised
inputs: {image: [16, 2, 4, 4], label: {shape: [16], dtype: i32}}
operators:
  conv: {block: nn.Conv2d, in: image, out_channels: 8, kernel_size: 3}
  norm: {block: nn.BatchNorm2d, in: conv}
  relu: {op: ReLU, in: norm}
  mean: {op: ReduceMean, in: relu, axis: [2, 3]}
  fc:   {block: nn.Dense, in: mean, out_channels: 8}
  loss: {block: nn.SoftmaxCrossEntropyWithLogits, in: [fc, label], sparse: true, reduction: mean}
loss: loss
training: {optimizer: momentum, learning_rate: 0.1}
parallel: {mesh: {x: 2, y: 4}}
)";

TEST(TrainingTest, MovingStatisticsAreTrainedOnTheMeshAsOnOneDevice) { prove_plans(kNormalised, 6); }

// MindSpore: moving = momentum * moving + (1 - momentum) * that of the batch, the variance unbiased; momentum is 0.9.
TEST(TrainingTest, MovingStatisticsTakeATenthOfTheBatch) {
  const Model model = read_model_text(kNormalised, "model.yaml");
  const OperatorGraph graph = differentiate(model.graph, *model.training);
  const auto given = [&](TensorId id, std::uint64_t) { return draw_tensor(graph, id, 1, 0); };
  const ReferenceStep step = run_reference(graph, given, 1, 0, Precision::kFloat64);
  const auto values = [&](const char* name) { return step.tensors[*graph.find_tensor(name)]; };
  const auto updated = [&](const char* name) {
    for (const TensorId id : graph.tensors().ids()) {
      if (graph.tensor(id).updates == graph.find_tensor(name)) return step.tensors[id];
    }
    return TensorValues{};
  };
  const TensorValues x = values("conv"), mean = updated("norm.moving_mean"), variance = updated("norm.moving_variance");
  ASSERT_EQ(mean.size(), 8u);
  ASSERT_EQ(variance.size(), 8u);
  for (std::size_t c = 0; c < 8; ++c) {
    double sum = 0, squares = 0;
    const double count = 16 * 4 * 4;
    for (std::size_t n = 0; n < 16; ++n) {
      for (std::size_t i = 0; i < 16; ++i) {
        const double value = x[(n * 8 + c) * 16 + i];
        sum += value;
        squares += value * value;
      }
    }
    const double unbiased = (squares - sum * sum / count) / (count - 1);
    EXPECT_NEAR(mean[c], 0.9 * values("norm.moving_mean")[c] + 0.1 * sum / count, 1e-12);
    EXPECT_NEAR(variance[c], 0.9 * values("norm.moving_variance")[c] + 0.1 * unbiased, 1e-12);
  }
}

std::string with_table(const std::string& optimizer, bool sparse) {
  return fmt::format(R"(
shardplan: 1
model: tables
inputs: {{ids: {{shape: [16, 2], dtype: i32}}, other: {{shape: [16], dtype: i32}}, target: [16, 8]}}
operators:
  table: {{block: nn.Embedding, in: ids, vocab_size: 24, embedding_size: 8, sparse: {0}}}
  small: {{block: nn.Embedding, in: other, vocab_size: 3, embedding_size: 8, sparse: {0}}}
  sum:   {{op: ReduceSum, in: table, axis: [1]}}
  both:  {{op: Mul, in: [sum, small]}}
  error: {{op: Sub, in: [both, target]}}
  loss:  {{op: ReduceMean, in: error}}
loss: loss
training: {{optimizer: {1}, learning_rate: 0.1}}
parallel: {{mesh: {{x: 2, y: 4}}}}
)",
                     sparse, optimizer);
}

TEST(TrainingTest, RowsAreUpdatedOnTheMeshAsOnOneDevice) {
  for (const std::string optimizer : {"sgd", "adam"}) prove_plans(with_table(optimizer, true), 6);
}

// With sgd as by the whole gradient; adam leaves rows that are not looked up as they are.
TEST(TrainingTest, UpdatedRowsAreThoseOfTheWholeGradient) {
  for (const std::string optimizer : {"sgd", "adam"}) {
    std::vector<TensorValues> updated;
    std::set<std::int64_t> looked_up;
    TensorValues before;
    for (const bool sparse : {true, false}) {
      const Model model = read_model_text(with_table(optimizer, sparse), "model.yaml");
      const OperatorGraph graph = differentiate(model.graph, *model.training);
      const auto given = [&](TensorId id, std::uint64_t) { return draw_tensor(graph, id, 1, 0); };
      const ReferenceStep step = run_reference(graph, given, 1, 0, Precision::kFloat64);
      const TensorId table = *graph.find_tensor("table.embedding_table");
      before = step.tensors[table];
      for (const double index : step.tensors[*graph.find_tensor("ids")]) {
        looked_up.insert(static_cast<std::int64_t>(index));
      }
      for (const TensorId id : graph.tensors().ids()) {
        if (graph.tensor(id).updates == table) updated.push_back(step.tensors[id]);
      }
    }
    ASSERT_EQ(updated.size(), 2u);
    ASSERT_LT(looked_up.size(), 24u);
    for (std::size_t i = 0; i < updated[0].size(); ++i) {
      const bool is_kept = optimizer == "adam" && !looked_up.contains(static_cast<std::int64_t>(i / 8));
      EXPECT_NEAR(updated[0][i], is_kept ? before[i] : updated[1][i], 1e-12) << optimizer << " " << i;
    }
  }
}

std::string clipped(const std::string& norm) {
  return R"(
shardplan: 1
model: clipped
inputs: {x: [16, 8], label: {shape: [16], dtype: i32}}
operators:
  up:   {block: nn.Dense, in: x, out_channels: 16}
  relu: {op: ReLU, in: up}
  down: {block: nn.Dense, in: relu, out_channels: 8}
  loss: {block: nn.SoftmaxCrossEntropyWithLogits, in: [down, label], sparse: true, reduction: mean}
loss: loss
training: {optimizer: sgd, learning_rate: 1, clip_norm: )" +
         norm + "}\nparallel: {mesh: {x: 2, y: 4}}\n";
}

TEST(TrainingTest, ClippedGradientsAreThoseOfOneDevice) { prove_plans(clipped("0.01"), 8); }

// With sgd at learning rate 1 the step is the clipped gradient: scaled to the allowed norm, or the gradient itself.
TEST(TrainingTest, ClippingBoundsTheNormOfAllGradientsTogether) {
  const auto step_length = [](const std::string& norm) {
    const Model model = read_model_text(clipped(norm), "model.yaml");
    const OperatorGraph graph = differentiate(model.graph, *model.training);
    const auto given = [&](TensorId id, std::uint64_t) { return draw_tensor(graph, id, 1, 0); };
    const ReferenceStep step = run_reference(graph, given, 1, 0, Precision::kFloat64);
    double squares = 0;
    for (const TensorId id : graph.tensors().ids()) {
      const std::optional<TensorId>& old = graph.tensor(id).updates;
      if (!old) continue;
      for (std::size_t i = 0; i < step.tensors[id].size(); ++i) {
        squares += std::pow(step.tensors[id][i] - step.tensors[*old][i], 2);
      }
    }
    return std::sqrt(squares);
  };
  EXPECT_NEAR(step_length("0.01"), 0.01, 1e-9);
  EXPECT_NEAR(step_length("0.02"), 0.02, 1e-9);
  EXPECT_GT(step_length("1e9"), 0.02);
  EXPECT_NEAR(step_length("1e9"), step_length("2e9"), 1e-12);
}

/// The scale of random weights depends on the number of terms that their convolution sums up, so that training works
/// from the start.
TEST(TrainingTest, LeNetLearnsItsBatch) {
  PlanOptions options;
  options.overlap = false;
  const ModelPlanner planning(std::make_shared<const Model>(read_model("configs/lenet.yaml")),
                              read_cluster("ascend-910"), options);
  const Plan plan = planning.plan(Level::kSpeed, "propagation");
  const std::vector<SimulatedStep> loss = simulate(plan.program, *plan.graph, {.steps = 4}).front().steps;
  EXPECT_LT(loss.front().one_device, 2 * std::log(10));
  for (std::size_t step = 1; step < loss.size(); ++step) EXPECT_LT(loss[step].mesh, loss[step - 1].mesh) << step;
}

}  // namespace
}  // namespace shardplan
