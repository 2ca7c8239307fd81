#include "report/text/origin_words.h"

#include <gtest/gtest.h>

#include "model/planned_model.h"
#include "model/read_model.h"
#include "tests/support/marked_model.h"

namespace shardplan {
namespace {

class OriginWordsTest : public testing::Test {
 protected:
  OriginWordsTest() {
    plan_.graph =
        std::make_shared<const OperatorGraph>(planned_graph(read_model_text(layered_model(""), "layered.yaml")));
  }
  std::string words(Origin::Kind kind, const std::string& producer, const std::string& consumer,
                    const std::string& because = "", Pass pass = Pass::kForward, bool is_sum = false) {
    Instruction instruction;
    instruction.kind = InstructionKind::kCollective;
    instruction.step.edit().kind = CollectiveKind::kAllGather;
    if (is_sum) instruction.step.edit().before.partial = {{0, 1, 2}};
    instruction.pass = pass;
    instruction.origin = Origin{kind, producer, consumer, 0, because};
    instruction.inputs = {plan_.program.values.push_back({})};
    instruction.outputs = {plan_.program.values.push_back({})};
    return origin_words(plan_, instruction);
  }

  Plan plan_;
};

TEST_F(OriginWordsTest, NamesAreThoseOfTheModel) {
  EXPECT_EQ(folded_block("layers.3.attn.qkv.matmul"), "layers.*");
  EXPECT_EQ(folded_block("head"), "head");
  const OperatorGraph& graph = *plan_.graph;
  EXPECT_EQ(model_name(graph, "square"), "square");
  EXPECT_EQ(model_name(graph, "a tensor"), "a tensor");
  for (const GraphOperator& op : graph.operators()) {
    const std::string name = model_name(graph, op.name);
    if (op.forward) {
      EXPECT_EQ(name, graph.operators()[*op.forward].name) << op.name;
    } else if (op.pass == Pass::kUpdate && op.parameter) {
      EXPECT_EQ(name.find(graph.tensor(*op.parameter).name + "."), 0u) << op.name;
    }
  }
}

TEST_F(OriginWordsTest, WhatMovesIsNamedByTheTensor) {
  const auto moved = [&](const std::string& tensor, Origin::Kind kind, Pass pass) {
    ProgramValue value;
    value.tensor = *plan_.graph->find_tensor(tensor);
    Instruction instruction;
    instruction.kind = InstructionKind::kCollective;
    instruction.step.edit().kind = CollectiveKind::kAllGather;
    instruction.pass = pass;
    instruction.origin = Origin{kind, "layers.1.gelu", "", 0, ""};
    instruction.inputs = instruction.outputs = {plan_.program.values.push_back(value)};
    return std::string(moved_words(plan_, instruction));
  };
  using Kind = Origin::Kind;
  const GraphTensor* weight = nullptr;
  for (const GraphTensor& tensor : plan_.graph->tensors()) {
    if (tensor.kind == TensorKind::kParameter) weight = &tensor;
    if (tensor.updates && plan_.graph->tensor(*tensor.updates).kind == TensorKind::kParameter) {
      EXPECT_EQ(moved(tensor.name, Kind::kRedistribution, Pass::kUpdate), "updated weights");
    }
    if (tensor.gradient_of) {
      EXPECT_EQ(moved(tensor.name, Kind::kRedistribution, Pass::kBackward), "gradients");
    }
  }
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(moved(weight->name, Kind::kRedistribution, Pass::kForward), "weights");
  EXPECT_EQ(moved(weight->name, Kind::kMirror, Pass::kBackward), "gradients");
  EXPECT_EQ(moved(weight->name, Kind::kParallelOptimizer, Pass::kBackward), "gradients");
  EXPECT_EQ(moved(weight->name, Kind::kParallelOptimizer, Pass::kUpdate), "updated weights");
  EXPECT_EQ(moved("x", Kind::kRedistribution, Pass::kForward), "inputs");
  EXPECT_EQ(moved("layers.1.gelu", Kind::kRedistribution, Pass::kForward), "activations");
}

// Of a table of which only the rows that were looked up are updated, the update reads the gradient of these rows.
TEST_F(OriginWordsTest, GradientsOfRowsAreGradientsOfTheirTable) {
  plan_.graph = std::make_shared<const OperatorGraph>(planned_graph(read_model_text(R"(
shardplan: 1
inputs: {ids: {shape: [8], dtype: i32}}
parameters: {table: [16, 4], scale: [4]}
operators:
  rows: {op: SparseGatherV2, in: [table, ids]}
  y:    {op: Mul, in: [rows, scale]}
  loss: {op: ReduceMean, in: y}
loss: loss
training: {optimizer: sgd}
)",
                                                                                    "rows.yaml")));
  const OperatorGraph& graph = *plan_.graph;
  const GraphOperator& update = graph.operators()[graph.tensor(*graph.find_tensor("table")).readers.back().op];
  ASSERT_EQ(update.pass, Pass::kUpdate);
  const auto instruction_of = [&](TensorId tensor) {
    ProgramValue value;
    value.tensor = tensor;
    Instruction instruction;
    instruction.kind = InstructionKind::kCollective;
    instruction.step.edit().kind = CollectiveKind::kAllGather;
    instruction.pass = Pass::kUpdate;
    instruction.origin = Origin{Origin::Kind::kRedistribution, "rows", update.name, 0, ""};
    instruction.inputs = instruction.outputs = {plan_.program.values.push_back(value)};
    return instruction;
  };
  const Instruction gradient = instruction_of(update.operands.back());
  EXPECT_EQ(moved_words(plan_, gradient), "gradients");
  EXPECT_EQ(origin_words(plan_, gradient), "gradients of table");
  EXPECT_EQ(moved_words(plan_, instruction_of(*graph.find_tensor("ids"))), "inputs");
}

TEST_F(OriginWordsTest, RedistributionsGoFromBlockToBlock) {
  using Kind = Origin::Kind;
  EXPECT_EQ(words(Kind::kRedistribution, "layers.0.add", "error"), "layers.* -> error");
  EXPECT_EQ(words(Kind::kRedistribution, "layers.0.add", "error", "", Pass::kBackward),
            "backward of layers.* -> error");
  EXPECT_EQ(words(Kind::kRedistribution, "error", "", "halo of x"), "error, halo of x");
  EXPECT_EQ(words(Kind::kForwardOp, "layers.1.gelu", "", "", Pass::kForward, true), "sum of layers.*.gelu");
  EXPECT_EQ(words(Kind::kMirror, "layers.1.gelu", "", "", Pass::kBackward), "gradients of layers.*");
  EXPECT_EQ(words(Kind::kParallelOptimizer, "layers.1.gelu", "", "", Pass::kUpdate), "updated weights of layers.*");
}

}  // namespace
}  // namespace shardplan
