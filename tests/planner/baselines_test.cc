// The plans that a plan is compared with (planner/baselines.cc).

#include <gtest/gtest.h>

#include "model/read_model.h"
#include "planner/model_planner.h"

namespace shardplan {
namespace {

constexpr std::int64_t kBatch = 64, kIn = 32, kOut = 16;

ModelPlanner planner(const PlanOptions& options = {}) {
  return {std::make_shared<const Model>(read_model_text(R"(
shardplan: 1
inputs: {x: [64, 32]}
operators:
  fc:   {block: nn.Dense, in: x, out_channels: 16, has_bias: false}
  loss: {op: ReduceSum, in: fc}
loss: loss
training: {optimizer: sgd, learning_rate: 0.1}
)",
                                                        "m.yaml")),
          read_cluster("ascend-910"), options};
}

/// Of a model on eight A100.
ModelPlanner planner_of(const std::string& text) {
  return {
      std::make_shared<const Model>(read_model_text("shardplan: 1\n" + text, "m.yaml")), read_cluster("dgx-a100"), {}};
}

std::string layout_of(const ModelPlanner& made, const Baseline& baseline, const std::string& op, std::size_t operand) {
  const OperatorId id = *made.graph().find_operator(op);
  return to_string(operand_layout(made.graph().operation(id), baseline.strategies[id], made.mesh(), operand),
                   made.mesh());
}

TEST(BaselinesTest, OneDeviceDoesAllAndCommunicatesNothing) {
  const ModelPlanner made = planner();
  const Baseline alone = made.stand_alone();
  EXPECT_EQ(alone.name, "stand_alone");
  EXPECT_EQ(alone.time.communication, 0);
  EXPECT_TRUE(alone.fits);
  EXPECT_EQ(layout_of(made, alone, "fc.matmul", 0), "[{}, {}]");
  // At least the batch and the weight are in memory at the same time.
  EXPECT_GE(alone.peak, 4 * (kBatch * kIn + kIn * kOut));
}

// The batch over all devices, the weight replicated; besides the loss only its gradient is summed.
TEST(BaselinesTest, DataParallelismSumsTheGradient) {
  const ModelPlanner made = planner();
  const Baseline parallel = made.data_parallel();
  EXPECT_EQ(parallel.name, "data_parallel");
  EXPECT_EQ(layout_of(made, parallel, "fc.matmul", 0), "[{pcie, hccs}, {}]");
  EXPECT_EQ(layout_of(made, parallel, "fc.matmul", 1), "[{}, {}]");
  const std::vector<AxisRef> all = {made.mesh().whole(0), made.mesh().whole(1)};
  const Picoseconds gradient = made.costs().collectives()->time(CollectiveKind::kAllReduce, all, 4 * kIn * kOut);
  EXPECT_GE(parallel.time.communication, gradient);
  EXPECT_LE(parallel.time.communication, 2 * gradient);
  EXPECT_LT(parallel.time.computation, made.stand_alone().time.computation);
}

// Each device keeps the cache of its own sequences, written in place: nothing is copied or sent. The same holds for a
// model that asks for data parallelism.
// The mode of that name decides every layout by itself. The weight that two products read has two gradients, which are
// added before they are reduced.
TEST(BaselinesTest, DataParallelismReducesTheSumOfMicroBatchesOnce) {
  const std::string text = R"(
dims: {B: 256}
inputs: {x: [B, 512]}
parameters: {w: [512, 512]}
operators:
  a:    {op: MatMul, in: [x, w]}
  r:    {op: ReLU, in: a}
  b:    {op: MatMul, in: [r, w]}
  loss: {op: ReduceMean, in: b}
loss: loss
training: {optimizer: adamw, mixed_precision: bf16, micro_batches: 4}
)";
  const ModelPlanner by_mode = planner_of(text + "parallel: {parallel_mode: data_parallel}\n");
  const StepTime expected = by_mode.plan(Level::kRatio, "auto").time;
  EXPECT_EQ(planner_of(text).data_parallel().time.communication, expected.communication);
}

std::string of_two_bytes(const std::string& training, const std::string& parallel) {
  return "dims: {B: 64}\ninputs: {x: [B, 512]}\nparameters: {w: [512, 512]}\noperators:\n"
         "  a:    {op: MatMul, in: [x, w]}\n  loss: {op: ReduceMean, in: a}\nloss: loss\n"
         "training: {optimizer: adamw, mixed_precision: bf16" +
         training + "}\nparallel: {" + parallel + "}\n";
}

// A mode that decides the type in which gradients are summed is compared with data parallelism of the same type.
TEST(BaselinesTest, DataParallelismSumsGradientsInTheTypeOfTheMode) {
  const auto both = [](const std::string& parallel) {
    const ModelPlanner made = planner_of(of_two_bytes("", parallel));
    return std::pair(made.plan(Level::kRatio, "auto").time.communication, made.data_parallel().time.communication);
  };
  const auto [wide, like_wide] = both("parallel_mode: data_parallel");
  const auto [narrow, like_narrow] = both("parallel_mode: data_parallel, gradient_fp32_sync: false");
  EXPECT_EQ(wide, like_wide);
  EXPECT_EQ(narrow, like_narrow);
  EXPECT_LT(narrow, wide);
  EXPECT_EQ(both("parallel_mode: semi_auto_parallel").second, wide);
  EXPECT_EQ(both("parallel_mode: auto_parallel").second, narrow) << "there the search decides";
}

// One device has nothing to reduce, so gradients need no conversion before they are added.
TEST(BaselinesTest, StagesOfZeroCostOneDeviceNothing) {
  const auto alone = [](const std::string& zero) {
    return planner_of(of_two_bytes(", micro_batches: 2", "parallel_mode: semi_auto_parallel, zero: " + zero))
        .stand_alone()
        .time.computation;
  };
  EXPECT_NEAR(static_cast<double>(alone("2")), static_cast<double>(alone("0")), 1000);
}

TEST(BaselinesTest, DataParallelismDividesACache) {
  for (const std::string mode : {"", "parallel: {parallel_mode: data_parallel, mesh: {dp: 8}}\n"}) {
    const ModelPlanner made = planner_of(
        "inputs: {x: [16, 4, 1, 32], at: {shape: [16], dtype: i32}}\n"
        "parameters: {cache: {shape: [16, 4, 512, 32], requires_grad: false}}\n"
        "operators:\n"
        "  keys:   {op: KVCacheScatterUpdate, in: [cache, at, x]}\n"
        "  scores: {op: MatMul, in: [x, keys], transpose_b: true}\n" +
        mode);
    const Baseline parallel = made.data_parallel();
    EXPECT_EQ(parallel.time.communication, 0) << mode;
    constexpr Bytes kCache = 4 * 2 * 4 * 512 * 32, kOthers = 4 * (2 * 4 * 32 + 2 * 4 * 512);
    EXPECT_EQ(parallel.peak, kCache + kOthers) << mode;
    const Plan plan = made.plan(Level::kSpeed, "auto");
    EXPECT_LE(plan.time.step(), parallel.time.step()) << mode;
    if (!mode.empty()) {
      EXPECT_EQ(plan.memory.peak, parallel.peak);
    }
  }
}

// So does a cache that is only read: keys and values of what a decoder looks back at, or of a prompt's beginning.
TEST(BaselinesTest, DataParallelismDividesACacheThatIsOnlyRead) {
  for (const std::string mode : {"", "parallel: {parallel_mode: data_parallel, mesh: {dp: 8}}\n"}) {
    const ModelPlanner made = planner_of(
        "inputs: {x: [16, 4, 1, 32]}\n"
        "parameters:\n"
        "  keys:   {shape: [16, 4, 512, 32], requires_grad: false}\n"
        "  values: {shape: [16, 4, 512, 32], requires_grad: false}\n"
        "operators: {context: {op: FlashAttention, in: [x, keys, values]}}\n" +
        mode);
    const Baseline parallel = made.data_parallel();
    EXPECT_EQ(parallel.time.communication, 0) << mode;
    constexpr Bytes kCaches = 4 * 2 * 2 * 4 * 512 * 32, kOthers = 4 * 2 * (2 * 4 * 32 + 4);
    EXPECT_GE(parallel.peak, kCaches) << mode;
    EXPECT_LE(parallel.peak, kCaches + kOthers) << mode;
  }
}

// When and where it is computed makes no difference, neither to it nor to the plan.
TEST(BaselinesTest, DataParallelismBesideThePlanIsTheSame) {
  for (const Level level : {Level::kRatio, Level::kMemory, Level::kSpeed}) {
    const ModelPlanner made = planner(), beside = planner();
    const Plan plan = made.plan(level, "auto");
    const Baseline parallel = made.data_parallel();
    beside.begin_data_parallel();
    const Plan plan_beside = beside.plan(level, "auto");
    EXPECT_EQ(plan_beside.strategies, plan.strategies);
    EXPECT_EQ(plan_beside.versions, plan.versions);
    EXPECT_EQ(plan_beside.time.step(), plan.time.step());
    EXPECT_EQ(beside.data_parallel().strategies, parallel.strategies);
    EXPECT_EQ(beside.data_parallel().time.step(), parallel.time.step());
    EXPECT_EQ(beside.data_parallel().peak, parallel.peak);
  }
  planner().begin_data_parallel();  // nobody asks for the result
}

// Each alternative is a plan with that strategy: none is faster than the plan of level 2, and one is as fast.
TEST(BaselinesTest, ForcedStrategiesAreNoFasterThanThePlan) {
  PlanOptions options;
  options.overlap = false;
  const ModelPlanner made = planner(options);
  const Plan plan = made.plan(Level::kSpeed, "auto");
  const OperatorId fc = *made.graph().find_operator("fc.matmul");
  const std::vector<Strategy> strategies = made.alternatives(fc);
  ASSERT_GT(strategies.size(), 4u);
  const std::vector<std::optional<Baseline>> forced = made.forced(plan, fc, strategies);
  ASSERT_EQ(forced.size(), strategies.size());
  bool is_met = false;
  for (std::size_t i = 0; i < forced.size(); ++i) {
    if (!forced[i]) continue;
    EXPECT_GE(forced[i]->time.additive(), plan.bound.amount);
    is_met = is_met || sharded_alike(strategies[i], plan.strategies[fc]);
    if (sharded_alike(strategies[i], plan.strategies[fc])) {
      EXPECT_EQ(forced[i]->time.additive(), plan.time.additive());
    }
  }
  EXPECT_TRUE(is_met);
}

// The least sum need not overlap best: with communication hidden, too, an alternative is never shown longer than the
// plan with nothing else changed.
TEST(BaselinesTest, ForcedStrategiesAreNoSlowerThanWithTheRestUnchanged) {
  const ModelPlanner made = planner();
  const Plan plan = made.plan(Level::kSpeed, "auto");
  const OperatorId fc = *made.graph().find_operator("fc.matmul");
  std::vector<Strategy> strategies = made.alternatives(fc);
  strategies.push_back(plan.strategies[fc]);
  const std::vector<std::optional<Baseline>> forced = made.forced(plan, fc, strategies);
  for (std::size_t i = 0; i < forced.size(); ++i) {
    ASSERT_TRUE(forced[i]);
    Decisions decisions{plan.strategies, plan.versions};
    decisions.strategies[fc] = strategies[i];
    Plan like;
    like.options = plan.options;
    like.usable = plan.usable;
    EXPECT_LE(forced[i]->time.step(), made.decided(decisions, like).time.step()) << "strategy " << i;
  }
}

}  // namespace
}  // namespace shardplan
