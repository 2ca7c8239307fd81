#include "model/yaml_model_source.h"

#include <gtest/gtest.h>

#include "tests/model/read_text.h"

namespace shardplan {
namespace {

TEST(YamlModelSourceTest, OperatorsAndShapes) {
  const Model model = read(R"(shardplan: 1
model: small
dims: {B: 64}
inputs: {x: [B, 512]}
parameters: {weight: [512, 128]}
operators:
  fc:     {op: MatMul, in: [x, weight], in_strategy: [[1, 1], [1, 2]]}
  reduce: {op: ReduceSum, in: fc, axis: -1}
outputs: [reduce]
)");
  EXPECT_EQ(outline(model.graph), "fc = MatMul(x, weight) [64, 128]\nreduce = ReduceSum(fc) [64]\n");
  EXPECT_EQ(model.free_dims, std::vector<std::string>{"B"});
  EXPECT_EQ(model.batch, "B");
  EXPECT_EQ(model.name, "small");
}

TEST(YamlModelSourceTest, ShippedConfigurationsAreRead) {
  const std::pair<const char*, std::size_t> cases[] = {
      {"mlp", 10}, {"basic-blocks", 17}, {"semi-auto-matmul", 2}, {"gpt2-small", 284}, {"llama-7b", 1125},
  };
  for (const auto& [name, num_operators] : cases) {
    const Model model = read_model(fmt::format("configs/{}.yaml", name));
    EXPECT_EQ(model.name, name);
    EXPECT_EQ(model.graph.operators().size(), num_operators) << name;
  }
}

TEST(YamlModelSourceTest, TheOrderOfLinesOnlyBreaksTies) {
  const Model model = read(R"(shardplan: 1
inputs: {x: [4]}
operators:
  last:  {op: Add, in: [b, a]}
  b:     {op: ReLU, in: x}
  a:     {op: Tanh, in: x}
)");
  EXPECT_EQ(outline(model.graph), "b = ReLU(x) [4]\na = Tanh(x) [4]\nlast = Add(b, a) [4]\n");
}

TEST(YamlModelSourceTest, MixedPrecisionKeepsTheLossInFullPrecision) {
  const Model gpt = read_model("configs/gpt2-small.yaml");
  EXPECT_EQ(tensor_of(gpt.graph, "wte.embedding_table").type.dtype, DataType::kF16);
  EXPECT_EQ(tensor_of(gpt.graph, "head").type.dtype, DataType::kF16);
  EXPECT_EQ(tensor_of(gpt.graph, "loss.cast").type.dtype, DataType::kF32);
  EXPECT_EQ(gpt.graph.tensor(*gpt.graph.loss()).type, (TensorType{{}, DataType::kF32}));
}

TEST(YamlModelSourceTest, AllFaultsInOneRun) {
  EXPECT_EQ(faults_of(R"(shardplan: 1
model: broken
dims: {D: 16}
inputs: {x: [8, D]}
parameters: {weight: [D, D]}
operators:
  fc1: {block: nn.Dense, in: x, out_channels: D}
  act: {op: Relu, in: fc1}
  fc2: {op: MatMul, in: [act, weigth]}
outputs: [fc2]
parallel: {device_num: 8, paralel_mode: auto_parallel}
)"),
            "m.yaml:8:13: error: act: no operator 'Relu'; did you mean 'ReLU'?\n"
            "m.yaml:9:31: error: fc2: no tensor 'weigth' here; did you mean 'weight' (parameter, line 5)?\n"
            "m.yaml:11:27: error: parallel: unknown key 'paralel_mode'; did you mean 'parallel_mode'?\n"
            "(shapes behind act were not checked)");
}

}  // namespace
}  // namespace shardplan
