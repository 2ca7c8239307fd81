#include "program/startup_broadcasts.h"

#include <gtest/gtest.h>

#include "model/read_model.h"
#include "planner/job_cluster.h"
#include "planner/model_planner.h"
#include "program/program_checker.h"

namespace shardplan {
namespace {

TEST(StartupBroadcastsTest, RepeatedAxesAreThoseThatCutNothing) {
  const struct {
    const char* layout;
    const char* repeated;
  } kCases[] = {
      {"[{}, {}]", "{x, y}"},
      {"[{x}, {}]", "{y}"},
      {"[{y}, {x}]", "{}"},
      {"[{y:(2)2}, {}]", "{x, y:(1)2, y:(4)2}"},
      {"[{y:(1)2}, {y:(4)2}]", "{x, y:(2)2}"},
      {"[{y:(4)2, x}, {}]", "{y:(1)4}"},
  };
  const DeviceMesh mesh = DeviceMesh::parse("x=2, y=8");
  for (const auto& c : kCases) {
    EXPECT_EQ(mesh.to_string(repeated_axes(parse_layout(c.layout, mesh), mesh)), c.repeated) << c.layout;
  }
}

struct Planned {
  std::shared_ptr<const Model> model;
  std::unique_ptr<ModelPlanner> planner;
  Plan plan;
};

Planned planned(const std::string& parallel) {
  Planned result;
  result.model = std::make_shared<const Model>(read_model_text(R"(shardplan: 1
cluster: dgx-a100
inputs: {x: [32, 64]}
operators:
  fc:   {block: nn.Dense, in: x, out_channels: 16}
  loss: {op: ReduceMean, in: fc}
loss: loss
training: {optimizer: momentum}
parallel: {)" + parallel + "}\n",
                                                               "m.yaml"));
  result.planner = std::make_unique<ModelPlanner>(result.model, job_cluster(*result.model).cluster, PlanOptions());
  result.plan = result.planner->plan(Level::kSpeed, "auto");
  return result;
}

TEST(StartupBroadcastsTest, DataParallelSendsEveryParameterAndStateToAllDevicesOnce) {
  const Planned with = planned("parallel_mode: data_parallel, parameter_broadcast: true");
  const Planned without = planned("parallel_mode: data_parallel");
  EXPECT_TRUE(without.plan.program.broadcasts.empty());
  EXPECT_EQ(with.plan.time.step(), without.plan.time.step());
  ASSERT_EQ(with.plan.program.broadcasts.size(), 4u);  // weight and bias, and the momentum of each
  EXPECT_EQ(startup_bytes(with.plan.program), 2 * (64 * 16 + 16) * 4);
  EXPECT_EQ(check_program(with.plan.program, with.planner->graph()), "");
  // As an all_gather of 8/7 times as many bytes.
  const auto costs = with.planner->costs().collectives();
  EXPECT_EQ(with.plan.program.broadcasts[0].time,
            costs->time(CollectiveKind::kAllGather, {with.planner->mesh().whole(0)}, (64 * 16 * 4 * 8 + 6) / 7));
}

TEST(StartupBroadcastsTest, WhatIsStoredInPiecesIsSentToThoseWithTheSamePiece) {
  const Planned cut = planned(
      "parallel_mode: semi_auto_parallel, mesh: {dp: 4, mp: 2}, parameter_broadcast: true}\n"
      "strategies: {fc.weight: {strategy: [{mp}, {}]}, fc.bias: {strategy: [{dp, mp}]}");
  const ParallelProgram& program = cut.plan.program;
  std::map<std::string, std::string> axes;
  for (const StartupBroadcast& broadcast : program.broadcasts) {
    axes[program.values[program.given[broadcast.given].value].name] = program.mesh.to_string(broadcast.axes);
  }
  EXPECT_EQ(axes.at("fc.weight"), "{dp}");
  EXPECT_FALSE(axes.contains("fc.bias"));
}

TEST(StartupBroadcastsTest, TheCheckerKnowsWhatRepeatsATensor) {
  const Planned with = planned("parallel_mode: data_parallel, parameter_broadcast: true");
  ParallelProgram wrong = with.plan.program;
  wrong.broadcasts[1].axes.clear();
  EXPECT_NE(check_program(wrong, with.planner->graph()).find("axes that do not repeat it"), std::string::npos);
  wrong = with.plan.program;
  for (std::size_t i = 0; i < wrong.given.size(); ++i) {
    if (wrong.given[i].is_input) wrong.broadcasts[0].given = i;
  }
  EXPECT_NE(check_program(wrong, with.planner->graph()).find("not stored"), std::string::npos);
}

}  // namespace
}  // namespace shardplan
