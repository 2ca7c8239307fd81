#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "graph/model.h"

namespace shardplan {
namespace {

/// One line per operator: "fc = MatMul(x, weight) [64, 128]".
std::string outline(const OperatorGraph& graph) {
  std::string text;
  for (const OperatorId id : graph.operators().ids()) {
    const GraphOperator& op = graph.operators()[id];
    std::vector<std::string> operands;
    for (const TensorId operand : op.operands) operands.push_back(graph.tensor(operand).name);
    text += fmt::format("{} = {}({}) {}\n", op.name, graph.operation(id).type->name, fmt::join(operands, ", "),
                        graph.tensor(op.results[0]).type.shape);
  }
  return text;
}

Model read(const std::string& text, const ModelOverrides& overrides = {}) {
  return read_model_text(text, "m.yaml", overrides);
}

/// All faults of a text, or "" if it is good.
std::string faults_of(const std::string& text, const ModelOverrides& overrides = {}) {
  try {
    read(text, overrides);
    return "";
  } catch (const InputError& error) {
    return error.what() + (error.note().empty() ? "" : "\n(" + error.note() + ")");
  }
}

TEST(ReadModelTest, OperatorsAndShapes) {
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
  EXPECT_EQ(model.name, "small");
}

TEST(ReadModelTest, ShippedConfigurationsAreRead) {
  const std::pair<const char*, std::size_t> cases[] = {
      {"mlp", 12}, {"basic-blocks", 17}, {"semi-auto-matmul", 2}, {"gpt2-small", 346}, {"llama-7b", 1251},
  };
  for (const auto& [name, num_operators] : cases) {
    const Model model = read_model(fmt::format("configs/{}.yaml", name));
    EXPECT_EQ(model.name, name);
    EXPECT_EQ(model.graph.operators().size(), num_operators) << name;
  }
}

TEST(ReadModelTest, AllFaultsInOneRun) {
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
