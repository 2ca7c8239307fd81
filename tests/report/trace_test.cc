#include "report/plan/trace.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "model/read_model.h"
#include "planner/job_cluster.h"
#include "planner/model_planner.h"
#include "program/instruction_facts.h"
#include "tests/support/hand_plan.h"

namespace shardplan {
namespace {

// Every instruction that takes time is one event, in the row of the stream that it uses, at the plan's time.
TEST(TraceTest, EventsAreTheInstructionsWhereThePlanHasThem) {
  const Plan plan = tiny_plan();
  const auto trace = nlohmann::json::parse(chrome_trace(plan));
  std::map<int, std::string> rows;
  std::map<std::string, nlohmann::json> events;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "M") {
      EXPECT_EQ(event["name"], "thread_name");
      rows[event["tid"]] = event["args"]["name"];
    } else {
      EXPECT_EQ(event["ph"], "X");
      EXPECT_TRUE(events.emplace(event["name"], event).second) << event["name"] << " twice";
    }
  }
  EXPECT_EQ(rows[0], "kernels");
  EXPECT_EQ(rows.size(), 1 + plan.cluster.levels.size());
  const std::vector<OverlappedTimeline::Span> spans = plan.spans();
  std::size_t expected = 0, collectives = 0;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const Instruction& instruction = plan.program.instructions[i];
    ASSERT_EQ(instruction.fusion, 0u) << "the hand-made plan has no buckets";
    if (spans[i].end == spans[i].begin) continue;
    ++expected;
    ASSERT_TRUE(events.contains(instruction.name)) << instruction.name;
    const nlohmann::json& event = events[instruction.name];
    EXPECT_DOUBLE_EQ(event["ts"].get<double>(), static_cast<double>(spans[i].begin) / 1e6);
    EXPECT_NEAR(event["dur"].get<double>(), static_cast<double>(spans[i].end - spans[i].begin) / 1e6, 1e-9);
    EXPECT_EQ(event["args"]["runs"], instruction.runs);
    const bool is_sent = is_communication(instruction);
    collectives += is_sent ? 1 : 0;
    EXPECT_EQ(event["tid"] != 0, is_sent) << instruction.name;
    EXPECT_EQ(event["args"].contains("group_bytes"), is_sent) << instruction.name;
    if (is_sent) {
      EXPECT_EQ(event["args"]["joined"], 1);
    }
    EXPECT_FALSE(event["args"].contains("critical")) << "one after the other, all would be";
  }
  EXPECT_EQ(events.size(), expected);
  EXPECT_GT(expected, 20u);
  EXPECT_GT(collectives, 3u);
}

// If collectives overlap with kernels, the events on the critical path are marked: it leads from the beginning of the
// step to its end without a gap.
TEST(TraceTest, MarkedEventsFollowEachOtherFromTheBeginningToTheEnd) {
  Plan plan = tiny_plan();
  plan.is_overlapped = true;
  const auto trace = nlohmann::json::parse(chrome_trace(plan));
  double reached = 0;
  std::size_t critical = 0, others = 0;
  std::vector<std::pair<double, double>> marked;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "M") continue;
    if (!event["args"]["critical"].get<bool>()) {
      ++others;
      continue;
    }
    ++critical;
    marked.emplace_back(event["ts"].get<double>(), event["dur"].get<double>());
  }
  std::sort(marked.begin(), marked.end());
  for (const auto& [begin, length] : marked) {
    EXPECT_NEAR(begin, reached, 1e-6);
    reached = begin + length;
  }
  EXPECT_NEAR(reached, static_cast<double>(overlapped_timeline(plan.program).end) / 1e6, 1e-6);
  EXPECT_GT(critical, 15u);
  EXPECT_GT(others, 0u);
}

/// The loop's instructions are shown once; an event that overlaps no other one of its row stands for the other runs.
TEST(TraceTest, OtherRunsOfTheLoopAreOneEvent) {
  const std::string text = R"(shardplan: 1
model: batches
cluster: dgx-a100
dims: {B: 512, C: 2048}
inputs: {x: [B, C]}
operators:
  up:   {block: nn.Dense, in: x, out_channels: C{}}
  act:  {op: GeLU, in: up{}}
  down: {block: nn.Dense, in: act, out_channels: C{}}
  loss: {op: ReduceMean, in: down{}}
loss: loss
training: {optimizer: momentum, micro_batches: 4}
parallel: {device_num: 2}
)";
  for (const bool has_workers : {false, true}) {
    std::string written = text;
    for (const int worker : {0, 0, 1, 1}) {
      const std::string place = has_workers ? fmt::format(", place: [MS_WORKER, {}]", worker) : "";
      written.replace(written.find("{}"), 2, place);
    }
    const auto model = std::make_shared<const Model>(read_model_text(written, "batches.yaml"));
    const Plan plan = ModelPlanner(model, job_cluster(*model, {}).cluster, {}).plan(Level::kSpeed, "auto");
    ASSERT_EQ(plan.program.workers, has_workers ? 2 : 1);
    const auto trace = nlohmann::json::parse(chrome_trace(plan));
    const std::string note = trace["otherData"]["note"];
    EXPECT_NE(note.find("the event 'runs 2 to 4 of the loop' stands for the others"), std::string::npos) << note;
    std::map<int, std::vector<std::pair<double, double>>> rows;
    std::map<int, double> length;
    double last = 0;
    for (const auto& event : trace["traceEvents"]) {
      if (event["ph"] == "M") continue;
      const double begin = event["ts"], end = begin + event["dur"].get<double>();
      rows[event["tid"]].emplace_back(begin, end);
      last = std::max(last, end);
      if (event["name"] == "runs 2 to 4 of the loop") length[event["tid"]] = end - begin;
    }
    EXPECT_EQ(length.size(), has_workers ? 2u : 1u);
    for (const auto& [row, time] : length) {
      EXPECT_GT(time, 0.2 * last) << row;
      std::sort(rows[row].begin(), rows[row].end());
      for (std::size_t i = 1; i < rows[row].size(); ++i) EXPECT_LE(rows[row][i - 1].second, rows[row][i].first + 1e-6);
    }
  }
  EXPECT_FALSE(nlohmann::json::parse(chrome_trace(tiny_plan())).contains("otherData"));
}

}  // namespace
}  // namespace shardplan
