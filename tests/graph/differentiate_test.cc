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

TEST(DifferentiateTest, NothingIsTrainedThroughStopGradient) {
  const auto trained_through = [](const std::string& target) {
    const Model model = read_model_text(
        "shardplan: 1\n"
        "inputs: {x: [8, 4]}\n"
        "operators:\n"
        "  online: {block: nn.Dense, in: x, out_channels: 2, has_bias: false}\n"
        "  mean:   {block: nn.Dense, in: x, out_channels: 2, has_bias: false}\n"
        "  target: {op: " +
            target +
            ", in: mean}\n"
            "  error:  {op: Sub, in: [online, target]}\n"
            "  square: {op: Square, in: error}\n"
            "  loss:   {op: ReduceMean, in: square}\n"
            "loss: loss\n"
            "training: {optimizer: sgd}\n",
        "m.yaml");
    return differentiate(model.graph, *model.training);
  };
  const std::map<std::string, std::string> only_online = {
      {"grad.online.matmul.MatMul", "gradient of online.weight"},
      {"update.online.weight.ApplyGradientDescent", "new value of online.weight"}};
  const OperatorGraph stopped = trained_through("StopGradient");
  EXPECT_EQ(relations(stopped), only_online);
  EXPECT_FALSE(stopped.find_operator("grad.error.Neg")) << "not even on the way to it";
  EXPECT_EQ(relations(trained_through("Identity")).size(), 4u);
  EXPECT_TRUE(trained_through("Identity").find_operator("grad.error.Neg"));
}

TEST(DifferentiateTest, NamesThatAreAskedForAgainAreNumbered) {
  const OperatorGraph graph = trained(", clip_norm: 1");
  EXPECT_TRUE(graph.find_operator("clip.SquareSum").has_value());
  EXPECT_TRUE(graph.find_operator("clip.SquareSum_1").has_value());
  EXPECT_FALSE(graph.find_operator("clip.SquareSum_2").has_value());
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
