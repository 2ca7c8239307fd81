// The networks of configs/models: all are read, and for small versions of them no level's plan contradicts another's.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "model/read_model.h"
#include "planner/job_cluster.h"
#include "planner/level_comparison.h"
#include "solver/searches/search_list.h"

namespace shardplan {
namespace {

struct Network {
  std::string name;
  std::map<std::string, std::int64_t> dims = {};  // of a small version; empty: too long for a test
  bool is_trained = true;
};
void PrintTo(const Network& network, std::ostream* out) { *out << network.name; }

const std::vector<Network>& networks() {
  static const std::vector<Network> all = {
      {"convnext-t"},
      {"dit-xl2"},
      {"dlrm-criteo", {{"B", 1024}}},
      {"efficientnet-b0"},
      {"gat-products", {{"N", 4096}, {"E", 65536}}},
      {"gcn-reddit", {{"N", 4096}, {"E", 65536}}},
      {"llama3-70b"},
      {"llama3-70b-decode", {{"B", 16}, {"T", 512}, {"L", 1}}, false},
      {"llama3-8b"},
      {"lstm-lm", {{"B", 32}}},
      {"mamba-370m"},
      {"mixtral-8x7b", {{"B", 8}, {"S", 512}, {"L", 1}}},
      {"mla"},
      {"moe-einsum"},
      {"qwen2-7b"},
      {"sd15-unet"},
      {"sd3-medium"},
      {"swin-t"},
      {"t5-large"},
      {"vit-b16"},
  };
  return all;
}

std::string path_of(const Network& network) { return "configs/models/" + network.name + ".yaml"; }

TEST(NetworksTest, AllAreRead) {
  for (const Network& network : networks()) {
    const Model model = read_model(path_of(network));
    EXPECT_EQ(model.name, network.name);
    EXPECT_EQ(model.training.has_value(), network.is_trained) << network.name;
    EXPECT_TRUE(model.notices.empty()) << network.name << ": " << model.notices.front();
  }
}

TEST(NetworksTest, NoneIsLeftOut) {
  for (const auto& entry : std::filesystem::directory_iterator("configs/models")) {
    const bool is_known = std::any_of(networks().begin(), networks().end(), [&](const Network& network) {
      return entry.path().stem().string() == network.name;
    });
    EXPECT_TRUE(is_known) << entry.path();
  }
}

class SmallNetworksTest : public testing::TestWithParam<Network> {};

TEST_P(SmallNetworksTest, LevelsDoNotContradictEachOther) {
  ModelOverrides overrides;
  overrides.dims = GetParam().dims;
  const auto model = std::make_shared<const Model>(read_model(path_of(GetParam()), overrides));
  const Cluster cluster = job_cluster(*model, {.cluster = "dgx-a100", .device_num = {}, .rank_table = {}}).cluster;
  PlanOptions options;
  options.work_limit = 50'000'000;
  const std::vector<Plan> plans = plans_of_levels(ModelPlanner(model, cluster, options), kDefaultSearch);
  for (const Level level : kLevels) {
    const Plan& own = plans[static_cast<std::size_t>(number_of(level))];
    ASSERT_EQ(own.options.level, level);
    ASSERT_FALSE(own.strategies.empty()) << to_string(level);
    EXPECT_TRUE(own.fits()) << to_string(level);
    EXPECT_LE(own.bound.amount, own.cost.amount);
    for (const Plan& other : plans) {
      if (level == Level::kRatio && other.time.repeated > 0) continue;  // not a candidate there
      EXPECT_FALSE(is_better(other, own))
          << to_string(level) << " is beaten by " << to_string(other.options.level) << ", " << other.options.search;
    }
  }
}

std::vector<Network> small_networks() {
  std::vector<Network> small;
  for (const Network& network : networks()) {
    if (!network.dims.empty()) small.push_back(network);
  }
  return small;
}

INSTANTIATE_TEST_SUITE_P(Models, SmallNetworksTest, testing::ValuesIn(small_networks()), [](const auto& tested) {
  std::string name = tested.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace shardplan
