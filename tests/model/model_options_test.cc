#include "model/model_options.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/model/read_text.h"

namespace shardplan {
namespace {

TEST(ModelOptionsTest, OptionsHaveMindSporesNamesAndOurDefaults) {
  const Model standard = read("shardplan: 1\ninputs: {x: [8]}\noperators: {a: {op: ReLU, in: x}}\n");
  EXPECT_EQ(standard.parallel.parallel_mode, ParallelMode::kAutoParallel);
  EXPECT_EQ(standard.parallel.search, "auto");
  EXPECT_EQ(standard.cluster.value, "ascend-910");
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
)");
  EXPECT_EQ(model.parallel.search, "propagation");
  EXPECT_EQ(model.parallel.mesh, (std::vector<std::pair<std::string, std::int64_t>>{{"dp", 2}, {"mp", 4}}));
  EXPECT_EQ(model.cluster.value, "dgx-a100");
  EXPECT_EQ(to_text(*tensor_of(model.graph, "x").layout), "[8]");
  EXPECT_EQ(to_text(*tensor_of(model.graph, "y").layout), "[]");
  EXPECT_EQ(model.training->learning_rate, 6e-4);
  EXPECT_EQ(model.training->micro_batches, 4);
  EXPECT_EQ(model.training->mixed_precision, DataType::kBF16);
}

std::string faults_of_parallel(const std::string& parallel) {
  return faults_of("shardplan: 1\ninputs: {x: [8]}\noperators: {a: {op: ReLU, in: x}}\nparallel: {" + parallel + "}\n");
}

TEST(ModelOptionsTest, PythonsSpellingsAreTaken) {
  const Model model = read(R"(shardplan: 1
mode: PYNATIVE
inputs: {x: [8, 8]}
parameters: {w: [8, 8]}
operators: {a: {op: MatMul, in: [x, w]}, loss: {op: ReduceSum, in: a}}
loss: loss
training: {optimizer: Momentum}
parallel: {parallel_mode: DATA_PARALLEL, gradients_mean: True, full_batch: False, comm_fusion: {openstate: False}}
)");
  EXPECT_EQ(model.training->optimizer, "momentum");
  EXPECT_EQ(model.parallel.parallel_mode, ParallelMode::kDataParallel);
  EXPECT_TRUE(model.parallel.gradients_mean->value);
  EXPECT_TRUE(model.parallel.is_pynative);
}

TEST(ModelOptionsTest, KeysWithNothingBehindThemAreRefused) {
  EXPECT_EQ(faults_of_parallel("parameter_broadcast: false, comm_fusion: {openstate: false}"), "");
  EXPECT_EQ(faults_of_parallel("parameter_broadcast: true"),
            "m.yaml:4:33: error: parallel: parameter_broadcast is not supported yet: all devices begin with the same "
            "parameters");
  EXPECT_EQ(
      faults_of_parallel("comm_fusion: {allreduce: {mode: size, config: 32}}"),
      "m.yaml:4:25: error: parallel: comm_fusion is not supported yet: buckets are of 64 MiB wherever that hides more\n"
      "    leave it out, or write {openstate: false}");
  EXPECT_EQ(faults_of_parallel("mesh: auto").substr(0, 62),
            "m.yaml:4:18: error: parallel: mesh: auto is not supported yet\n");
  EXPECT_EQ(faults_of_parallel("gradients_mean: true").substr(0, 72),
            "m.yaml:4:28: error: parallel: gradients_mean is for parallel_mode data_p");
  EXPECT_EQ(faults_of_parallel("full_batch: true, dataset_strategy: data_parallel").substr(0, 86),
            "m.yaml:4:48: error: parallel: dataset_strategy cuts the inputs, but full_batch is true");
}

TEST(ModelOptionsTest, CommunicationFusionIsReadAsMindSporeReadsIt) {
  const auto fault = [](const std::string& fusion) { return faults_of_parallel("comm_fusion: {" + fusion + "}"); };
  EXPECT_EQ(fault("allgather: {mode: index, config: [20, 35]}").substr(0, 92),
            "m.yaml:4:44: error: parallel: comm_fusion: allgather: mode index is for allreduce only; expe");
  EXPECT_EQ(
      fault("allreduce: {mode: auto, config: 64}"),
      "m.yaml:4:58: error: parallel: comm_fusion: allreduce: config is '64'; expected null: mode auto takes 64 MB");
  for (const char* config : {"[35, 20]", "20", "[]", "[20, 20]", "[-1]"}) {
    const std::string text = fault(std::string("allreduce: {mode: index, config: ") + config + "}");
    EXPECT_TRUE(text.starts_with("m.yaml:4:59: error: parallel: comm_fusion: allreduce: config is ")) << text;
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 0) << text;
  }
  for (const char* config : {"-3", "\"32\"", "[32]", "1.5"}) {
    const std::string text = fault(std::string("allreduce: {mode: size, config: ") + config + "}");
    EXPECT_NE(text.find("expected a whole number of MB, as in config: 32"), std::string::npos) << text;
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 0) << text;
  }
}

}  // namespace
}  // namespace shardplan
