#include <gtest/gtest.h>

#include <memory>

#include "model/read_model.h"
#include "simulator/execute/reference.h"
#include "simulator/proof/prove.h"
#include "tests/support/marked_model.h"
#include "tests/support/random_plan.h"

namespace shardplan {
namespace {

/// Without the dropout, whose masks are drawn per micro-batch. `rows` is the whole batch.
Model model_of(const std::string& training, std::int64_t rows) {
  std::string text = layered_model(training);
  const std::string dropout = "keep_prob: 0.8";
  text.replace(text.find(dropout), dropout.size(), "keep_prob: 1.0");
  return read_model_text(text, "layered.yaml", {{{"B", rows}}, {}});
}

OperatorGraph graph_of(const std::string& training, std::int64_t rows) {
  return planned_graph(one_micro_batch(model_of(training, rows)));
}

/// One step of the whole batch at once, and one in micro-batches, from the same weights and with the same rows: the
/// second gets the rows of the first piece by piece.
void expect_same_step(std::int64_t count, const std::string& more) {
  const OperatorGraph whole = graph_of("", 24);
  const OperatorGraph parts = graph_of(", micro_batches: " + std::to_string(count) + more, 24);
  ASSERT_EQ(parts.micro_batches(), count);
  const StoredValues of_whole = [&](TensorId id, std::uint64_t) { return draw_tensor(whole, id, 5, 0); };
  const StoredValues of_parts = [&](TensorId id, std::uint64_t part) {
    const GraphTensor& tensor = parts.tensor(id);
    const TensorValues all = draw_tensor(whole, *whole.find_tensor(tensor.name), 5, 0);
    if (tensor.kind != TensorKind::kInput) return all;
    const auto size = static_cast<std::ptrdiff_t>(all.size()) / count;
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(part) * size;
    return TensorValues(begin, begin + size);
  };
  const ReferenceStep expected = run_reference(whole, of_whole, 5, 0, Precision::kFloat64);
  const ReferenceStep found = run_reference(parts, of_parts, 5, 0, Precision::kFloat64);
  EXPECT_NEAR(found.tensors[*parts.loss()][0], expected.tensors[*whole.loss()][0], 1e-14);
  std::size_t compared = 0;
  for (const TensorId id : whole.tensors().ids()) {
    if (!whole.tensor(id).updates) continue;
    const TensorValues& a = expected.tensors[id];
    const TensorValues& b = found.tensors[*parts.find_tensor(whole.tensor(id).name)];
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-14) << whole.tensor(id).name;
    ++compared;
  }
  EXPECT_EQ(compared, 36u);  // six parameters of each layer and their moments
}

TEST(MicroBatches, UpdateAsTheWholeBatchDoes) {
  expect_same_step(2, "");
  expect_same_step(3, "");
  expect_same_step(3, ", recompute: [layers.*]");
  expect_same_step(3, ", recompute: [layers.*.gelu, layers.*.drop]");
}

void expect_proven(const std::string& text, int plans, bool shrink) {
  const PlannedModel planned(read_model_text(text, "model.yaml"), "ascend-910", {{"x", 2}, {"y", 4}});
  ASSERT_GT(planned.graph.micro_batches(), 1);
  for (int seed = 0; seed < plans; ++seed) {
    const Plan plan = random_plan(planned, static_cast<std::uint64_t>(seed));
    const Proof proof = prove(plan, {.validation = {.steps = 2}, .shrink = shrink});
    EXPECT_EQ(proof.shrinking.refusal, "");
    EXPECT_TRUE(proof.is_proven()) << "plan " << seed << ": "
                                   << (proof.validation.first_wrong ? proof.validation.first_wrong->tensor : "");
  }
}

TEST(MicroBatches, RandomPlansComputeWhatOneDeviceDoes) {
  std::string text = layered_model(", micro_batches: 2");
  text.replace(text.find("B: 8"), 4, "B: 16");
  expect_proven(text, 4, false);
  text = layered_model(", micro_batches: 3, recompute: [layers.*]");
  text.replace(text.find("B: 8"), 4, "B: 24");
  expect_proven(text, 4, false);
}

TEST(MicroBatches, ShrinkToThree) {
  std::string text = layered_model(", micro_batches: 64");
  text.replace(text.find("B: 8"), 4, "B: 2048");
  expect_proven(text, 2, true);
}

/// Moving statistics carry over from one micro-batch to the next.
TEST(MicroBatches, StatisticsAreStoredWithEachMicroBatch) {
  expect_proven(R"(
shardplan: 1
model: normalised
dims: {B: 32, C: 8}
inputs: {x: [B, 4, 6, 6], y: [B, C, 6, 6]}
operators:
  conv:   {block: nn.Conv2d, in: x, out_channels: C, kernel_size: 3, pad_mode: same, has_bias: false}
  norm:   {block: nn.BatchNorm2d, in: conv}
  error:  {op: Sub, in: [norm, y]}
  square: {op: Square, in: error}
  loss:   {op: ReduceMean, in: square}
loss: loss
training: {optimizer: sgd, learning_rate: 0.1, micro_batches: 2}
)",
                3, false);
}

}  // namespace
}  // namespace shardplan
