// Answers when a limit ends the search early, and for steps too long for the type of times.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "model/read_model.h"
#include "planner/model_planner.h"

namespace shardplan {
namespace {

TEST(LimitsTest, AStepOfDaysIsAnErrorAtItsOperatorNotALackOfMemory) {
  const auto model = std::make_shared<const Model>(read_model_text(R"(
shardplan: 1
dims: {B: 4194304}
inputs: {x: [B, B]}
parameters: {w: [B, B]}
operators:
  a: {op: MatMul, in: [x, w]}
)",
                                                                   "long.yaml"));
  PlanOptions options;
  options.capacity = kUnlimitedBytes;
  const ModelPlanner planner(model, read_cluster("ascend-910"), options);
  try {
    planner.plan(Level::kSpeed, "auto");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "long.yaml:7:3: error: a: takes more than 40 hours with every strategy; steps that long "
                 "are not planned");
  }
}

// Level 0's search leaves this open; the least memory decides it.
TEST(LimitsTest, AllLevelsSayThatNothingFits) {
  ModelOverrides overrides;
  overrides.dims = {{"L", 12}};
  const auto model = std::make_shared<const Model>(read_model("configs/models/llama3-70b.yaml", overrides));
  const ModelPlanner planner(model, read_cluster("dgx-h100"), {});
  for (const Level level : {Level::kRatio, Level::kMemory, Level::kSpeed}) {
    EXPECT_EQ(planner.plan(level, "auto").status, PlanStatus::kInfeasible) << to_string(level);
  }
}

// Stages get parts of the work; a tiny part is still a limit.
TEST(LimitsTest, HowLittleWorkThereIsSoLittleIsDone) {
  ModelOverrides overrides;
  overrides.dims = {{"L", 1}};
  const auto model = std::make_shared<const Model>(read_model("configs/gpt2-small.yaml", overrides));
  PlanOptions options;
  options.capacity = Bytes{2600} << 20;  // binds, so that the search is long
  options.work_limit = 1;
  const ModelPlanner planner(model, read_cluster("ascend-910"), options);
  const Plan plan = planner.plan(Level::kSpeed, "auto");
  bool is_overlapped = false;
  for (const StageStatistics& stage : plan.statistics) {
    is_overlapped |= stage.stage == "overlapped step";
    for (const auto& [name, figure] : stage.figures) {
      if (stage.stage == "search" && name == "work") {
        EXPECT_LT(figure, 50'000'000);
      }
      if (stage.stage != "overlapped step") continue;
      if (name == "rounds") {
        EXPECT_EQ(figure, 1);
      }
      if (name == "choices ordered") {
        EXPECT_LE(figure, 1);
      }
      if (name == "near choices" || name == "choices by windows" || name == "guesses") {
        EXPECT_EQ(figure, 0) << name;
      }
    }
  }
  EXPECT_TRUE(is_overlapped);
}

// Its tables become too large, so what it returns is data parallelism.
TEST(LimitsTest, APlanSaysThatASearchFoundNothing) {
  const auto model = std::make_shared<const Model>(read_model_text(R"(
shardplan: 1
dims: {B: 1024, H: 1024}
blocks:
  layer:
    dims: {B: inferred, H: inferred}
    inputs: {x: [B, H]}
    operators:
      norm: {block: nn.LayerNorm, in: x}
      up: {block: nn.Dense, in: norm, out_channels: 4*H}
      act: {op: GeLU, in: up}
      down: {block: nn.Dense, in: act, out_channels: H}
      sum: {op: Add, in: [x, down]}
inputs: {x: [B, H]}
operators:
  layers: {block: layer, in: x, repeat: 4}
  loss: {op: ReduceMean, in: layers}
loss: loss
training: {optimizer: adamw}
)",
                                                                   "layers.yaml"));
  const ModelPlanner planner(model, read_cluster("dgx-a100x2"), {});
  const auto says_so = [&](const char* search) {
    return std::ranges::any_of(planner.plan(Level::kRatio, search).notices, [](const std::string& notice) {
      return notice.find("found nothing better than the plan that it starts from") != std::string::npos;
    });
  };
  EXPECT_TRUE(says_so("elimination"));
  EXPECT_FALSE(says_so("auto"));
}

TEST(LimitsTest, APlanSaysThatItsTimeLimitEndedTheSearch) {
  const auto model = std::make_shared<const Model>(read_model("configs/mnist-train.yaml"));
  const auto says_so = [&](double seconds) {
    PlanOptions options;
    options.time_limit = seconds;
    const Plan plan = ModelPlanner(model, read_cluster("ascend-910"), options).plan(Level::kSpeed, "auto");
    EXPECT_FALSE(plan.strategies.empty());
    return std::ranges::any_of(plan.notices, [](const std::string& notice) {
      return notice.find("ended the search: this is the best plan so far") != std::string::npos;
    });
  };
  EXPECT_TRUE(says_so(1e-3));
  EXPECT_FALSE(says_so(0));  // no limit
}

TEST(LimitsTest, AMeshOfOtherDevicesIsAnErrorAtItsPlace) {
  const auto model = std::make_shared<const Model>(read_model_text(R"(
shardplan: 1
inputs: {x: [8, 8]}
operators: {a: {op: ReLU, in: x}}
parallel: {mesh: {dp: 2, mp: 1048577}}
)",
                                                                   "wide.yaml"));
  try {
    ModelPlanner(model, read_cluster("ascend-910"), {});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "wide.yaml:5:18: error: mesh dp=2, mp=1048577 has 2097154 devices, but ascend-910 has 8");
  }
}

// The smallest plan fits: an answer, where the search of the level was ended before it had one.
TEST(LimitsTest, APlanThatFitsIsAnAnswerHoweverEarlyTheSearchEnds) {
  const auto model = std::make_shared<const Model>(read_model("configs/mlp.yaml"));
  const Cluster cluster = read_cluster("ascend-910");
  PlanOptions options;
  options.capacity = ModelPlanner(model, cluster, options).smallest().memory.peak;
  for (const std::uint64_t work : {1u, 1000u}) {
    options.work_limit = work;
    const ModelPlanner planner(model, cluster, options);
    const Plan least = planner.smallest();
    if (least.strategies.empty() || !least.fits()) continue;  // found nothing in so little work either
    for (const Level level : kLevels) {
      const Plan plan = planner.plan(level, "auto");
      EXPECT_NE(plan.status, PlanStatus::kNoPlanFound) << work << " " << number_of(level);
      EXPECT_LE(plan.memory.peak, plan.usable) << work << " " << number_of(level);
    }
  }
}

}  // namespace
}  // namespace shardplan
