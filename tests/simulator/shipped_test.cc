// Every shipped configuration is planned at every level and proven; at level 0 every injected fault is detected.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>

#include "model/read_model.h"
#include "planner/job_cluster.h"
#include "planner/model_planner.h"
#include "report/proof_report.h"
#include "simulator/proof/prove.h"

namespace shardplan {
namespace {

struct ShippedCase {
  const char* model;
  Level level;
};
void PrintTo(const ShippedCase& c, std::ostream* out) { *out << c.model << " level " << number_of(c.level); }

class Shipped : public testing::TestWithParam<ShippedCase> {};

TEST_P(Shipped, IsPlannedAndProven) {
  const ShippedCase& c = GetParam();
  const auto model = std::make_shared<const Model>(read_model(std::string("configs/") + c.model + ".yaml"));
  const Cluster cluster = job_cluster(*model, {}).cluster;
  PlanOptions planning_options;
  planning_options.work_limit = 300'000'000;  // a proof does not need the best plan
  const ModelPlanner planning(model, cluster, planning_options);
  const Plan plan = planning.plan(c.level, "auto");
  ASSERT_TRUE(plan.status == PlanStatus::kOptimal || plan.status == PlanStatus::kFeasible) << to_string(plan.status);
  EXPECT_LE(plan.memory.peak, plan.usable);
  EXPECT_GE(plan.cost.amount, plan.bound.amount);
  const bool is_free = std::count(plan.is_user_strategy.begin(), plan.is_user_strategy.end(), 0) ==
                       static_cast<std::ptrdiff_t>(plan.is_user_strategy.size());
  if (c.level == Level::kSpeed && is_free) {
    const Baseline simple = planning.data_parallel();
    EXPECT_TRUE(!simple.fits || plan.time.step() <= simple.time.step());
  }
  ProofOptions options;
  options.mutations = c.level == Level::kRatio;
  // A second step and rounding to f32 are tried if a step does not take seconds.
  const bool is_long = std::string(c.model) == "resnet50";
  options.validation.steps = options.mutations && !is_long ? 2 : 1;
  options.validation.float32 = options.mutations && !is_long;
  const Proof proof = prove(plan, options);
  EXPECT_EQ(validation_exit_code(proof), 0) << validation_text(
      {c.model, plan.graph->is_training(), c.level, plan.mesh, c.model, 0, plan.program.workers}, proof);
  EXPECT_EQ(proof.mutations.empty(), !options.mutations);
}

constexpr const char* kModels[] = {
    "basic-blocks", "basic-blocks-net2", "bert-base", "comm-fusion",      "gpt2-small",     "layerwise",
    "lenet",        "lenet-place",       "llama-7b",  "long-context",     "mixture",        "mlp",
    "mnist-eval",   "mnist-train",       "resnet50",  "semi-auto-matmul", "semi-auto-train"};

std::vector<ShippedCase> all_cases() {
  std::vector<ShippedCase> cases;
  for (const char* model : kModels) {
    for (const Level level : kLevels) cases.push_back({model, level});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Configs, Shipped, testing::ValuesIn(all_cases()), [](const auto& tested) {
  std::string name = tested.param.model;
  std::replace(name.begin(), name.end(), '-', '_');
  return name + "_level_" + std::to_string(number_of(tested.param.level));
});

/// Small versions of the networks of configs/models (tests/planner/networks_test.cc reads them all), each at one level;
/// `bench/models_bench` proves them at all of them.
struct NetworkCase {
  const char* model;
  Level level;
  std::map<std::string, std::int64_t> dims;
};
void PrintTo(const NetworkCase& c, std::ostream* out) { *out << c.model; }

class Networks : public testing::TestWithParam<NetworkCase> {};

TEST_P(Networks, ArePlannedAndProven) {
  const NetworkCase& c = GetParam();
  ModelOverrides overrides;
  overrides.dims = c.dims;
  const std::string path = std::string("configs/models/") + c.model + ".yaml";
  const auto model = std::make_shared<const Model>(read_model(path, overrides));
  const Cluster cluster = job_cluster(*model, {.cluster = "dgx-a100", .device_num = {}, .rank_table = {}}).cluster;
  PlanOptions planning_options;
  planning_options.work_limit = 100'000'000;
  const ModelPlanner planning(model, cluster, planning_options);
  const Plan plan = planning.plan(c.level, "auto");
  ASSERT_FALSE(plan.strategies.empty()) << to_string(plan.status);
  ProofOptions options;
  options.validation.steps = 1;
  const Proof proof = prove(plan, options);
  EXPECT_EQ(validation_exit_code(proof), 0)
      << validation_text({c.model, plan.graph->is_training(), c.level, plan.mesh, c.model, 0}, proof);
}

const NetworkCase kNetworkCases[] = {
    {"dit-xl2", Level::kSpeed, {{"B", 16}, {"L", 1}}},
    {"dlrm-criteo", Level::kRatio, {{"B", 1024}}},
    {"gat-products", Level::kMemory, {{"N", 4096}, {"E", 65536}}},
    {"gcn-reddit", Level::kSpeed, {{"N", 4096}, {"E", 65536}}},
    {"lstm-lm", Level::kMemory, {{"B", 32}}},
    {"mamba-370m", Level::kSpeed, {{"B", 16}, {"S", 256}, {"L", 1}}},
    {"mixtral-8x7b", Level::kRatio, {{"B", 8}, {"S", 512}, {"L", 1}}},
    {"mla", Level::kMemory, {{"B", 8}, {"S", 512}, {"L", 1}}},
    {"moe-einsum", Level::kSpeed, {{"B", 16}, {"S", 128}, {"L", 1}}},
    {"qwen2-7b", Level::kRatio, {{"B", 8}, {"S", 512}, {"L", 1}}},  // 28 query and 4 key heads on 8 devices
    {"t5-large", Level::kMemory, {{"B", 16}, {"L", 1}}},
    {"vit-b16", Level::kSpeed, {{"B", 16}, {"L", 1}}},  // 12 heads and 197 positions on 8 devices
};
INSTANTIATE_TEST_SUITE_P(Configs, Networks, testing::ValuesIn(kNetworkCases), [](const auto& tested) {
  std::string name = tested.param.model;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(ShippedTest, NoneIsLeftOut) {
  std::vector<std::string> models(std::begin(kModels), std::end(kModels));
  for (const char* large : {"gpt3-175b", "llama-7b-train"})
    models.push_back(large);  // their proofs take too long for a test
  // Written per device, and run by tests/simulator/local_validation_test.cc together with what they are compared with.
  for (const char* local : {"hybrid-parallel-net", "manual-mlp", "manual-mlp-averaged", "manual-mlp-reference"}) {
    models.push_back(local);
  }
  for (const auto& entry : std::filesystem::directory_iterator("configs")) {
    if (entry.path().extension() != ".yaml") continue;
    EXPECT_NE(std::find(models.begin(), models.end(), entry.path().stem().string()), models.end()) << entry.path();
  }
}

}  // namespace
}  // namespace shardplan
