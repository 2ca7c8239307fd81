// Plans with sizes that the number of devices does not divide.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/read_model.h"
#include "planner/job_cluster.h"
#include "planner/model_planner.h"
#include "solver/searches/search_list.h"

namespace shardplan {
namespace {

Plan uneven_plan(const std::string& text, const std::string& cluster, Level level) {
  const auto model = std::make_shared<const Model>(read_model_text(text, "uneven.yaml"));
  PlanOptions options;
  options.work_limit = 200'000'000;
  options.level = level;
  const Cluster devices = job_cluster(*model, {.cluster = cluster, .device_num = {}, .rank_table = {}}).cluster;
  return ModelPlanner(model, devices, options).plan(level, kDefaultSearch);
}

std::string feed_forward(std::int64_t batch) {
  return fmt::format(R"(
shardplan: 1
dims: {{B: {}, H: 4096, F: 16384}}
inputs: {{x: [B, H]}}
operators:
  up:   {{block: nn.Dense, in: x, out_channels: F}}
  gelu: {{op: GeLU, in: up}}
  down: {{block: nn.Dense, in: gelu, out_channels: H}}
outputs: [down]
)",
                     batch);
}

// 1520 rows in 64 pieces of 24 have 1 % of padding; 16 equal pieces and a second dimension in 4 pieces have none. But
// in neither does a device repeat another one's work, so level 0 has both and takes the one without communication.
TEST(UnevenPlansTest, PaddingIsNoRepeatedWork) {
  for (const std::int64_t batch : {1520, 1536}) {
    const Plan plan = uneven_plan(feed_forward(batch), "dgx-a100x8", Level::kRatio);
    ASSERT_FALSE(plan.strategies.empty()) << batch;
    EXPECT_EQ(plan.time.repeated, 0) << batch;
    EXPECT_EQ(plan.time.communication, 0) << batch;
  }
}

// Heads whose number 8 does not divide, of whose 8 pieces of two one or two would be empty, are sharded into 4 pieces
// or as whole sequences: no work is repeated for that.
TEST(UnevenPlansTest, HeadsThatDevicesDoNotDivide) {
  const auto attention = [](std::int64_t heads, std::int64_t kv) {
    return fmt::format(R"(
shardplan: 1
dims: {{B: 4, S: 256, heads: {}, kv: {}, D: 64, H: heads*D}}
inputs: {{x: [B, S, H]}}
operators:
  q:       {{block: nn.Dense, in: x, out_channels: heads*D}}
  k:       {{block: nn.Dense, in: x, out_channels: kv*D}}
  v:       {{block: nn.Dense, in: x, out_channels: kv*D}}
  q_h:     {{op: Reshape, in: q, shape: [B, S, heads, D]}}
  k_h:     {{op: Reshape, in: k, shape: [B, S, kv, D]}}
  v_h:     {{op: Reshape, in: v, shape: [B, S, kv, D]}}
  attend:  {{op: FlashAttention, in: [q_h, k_h, v_h], input_layout: BSND, causal: true, out: [context, lse]}}
  merged:  {{op: Reshape, in: context, shape: [B, S, H]}}
  o:       {{block: nn.Dense, in: merged, out_channels: H}}
outputs: [o]
)",
                       heads, kv);
  };
  for (const auto& [heads, kv] : {std::pair<std::int64_t, std::int64_t>{28, 4}, {12, 12}, {28, 28}}) {
    const Plan plan = uneven_plan(attention(heads, kv), "dgx-a100", Level::kRatio);
    ASSERT_FALSE(plan.strategies.empty()) << heads;
    EXPECT_EQ(plan.time.repeated, 0) << heads << " heads, " << kv << " key heads";
  }
}

}  // namespace
}  // namespace shardplan
