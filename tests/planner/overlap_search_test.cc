#include "planner/overlap/overlap_search.h"

#include <gtest/gtest.h>

#include "model/read_model.h"
#include "planner/model_planner.h"

namespace shardplan {
namespace {

Plan mixtral_plan(const std::map<std::string, std::string>& strategies) {
  ModelOverrides overrides;
  overrides.strategies = strategies;
  const auto model = std::make_shared<const Model>(read_model("configs/models/mixtral-8x7b.yaml", overrides));
  return ModelPlanner(model, read_cluster("dgx-h100x8"), {}).plan(Level::kSpeed, "auto");
}

// Summed one after the other it makes no difference whether experts are gathered between nodes when they are new or when
// they are read; beside kernels it does.
TEST(OverlapSearchTest, WeightsAreGatheredWhereThatIsHidden) {
  std::map<std::string, std::string> in_pieces;
  for (const char* weight : {"w_gate", "w_up", "w_down"}) {
    in_pieces[std::string("layers.*.experts.") + weight] = "[{nvlink}, {ib}, {}]";
  }
  const Plan by_hand = mixtral_plan(in_pieces);
  const Plan found = mixtral_plan({});
  ASSERT_TRUE(by_hand.fits());
  EXPECT_LE(found.time.step(), by_hand.time.step() + by_hand.time.step() / 50);
}

}  // namespace
}  // namespace shardplan
