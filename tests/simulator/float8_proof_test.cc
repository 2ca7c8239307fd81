// A training step whose products are marked `fp8` computes the same as without, as kernels do not round here; and its
// plans are proven.
#include <gtest/gtest.h>

#include <string>

#include "model/planned_model.h"
#include "model/read_model.h"
#include "simulator/proof/prove.h"
#include "tests/support/random_plan.h"
#include "tests/support/same_step.h"

namespace shardplan {
namespace {

constexpr char kModel[] = R"(
shardplan: 1
dims: {B: 8, S: 8, H: 16, heads: 4, D: H/heads, E: 4, V: 24}
inputs: {tokens: {shape: [B, S], dtype: i32}, labels: {shape: [B, S], dtype: i32}}
blocks:
  layer:
    inputs: {x: [B, S, H]}
    parameters: {experts: [E, H, H]}
    operators:
      norm:   {block: nn.LayerNorm, in: x}
      qkv:    {block: nn.Dense, in: norm, out_channels: 3*H}
      parts:  {op: Reshape, in: qkv, shape: [B, S, heads, 3*D]}
      turned: {op: Transpose, in: parts, perm: [0, 2, 1, 3]}
      split:  {op: Split, in: turned, axis: 3, output_num: 3, out: [q, k, v]}
      core:   {op: FlashAttention, in: [q, k, v], causal: true, out: [context, lse]}
      back:   {op: Transpose, in: context, perm: [0, 2, 1, 3]}
      merged: {op: Reshape, in: back, shape: [B, S, H]}
      mixed:  {op: Einsum, in: [merged, experts], equation: "bsh,ehf->bsf"}
      add:    {op: Add, in: [x, mixed]}
operators:
  wte:    {block: nn.Embedding, in: tokens, vocab_size: V, embedding_size: H}
  layers: {block: layer, in: wte, repeat: 2}
  head:   {op: MatMul, in: [layers, wte.embedding_table], transpose_b: true}
  loss:   {block: nn.SoftmaxCrossEntropyWithLogits, in: [head, labels], sparse: true, reduction: mean}
loss: loss
)";

std::string text_with(const std::string& training, bool marks) {
  return kModel + std::string("training: {optimizer: adamw") + training + "}\n" +
         (marks ? "fp8: [layers.*, head]\n" : "");
}

TEST(Float8Proof, TheStepIsThatOfTheUnmarkedModel) {
  const OperatorGraph plain = planned_graph(read_model_text(text_with("", false), "plain.yaml"));
  const OperatorGraph marked = planned_graph(read_model_text(text_with("", true), "marked.yaml"));
  EXPECT_GT(marked.operators().size(), plain.operators().size() + 10);
  EXPECT_EQ(expect_same_step(plain, marked), 11u);
}

// Any strategies of all operators, casts among them, with micro-batches and recomputation.
TEST(Float8Proof, AnyPlanComputesWhatOneDeviceDoes) {
  for (const char* training : {", mixed_precision: bf16, micro_batches: 2", ", recompute: [layers.*]",
                               ", recompute: [layers.*.qkv.matmul, layers.*.mixed]"}) {
    const PlannedModel planned(read_model_text(text_with(training, true), "marked.yaml"), "dgx-h100", {});
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      const Proof proof = prove(random_plan(planned, seed), {.validation = {.steps = 2}});
      EXPECT_TRUE(proof.is_proven()) << training << ", seed " << seed;
    }
  }
}

// Weights of one byte in inference, in f8 and in i8.
TEST(Float8Proof, NarrowWeightsComputeTheSame) {
  for (const char* marks : {"fp8: [layers.*, head]\n", "int8_weights: [layers.*, head]\n"}) {
    std::string text = kModel;
    text = text.substr(0, text.find("  head:")) +
           "  head: {op: MatMul, in: [layers, out], transpose_b: true}\nparameters: {out: [V, H]}\n" + marks;
    text.replace(text.find(", labels: {shape: [B, S], dtype: i32}"), 37, "");
    const PlannedModel planned(read_model_text(text, "narrow.yaml"), "dgx-h100", {});
    const GraphTensor& stored = planned.graph.tensor(*planned.graph.find_tensor("layers.1.experts"));
    EXPECT_EQ(element_bytes(stored.type.dtype), 1) << marks;
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      const Proof proof = prove(random_plan(planned, seed), {.validation = {.steps = 1}});
      EXPECT_TRUE(proof.is_proven()) << marks << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace shardplan
