// A training step under `autocast` computes the same as without it, as kernels do not round here; and its plans are
// proven.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "model/planned_model.h"
#include "model/read_model.h"
#include "simulator/proof/prove.h"
#include "tests/support/random_plan.h"
#include "tests/support/same_step.h"

namespace shardplan {
namespace {

/// A shipped file without dropout, whose masks depend on names, and in f32.
std::string plain_text_of(const std::string& path) {
  std::stringstream read;
  read << std::ifstream(path).rdbuf();
  std::string text = read.str();
  for (const auto& [from, to] : {std::pair{"keep_prob: 0.9", "keep_prob: 1.0"},
                                 {", mixed_precision: bf16", ""},
                                 {", mixed_precision: f16", ""}}) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
      text.replace(at, std::string(from).size(), to);
    }
  }
  return text;
}

std::size_t num_conversions(const OperatorGraph& graph) {
  std::size_t count = 0;
  for (const OperatorId id : graph.operators().ids()) {
    count += graph.operation(id).type->role == OperatorRole::kConversion ? 1 : 0;
  }
  return count;
}

struct Network {
  const char* path;
  std::map<std::string, std::int64_t> dims;
};
void PrintTo(const Network& network, std::ostream* out) { *out << network.path; }

class AutocastNetworks : public testing::TestWithParam<Network> {};

TEST_P(AutocastNetworks, ComputeTheSameStep) {
  const std::string text = plain_text_of(GetParam().path);
  const ModelOverrides overrides{GetParam().dims, {}};
  const OperatorGraph wide = planned_graph(read_model_text(text, "wide.yaml", overrides));
  const OperatorGraph mixed = planned_graph(read_model_text(text + "\nautocast: bf16\n", "mixed.yaml", overrides));
  EXPECT_GT(num_conversions(mixed), num_conversions(wide) + 10);
  expect_same_step(wide, mixed);
}

const Network kNetworks[] = {
    {"configs/gpt2-small.yaml", {{"B", 2}, {"S", 8}, {"H", 16}, {"heads", 2}, {"L", 2}, {"V", 16}}},
    {"configs/llama-7b.yaml", {{"B", 2}, {"S", 8}, {"H", 16}, {"heads", 2}, {"F", 24}, {"L", 2}, {"V", 16}}},
    {"configs/models/dit-xl2.yaml",
     {{"B", 2}, {"side", 8}, {"H", 16}, {"heads", 2}, {"L", 2}, {"classes", 5}, {"waves", 8}}},
    {"configs/models/lstm-lm.yaml", {{"B", 2}, {"H", 8}, {"V", 16}}},
    {"configs/models/efficientnet-b0.yaml",
     {{"B", 4},
      {"image", 32},
      {"w0", 4},
      {"w1", 4},
      {"w2", 4},
      {"w3", 4},
      {"w4", 4},
      {"w5", 4},
      {"w6", 4},
      {"w7", 2},
      {"w8", 8},
      {"fewer", 2},
      {"classes", 4}}},
    {"configs/models/mamba-370m.yaml", {{"B", 2}, {"S", 4}, {"H", 16}, {"N", 2}, {"L", 1}, {"V", 16}}},
};
INSTANTIATE_TEST_SUITE_P(Shipped, AutocastNetworks, testing::ValuesIn(kNetworks));

// Any strategies of all operators, casts among them.
TEST(AutocastProof, AnyPlanComputesWhatOneDeviceDoes) {
  const PlannedModel planned(read_model_text(R"(
shardplan: 1
autocast: f16
dims: {B: 8, S: 8, H: 16, heads: 4, D: H/heads, V: 24}
inputs: {tokens: {shape: [B, S], dtype: i32}, labels: {shape: [B, S], dtype: i32}}
blocks:
  layer:
    inputs: {x: [B, S, H]}
    parameters: {scale: [H]}
    operators:
      norm:   {block: nn.LayerNorm, in: x}
      qkv:    {block: nn.Dense, in: norm, out_channels: 3*H}
      parts:  {op: Reshape, in: qkv, shape: [B, S, heads, 3*D]}
      turned: {op: Transpose, in: parts, perm: [0, 2, 1, 3]}
      split:  {op: Split, in: turned, axis: 3, output_num: 3, out: [q, k, v]}
      scores: {op: BatchMatMul, in: [q, k], transpose_b: true}
      probs:  {op: Softmax, in: scores}
      mixed:  {op: BatchMatMul, in: [probs, v]}
      back:   {op: Transpose, in: mixed, perm: [0, 2, 1, 3]}
      merged: {op: Reshape, in: back, shape: [B, S, H]}
      out:    {block: nn.Dense, in: merged, out_channels: H}
      scaled: {op: Mul, in: [out, scale]}
      add:    {op: Add, in: [x, scaled]}
operators:
  wte:    {block: nn.Embedding, in: tokens, vocab_size: V, embedding_size: H}
  layers: {block: layer, in: wte, repeat: 2}
  head:   {op: MatMul, in: [layers, wte.embedding_table], transpose_b: true}
  loss:   {block: nn.SoftmaxCrossEntropyWithLogits, in: [head, labels], sparse: true, reduction: mean}
loss: loss
training: {optimizer: adamw, clip_norm: 1, micro_batches: 2}
)",
                                             "autocast.yaml"),
                             "dgx-a100", {});
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const Proof proof = prove(random_plan(planned, seed), {.validation = {.steps = 2}});
    EXPECT_TRUE(proof.is_proven()) << seed;
  }
}

}  // namespace
}  // namespace shardplan
