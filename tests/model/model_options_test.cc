#include "model/model_options.h"

#include <gtest/gtest.h>

#include "tests/model/read_text.h"

namespace shardplan {
namespace {

TEST(ModelOptionsTest, OptionsHaveMindSporesNamesAndOurDefaults) {
  const Model standard = read("shardplan: 1\ninputs: {x: [8]}\noperators: {a: {op: ReLU, in: x}}\n");
  EXPECT_EQ(standard.parallel.parallel_mode, ParallelMode::kAutoParallel);
  EXPECT_EQ(standard.parallel.search, "auto");
  EXPECT_EQ(standard.cluster, "ascend-910");
  EXPECT_FALSE(standard.training);
  const Model model = read(R"(shardplan: 1
inputs: {x: [8], y: [8]}
operators: {a: {op: Add, in: [x, y]}, loss: {op: ReduceSum, in: a}}
loss: loss
training: {optimizer: adamw, learning_rate: 6e-4, beta2: 0.95, micro_batches: 4, mixed_precision: bf16}
parallel:
  parallel_mode: auto_parallel
  search_mode: sharding_propagation
  device_num: 8
  mesh: {dp: 2, mp: 4}
  dataset_strategy: ((8,), ())
  level: 2
  device: GPU
  comm_fusion: {allreduce: {mode: size, config: 32}}
  strategy_ckpt_save_file: out.ckpt
)");
  EXPECT_EQ(model.parallel.search, "propagation");
  EXPECT_EQ(model.parallel.mesh, (std::vector<std::pair<std::string, std::int64_t>>{{"dp", 2}, {"mp", 4}}));
  EXPECT_EQ(model.parallel.comm_fusion.at("allreduce").config, std::vector<std::int64_t>{32});
  EXPECT_EQ(model.parallel.strategy_ckpt_save_file, "out.ckpt");
  EXPECT_EQ(model.cluster, "dgx-a100");
  EXPECT_EQ(to_text(*tensor_of(model.graph, "x").layout), "[8]");
  EXPECT_EQ(to_text(*tensor_of(model.graph, "y").layout), "[]");
  EXPECT_EQ(model.training->learning_rate, 6e-4);
  EXPECT_EQ(model.training->micro_batches, 4);
  EXPECT_EQ(model.training->mixed_precision, DataType::kBF16);
}

}  // namespace
}  // namespace shardplan
