#include "report/plan/trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

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

}  // namespace
}  // namespace shardplan
