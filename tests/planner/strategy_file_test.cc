#include "planner/problem/strategy_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/write_files.h"
#include "model/read_model.h"
#include "planner/model_planner.h"
#include "tests/support/files.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

const std::string kDense = R"(shardplan: 1
model: net
inputs: {x: [64, 32]}
operators:
  up:   {block: nn.Dense, in: x, out_channels: 128}
  act:  {op: GeLU, in: up}
  down: {block: nn.Dense, in: act, out_channels: 32}
  loss: {op: ReduceMean, in: down}
loss: loss
training: {optimizer: adamw}
parallel: {mesh: {dp: 2, mp: 4}}
)";

class StrategyFileTest : public testing::Test {
 protected:
  Plan plan(const std::string& text, Level level, bool loads) const {
    PlanOptions options;
    options.level = level;
    options.work_limit = 20'000'000;
    if (loads) options.strategy_file = path_;
    const auto model = std::make_shared<const Model>(read_model_text(text, "m.yaml"));
    return ModelPlanner(model, read_cluster("dgx-a100"), options).plan(level, "auto");
  }
  std::string fault(const std::string& text) const {
    return error_of([&] { plan(text, Level::kRatio, true); });
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.at("strategies.json");
};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// What a plan of one level saved is reproduced at another level, whose own plan differs.
TEST_F(StrategyFileTest, WhatIsNamedKeepsItsStrategy) {
  const Plan least_memory = plan(kDense, Level::kMemory, false);
  write_file(path_, strategy_file_text(least_memory));
  const Plan own = plan(kDense, Level::kSpeed, false);
  const Plan loaded = plan(kDense, Level::kSpeed, true);
  EXPECT_NE(own.strategies, least_memory.strategies) << "else this shows nothing";
  EXPECT_EQ(loaded.strategies, least_memory.strategies);
  for (std::size_t i = 0; i < loaded.program.given.size(); ++i) {
    EXPECT_EQ(loaded.program.values[loaded.program.given[i].value].layout,
              least_memory.program.values[least_memory.program.given[i].value].layout);
  }
  EXPECT_EQ(strategy_file_text(loaded), strategy_file_text(least_memory));
  EXPECT_TRUE(loaded.is_user_strategy[*loaded.graph->find_operator("act")]);
}

/// Layouts between operators may be none of those that the given operators take, so they are in the file, too.
TEST_F(StrategyFileTest, ASavedPlanIsGivenBack) {
  for (const Level level : kLevels) {
    const Plan saved = plan(kDense, level, false);
    write_file(path_, strategy_file_text(saved));
    const Plan loaded = plan(kDense, level, true);
    EXPECT_EQ(loaded.strategies, saved.strategies);
    EXPECT_EQ(loaded.versions, saved.versions);
    EXPECT_EQ(loaded.time.additive(), saved.time.additive());
    EXPECT_EQ(loaded.memory.peak, saved.memory.peak);
    EXPECT_LE(loaded.bound.amount, value_at(level, loaded.time, loaded.memory.peak).amount);
  }
}

TEST_F(StrategyFileTest, LayoutsBetweenOperatorsHoldWhereTheOperatorsAreGiven) {
  const Plan own = plan(kDense, Level::kSpeed, false);
  const TensorId act = *own.graph->find_tensor("act");
  const auto kept = [&](const Plan& of) {
    const TensorVersions versions = tensor_versions(*of.graph);
    for (const VersionId id : versions.all.ids()) {
      const TensorVersion& version = versions.all[id];
      if (version.tensor == act && version.kind == TensorVersion::Kind::kKept) {
        return to_string(of.versions[id], of.mesh);
      }
    }
    return std::string("none");
  };
  const std::string whole = "[{}, {}]";
  ASSERT_NE(kept(own), whole) << "else this shows nothing";
  std::string text = strategy_file_text(own);
  const std::size_t at = text.find("\"kept\": \"", text.find("\"act\"", text.find("\"versions\""))) + 9;
  text.replace(at, text.find('"', at) - at, whole);
  write_file(path_, text);
  EXPECT_EQ(kept(plan(kDense, Level::kSpeed, true)), whole);
}

TEST_F(StrategyFileTest, ModesWithoutStrategiesTakeNone) {
  write_file(path_, strategy_file_text(plan(kDense, Level::kRatio, false)));
  EXPECT_EQ(fault(replaced(kDense, "parallel: {", "parallel: {parallel_mode: data_parallel, ")),
            "m.yaml:11:27: error: parallel_mode: it uses no strategies, but those of " + path_ +
                " are given; they are for auto_parallel and semi_auto_parallel");
}

TEST_F(StrategyFileTest, WhatIsNotNamedIsSearched) {
  write_file(path_, R"({"schema": "shardplan.strategies/1", "mesh": "dp=2, mp=4",
 "operators": {"act": {"factors": {}}}})");
  const Plan found = plan(kDense, Level::kSpeed, true);
  const OperatorId act = *found.graph->find_operator("act");
  for (const std::vector<AxisRef>& axes : found.strategies[act].factors) EXPECT_TRUE(axes.empty());
  EXPECT_FALSE(found.is_user_strategy[*found.graph->find_operator("up.matmul")]);
}

TEST_F(StrategyFileTest, FaultsHaveTheirPlace) {
  const std::string right = strategy_file_text(plan(kDense, Level::kRatio, false));
  const auto fault_of = [&](const std::string& from, const std::string& to) {
    write_file(path_, replaced(right, from, to));
    return fault(kDense);
  };
  EXPECT_EQ(fault_of("\"act\"", "\"acts\""),
            path_ + ":16:3: error: the model has no operator 'acts'; did you mean 'act'?");
  EXPECT_NE(fault_of("shardplan.strategies/1", "other").find(":2:12: error: schema is 'other'"), std::string::npos);
  write_file(path_, "{\"schema\": \"shardplan.plan/1\", \"version\": \"1\", \"model\": {}, \"tensors\": []}\n");
  EXPECT_EQ(fault(kDense), path_ +
                               ":1:12: error: schema is 'shardplan.plan/1'; expected shardplan.strategies/1, as "
                               "--strategy-ckpt-save-file writes it");
  EXPECT_NE(fault_of("dp=2, mp=4", "dp=8")
                .find(":4:10: error: the strategies are of the mesh dp=8, the model is "
                      "planned on dp=2, mp=4"),
            std::string::npos);
  EXPECT_NE(fault_of("\"m\"", "\"q\"").find("MatMul has no factor 'q'; it has m, k, n"), std::string::npos);
  EXPECT_NE(fault_of("\"m\": \"", "\"m\": \"tp, ").find("tp"), std::string::npos);
  EXPECT_NE(fault_of("\"up.weight\"", "\"up.weights\"").find("the model has no parameter 'up.weights'"),
            std::string::npos);
  EXPECT_NE(fault_of("\"operators\"", "\"operator\"").find("unknown key 'operator'"), std::string::npos);
  EXPECT_NE(
      fault_of("\"forward\"", "\"before\"").find("unknown key 'before'; expected backward, forward, kept, output"),
      std::string::npos);
  EXPECT_NE(fault_of("\"versions\": {", "\"versions\": {\"y\": {},").find("the model has no tensor 'y'"),
            std::string::npos);
  std::filesystem::remove(path_);
  EXPECT_NE(fault(kDense).find(path_), std::string::npos);
  const auto named = std::make_shared<const Model>(
      read_model_text(replaced(kDense, "parallel: {", "parallel: {strategy_ckpt_load_file: nowhere.json, "), "m.yaml"));
  EXPECT_EQ(error_of([&] { ModelPlanner(named, read_cluster("dgx-a100"), {}); }),
            "m.yaml:11:37: error: nowhere.json: cannot be read: No such file or directory");
}

/// All names may be another model's: a near one is sought for the first, and the rest are counted.
TEST_F(StrategyFileTest, ManyUnknownNamesAreCounted) {
  std::string text = R"({"schema": "shardplan.strategies/1", "mesh": "dp=2, mp=4",
 "operators": {"acts": {"factors": {}})";
  for (int i = 0; i < 6; ++i)
    text += fmt::format(",\n  \"other{}\": {{\"factors\": {{}}}}", std::string(1, char('a' + i)));
  write_file(path_, text + "},\n \"parameters\": {\"p\": \"[{}]\"}}");
  EXPECT_EQ(fault(kDense), path_ + ":2:16: error: the model has no operator 'acts'; did you mean 'act'?\n" +  //
                               path_ + ":3:3: error: the model has no operator 'othera'\n" +                  //
                               path_ + ":4:3: error: the model has no operator 'otherb'\n" +                  //
                               path_ + ":5:3: error: the model has no operator 'otherc'\n" +                  //
                               path_ + ":6:3: error: the model has no operator 'otherd'\n" +                  //
                               path_ + ":7:3: error: and 3 more names that the model does not have");
}

TEST_F(StrategyFileTest, ContradictionsNameBothPlaces) {
  write_file(path_, R"({"schema": "shardplan.strategies/1", "mesh": "dp=2, mp=4",
 "operators": {"act": {"factors": {"a": "dp"}}}})");
  const std::string text = replaced(kDense, "{op: GeLU, in: up}", "{op: GeLU, in: up, in_strategy: ((8, 1),)}");
  EXPECT_EQ(fault(text),
            path_ + ":2:23: error: act: the file contradicts its in_strategy in m.yaml:6:41; keep one of them");
  const std::string same = replaced(kDense, "{op: GeLU, in: up}", "{op: GeLU, in: up, in_strategy: ([{dp}, {}],)}");
  EXPECT_NO_THROW(plan(same, Level::kRatio, true));
}

}  // namespace
}  // namespace shardplan
