// Models with sizes that the mesh does not divide: every plan, even a random one, computes the same as one device,
// although buffers are padded with NaN; and missing trims are detected.
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>

#include "model/read_model.h"
#include "simulator/proof/mutations.h"
#include "simulator/proof/prove.h"
#include "tests/simulator/small_model.h"
#include "tests/support/random_plan.h"

namespace shardplan {
namespace {

std::string verdict_of(const Proof& proof) {
  if (!proof.shrinking.refusal.empty()) return proof.shrinking.refusal;
  if (!proof.validation.first_wrong) return "proven";
  const FirstWrong& wrong = *proof.validation.first_wrong;
  return wrong.tensor + " made by " + wrong.instruction + ": " + wrong.looks_like;
}

bool has_uneven_strategy(const Plan& plan) {
  for (const OperatorId op : plan.graph->operators().ids()) {
    if (is_uneven(plan.graph->operation(op), plan.strategies[op])) return true;
  }
  return false;
}

const char* const kTransformer = R"(
shardplan: 1
model: odd
dims: {B: 6, T: 13, H: 24, heads: 6, D: H/heads, F: 31, V: 29}
inputs:
  tokens: {shape: [B, T], dtype: i32}
  label: {shape: [B, T], dtype: i32}
operators:
  wte:     {block: nn.Embedding, in: tokens, vocab_size: V, embedding_size: H}
  norm:    {block: nn.LayerNorm, in: wte}
  qkv:     {block: nn.Dense, in: norm, out_channels: 3*H}
  by_head: {op: Reshape, in: qkv, shape: [B, T, heads, 3*D]}
  split:   {op: Split, in: by_head, axis: 3, output_num: 3, out: [q, k, v]}
  q_t:     {op: Transpose, in: q, perm: [0, 2, 1, 3]}
  k_t:     {op: Transpose, in: k, perm: [0, 2, 1, 3]}
  v_t:     {op: Transpose, in: v, perm: [0, 2, 1, 3]}
  scores:  {op: BatchMatMul, in: [q_t, k_t], transpose_b: true}
  probs:   {op: Softmax, in: scores, axis: -1}
  drop:    {op: Dropout, in: probs, keep_prob: 0.9}
  context: {op: BatchMatMul, in: [drop, v_t]}
  merge:   {op: Transpose, in: context, perm: [0, 2, 1, 3]}
  merged:  {op: Reshape, in: merge, shape: [B, T, H]}
  up:      {block: nn.Dense, in: merged, out_channels: F}
  gelu:    {op: GeLU, in: up}
  down:    {block: nn.Dense, in: gelu, out_channels: H}
  head:    {op: MatMul, in: [down, wte.embedding_table], transpose_b: true}
  loss:    {block: nn.SoftmaxCrossEntropyWithLogits, in: [head, label], sparse: true, reduction: mean}
loss: loss
training: {optimizer: adamw, learning_rate: 1e-2}
)";

const char* const kFlash = R"(
shardplan: 1
model: flash
dims: {B: 5, T: 13, H: 28, F: 27}
inputs: {x: [B, T, H], z: [B, T, F]}
operators:
  q:    {block: nn.Dense, in: x, out_channels: H}
  heads: {op: Reshape, in: q, shape: [B, T, 7, 4]}
  a:    {op: FlashAttention, in: [heads, heads, heads], causal: true, input_layout: BSND, out: [o, lse]}
  flat: {op: Reshape, in: o, shape: [B, T, H]}
  f:    {block: nn.Dense, in: flat, out_channels: F}
  diff: {op: Sub, in: [f, z]}
  sq:   {op: Square, in: diff}
  loss: {op: ReduceMean, in: sq}
loss: loss
training: {optimizer: momentum, learning_rate: 1e-2, momentum: 0.9}
)";

const char* const kPooled = R"(
shardplan: 1
model: pooled
dims: {B: 7, C: 9, classes: 11}
inputs: {image: [B, 3, 8, 8], label: {shape: [B], dtype: i32}}
operators:
  conv: {block: nn.Conv2d, in: image, out_channels: C, kernel_size: 3, pad_mode: same}
  bn:   {block: nn.BatchNorm2d, in: conv}
  relu: {op: ReLU, in: bn}
  mean: {op: ReduceMean, in: relu, axis: [2, 3]}
  head: {block: nn.Dense, in: mean, out_channels: classes}
  loss: {block: nn.SoftmaxCrossEntropyWithLogits, in: [head, label], sparse: true, reduction: mean}
loss: loss
training: {optimizer: adamw, learning_rate: 1e-2}
)";

struct OddModel {
  const char* name;
  const char* text;
  int plans;
};
void PrintTo(const OddModel& c, std::ostream* out) { *out << c.name; }
const OddModel kOddModels[] = {
    {"transformer", kTransformer, 4}, {"flash_attention", kFlash, 4}, {"pooled", kPooled, 4}};

class UnevenModels : public testing::TestWithParam<OddModel> {};

TEST_P(UnevenModels, RandomPlansComputeWhatOneDeviceDoes) {
  const PlannedModel planned(read_model_text(GetParam().text, "odd.yaml"), "ascend-910", {{"x", 2}, {"y", 4}},
                             UnevenCuts::kWhereNothingElseFits);
  int uneven = 0;
  for (int i = 0; i < GetParam().plans; ++i) {
    const Plan plan = random_plan(planned, static_cast<std::uint64_t>(i));
    uneven += has_uneven_strategy(plan) ? 1 : 0;
    EXPECT_EQ(verdict_of(prove(plan, {.validation = {.steps = 2}, .shrink = false})), "proven") << "seed " << i;
    EXPECT_EQ(verdict_of(prove(plan, {.validation = {.steps = 1}})), "proven") << "shrunk, seed " << i;
    EXPECT_EQ(check_groups_and_boxes(plan.program), "") << "seed " << i;
  }
  EXPECT_GT(uneven, GetParam().plans / 2);
}
INSTANTIATE_TEST_SUITE_P(Models, UnevenModels, testing::ValuesIn(kOddModels),
                         [](const auto& tested) { return std::string(tested.param.name); });

std::vector<MutationResult> mutations_of(SmallModel& model) {
  const SmallModel::Built built = model.build();
  EXPECT_EQ(check_program(built.program, built.graph), "");
  EXPECT_TRUE(validate(built.program, built.graph, {}).is_equal());
  return test_mutations(built.program, built.graph, {});
}

std::string outcome_of(const std::vector<MutationResult>& results, const std::string& description) {
  for (const MutationResult& result : results) {
    if (result.mutation.description != description) continue;
    switch (result.outcome) {
      case MutationOutcome::kCaught:
        return "caught in " + result.caught_in;
      case MutationOutcome::kWithoutEffect:
        return "without effect";
      case MutationOutcome::kUncaught:
        return "not caught";
    }
  }
  std::string all = "not among:";
  for (const MutationResult& result : results) all += "\n" + result.mutation.description;
  return all;
}

TEST(UnevenFaults, ATrimLeftOutIsCaught) {
  SmallModel model("x=4");
  const ValueId input = model.give("input", {10, 6}, TensorKind::kInput, "[{x}, {}]");
  const ValueId square = model.run("square", "Square", {input}, "{x}, {}");
  model.put_out(model.move(square, "[{}, {}]"));
  model.put_out(model.move(model.run("total", "Total", {square}, "{x}, {}"), "[]"));
  const std::vector<MutationResult> results = mutations_of(model);
  for (const MutationResult& result : results) EXPECT_NE(result.outcome, MutationOutcome::kUncaught);
  EXPECT_EQ(outcome_of(results, "boxes of total not trimmed"), "caught in total");
  // A piece's values are right, whatever its padding contains.
  EXPECT_EQ(outcome_of(results, "boxes of square not trimmed"), "without effect");
  int gathers = 0;
  for (const MutationResult& result : results) {
    const std::string& text = result.mutation.description;
    if (text.find("all_gather") == std::string::npos || text.find("not trimmed") == std::string::npos) continue;
    ++gathers;
    EXPECT_EQ(result.outcome, MutationOutcome::kCaught) << text;
  }
  EXPECT_EQ(gathers, 1);
}

double run_output(const SmallModel::Built& built, std::string_view name) {
  Executor executor(built.program, built.graph, {});
  executor.start(0, [&](TensorId id, std::uint64_t) {
    const auto count = static_cast<std::size_t>(num_elements(built.graph.tensor(id).type.shape));
    return TensorValues(count, 1.0);
  });
  while (!executor.is_done()) executor.run_next();
  for (const Binding& output : built.program.outputs) {
    if (built.graph.tensor(output.tensor).name == name) return executor.value(output.value).data[0][0];
  }
  return NAN;
}

// vLLM pull request 13934: if the ranks did not divide the vocabulary, a rank's logits contained rows of padding, and
// the result contained words that do not exist. Here each rank holds an actual interval: 10 rows of ones on four ranks
// add up to 10, not 12.
TEST(UnevenFaults, Vllm13934PaddedRowsCountForNothing) {
  SmallModel model("x=4");
  const ValueId input = model.give("input", {10, 1}, TensorKind::kInput, "[{x}, {}]");
  const ValueId total = model.run("total", "Total", {input}, "{x}, {}");
  model.put_out(model.move(total, "[]"));
  EXPECT_EQ(run_output(model.build(), "total"), 10);
}

// PyTorch issue 162692: the mean over a dimension that DTensor held in 3, 3, 3 and 1 rows was the mean of the ranks'
// means. Here every row has the same weight.
TEST(UnevenFaults, Dtensor162692AMeanOverUnevenShardsWeighsEveryRowAlike) {
  Model model = read_model_text(R"(
shardplan: 1
model: mean
inputs: {x: [10, 4]}
operators:
  mean: {op: ReduceMean, in: x, axis: 0, in_strategy: [[{x}, {}]]}
outputs: [mean]
)",
                                "mean.yaml");
  const DeviceMesh mesh = DeviceMesh::parse("x=4");
  const UserStrategies user = resolve_user_strategies(model.graph, mesh, {}, UnevenCuts::kWhereNothingElseFits);
  const OperatorId op = *model.graph.find_operator("mean");
  ASSERT_EQ(user.operators[op].size(), 1u);
  const Operation& operation = model.graph.operation(op);
  std::vector<double> x;
  for (int i = 0; i < 40; ++i) x.push_back(i / 4);  // row r holds r
  const TensorLayout from = operand_layout(operation, user.operators[op][0], mesh, 0);
  const DeviceBuffers pieces = scatter(x, {10, 4}, from, mesh);
  double sum = 0;
  for (std::int64_t point = 0; point < 4; ++point) {
    const std::vector<Box> own = boxes(operation, user.operators[op][0], mesh, point);
    const std::int64_t rows = own[0].size();
    std::vector<double> result(4, 0.0);
    const std::vector<OperandView> operands = {
        {pieces[static_cast<std::size_t>(point)].data(), {rows, 4}, {own[0].begin, 0}}};
    const std::vector<ResultView> results = {{result.data(), {4}}};
    operation.type->kernel({operation, own, operands, results, 0});
    sum += result[0];
  }
  EXPECT_DOUBLE_EQ(sum, 4.5);  // the mean of the ranks' means is (1 + 4 + 7 + 9) / 4 = 5.25
}

}  // namespace
}  // namespace shardplan
