#include "report/plan/explain_report.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/read_model.h"
#include "planner/model_planner.h"
#include "report/metrics/uneven_cuts.h"
#include "report/text/strategy_text.h"
#include "tests/support/golden.h"
#include "tests/support/hand_plan.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

TEST(ExplainReportTest, ShowsTheChosenStrategyAndOrdersTheOthers) {
  const Plan plan = tiny_plan();
  Explanation explanation;
  explanation.plan = &plan;
  explanation.op = *plan.graph->find_operator("layers.0.up.matmul");
  const Operation& operation = plan.graph->operation(explanation.op);
  Strategy by_columns, repeated;
  by_columns.factors.resize(operation.rule.factors.size());
  repeated = by_columns;
  by_columns.factors[*operation.rule.find("n")] = parse_axes("{pcie, hccs}", plan.mesh);
  StepTime gathered = plan.time, all = plan.time;
  gathered.exposed += 1'000'000'000;
  gathered.communication += 1'000'000'000;
  all.repeated = all.computation += 9'000'000'000;
  explanation.alternatives = {{repeated, all, plan.memory.peak + 2048, false},
                              {by_columns, gathered, plan.memory.peak, true}};
  const std::string text = explain_report(explanation);
  expect_fits_terminal(text);
  expect_golden("report/explain.txt", text);
  expect_golden("report/explain.json", explain_json(explanation));
  EXPECT_EQ(alternative_reason(plan, explanation.op, repeated), "all work done 8 times");
}

// The chosen strategy repeats work as well, four times: that is no reason against others that repeat no more of it.
TEST(ExplainReportTest, OnlyMoreRepetitionIsAReason) {
  const Plan plan = tiny_plan();
  const OperatorId op = *plan.graph->find_operator("layers.0.up.matmul");
  const Operation& operation = plan.graph->operation(op);
  ASSERT_EQ(strategy_words(operation, plan.strategies[op], plan.mesh), "b over pcie");
  const auto reason = [&](const std::string& factor, const std::string& axes) {
    Strategy strategy;
    strategy.factors.resize(operation.rule.factors.size());
    strategy.factors[*operation.rule.find(factor)] = parse_axes(axes, plan.mesh);
    return alternative_reason(plan, op, strategy);
  };
  for (const char* const axes : {"{pcie}", "{hccs}"}) {
    EXPECT_TRUE(reason("n", axes).starts_with("gathers ")) << axes << ": " << reason("n", axes);
  }
  EXPECT_TRUE(reason("k", "{hccs}").starts_with("adds up layers.0.up")) << reason("k", "{hccs}");
  EXPECT_EQ(reason("n", "{hccs:(1)2}").find("work done"), std::string::npos);
}

/// A search splits axes into pieces: sharding over a whole axis and over all of its pieces is the same strategy.
TEST(ExplainReportTest, WhatIsChosenIsNoAlternative) {
  const auto model = std::make_shared<const Model>(read_model_text(R"(shardplan: 1
dims: {B: 4096, C: 1024}
inputs: {x: [B, C]}
operators:
  up:   {block: nn.Dense, in: x, out_channels: C}
  loss: {op: ReduceMean, in: up}
loss: loss
training: {optimizer: momentum}
)",
                                                                   "m.yaml"));
  const ModelPlanner planner(model, read_cluster("dgx-a100"), {});
  const Plan plan = planner.plan(Level::kSpeed, "auto");
  const OperatorId op = *plan.graph->find_operator("up.matmul");
  std::size_t count = 0;
  for (const Strategy& strategy : planner.alternatives(op)) count += sharded_alike(strategy, plan.strategies[op]);
  EXPECT_EQ(count, 1u) << "the chosen strategy is among those of whole axes";
  const Explanation explanation = explain(planner, plan, op);
  EXPECT_FALSE(explanation.alternatives.empty());
  for (const Explanation::Alternative& alternative : explanation.alternatives) {
    EXPECT_FALSE(sharded_alike(alternative.strategy, plan.strategies[op]));
  }
  EXPECT_EQ(explain_report(explanation).find("nvlink:(1)2, nvlink:(2)4"), std::string::npos);
}

TEST(ExplainReportTest, SaysWhyHeadsAreNotCut) {
  const auto lines = [](std::int64_t heads, std::int64_t key_heads) {
    const auto model = std::make_shared<const Model>(read_model_text(fmt::format(R"(
shardplan: 1
dims: {{B: 2, H: {}, G: {}, S: 64, D: 64}}
inputs: {{q: [B, H, S, D], k: [B, G, S, D], v: [B, G, S, D]}}
operators:
  attend: {{op: FlashAttention, in: [q, k, v], input_layout: BNSD, causal: true, out: [context, lse]}}
outputs: [context]
)",
                                                                                 heads, key_heads),
                                                                     "heads.yaml"));
    const Plan plan = ModelPlanner(model, read_cluster("dgx-a100"), {}).plan(Level::kSpeed, "auto");
    return cuts_that_do_not_fit(plan, *plan.graph->find_operator("attend"));
  };
  using Lines = std::vector<std::string>;
  EXPECT_EQ(lines(12, 12), (Lines{"g of 12, attention heads, in 8 pieces: pieces of 2 would leave 2 of them empty"}));
  EXPECT_EQ(lines(16, 16), Lines{});
  EXPECT_EQ(lines(28, 4),
            (Lines{"g of 4, attention heads, in 8 pieces: there are 4",
                   "r of 7, attention heads, in 2 pieces: 2 does not divide it: it shares a dimension with other "
                   "factors, so its pieces must be equal"}));
}

}  // namespace
}  // namespace shardplan
