#include "graph/float8.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "model/planned_model.h"
#include "model/read_model.h"

namespace shardplan {
namespace {

// Types and operators. That plans of such graphs compute what one device does is tested in
// tests/simulator/float8_proof_test.cc.

Model read_marked(const std::string& marks, const std::string& text) {
  return read_model_text("shardplan: 1\ndtype: bf16\nfp8: [" + marks + "]\n" + text, "f.yaml");
}

std::string dtype_of(const OperatorGraph& graph, const std::string& tensor) {
  const std::optional<TensorId> id = graph.find_tensor(tensor);
  return id ? std::string(to_string(graph.tensor(*id).type.dtype)) : "no such tensor";
}

std::string read_by(const OperatorGraph& graph, const std::string& name) {
  const std::optional<OperatorId> op = graph.find_operator(name);
  if (!op) return "no such operator";
  std::string text;
  for (const TensorId id : graph.operators()[*op].operands) {
    text += (text.empty() ? "" : " ") + std::string(graph.tensor(id).name);
  }
  return text;
}

constexpr char kTwoLayers[] = R"(
dims: {B: 4, H: 8}
inputs: {x: [B, H]}
blocks:
  layer:
    inputs: {x: [B, H]}
    operators:
      norm: {block: nn.RMSNorm, in: x}
      a:    {block: nn.Dense, in: norm, out_channels: H}
      b:    {block: nn.Dense, in: norm, out_channels: H, has_bias: false}
      add:  {op: Add, in: [a, b]}
operators:
  layers: {block: layer, in: x, repeat: 2}
  head:   {block: nn.Dense, in: layers, out_channels: H, has_bias: false}
  loss:   {op: ReduceMean, in: head}
loss: loss
training: {optimizer: sgd}
)";

TEST(Float8Test, MarkedProductsReadCastsAndKeepTheirTypes) {
  const OperatorGraph graph = read_marked("layers.*", kTwoLayers).graph;
  EXPECT_EQ(read_by(graph, "layers.0.a.matmul"), "layers.0.norm.rms_norm.f8e4m3 layers.0.a.weight.f8e4m3");
  EXPECT_EQ(read_by(graph, "layers.0.b.matmul"), "layers.0.norm.rms_norm.f8e4m3 layers.0.b.weight.f8e4m3")
      << "both read one Cast";
  EXPECT_EQ(dtype_of(graph, "layers.0.a.matmul"), "bf16");
  EXPECT_EQ(dtype_of(graph, "layers.0.a.weight"), "bf16") << "stored for training";
  EXPECT_EQ(dtype_of(graph, "layers.0.add"), "bf16");
  EXPECT_EQ(read_by(graph, "head.matmul"), "layers.1.add head.weight") << "not marked";
}

TEST(Float8Test, GradientsMultiplyInF8AndAreWide) {
  const OperatorGraph graph = planned_graph(read_marked("layers.*.a", kTwoLayers));
  const std::string of_result = "grad.layers.1.a.matmul.Cast";
  EXPECT_EQ(dtype_of(graph, of_result), "f8e4m3");
  const OperatorId product = *graph.find_operator("layers.1.a.matmul");
  std::size_t products = 0;
  for (const OperatorId id : graph.operators().ids()) {
    const GraphOperator& op = graph.operators()[id];
    if (op.forward != product || op.pass != Pass::kBackward || graph.operation(id).type->name == "Cast") continue;
    ++products;
    EXPECT_EQ(std::string(to_string(graph.operation(id).operands[0].dtype)), "f8e4m3") << op.name;
    EXPECT_EQ(std::string(to_string(graph.operation(id).results[0].dtype)), "bf16") << op.name;
    EXPECT_NE(read_by(graph, op.name.str()).find(of_result), std::string::npos) << op.name;
  }
  EXPECT_EQ(products, 2u);
  const OperatorId other = *graph.find_operator("layers.1.b.matmul");
  EXPECT_EQ(std::string(to_string(graph.operation(other).operands[0].dtype)), "bf16");
}

TEST(Float8Test, InferenceStoresWeightsThatOnlyProductsRead) {
  const OperatorGraph graph = read_marked("a, b", R"(
dims: {B: 4, H: 8}
inputs: {x: [B, H]}
parameters: {w: [H, H], shared: [H, H]}
operators:
  a: {op: MatMul, in: [x, w]}
  b: {op: MatMul, in: [a, shared]}
  c: {op: Add, in: [shared, 1.0]}
)")
                                  .graph;
  EXPECT_EQ(dtype_of(graph, "w"), "f8e4m3");
  EXPECT_EQ(read_by(graph, "a"), "x.f8e4m3 w");
  EXPECT_EQ(dtype_of(graph, "shared"), "bf16");
  EXPECT_EQ(read_by(graph, "b"), "a.f8e4m3 shared.f8e4m3");
  EXPECT_EQ(dtype_of(graph, "b"), "bf16");
}

TEST(Float8Test, WithAutocastTheyReadWhatItCasts) {
  const OperatorGraph graph =
      read_model_text(std::string("shardplan: 1\nautocast: bf16\nfp8: [layers]\n") + kTwoLayers, "f.yaml").graph;
  EXPECT_EQ(read_by(graph, "layers.0.a.matmul"), "layers.0.norm.rms_norm.bf16.f8e4m3 layers.0.a.weight.bf16.f8e4m3");
  EXPECT_EQ(dtype_of(graph, "layers.0.a.matmul"), "bf16");
}

TEST(Float8Test, WithAutocastInInferenceWeightsAreStoredInFloat8) {
  std::string text = kTwoLayers;
  text.erase(text.find("loss: loss\n"));
  const OperatorGraph graph = read_model_text("shardplan: 1\nautocast: bf16\nfp8: [layers]\n" + text, "f.yaml").graph;
  EXPECT_EQ(dtype_of(graph, "layers.0.a.weight"), "f8e4m3");
  EXPECT_EQ(read_by(graph, "layers.0.a.matmul"), "layers.0.norm.rms_norm.bf16.f8e4m3 layers.0.a.weight");
  EXPECT_EQ(dtype_of(graph, "layers.0.a.weight.bf16"), "no such tensor");
  EXPECT_EQ(dtype_of(graph, "layers.0.a.matmul"), "bf16");
  EXPECT_EQ(dtype_of(graph, "head.weight"), "f32");
}

/// A stack of experts is one weight; a product of two activations has none.
TEST(Float8Test, OnlyProductsOfWeightsAreMeant) {
  const OperatorGraph graph = read_marked("inner", R"(
inputs: {x: [2, 4, 8]}
blocks:
  mixed:
    inputs: {x: [2, 4, 8]}
    parameters: {experts: [2, 8, 8]}
    operators:
      scores: {op: BatchMatMul, in: [x, x], transpose_b: true}
      seen:   {op: BatchMatMul, in: [scores, x]}
      up:     {op: BatchMatMul, in: [seen, experts]}
      down:   {op: Einsum, in: [up, experts], equation: "etf,ehf->eth"}
operators: {inner: {block: mixed, in: x}}
)")
                                  .graph;
  EXPECT_EQ(read_by(graph, "inner.scores"), "x x");
  EXPECT_EQ(read_by(graph, "inner.seen"), "inner.scores x");
  EXPECT_EQ(read_by(graph, "inner.up"), "inner.seen.f8e4m3 inner.experts");
  EXPECT_EQ(read_by(graph, "inner.down"), "inner.up.f8e4m3 inner.experts");
}

TEST(Float8Test, ProductsOfIntegersAreLeftAlone) {
  try {
    read_marked("a", R"(
inputs: {x: {shape: [4, 8], dtype: i32}}
parameters: {w: {shape: [8, 8], dtype: i32}}
operators: {a: {op: MatMul, in: [x, w]}}
)");
    FAIL() << "no error";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("fp8: a has no product of a weight"), std::string::npos) << error.what();
  }
}

/// The layout of a stored weight is its Cast's, so that f8 is gathered; a search finds those of activations.
TEST(Float8Test, AWeightIsCastAsItIsStored) {
  const OperatorGraph graph = read_marked("a", R"(
inputs: {x: [4, 8]}
parameters: {w: {shape: [8, 8], strategy: "[{dp}, {}]"}}
operators:
  a:    {op: MatMul, in: [x, w], in_strategy: ["[{dp}, {}]", "[{}, {}]"]}
  loss: {op: ReduceMean, in: a, in_strategy: ["[{dp}, {}]"]}
loss: loss
training: {optimizer: sgd}
parallel: {parallel_mode: semi_auto_parallel, mesh: {dp: 4}, device_num: 4}
)")
                                  .graph;
  const auto strategy = [&](const char* name) { return graph.operators()[*graph.find_operator(name)].strategy; };
  ASSERT_EQ(strategy("w.f8e4m3")->in.size(), 1u);
  EXPECT_EQ(strategy("w.f8e4m3")->in[0].layout, "[{dp}, {}]");
  EXPECT_TRUE(strategy("x.f8e4m3")->in.empty());
}

/// Where a reader is recomputed by itself, so is its Cast: nothing of f8 is kept.
TEST(Float8Test, CastsAreRecomputedWithTheirReaders) {
  std::string text = kTwoLayers;
  text.replace(text.find("{optimizer: sgd}"), 16,
               "{optimizer: sgd, recompute: [layers.*.a.matmul, layers.*.b.matmul]}");
  const OperatorGraph graph = planned_graph(read_marked("layers.*", text));
  EXPECT_EQ(dtype_of(graph, "recompute.layers.0.norm.rms_norm.f8e4m3"), "f8e4m3");
  EXPECT_EQ(dtype_of(graph, "recompute.layers.0.a.weight.f8e4m3"), "f8e4m3");
  for (const Reader& reader : graph.tensor(*graph.find_tensor("layers.0.norm.rms_norm.f8e4m3")).readers) {
    EXPECT_EQ(graph.operators()[reader.op].pass, Pass::kForward) << graph.operators()[reader.op].name;
  }
}

std::string marks_error(const std::string& marks) {
  try {
    read_marked(marks, kTwoLayers);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Float8Test, MarksWithoutEffectAreErrors) {
  EXPECT_EQ(marks_error("layers.*, layers.*.norm"),
            "f.yaml:3:17: error: fp8: layers.*.norm has no product of a weight\n"
            "    it is for MatMul, BatchMatMul and Einsum of an activation and a parameter");
  EXPECT_EQ(marks_error("layer.*"), "f.yaml:3:7: error: fp8: no operator or block 'layer.*'; did you mean 'layers'?");
  EXPECT_NE(marks_error("{a: 1}").find("fp8: "), std::string::npos);
}

}  // namespace
}  // namespace shardplan
