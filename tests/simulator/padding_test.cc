// Networks with padded dims compute the same as without padding, missing masks are detected, their plans are proven
// against the model without padding, and what cannot be exact is rejected.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "costmodel/cluster/cluster.h"
#include "model/planned_model.h"
#include "model/read_model.h"
#include "operators/catalogue.h"
#include "planner/model_planner.h"
#include "simulator/proof/prove.h"
#include "simulator/proof/unpadded.h"

namespace shardplan {
namespace {

/// A decoder of one layer whose sizes are the dims of the case.
std::string padded_decoder(const std::string& dims, const std::string& training) {
  return "shardplan: 1\nmodel: decoder\ndims: {" + dims + R"(}
inputs:
  tokens: {shape: [B, S], dtype: i32}
  labels: {shape: [B, S], dtype: i32}
constants:
  positions: {shape: [S], dtype: i32, fill: iota}
  scale: 1/sqrt(D)
  mask: {shape: [S, S], fill: causal}
operators:
  wte:     {block: nn.Embedding, in: tokens, vocab_size: V, embedding_size: H}
  wpe:     {block: nn.Embedding, in: positions, vocab_size: S, embedding_size: H}
  embed:   {op: Add, in: [wte, wpe]}
  norm:    {block: nn.LayerNorm, in: embed}
  qkv:     {block: nn.Dense, in: norm, out_channels: 3*heads*D}
  apart:   {op: Reshape, in: qkv, shape: [B, S, 3, heads, D]}
  split:   {op: Split, in: apart, axis: 2, output_num: 3, out: [q3, k3, v3]}
  q:       {op: Reshape, in: q3, shape: [B, S, heads, D]}
  k:       {op: Reshape, in: k3, shape: [B, S, heads, D]}
  v:       {op: Reshape, in: v3, shape: [B, S, heads, D]}
  q_t:     {op: Transpose, in: q, perm: [0, 2, 1, 3]}
  k_t:     {op: Transpose, in: k, perm: [0, 2, 1, 3]}
  v_t:     {op: Transpose, in: v, perm: [0, 2, 1, 3]}
  scores:  {op: BatchMatMul, in: [q_t, k_t], transpose_b: true}
  scaled:  {op: Mul, in: [scores, scale]}
  masked:  {op: Add, in: [scaled, mask]}
  probs:   {op: Softmax, in: masked, axis: -1}
  drop:    {op: Dropout, in: probs, keep_prob: 0.8}
  context: {op: BatchMatMul, in: [drop, v_t]}
  merge:   {op: Transpose, in: context, perm: [0, 2, 1, 3]}
  merged:  {op: Reshape, in: merge, shape: [B*S, heads*D]}
  proj:    {block: nn.Dense, in: merged, out_channels: H}
  rows:    {op: Reshape, in: embed, shape: [B*S, H]}
  sum:     {op: Add, in: [proj, rows]}
  up:      {block: nn.Dense, in: sum, out_channels: F}
  gelu:    {op: GeLU, in: up}
  down:    {block: nn.Dense, in: gelu, out_channels: H}
  head:    {op: MatMul, in: [down, wte.embedding_table], transpose_b: true}
  flat:    {op: Reshape, in: labels, shape: [B*S]}
  loss:    {op: SparseSoftmaxCrossEntropyWithLogits, in: [head, flat]}
loss: loss
training: {)" +
         training + "}\n";
}

const char* const kPaddedFlash = R"(
inputs: {x: [B, S, H], z: [B, S, F]}
operators:
  q:     {block: nn.Dense, in: x, out_channels: heads*D}
  k:     {block: nn.Dense, in: x, out_channels: heads*D}
  q4:    {op: Reshape, in: q, shape: [B, S, heads, D]}
  k4:    {op: Reshape, in: k, shape: [B, S, heads, D]}
  a:     {op: FlashAttention, in: [q4, k4, k4], input_layout: BSND, causal: false, keep_prob: KEPT, out: [o, lse]}
  flat:  {op: Reshape, in: o, shape: [B, S, heads*D]}
  gamma: {block: nn.Dense, in: flat, out_channels: F}
  diff:  {op: Sub, in: [gamma, z]}
  sq:    {op: Square, in: diff}
  loss:  {op: ReduceMean, in: sq}
loss: loss
training: {optimizer: adam, learning_rate: 1e-2}
)";

const char* const kRms = R"(
inputs: {x: [B, H], z: {shape: [B], dtype: i32}}
parameters: {gamma: [H], u: [H, F], w: [F, C]}
operators:
  norm: {op: RmsNorm, in: [x, gamma]}
  up:   {op: MatMul, in: [norm, u]}
  act:  {op: SiLU, in: up}
  out:  {op: MatMul, in: [act, w]}
  loss: {block: nn.SoftmaxCrossEntropyWithLogits, in: [out, z], sparse: true, reduction: mean}
loss: loss
training: {optimizer: adamw, learning_rate: 1e-2, clip_norm: 0.1}
)";

const char* const kPaddedExperts = R"(
inputs: {x: [G, T, H], z: [G, T, H]}
parameters: {gate: [H, E], up: [E, H, F], down: [E, F, H]}
operators:
  logits:  {op: MatMul, in: [x, gate]}
  route:   {op: TopKRouter, in: logits, k: 2, out: [gates, chosen]}
  slots:   {op: ExpertSlots, in: chosen, num_experts: E, capacity: C}
  sent:    {op: Dispatch, in: [x, chosen, slots], num_experts: E, capacity: C}
  by:      {op: Reshape, in: sent, shape: [E, G*C, H]}
  hidden:  {op: BatchMatMul, in: [by, up]}
  act:     {op: ReLU, in: hidden}
  back:    {op: BatchMatMul, in: [act, down]}
  apart:   {op: Reshape, in: back, shape: [E, G, C, H]}
  y:       {op: Combine, in: [apart, chosen, slots, gates]}
  diff:    {op: Sub, in: [y, z]}
  sq:      {op: Square, in: diff}
  loss:    {op: ReduceMean, in: sq}
loss: loss
training: {optimizer: adam, learning_rate: 1e-2}
)";

const char* const kPaddedReductions = R"(
inputs: {x: [A, C], y: [A, C]}
operators:
  exp:  {op: Exp, in: x}
  sum:  {op: ReduceSum, in: exp, axis: 1, keep_dims: true}
  div:  {op: Div, in: [exp, sum]}
  max:  {op: ReduceMax, in: y, axis: 1}
  min:  {op: ReduceMin, in: y}
  mean: {op: ReduceMean, in: div, axis: 0}
  log:  {op: LogSoftmax, in: y}
  all:  {op: ReduceMean, in: log}
  top:  {op: TopK, in: x, k: 2, out: [best, where]}
  run:  {op: CumSum, in: y, axis: 1, reverse: true}
  unit: {op: L2Normalize, in: y, axis: 1}
outputs: [div, max, min, mean, all, best, where, run, unit]
)";

/// Padding is between real positions.
const char* const kBetween = R"(
inputs: {x: [C, B], y: [C, B]}
operators:
  both: {op: Concat, in: [x, y], axis: 0}
  run:  {op: CumSum, in: both, axis: 0}
  mean: {op: ReduceMean, in: run}
  back: {op: Split, in: run, axis: 0, output_num: 2, out: [a, b]}
outputs: [mean, a, b]
)";

const char* const kPaddedConvolution = R"(
inputs: {image: [B, 3, 8, 8], label: {shape: [B], dtype: i32}}
operators:
  conv1: {block: nn.Conv2d, in: image, out_channels: C, kernel_size: 3, pad_mode: same}
  norm:  {block: nn.BatchNorm2d, in: conv1}
  relu:  {op: ReLU, in: norm}
  conv2: {block: nn.Conv2d, in: relu, out_channels: F, kernel_size: 3, pad_mode: valid}
  pool:  {op: ReduceMean, in: conv2, axis: [2, 3]}
  fc:    {block: nn.Dense, in: pool, out_channels: N}
  loss:  {op: SparseSoftmaxCrossEntropyWithLogits, in: [fc, label]}
loss: loss
training: {optimizer: momentum, learning_rate: 1e-2, momentum: 0.9}
)";

/// Queries of G groups of R heads; BATCH stands for the first dimensions, ROWS for all of them together.
const char* const kPaddedGroups = R"(
inputs: {x: [BATCH, S, H], z: [BATCH, S, F]}
operators:
  q:     {block: nn.Dense, in: x, out_channels: G*R*D}
  k:     {block: nn.Dense, in: x, out_channels: G*D}
  q4:    {op: Reshape, in: q, shape: [ROWS, S, G*R, D]}
  k4:    {op: Reshape, in: k, shape: [ROWS, S, G, D]}
  a:     {op: FlashAttention, in: [q4, k4, k4], input_layout: BSND, causal: true, keep_prob: KEPT, out: [o, lse]}
  flat:  {op: Reshape, in: o, shape: [BATCH, S, G*R*D]}
  gamma: {block: nn.Dense, in: flat, out_channels: F}
  diff:  {op: Sub, in: [gamma, z]}
  sq:    {op: Square, in: diff}
  loss:  {op: ReduceMean, in: sq}
loss: loss
training: {optimizer: adam, learning_rate: 1e-2}
)";

std::string with_dims(const std::string& dims, std::string body, const std::string& kept = "1",
                      const std::string& batch = "B", const std::string& rows = "B") {
  for (const auto& [name, value] :
       {std::pair<std::string, std::string>("KEPT", kept), {"BATCH", batch}, {"ROWS", rows}}) {
    for (std::size_t at; (at = body.find(name)) != std::string::npos;) body.replace(at, name.size(), value);
  }
  return "shardplan: 1\ndims: {" + dims + "}\n" + body;
}

struct PaddedCase {
  const char* name;
  std::string text;
};

std::string rms_of_two_bytes(const std::string& dtype) {
  std::string text = kRms;
  text.replace(text.find("clip_norm"), 9, "mixed_precision: " + dtype + ", clip_norm");
  return with_dims("B: 5, H: {size: 6, pad: 4}, F: 7, C: {size: 9, pad: 8}", text);
}

std::vector<PaddedCase> padded_cases() {
  const std::string adam = "optimizer: adamw, learning_rate: 1e-2, clip_norm: 0.5";
  const std::string rest = "H: 12, D: 4, F: 10";
  return {
      {"words", padded_decoder("B: 2, S: 5, heads: 3, V: {size: 13, pad: 8}, " + rest, adam)},
      {"heads", padded_decoder("B: 2, S: 5, heads: {size: 3, pad: 4}, V: 13, " + rest, adam)},
      {"sequence", padded_decoder("B: 2, S: {size: 5, pad: 4}, heads: 3, V: 13, " + rest, adam)},
      {"batch", padded_decoder("B: {size: 3, pad: 4}, S: 5, heads: 3, V: 13, " + rest, adam)},
      {"width", padded_decoder("B: 2, S: 5, heads: 3, V: 13, H: {size: 12, pad: 8}, D: 4, F: 10", adam)},
      {"depth",
       padded_decoder("B: 2, S: 5, heads: 3, V: 13, H: 12, D: {size: 3, pad: 4}, F: {size: 10, pad: 3}", adam)},
      {"all",
       padded_decoder("B: {size: 3, pad: 4}, S: {size: 5, pad: 4}, heads: {size: 3, pad: 4}, V: {size: 13, pad: 8}, "
                      "H: {size: 12, pad: 8}, D: {size: 3, pad: 4}, F: {size: 10, pad: 3}",
                      adam)},
      {"micro_batches",
       padded_decoder("B: {size: 6, pad: 4}, S: 5, heads: 3, V: 13, " + rest, adam + ", micro_batches: 2")},
      {"flash_sequence", with_dims("B: 2, S: {size: 5, pad: 4}, H: 6, F: 5, heads: 3, D: 4", kPaddedFlash)},
      {"flash_heads_and_depth",
       with_dims("B: 2, S: 5, H: 6, F: 5, heads: {size: 3, pad: 4}, D: {size: 3, pad: 4}", kPaddedFlash)},
      {"flash_all", with_dims("B: {size: 3, pad: 2}, S: {size: 5, pad: 8}, H: {size: 6, pad: 4}, F: {size: 5, pad: 3}, "
                              "heads: {size: 3, pad: 4}, D: {size: 3, pad: 4}",
                              kPaddedFlash)},
      {"flash_dropout", with_dims("B: {size: 3, pad: 2}, S: {size: 5, pad: 8}, H: {size: 6, pad: 4}, F: 5, "
                                  "heads: {size: 3, pad: 4}, D: {size: 3, pad: 4}",
                                  kPaddedFlash, "0.6")},
      {"flash_groups",
       with_dims("B: 2, S: {size: 5, pad: 4}, H: 6, F: 5, G: {size: 3, pad: 4}, R: 2, D: 4", kPaddedGroups, "0.6")},
      {"flash_heads_of_groups",
       with_dims("B: 2, S: 5, H: 6, F: 5, G: 2, R: {size: 3, pad: 4}, D: 4", kPaddedGroups, "0.6")},
      {"rms_in_bf16", rms_of_two_bytes("bf16")},
      {"rms_in_f16", rms_of_two_bytes("f16")},
      {"rms",
       with_dims("B: {size: 5, pad: 4}, H: {size: 6, pad: 4}, F: {size: 7, pad: 4}, C: {size: 9, pad: 8}", kRms)},
      {"experts", with_dims("G: 2, T: 6, H: 4, F: 5, E: {size: 3, pad: 4}, C: 2*2*T/E", kPaddedExperts)},
      {"experts_width",
       with_dims("G: {size: 3, pad: 2}, T: 6, H: {size: 4, pad: 3}, F: {size: 5, pad: 2}, E: 3, C: 4", kPaddedExperts)},
      {"reductions", with_dims("A: {size: 5, pad: 4}, C: {size: 6, pad: 4}", kPaddedReductions)},
      {"between", with_dims("C: {size: 5, pad: 4}, B: 3", kBetween)},
      {"channels",
       with_dims("B: 3, C: {size: 3, pad: 4}, F: {size: 5, pad: 4}, N: {size: 10, pad: 4}", kPaddedConvolution)},
  };
}

std::string difference_of(const UnpaddedComparison& found) {
  if (!found.missing.empty()) return fmt::format("missing {}", fmt::join(found.missing, ", "));
  if (!found.first_wrong) return "equal";
  return fmt::format("{} at {} in step {}: {} instead of {}", found.first_wrong->tensor,
                     to_string(found.first_wrong->index), found.first_wrong->step, found.first_wrong->found,
                     found.first_wrong->should_be);
}

Model padded_model(const std::string& text) {
  Model model = one_micro_batch(read_model_text(text, "padded.yaml"));
  EXPECT_TRUE(model.unpadded);
  return model;
}

class PaddedCaseTest : public testing::TestWithParam<PaddedCase> {};

TEST_P(PaddedCaseTest, ComputesWhatTheModelComputes) {
  const Model model = padded_model(GetParam().text);
  ASSERT_TRUE(model.unpadded);
  for (const std::uint64_t seed : {0, 1}) {
    const UnpaddedComparison found =
        compare_with_unpadded(planned_graph(model), planned_graph(*model.unpadded), {.seed = seed});
    EXPECT_EQ(difference_of(found), "equal");
    EXPECT_EQ(found.compared.has_loss, model.training.has_value());
    EXPECT_GT(found.compared.gradients + found.compared.outputs, 0u);
  }
}

/// Every mask of the forward pass is needed: without it something differs.
TEST_P(PaddedCaseTest, NeedsEveryMask) {
  const Model model = padded_model(GetParam().text);
  const OperatorGraph graph = planned_graph(model);
  std::size_t masks = 0;
  for (const OperatorId id : graph.operators().ids()) {
    const GraphOperator& op = graph.operators()[id];
    if (op.pass != Pass::kForward || graph.operation(id).type->name != "MaskPadding") continue;
    ++masks;
    OperatorGraphBuilder builder(graph);
    const OperationId identity =
        builder.intern(make_operation(*find_operator_type("Identity"), {}, graph.operation(id).operands));
    builder.op(id).operation = identity;
    const UnpaddedComparison found = compare_with_unpadded(builder.build(), planned_graph(*model.unpadded), {});
    EXPECT_NE(difference_of(found), "equal") << op.name << " left out";
  }
  EXPECT_GT(masks, 0u);
}

INSTANTIATE_TEST_SUITE_P(Padding, PaddedCaseTest, testing::ValuesIn(padded_cases()),
                         [](const auto& test) { return std::string(test.param.name); });

// If a loss reads logits of two bytes as f32, the logits of two bytes are masked.
TEST(PaddedCastTest, IsBehindTheMask) {
  for (const DataType dtype : {DataType::kBF16, DataType::kF16}) {
    const Model model = padded_model(rms_of_two_bytes(std::string(to_string(dtype))));
    std::size_t masks = 0;
    std::size_t of_logits = 0;
    for (const OperatorId id : model.graph.operators().ids()) {
      const Operation& operation = model.graph.operation(id);
      if (operation.type->name != "MaskPadding") continue;
      const GraphTensor& masked = model.graph.tensor(model.graph.operators()[id].results[0]);
      EXPECT_EQ(masked.type.dtype, dtype) << masked.name;
      ++masks;
      of_logits += operation.number("value") == -1e30 ? 1 : 0;
    }
    EXPECT_GT(masks, of_logits);
    EXPECT_EQ(of_logits, 1u);
  }
}

// ---- plans

class PaddedPlanTest : public testing::TestWithParam<std::tuple<const char*, int>> {};

/// Plans at every level, proven at shrunk sizes against the model without padding.
TEST_P(PaddedPlanTest, IsProven) {
  const auto [name, devices] = GetParam();
  const std::vector<PaddedCase> all = padded_cases();
  const auto found =
      std::find_if(all.begin(), all.end(), [&, n = name](const auto& c) { return std::string(c.name) == n; });
  ASSERT_NE(found, all.end());
  const auto model = std::make_shared<const Model>(read_model_text(found->text, "padded.yaml"));
  const bool is_bf16 = found->text.find("bf16") != std::string::npos;
  const Cluster cluster = take_devices(read_cluster(is_bf16 ? "dgx-a100" : "ascend-910"), devices);
  for (const int level : {0, 1, 2}) {
    const Plan plan = ModelPlanner(model, cluster, {}).plan(level_of(level), "auto");
    ASSERT_FALSE(plan.strategies.empty()) << level;
    const Proof proof = prove(plan, {});
    EXPECT_EQ(proof.shrinking.refusal, "");
    ASSERT_TRUE(proof.unpadded);
    EXPECT_EQ(difference_of(*proof.unpadded), "equal");
    EXPECT_TRUE(proof.is_proven()) << (proof.validation.first_wrong ? proof.validation.first_wrong->tensor : "");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Padding, PaddedPlanTest,
    testing::Combine(testing::Values("all", "micro_batches", "flash_all", "flash_dropout", "flash_heads_of_groups",
                                     "rms_in_bf16", "rms_in_f16", "experts"),
                     testing::Values(4)),
    [](const auto& test) { return fmt::format("{}_on_{}", std::get<0>(test.param), std::get<1>(test.param)); });

// ---- what is impossible

struct RefusedCase {
  const char* name;
  std::string text;
  const char* message;
};

class RefusedPaddingTest : public testing::TestWithParam<RefusedCase> {};

TEST_P(RefusedPaddingTest, NamesOperatorAndDimension) {
  try {
    (void)read_model_text(GetParam().text, "padded.yaml");
    FAIL() << "was read";
  } catch (const InputError& error) {
    const Diagnostic& fault = error.diagnostics().front();
    EXPECT_NE(fault.message.find(GetParam().message), std::string::npos) << fault.message;
    EXPECT_GT(fault.place.line, 0);
    EXPECT_GT(fault.place.column, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Padding, RefusedPaddingTest,
    testing::Values(
        RefusedCase{
            "windows", with_dims("B: 4, S: {size: 9, pad: 4}", R"(inputs: {x: [B, 2, S, S]}
operators:
  pool: {op: MaxPool, in: x, kernel_size: 2, strides: 1}
)"),
            "pool (MaxPool) slides a window over dimension 2 of x, 12 (9 + 3 padding); no mask makes that exact"},
        RefusedCase{"slices", with_dims("B: 4, S: {size: 9, pad: 4}", R"(inputs: {x: [B, S]}
operators:
  tail: {op: Slice, in: x, begin: [0, 1], size: [4, 5]}
)"),
                    "tail (Slice) needs the whole of dimension 1 of x, 12 (9 + 3 padding)"},
        RefusedCase{"statistics_of_the_batch", with_dims("B: {size: 3, pad: 4}, C: 3, F: 5, N: 10", kPaddedConvolution),
                    "norm.batch_norm (BatchNorm) needs the whole of dimension 0 of conv1"},
        RefusedCase{"dropout_counted_through_padding",
                    with_dims("A: 3, B: {size: 3, pad: 4}, S: 5, H: 6, F: 5, G: 2, R: 3, D: 4", kPaddedGroups, "0.6",
                              "A, B", "A*B"),
                    "a (FlashAttention) draws its dropout by dimension 0 of q4"},
        RefusedCase{"broadcast", with_dims("B: {size: 1, pad: 4}", R"(inputs: {x: [B, 4]}
operators:
  y: {op: ReLU, in: x}
)"),
                    "dimension 0 is 1 without padding and 4 with it"},
        RefusedCase{"shapes_that_do_not_grow", with_dims("A: {size: 6, pad: 4}, B: 12", R"(inputs: {x: [A, 2]}
operators:
  y: {op: Reshape, in: x, shape: [B]}
)"),
                    "y"},
        RefusedCase{"no_multiple", with_dims("A: {size: 6, pad: 0}", R"(inputs: {x: [A, 2]}
operators:
  y: {op: ReLU, in: x}
)"),
                    "dims: A: pad is '0'; expected a whole number from 1 to"},
        RefusedCase{"another_key", with_dims("A: {size: 6, multiple: 8}", R"(inputs: {x: [A, 2]}
operators:
  y: {op: ReLU, in: x}
)"),
                    "multiple"}),
    [](const auto& test) { return std::string(test.param.name); });

// ---- sizes

TEST(PaddedDimsTest, RoundUpAndWhatFollowsFromThem) {
  const std::string text =
      with_dims("V: {size: 50257, pad: 128}, W: 2*V, heads: {size: 12, pad: 8}, H: 768, D: H/heads",
                R"(inputs: {x: [V, W, heads, D]}
operators:
  y: {op: ReLU, in: x}
)");
  const Model model = read_model_text(text, "padded.yaml");
  EXPECT_EQ(model.dims.at("V"), 50304);
  EXPECT_EQ(model.dims.at("W"), 2 * 50304);
  EXPECT_EQ(model.dims.at("heads"), 16);
  EXPECT_EQ(model.dims.at("D"), 64);  // not 768 / 16
  EXPECT_EQ(model.unpadded->dims.at("V"), 50257);
  EXPECT_EQ(model.padded_dims.at("V"), (PaddedDim{50257, 50304}));
  EXPECT_EQ(to_string((*model.graph.tensor(*model.graph.find_tensor("x")).padding)[0]), "50304 (50257 + 47 padding)");
  // Another size is padded again; a size that divides is not.
  EXPECT_EQ(read_model_text(text, "padded.yaml", {.dims = {{"V", 1000}}, .strategies = {}}).dims.at("V"), 1024);
  EXPECT_FALSE(read_model_text(text, "padded.yaml", {.dims = {{"V", 128}, {"heads", 8}}, .strategies = {}}).unpadded);
}

}  // namespace
}  // namespace shardplan
