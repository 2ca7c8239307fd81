#include "report/metrics/parallelism_patterns.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/error.h"
#include "model/read_model.h"
#include "planner/job_cluster.h"
#include "planner/model_planner.h"
#include "report/export/export.h"

namespace shardplan {
namespace {

/// Two products whose weights the key `zero` shards; `more` adds keys at the top.
Plan plan_by_keys(const std::string& more, int batch = 64) {
  const std::string text = "shardplan: 1\ncluster: dgx-h100\ninputs: {x: [" + std::to_string(batch) + R"(, 256]}
operators:
  a:    {block: nn.Dense, in: x, out_channels: 1024, has_bias: false}
  r:    {op: ReLU, in: a}
  b:    {block: nn.Dense, in: r, out_channels: 256, has_bias: false}
  loss: {op: ReduceMean, in: b}
loss: loss
training: {optimizer: adamw}
)" + more + "\n";
  auto model = std::make_shared<const Model>(read_model_text(text, "m.yaml", {}));
  return ModelPlanner(model, job_cluster(*model, {}).cluster, {}).plan(Level::kSpeed, "auto");
}

std::string patterns_of(const std::string& more) { return parallelism_patterns(plan_by_keys(more)); }

TEST(ParallelismPatternsTest, StagesOfZeroAreNamed) {
  const auto zero = [](int stage) {
    return patterns_of("parallel: {parallel_mode: data_parallel, zero: " + std::to_string(stage) + "}");
  };
  EXPECT_EQ(zero(0), "batch in 8");
  EXPECT_EQ(zero(1), "batch in 8, optimizer states in 8 (as ZeRO-1)");
  EXPECT_EQ(zero(3), "batch in 8, weights and optimizer states in 8 (as ZeRO-3)");
}

// One image in eight stripes: nothing else can be shared out without repeating work.
TEST(ParallelismPatternsTest, CutImagesAreNamed) {
  const std::string text = R"(
shardplan: 1
cluster: dgx-h100
inputs: {x: [1, 8, 512, 512]}
operators:
  a: {block: nn.Conv2d, in: x, out_channels: 8, kernel_size: 3, in_strategy: [[1, 1, 4, 2]]}
  r: {op: ReLU, in: a}
  b: {block: nn.Conv2d, in: r, out_channels: 8, kernel_size: 3, in_strategy: [[1, 1, 4, 2]]}
)";
  auto model = std::make_shared<const Model>(read_model_text(text, "m.yaml", {}));
  const Plan plan = ModelPlanner(model, job_cluster(*model, {}).cluster, {}).plan(Level::kRatio, "auto");
  EXPECT_EQ(parallelism_patterns(plan), "height in 4 over nvlink:(1)4, width in 2 over nvlink:(4)2");
}

// What reads a stored weight is a cast of the same shard; gathered is the cast.
TEST(ParallelismPatternsTest, CastWeightsCountWhereTheirCastIsUsed) {
  const std::string zero = "parallel: {parallel_mode: data_parallel, zero: 3}";
  EXPECT_EQ(patterns_of("autocast: bf16\n" + zero), "batch in 8, weights and optimizer states in 8 (as ZeRO-3)");
  EXPECT_EQ(patterns_of("dtype: bf16\nfp8: [a, b]\n" + zero),
            "batch in 8, weights and optimizer states in 8 (as ZeRO-3)");
}

// The frozen weight stays whole; of what is trained all is sharded.
TEST(ParallelismPatternsTest, FrozenWeightsDoNotOutvoteTrainedOnes) {
  const std::string user =
      "strategies: {a: {requires_grad: false}, a.weight: {strategy: \"[{}, {}]\"}}\n"
      "parallel: {parallel_mode: semi_auto_parallel, zero: 3, mesh: {dp: 8}}";
  EXPECT_EQ(patterns_of(user), "batch in 8, weights and optimizer states in 8 (as ZeRO-3)");
}

// Frameworks with one degree of data parallelism cannot divide 36 rows among 8 devices.
TEST(ParallelismPatternsTest, ExportsRefuseABatchThatTheirDevicesDoNotDivide) {
  const Plan plan = plan_by_keys("parallel: {parallel_mode: auto_parallel}", 36);
  for (const char* const framework : {"megatron", "torchtitan", "deepspeed"}) {
    try {
      export_plan(plan, framework);
      FAIL() << framework;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("36 rows are not in 8 equal pieces"), std::string::npos) << error.what();
    }
  }
  EXPECT_FALSE(export_plan(plan, "jax").text.empty());
}

}  // namespace
}  // namespace shardplan
