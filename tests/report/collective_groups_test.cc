#include "report/metrics/collective_groups.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/hand_plan.h"

namespace shardplan {
namespace {

/// The groups together cover all communication, as counted from the program without the names.
TEST(CollectiveGroupsTest, ShareOutAllCommunication) {
  for (const Plan& plan : {tiny_plan(), block_plan()}) {
    std::size_t count = 0;
    Picoseconds time = 0;
    for (const Instruction& instruction : plan.program.instructions) {
      const CollectiveKind kind = instruction.step->kind;  // a device cuts a slice out of what it holds
      const bool is_local = kind == CollectiveKind::kSlice || kind == CollectiveKind::kToPartial;
      const bool communicates = instruction.kind == InstructionKind::kHalo ||
                                instruction.kind == InstructionKind::kSend ||
                                (instruction.kind == InstructionKind::kCollective && !is_local);
      if (!communicates) continue;
      count += static_cast<std::size_t>(instruction.runs);
      time += instruction.time_of_step();
    }
    std::size_t grouped = 0;
    Picoseconds grouped_time = 0;
    std::set<std::string> lines;
    const std::vector<CollectiveGroup> groups = costliest_collectives(plan);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      grouped += groups[i].count;
      grouped_time += groups[i].time;
      EXPECT_TRUE(lines.insert(groups[i].what + "|" + groups[i].axes + "|" + groups[i].from).second) << "one line each";
      if (i > 0) {
        EXPECT_GE(groups[i - 1].time, groups[i].time);
      }
    }
    EXPECT_GT(count, 0u);
    EXPECT_EQ(grouped, count);
    EXPECT_EQ(grouped_time, time);
  }
}

}  // namespace
}  // namespace shardplan
