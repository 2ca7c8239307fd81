// What reports say about modes: which operators follow which, what is sent before the first step, what each device has
// of its own, which shapes of the mesh were tried.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/error.h"
#include "model/read_model.h"
#include "planner/job_cluster.h"
#include "planner/mesh_search.h"
#include "planner/model_planner.h"
#include "report/export/export.h"
#include "report/plan/explain_report.h"
#include "report/plan/ir_report.h"
#include "report/plan/summary.h"
#include "report/plan_file/plan_file.h"
#include "report/plan_file/plan_json.h"
#include "report/text/strategy_table.h"
#include "tests/support/python.h"

namespace shardplan {
namespace {

std::shared_ptr<const Model> model_with(const std::string& parallel) {
  return std::make_shared<const Model>(
      read_model_text(R"(shardplan: 1
model: modes
cluster: dgx-a100x2
inputs: {x: [32, 16]}
parameters: {own: {shape: [16, 16], layerwise_parallel: )" +
                          std::string(parallel.find("data_parallel") == std::string::npos ? "false" : "true") +
                          R"(}}
operators:
  fc:   {block: nn.Dense, in: x, out_channels: 16}
  mix:  {op: MatMul, in: [fc, own]}
  loss: {op: ReduceMean, in: mix}
loss: loss
training: {optimizer: momentum}
parallel: {)" + parallel + "}\n",
                      "m.yaml"));
}

Plan data_parallel_plan() {
  const auto model = model_with("parallel_mode: data_parallel, parameter_broadcast: true");
  return ModelPlanner(model, job_cluster(*model).cluster, {}).plan(Level::kSpeed, "auto");
}

ShapedPlan shaped_plan() {
  const auto model = model_with("mesh: auto");
  PlanOptions options;
  options.level = Level::kSpeed;
  return plan_best_shape(model, job_cluster(*model).cluster, options);
}

std::string line_of(const std::string& text, const std::string& begin) {
  const std::size_t at = text.find("\n" + begin);
  return at == std::string::npos ? "" : text.substr(at + 1, text.find('\n', at + 1) - at - 1);
}

TEST(ModesReportTest, WhatFollowsAnotherOperatorSaysSo) {
  const Plan plan = data_parallel_plan();
  const auto by = [&](const char* name) { return decided_by(plan, *plan.graph->find_operator(name)); };
  EXPECT_EQ(by("fc.matmul"), "data parallel, by the mode");
  EXPECT_EQ(by("grad.fc.matmul.MatMul"), "follows fc.matmul");
  EXPECT_EQ(by("update.fc.bias.ApplyMomentum"), "follows fc.bias");
  EXPECT_TRUE(line_of(strategy_table(plan), "grad.fc.matmul.MatMul").ends_with("  follows fc.matmul"));
  const Plan searched = shaped_plan().plan;
  EXPECT_EQ(decided_by(searched, *searched.graph->find_operator("grad.fc.matmul.MatMul")), "chosen by the search");
}

TEST(ModesReportTest, BroadcastsAreInTheProgramOfARankAndInTheSummary) {
  const Plan plan = data_parallel_plan();
  const std::string ir = end_report(plan, 3);
  EXPECT_NE(ir.find("(fc.weight) = Broadcast(%para"), std::string::npos);
  EXPECT_NE(ir.find("root_rank: 0, group: 16-"), std::string::npos);
  EXPECT_EQ(ir.find("Broadcast(%para1_own"), std::string::npos);
  EXPECT_LT(ir.find("Broadcast("), ir.find("# every step:"));
  const std::string summary = summary_report(plan, {});
  EXPECT_TRUE(
      line_of(summary, "  start-up").ends_with("  4 broadcasts of parameters and states, 2.1 KiB per device, once"))
      << summary;
  EXPECT_EQ(line_of(summary, "  per device"),
            "  per device  1 parameter separate on each device, not averaged; the proof's one device has all");
}

TEST(ModesReportTest, AnExportCannotSayWhatEveryDeviceHasForItself) {
  try {
    export_plan(data_parallel_plan(), "jax");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("own: its values differ per device"), std::string::npos);
  }
}

TEST(ModesReportTest, TheShapesOfAMeshAreListed) {
  const ShapedPlan best = shaped_plan();
  ASSERT_EQ(best.plan.tried_shapes.size(), 2u);  // ib=2, and nvlink=8 in 2 and 4 or in 4 and 2
  const std::string summary = summary_report(best.plan, {});
  EXPECT_NE(summary.find("  mesh: auto  "), std::string::npos) << summary;
  EXPECT_NE(line_of(summary, "  " + best.plan.mesh.to_string(best.plan.options.pieces)).find("taken"),
            std::string::npos);
  const PlanFile file = read_plan_file(plan_json(best.plan), "plan.json");
  EXPECT_EQ(file.options.pieces, best.plan.options.pieces);
  const Plan again =
      best.planner->decided(decisions_of(file, best.planner->graph(), best.planner->versions(), file.mesh),
                            best.planner->unsolved(Level::kSpeed, "auto"));
  EXPECT_EQ(again.time.step(), best.plan.time.step());
}

TEST(ModesReportTest, PlanJsonFollowsItsSchema) {
  if (!has_jsonschema()) GTEST_SKIP() << "no python3 with jsonschema";
  for (const Plan& plan : {data_parallel_plan(), shaped_plan().plan}) {
    EXPECT_TRUE(meets_schema(plan_json(plan), plan_schema()));
  }
}

}  // namespace
}  // namespace shardplan
