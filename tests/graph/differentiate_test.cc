#include "graph/differentiate.h"

#include <gtest/gtest.h>

#include <map>

#include "model/read_model.h"

namespace shardplan {
namespace {

/// y = w x + b in f16, trained with momentum; `training` is appended to the options.
OperatorGraph trained(const std::string& training) {
  const Model model = read_model_text(
      "shardplan: 1\n"
      "inputs: {x: [8, 4], target: [8, 2]}\n"
      "operators:\n"
      "  fc:    {block: nn.Dense, in: x, out_channels: 2}\n"
      "  error: {op: Sub, in: [fc, target]}\n"
      "  wide:  {op: Cast, in: error, dtype: f32}\n"
      "  loss:  {op: ReduceMean, in: wide}\n"
      "loss: loss\n"
      "training: {optimizer: momentum, mixed_precision: f16" +
          training + "}\n",
      "m.yaml");
  return differentiate(model.graph, *model.training);
}

/// "state of PARAMETER", "gradient of PARAMETER", "new value of TENSOR", by name; empty for all other tensors.
std::map<std::string, std::string> relations(const OperatorGraph& graph) {
  std::map<std::string, std::string> found;
  const auto name = [&](TensorId id) { return graph.tensor(id).name; };
  for (const GraphTensor& tensor : graph.tensors()) {
    if (tensor.is_master_copy) found[tensor.name] += "master copy, ";
    if (tensor.state_of) found[tensor.name] += "state of " + name(*tensor.state_of);
    if (tensor.gradient_of) found[tensor.name] += "gradient of " + name(*tensor.gradient_of);
    if (tensor.updates) found[tensor.name] += "new value of " + name(*tensor.updates);
  }
  return found;
}

TEST(DifferentiateTest, TensorsKnowTheParameterThatTheyBelongTo) {
  const std::map<std::string, std::string> expected = {
      {"fc.weight.master", "master copy, state of fc.weight"},
      {"fc.weight.momentum", "state of fc.weight"},
      {"grad.fc.matmul.MatMul", "gradient of fc.weight"},
      {"grad.fc.weight.Cast", "gradient of fc.weight"},
      {"update.fc.weight.ApplyMomentum.0", "new value of fc.weight.master"},
      {"update.fc.weight.ApplyMomentum.1", "new value of fc.weight.momentum"},
      {"update.fc.weight.Cast", "new value of fc.weight"},
      {"fc.bias.master", "master copy, state of fc.bias"},
      {"fc.bias.momentum", "state of fc.bias"},
      {"grad.fc.bias_add.ReduceSum", "gradient of fc.bias"},
      {"grad.fc.bias.Cast", "gradient of fc.bias"},
      {"update.fc.bias.ApplyMomentum.0", "new value of fc.bias.master"},
      {"update.fc.bias.ApplyMomentum.1", "new value of fc.bias.momentum"},
      {"update.fc.bias.Cast", "new value of fc.bias"},
  };
  EXPECT_EQ(relations(trained("")), expected);
}

TEST(DifferentiateTest, WithoutAMasterCopyTheParameterItselfIsUpdated) {
  const std::map<std::string, std::string> found = relations(trained(", master_copy: false"));
  EXPECT_EQ(found.count("fc.weight.master"), 0u);
  EXPECT_EQ(found.at("update.fc.weight.ApplyMomentum.0"), "new value of fc.weight");
  EXPECT_EQ(found.at("update.fc.weight.ApplyMomentum.1"), "new value of fc.weight.momentum");
}

TEST(DifferentiateTest, TheNormOfGradientsOfSeveralTypesHasTheWidestType) {
  const auto type_of_norm = [](const std::string& first, const std::string& second) {
    const Model model = read_model_text(
        "shardplan: 1\n"
        "inputs: {x: [8, 4]}\n"
        "parameters: {a: {shape: [4], dtype: " +
            first + "}, b: {shape: [4], dtype: " + second +
            "}}\n"
            "operators:\n"
            "  a32: {op: Cast, in: a, dtype: f32}\n"
            "  b32: {op: Cast, in: b, dtype: f32}\n"
            "  xa:  {op: Mul, in: [x, a32]}\n"
            "  xb:  {op: Mul, in: [xa, b32]}\n"
            "  loss: {op: ReduceMean, in: xb}\n"
            "loss: loss\n"
            "training: {optimizer: sgd, clip_norm: 1}\n",
        "m.yaml");
    const OperatorGraph graph = differentiate(model.graph, *model.training);
    return graph.tensor(graph.operators()[*graph.find_operator("clip.AddN")].results[0]).type.dtype;
  };
  EXPECT_EQ(type_of_norm("f64", "f32"), DataType::kF64);
  EXPECT_EQ(type_of_norm("f32", "f64"), DataType::kF64);
  EXPECT_EQ(type_of_norm("f32", "bf16"), DataType::kF32);
}

TEST(DifferentiateTest, NamesThatAreAskedForAgainAreNumbered) {
  const OperatorGraph graph = trained(", clip_norm: 1");
  EXPECT_TRUE(graph.find_operator("clip.SquareSum").has_value());
  EXPECT_TRUE(graph.find_operator("clip.SquareSum_1").has_value());
  EXPECT_FALSE(graph.find_operator("clip.SquareSum_2").has_value());
}

TEST(DifferentiateTest, RowsAreUpdatedByWhatCanUpdateThem) {
  const auto error_of = [](const std::string& training, const std::string& more = "", const std::string& last = "y",
                           const std::string& table = "[16, 4]") {
    try {
      const Model model = read_model_text(
          "shardplan: 1\n"
          "inputs: {ids: {shape: [8], dtype: i32}}\n"
          "parameters: {table: " +
              table +
              ", scale: [4]}\n"
              "operators:\n"
              "  rows: {op: SparseGatherV2, in: [table, ids]}\n"
              "  y:    {op: Mul, in: [rows, scale]}\n" +
              more + "  loss: {op: ReduceMean, in: " + last +
              "}\n"
              "loss: loss\n"
              "training: {" +
              training + "}\n",
          "m.yaml");
      const OperatorGraph graph = differentiate(model.graph, *model.training);
      EXPECT_FALSE(graph.find_operator("grad.rows.GatherGrad").has_value());
      const GraphOperator& update = graph.operators()[graph.tensor(*graph.find_tensor("table")).readers.back().op];
      EXPECT_EQ(graph.tensor(update.operands[update.operands.size() - 2]).name, "ids");
      const bool is_narrow = table.find("bf16") != std::string::npos;
      EXPECT_EQ(graph.tensor(update.operands.back()).type.dtype, is_narrow ? DataType::kBF16 : DataType::kF32);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string but = "m.yaml:5:3: error: rows: only the rows of table that were looked up are updated, but ";
  EXPECT_EQ(error_of("optimizer: sgd"), "");
  EXPECT_EQ(error_of("optimizer: adam"), "");
  EXPECT_EQ(error_of("optimizer: momentum"),
            but + "the optimizer is momentum; expected sgd or adam, or a lookup by Gather");
  EXPECT_EQ(error_of("optimizer: sgd, weight_decay: 0.1"),
            but + "weight_decay shrinks all rows; expected weight_decay: 0, or a lookup by Gather");
  EXPECT_EQ(error_of("optimizer: sgd, clip_norm: 1"),
            but + "clip_norm needs the norm of its gradient; expected no clip_norm, or a lookup by Gather");
  EXPECT_EQ(error_of("optimizer: sgd, micro_batches: 2"),
            but + "micro_batches add up whole gradients; expected one micro-batch, or a lookup by Gather");
  EXPECT_EQ(error_of("optimizer: sgd, mixed_precision: bf16"),
            but + "it is bf16 and its copy in f32 is updated; expected a table of f32, or master_copy: false");
  EXPECT_EQ(error_of("optimizer: sgd", "  z:    {op: MatMul, in: [y, table], transpose_b: true}\n", "z"),
            but + "2 operators read it; expected one, or lookups by Gather");
  EXPECT_EQ(error_of("optimizer: sgd", "", "y", "{shape: [16, 4], gradient_strategy: [8, 1]}"),
            but + "gradient_strategy lays out its gradient; expected state_strategy, or a lookup by Gather");
  EXPECT_EQ(error_of("optimizer: sgd", "", "y", "{shape: [16, 4], comm_fusion: 2}"),
            but + "comm_fusion joins the exchanges of gradients; expected comm_fusion: 0, or a lookup by Gather");
  EXPECT_EQ(error_of("optimizer: sgd", "", "y", "{shape: [16, 4], comm_fusion: 0}"), "");
  EXPECT_EQ(error_of("optimizer: sgd", "", "y", "{shape: [16, 4], gradient_dtype: bf16}"), "");
}

TEST(DifferentiateTest, OperatorsKnowTheirForwardOperatorOrTheirParameter) {
  const OperatorGraph graph = trained(", clip_norm: 1, micro_batches: 2");
  const auto belongs_to = [&](const std::string& name) -> std::string {
    const GraphOperator& op = graph.operators()[*graph.find_operator(name)];
    if (op.forward) return graph.operators()[*op.forward].name;
    return op.parameter ? graph.tensor(*op.parameter).name : "";
  };
  EXPECT_EQ(belongs_to("grad.fc.matmul.MatMul"), "fc.matmul");
  EXPECT_EQ(belongs_to("grad.fc.weight.Accumulate"), "fc.weight");
  EXPECT_EQ(belongs_to("clip.SquareSum"), "");  // of all parameters
  EXPECT_EQ(belongs_to("clip.fc.weight.Mul"), "fc.weight");
  EXPECT_EQ(belongs_to("update.fc.bias.ApplyMomentum"), "fc.bias");
  EXPECT_EQ(belongs_to("update.fc.bias.Cast"), "fc.bias");
  EXPECT_EQ(belongs_to("mean.loss.Accumulate"), "");
  EXPECT_EQ(relations(graph).at("clip.fc.weight.Mul"), "gradient of fc.weight");
}

}  // namespace
}  // namespace shardplan
