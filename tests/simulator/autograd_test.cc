#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "graph/differentiate.h"
#include "model/read_model.h"
#include "simulator/execute/reference.h"

namespace shardplan {
namespace {

using NamedValues = std::map<std::string, TensorValues>;

struct ReferenceValues {
  NamedValues values;
  NamedValues gradients;
};

/// tests/data/README.md describes the file.
ReferenceValues read_values(const std::string& path) {
  ReferenceValues result;
  std::ifstream file(path, std::ios::binary);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string kind, name;
    words >> kind >> name;
    std::size_t count = 1, extent = 0;
    while (words >> extent) count *= extent;
    std::vector<float> numbers(count);
    file.read(reinterpret_cast<char*>(numbers.data()), static_cast<std::streamsize>(count * sizeof(float)));
    (kind == "gradient" ? result.gradients : result.values)[name] = TensorValues(numbers.begin(), numbers.end());
  }
  return result;
}

constexpr const char* kCnn = R"(
shardplan: 1
model: cnn_tiny
inputs: {x: [4, 3, 16, 16], labels: {shape: [4], dtype: i32}}
operators:
  c1:     {block: nn.Conv2d, in: x, out_channels: 8, kernel_size: 3, pad_mode: pad, padding: 1, has_bias: true}
  b1:     {block: nn.BatchNorm2d, in: c1, use_batch_statistics: false}
  relu1:  {op: ReLU, in: b1}
  c2:     {block: nn.Conv2d, in: relu1, out_channels: 16, kernel_size: 3, stride: 2, pad_mode: pad, padding: 1, group: 2, has_bias: true}
  b2:     {block: nn.BatchNorm2d, in: c2, use_batch_statistics: false}
  sk:     {block: nn.Conv2d, in: relu1, out_channels: 16, kernel_size: 1, stride: 2, pad_mode: pad, has_bias: true}
  sum:    {op: Add, in: [b2, sk]}
  relu2:  {op: ReLU, in: sum}
  pool:   {op: MaxPool, in: relu2, kernel_size: 2, strides: 2, pad_mode: valid}
  mean:   {op: ReduceMean, in: pool, axis: [2, 3]}
  fc:     {block: nn.Dense, in: mean, out_channels: 10}
  loss:   {block: nn.SoftmaxCrossEntropyWithLogits, in: [fc, labels], sparse: true, reduction: mean}
loss: loss
training: {optimizer: sgd}
)";

constexpr const char* kGpt2 = R"(
shardplan: 1
model: gpt2_tiny
dims: {B: 4, S: 16, H: 32, heads: 4, D: H/heads, V: 64}
inputs: {tokens: {shape: [B, S], dtype: i32}, labels: {shape: [B, S], dtype: i32}}
parameters: {wpe: [S, H]}
blocks:
  attention:
    inputs: {x: [B, S, H]}
    constants: {scale: 1/sqrt(D), mask: {shape: [S, S], fill: causal}}
    operators:
      qkv:     {block: nn.Dense, in: x, out_channels: 3*H}
      parts:   {op: Reshape, in: qkv, shape: [B, S, 3, heads, D]}
      turned:  {op: Transpose, in: parts, perm: [2, 0, 3, 1, 4]}
      split:   {op: Split, in: turned, axis: 0, output_num: 3, out: [q1, k1, v1]}
      q:       {op: Squeeze, in: q1, axis: 0}
      k:       {op: Squeeze, in: k1, axis: 0}
      v:       {op: Squeeze, in: v1, axis: 0}
      scores:  {op: BatchMatMul, in: [q, k], transpose_b: true}
      scaled:  {op: Mul, in: [scores, scale]}
      masked:  {op: Add, in: [scaled, mask]}
      probs:   {op: Softmax, in: masked, axis: -1}
      context: {op: BatchMatMul, in: [probs, v]}
      merge:   {op: Transpose, in: context, perm: [0, 2, 1, 3]}
      merged:  {op: Reshape, in: merge, shape: [B, S, H]}
      proj:    {block: nn.Dense, in: merged, out_channels: H}
  layer:
    inputs: {x: [B, S, H]}
    operators:
      ln1:  {block: nn.LayerNorm, in: x, epsilon: 1e-5}
      attn: {block: attention, in: ln1}
      add1: {op: Add, in: [x, attn]}
      ln2:  {block: nn.LayerNorm, in: add1, epsilon: 1e-5}
      fc:   {block: nn.Dense, in: ln2, out_channels: 4*H}
      gelu: {op: GeLU, in: fc, approximate: false}
      pr:   {block: nn.Dense, in: gelu, out_channels: H}
      add2: {op: Add, in: [add1, pr]}
operators:
  wte:     {block: nn.Embedding, in: tokens, vocab_size: V, embedding_size: H}
  embed:   {op: Add, in: [wte, wpe]}
  h:       {block: layer, in: embed, repeat: 2}
  lnf:     {block: nn.LayerNorm, in: h, epsilon: 1e-5}
  lm_head: {block: nn.Dense, in: lnf, out_channels: V, has_bias: false}
  loss:    {block: nn.SoftmaxCrossEntropyWithLogits, in: [lm_head, labels], sparse: true, reduction: mean}
loss: loss
training: {optimizer: sgd}
)";

struct AutogradCase {
  const char* name;
  const char* model;
  std::size_t gradients;
};
void PrintTo(const AutogradCase& c, std::ostream* out) { *out << c.name; }

class Autograd : public testing::TestWithParam<AutogradCase> {};

// Ours are in float64, PyTorch's in float32: equal up to the rounding of the latter.
TEST_P(Autograd, LossAndGradientsAreThoseOfPyTorch) {
  const AutogradCase& c = GetParam();
  const ReferenceValues expected = read_values("tests/data/" + std::string(c.name) + ".values");
  const Model model = read_model_text(c.model, c.name);
  const OperatorGraph graph = differentiate(model.graph, *model.training);
  const auto given = [&](TensorId id, std::uint64_t) { return expected.values.at(graph.tensor(id).name); };
  const ReferenceStep step = run_reference(graph, given, 0, 0, Precision::kFloat64);
  EXPECT_NEAR(step.tensors[*graph.loss()][0], expected.values.at("loss")[0], 1e-6);

  std::size_t compared = 0;
  for (const GraphOperator& op : graph.operators()) {
    if (op.pass != Pass::kUpdate) continue;
    const auto found = expected.gradients.find(graph.tensor(op.operands.front()).name);
    if (found == expected.gradients.end()) continue;
    const TensorValues& ours = step.tensors[op.operands.back()];
    ASSERT_EQ(ours.size(), found->second.size()) << found->first;
    double largest = 0, worst = 0;
    for (std::size_t i = 0; i < ours.size(); ++i) {
      largest = std::max(largest, std::abs(found->second[i]));
      worst = std::max(worst, std::abs(ours[i] - found->second[i]));
    }
    EXPECT_LE(worst, 2e-6 * std::max(largest, 0.01)) << found->first;
    ++compared;
  }
  EXPECT_EQ(compared, c.gradients);
  EXPECT_EQ(compared, expected.gradients.size());
}

const AutogradCase kAutogradCases[] = {{"cnn_tiny", kCnn, 12}, {"gpt2_tiny", kGpt2, 25}};
INSTANTIATE_TEST_SUITE_P(Models, Autograd, testing::ValuesIn(kAutogradCases),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace shardplan
