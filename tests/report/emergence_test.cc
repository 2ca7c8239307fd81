// Data, tensor and sequence parallelism and ZeRO are not modes: the search of one perceptron's training finds each of
// them, depending on its sizes and the devices' memory. Plans made by hand and given as user strategies are never
// cheaper, nor below the bound.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/read_model.h"
#include "planner/model_planner.h"
#include "report/metrics/parallelism_patterns.h"

namespace shardplan {
namespace {

constexpr const char* kPerceptron = R"(
shardplan: 1
model: perceptron
dims: {B: 16384, S: 1, H: 2048, F: 8192}
inputs: {x: [B, S, H], y: [B, S, H]}
operators:
  norm:   {block: nn.LayerNorm, in: x}
  up:     {block: nn.Dense, in: norm, out_channels: F}
  gelu:   {op: GeLU, in: up}
  down:   {block: nn.Dense, in: gelu, out_channels: H}
  add:    {op: Add, in: [x, down]}
  error:  {op: Sub, in: [add, y]}
  square: {op: Square, in: error}
  loss:   {op: ReduceMean, in: square}
loss: loss
training: {optimizer: adamw, learning_rate: 0.001}
)";

using Dims = std::map<std::string, std::int64_t>;
using Strategies = std::map<std::string, std::string>;

ModelPlanner planning_of(const Dims& dims, std::optional<Bytes> capacity, const std::string& parallel = "",
                         const Strategies& strategies = {}, bool overlap = true) {
  PlanOptions options;
  options.capacity = capacity;
  options.overlap = overlap;
  return ModelPlanner(
      std::make_shared<const Model>(read_model_text(kPerceptron + parallel, "test", {dims, strategies})),
      read_cluster("dgx-a100"), options);
}

Plan fastest(const Dims& dims, std::optional<Bytes> capacity = std::nullopt) {
  return planning_of(dims, capacity).plan(Level::kSpeed, "auto");
}

/// Without overlap; with it much of the communication is hidden, and other plans are as fast.
Plan fastest_in_sequence(const Dims& dims, std::optional<Bytes> capacity = std::nullopt) {
  return planning_of(dims, capacity, "", {}, false).plan(Level::kSpeed, "auto");
}

void expect_is(const Plan& plan, std::initializer_list<const char*> words) {
  const std::string found = parallelism_patterns(plan);
  for (const char* word : words) {
    EXPECT_NE(found.find(word), std::string::npos) << "no '" << word << "' in: " << found;
  }
  EXPECT_LE(plan.memory.peak, plan.usable);
}

constexpr Bytes kMiB = 1 << 20;

TEST(EmergenceTest, ManySamplesAreCutAndWithThemTheUpdate) {
  expect_is(fastest_in_sequence({{"B", 131072}}), {"batch in 8", "optimizer states in 8 (as ZeRO-2)"});
}

TEST(EmergenceTest, StagesOfZeROAreNamed) {
  for (const char* stage : {"1", "2", "3"}) {
    std::string text = kPerceptron + fmt::format("parallel: {{parallel_mode: data_parallel, zero: {}}}\n", stage);
    const std::string last = "learning_rate: 0.001";
    text.insert(text.find(last) + last.size(), ", micro_batches: 2");
    const auto model = std::make_shared<const Model>(read_model_text(text, "test"));
    const Plan plan = ModelPlanner(model, read_cluster("dgx-a100"), {}).plan(Level::kSpeed, "auto");
    expect_is(plan, {"batch in 8", fmt::format("(as ZeRO-{})", stage).c_str()});
  }
}

TEST(EmergenceTest, FewSamplesOfManyWeightsCutTheWeights) {
  expect_is(fastest_in_sequence({{"B", 4096}, {"H", 4096}, {"F", 16384}}), {"weights in 8 (tensor parallel)"});
}

TEST(EmergenceTest, BetweenThemBothAreCut) {
  expect_is(fastest_in_sequence({}),
            {"batch in 4", "weights in 2", "(tensor parallel)", "optimizer states in 8 (as ZeRO-2)"});
}

TEST(EmergenceTest, WithLittleMemoryWeightsAreStoredInPieces) {
  expect_is(fastest_in_sequence({}, 340 * kMiB), {"weights and optimizer states in 8 (as ZeRO-3)"});
}

// Each is fixed by the strategies of its matmuls or the layouts in which its weights are stored; the rest is searched.
TEST(EmergenceTest, NoPlanMadeByHandIsCheaper) {
  const std::string data = "parallel: {parallel_mode: semi_auto_parallel}\n";
  const std::string cut_update = "parallel: {parallel_mode: semi_auto_parallel, enable_parallel_optimizer: true}\n";
  const auto stored = [](int pieces) {
    Strategies result;
    for (const char* weight : {"up.weight", "down.weight"}) result[weight] = "[" + std::to_string(pieces) + ", 1]";
    return result;
  };
  const auto columns_then_rows = [](int data_pieces, int weight_pieces) {
    const std::string d = std::to_string(data_pieces), w = std::to_string(weight_pieces);
    return Strategies{{"up.matmul", "[[" + d + ", 1, 1], [" + w + ", 1]]"},
                      {"down.matmul", "[[" + d + ", 1, " + w + "], [1, " + w + "]]"}};
  };
  std::vector<Plan> by_hand;
  by_hand.push_back(planning_of({}, {}, data, stored(1)).plan(Level::kSpeed, "auto"));        // only the batch
  by_hand.push_back(planning_of({}, {}, cut_update, stored(1)).plan(Level::kSpeed, "auto"));  // ZeRO-1
  by_hand.push_back(planning_of({}, {}, cut_update, stored(8)).plan(Level::kSpeed, "auto"));  // ZeRO-3
  for (const int weight_pieces : {2, 4, 8}) {                                                 // Megatron's
    by_hand.push_back(
        planning_of({}, {}, "", columns_then_rows(8 / weight_pieces, weight_pieces)).plan(Level::kSpeed, "auto"));
  }
  const Baseline plain = planning_of({}, {}).data_parallel();
  // A sharded update moves as many bytes as an all_reduce and does an eighth of the work, so updates are never
  // replicated.
  const Plan best = fastest({});
  EXPECT_GT(plain.time.step(), best.time.step());
  const Bytes ample = best.memory.peak;
  const Bytes least = planning_of({}, {}).smallest().memory.peak;
  ASSERT_LT(least, ample);
  for (const std::int64_t share : {100, 75, 50, 25, 0}) {
    const Plan plan = fastest({}, least + (ample - least) * share / 100);
    ASSERT_TRUE(plan.status == PlanStatus::kOptimal || plan.status == PlanStatus::kFeasible) << share;
    EXPECT_LE(plan.memory.peak, plan.usable);
    EXPECT_GT(plain.time.step(), plan.time.step());
    for (const Plan& hand : by_hand) {
      ASSERT_GT(hand.time.step(), 0);
      if (hand.memory.peak > plan.usable) continue;
      // Of plans within half a per cent the leaner one is taken.
      const Picoseconds may_be_longer = hand.memory.peak > plan.memory.peak ? plan.time.step() / 200 : 0;
      EXPECT_GE(hand.time.step() + may_be_longer, plan.time.step()) << share << " %: " << parallelism_patterns(hand);
      EXPECT_GE(hand.time.additive(), plan.bound.amount) << share << " %: " << parallelism_patterns(hand);
    }
  }
}

// The search does not see the memory of redistributions: if no other plan fits, one that fits in less is accepted.
TEST(EmergenceTest, MoreMemoryNeverMakesAPlanFitLess) {
  const Dims long_sequence = {{"B", 1}, {"S", 4096}, {"H", 4096}, {"F", 16384}};
  for (const Bytes capacity : {470 * kMiB, 410 * kMiB}) {
    const Plan plan = fastest(long_sequence, capacity);
    EXPECT_TRUE(plan.status == PlanStatus::kOptimal || plan.status == PlanStatus::kFeasible) << capacity / kMiB;
    EXPECT_LE(plan.memory.peak, capacity) << capacity / kMiB;
    if (capacity == 410 * kMiB) expect_is(plan, {"(tensor parallel)"});
  }
}

}  // namespace
}  // namespace shardplan
