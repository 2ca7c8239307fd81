// What a plan says about the padding of its model.
#include "report/metrics/padding_waste.h"

#include <gtest/gtest.h>

#include "base/json_text.h"
#include "model/read_model.h"
#include "planner/model_planner.h"
#include "report/plan/explain_report.h"
#include "report/plan/summary.h"
#include "report/plan_file/plan_file.h"
#include "report/plan_file/plan_json.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

Plan padded_plan(const std::string& dims) {
  const std::string text = "shardplan: 1\ndims: {" + dims + R"(}
inputs:
  tokens: {shape: [B], dtype: i32}
  labels: {shape: [B], dtype: i32}
operators:
  words: {block: nn.Embedding, in: tokens, vocab_size: V, embedding_size: 64}
  head:  {op: MatMul, in: [words, words.embedding_table], transpose_b: true}
  loss:  {op: SparseSoftmaxCrossEntropyWithLogits, in: [head, labels]}
loss: loss
training: {optimizer: sgd, learning_rate: 0.01}
)";
  const auto model = std::make_shared<const Model>(read_model_text(text, "padded.yaml"));
  return ModelPlanner(model, take_devices(read_cluster("dgx-a100"), 2), {}).plan(Level::kSpeed, "auto");
}

TEST(PaddingWasteTest, CountsBytesAtThePeakAndMasks) {
  const Plan plan = padded_plan("B: 64, V: {size: 100, pad: 64}");
  const PaddingWaste waste = padding_waste(plan);
  EXPECT_GT(waste.masks, 0);
  // 28 of 128 words or classes are padding; B x 64 numbers have none.
  EXPECT_GT(waste.at_peak, 0);
  EXPECT_LT(waste.at_peak, plan.memory.peak * 28 / 128);
  const std::string summary = summary_report(plan, {});
  expect_has(summary, "  padding     V 128 (100 + 28 padding):\n");
  expect_has(summary, "of the peak are padding, masks take ");
  const OperatorId head = *plan.graph->find_operator("head");
  EXPECT_EQ(padded_dimensions(plan, head),
            (std::vector<std::string>{"dimension 0 of words.embedding_table is 128 (100 + 28 padding)",
                                      "dimension 1 of head is 128 (100 + 28 padding)"}));
}

TEST(PaddingWasteTest, APlanFileKeepsIt) {
  const Plan plan = padded_plan("B: 64, V: {size: 100, pad: 64}");
  const std::string text = plan_json(plan);
  expect_has(text, R"("V": {"size": 100, "padded": 128})");
  expect_has(text, R"("unpadded_shape": [100, 64])");
  const PlanFile file = read_plan_file(text, "plan.json");
  const Model again = model_source(file.model_text, file.model_file)->at({file.options.dims, file.options.strategies});
  EXPECT_EQ(again.padded_dims, plan.model->padded_dims);
  EXPECT_EQ(again.graph.operators().size(), plan.model->graph.operators().size());
}

TEST(PaddingWasteTest, IsNoLineWithoutPadding) {
  const Plan plan = padded_plan("B: 64, V: {size: 128, pad: 64}");
  EXPECT_EQ(padding_line(plan), "");
  EXPECT_EQ(padding_waste(plan).at_peak, 0);
  EXPECT_EQ(padding_waste(plan).masks, 0);
}

}  // namespace
}  // namespace shardplan
