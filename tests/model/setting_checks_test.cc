#include "model/setting_checks.h"

#include <gtest/gtest.h>

#include "tests/model/read_text.h"

namespace shardplan {
namespace {

/// Two products; `more` is further sections.
std::string two_products(const std::string& up, const std::string& act, const std::string& more) {
  return "shardplan: 1\ninputs: {x: [8, 8]}\noperators:\n  up: {block: nn.Dense, in: x, out_channels: 8" + up +
         "}\n  act: {op: ReLU, in: up" + act +
         "}\n  down: {block: nn.Dense, in: act, out_channels: 8}\n  loss: {op: ReduceMean, in: down}\nloss: loss\n" +
         more;
}

constexpr char kTraining[] = "training: {optimizer: sgd}\n";

TEST(SettingChecksTest, WhatTheBackwardPassReadsNeedsTraining) {
  for (const std::string key : {"recompute: true", "gather_again: true", "gather_again: false"}) {
    const std::string name = key.substr(0, key.find(':'));
    EXPECT_NE(faults_of(two_products("", ", " + key, ""))
                  .find("act: " + name + " is of the backward pass; there is no training"),
              std::string::npos)
        << key;
    EXPECT_EQ(faults_of(two_products("", ", " + key, kTraining)), "") << key;
  }
  EXPECT_EQ(faults_of(two_products("", ", recompute: false", "")), "");
}

TEST(SettingChecksTest, APatternThatHasNoEffectIsOneFault) {
  const std::string found = faults_of(two_products("", "", "strategies: {\"*.matmul\": {recompute: true}}\n"));
  EXPECT_NE(found.find("m.yaml:9:38: error: up.matmul: recompute is of the backward pass"), std::string::npos) << found;
  EXPECT_EQ(found.find("error"), found.rfind("error")) << found;
}

TEST(SettingChecksTest, RecomputationIsNotAskedForAndForbidden) {
  EXPECT_EQ(faults_of(two_products("", ", recompute: false", "training: {optimizer: sgd, recompute: [act]}\n")),
            "m.yaml:5:38: error: act: recompute is false, but training: {recompute} in line 9 names it\n"
            "    keep one of them");
  // An operator within a block that is named may say otherwise.
  EXPECT_EQ(faults_of(two_products("", "",
                                   "training: {optimizer: sgd, recompute: [up]}\n"
                                   "strategies: {up.matmul: {recompute: false}}\n")),
            "");
}

TEST(SettingChecksTest, FusionIdsNeedFusion) {
  const auto faults = [](const char* id) {
    return faults_of(two_products(std::string(", comm_fusion: ") + id, "",
                                  std::string(kTraining) + "parallel: {comm_fusion: {openstate: false}}\n"));
  };
  EXPECT_EQ(faults("1"),
            "m.yaml:4:62: error: up: comm_fusion is 1, but with openstate: false in line 10 nothing is joined\n"
            "    keep one of them");
  EXPECT_EQ(faults("0"), "");
}

TEST(SettingChecksTest, KeysOfParametersStandWhereTheParametersAre) {
  const auto faults = [](const std::string& strategies) {
    return faults_of(
        "shardplan: 1\ninputs: {x: [8, 8]}\noperators:\n  up: {block: nn.Dense, in: x, out_channels: 8}\n"
        "  again: {block: nn.Dense, in: up, out_channels: 8, share: up}\n"
        "  layers: {block: nn.Dense, in: again, out_channels: 8, repeat: 2, share: layers}\n"
        "  loss: {op: ReduceMean, in: layers}\nloss: loss\ntraining: {optimizer: adam}\nstrategies: {" +
        strategies + "}\n");
  };
  for (const std::string key : {"requires_grad: false", "state_dtype: bf16", "gradient_dtype: bf16", "comm_fusion: 2",
                                "parallel_optimizer: false"}) {
    const std::string name = key.substr(0, key.find(':'));
    EXPECT_NE(faults("again: {" + key + "}")
                  .find("again: " + name +
                        " is of parameters, and those of again belong to up\n"
                        "    give it to up; it then holds for every use that shares them"),
              std::string::npos)
        << key;
    EXPECT_NE(faults("layers.1: {" + key + "}").find("those of layers.1 belong to layers.0"), std::string::npos) << key;
    EXPECT_EQ(faults("up: {" + key + "}"), "") << key;
    EXPECT_EQ(faults("layers.0: {" + key + "}"), "") << key;
    EXPECT_EQ(faults("layers.*: {" + key + "}"), "") << key;  // the first copy has them
  }
}

TEST(SettingChecksTest, AnInputIsLoadedInOneWay) {
  const auto faults = [](const std::string& parallel, const std::string& strategy) {
    return faults_of("shardplan: 1\ninputs: {x: {shape: [8, 8], strategy: " + strategy +
                     "}}\noperators: {a: {op: ReLU, in: x}}\nparallel: {" + parallel + "}\n");
  };
  EXPECT_EQ(faults("full_batch: true", "[8, 1]"),
            "m.yaml:2:39: error: x: its strategy and full_batch say differently how it is loaded\n"
            "    keep one of them");
  EXPECT_NE(faults("full_batch: true", "\"[{pcie}, {}]\"").find("full_batch say differently"), std::string::npos);
  EXPECT_NE(faults("dataset_strategy: ((8, 1),)", "[1, 8]").find("dataset_strategy say differently"),
            std::string::npos);
  EXPECT_EQ(faults("full_batch: true", "[1, 1]"), "");
  EXPECT_EQ(faults("full_batch: true", "\"[{}, {}]\""), "");
  EXPECT_EQ(faults("dataset_strategy: ((8, 1),)", "[8, 1]"), "");
  EXPECT_EQ(faults("dataset_strategy: data_parallel", "[1, 8]"), "");  // but for this input
}

TEST(SettingChecksTest, AResultHasOneLayout) {
  const std::string text = two_products("", "", "strategies:\n  act: {strategy: [8, 1], out_strategy: ((1, 8),)}\n");
  EXPECT_EQ(faults_of(text),
            "m.yaml:10:19: error: act: strategy and out_strategy in line 10 both lay out this result\n"
            "    keep one of them");
}

}  // namespace
}  // namespace shardplan
