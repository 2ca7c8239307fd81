#include "layouts/collective.h"

#include <gtest/gtest.h>

#include "tests/layouts/test_costs.h"

namespace shardplan {
namespace {

const DeviceMesh kStepMesh = DeviceMesh::parse("x=4,y=2");

struct StepCase {
  CollectiveKind kind;
  const char* name;
  const char* before;
  const char* after;
  std::vector<AxisRef> axes;
  Bytes sent;        // of a tensor of 480 bytes
  Picoseconds time;  // launch 100, 10 per hop, 1 per byte sent
};
const AxisRef kStepX{0, 1, 4};
const AxisRef kStepY{1, 1, 2};
const StepCase kStepCases[] = {
    // the table of collective.h
    {CollectiveKind::kSlice, "slice", "[{}, {}]", "[{x}, {}]", {kStepX}, 0, 0},
    {CollectiveKind::kAllGather, "all_gather", "[{x}, {}]", "[{}, {}]", {kStepX}, 360, 100 + 30 + 360},
    {CollectiveKind::kAllToAll, "all_to_all", "[{x}, {}]", "[{}, {x}]", {kStepX}, 90, 100 + 30 + 90},
    {CollectiveKind::kReduceScatter, "reduce_scatter", "[{}, {}] unreduced={x}", "[{x}, {}]", {kStepX}, 360, 490},
    {CollectiveKind::kAllReduce, "all_reduce", "[{}, {}] unreduced={x}", "[{}, {}]", {kStepX}, 720, 100 + 60 + 720},
    {CollectiveKind::kCollectivePermute,
     "collective_permute",
     "[{x:(1)2, x:(2)2}, {}]",
     "[{x:(2)2, x:(1)2}, {}]",
     {{0, 1, 2}, {0, 2, 2}},
     120,
     100 + 10 + 120},
    {CollectiveKind::kToPartial, "to_partial", "[{}, {}]", "[{}, {}] unreduced={x}", {kStepX}, 0, 0},
    // the same on the half that a device has of a tensor that y shards too
    {CollectiveKind::kAllGather, "all_gather", "[{x}, {y}]", "[{}, {y}]", {kStepX}, 180, 100 + 30 + 180},
    {CollectiveKind::kAllReduce, "all_reduce", "[{y}, {}] unreduced={x}", "[{y}, {}]", {kStepX}, 360, 100 + 60 + 360},
    // a group along both axes, in the order of the shards
    {CollectiveKind::kAllGather, "all_gather", "[{y, x}, {}]", "[{}, {}]", {kStepY, kStepX}, 420, 100 + 70 + 420},
};

TEST(CollectiveTest, StepsSendAndTakeWhatTheTableSays) {
  for (const StepCase& c : kStepCases) {
    EXPECT_EQ(to_string(c.kind), c.name);
    EXPECT_EQ(is_local(c.kind), c.time == 0) << c.name;
    CollectiveStep step;
    step.kind = c.kind;
    step.axes = c.axes;
    step.before = parse_layout(c.before, kStepMesh);
    step.after = parse_layout(c.after, kStepMesh);
    set_cost(step, 480, *even_costs(2));
    EXPECT_EQ(step.sent, c.sent) << c.name << " of " << c.before;
    EXPECT_EQ(step.time, c.time) << c.name << " of " << c.before;
  }
}

// What a ring sends, round by round: in each of p - 1 rounds a device forwards one piece of the group's tensor.
TEST(CollectiveTest, BytesAreThoseOfRoundsOnARing) {
  for (std::int64_t p = 1; p <= 9; ++p) {
    for (const Bytes group_bytes : {Bytes{0}, 7 * p, 360 * p, Bytes{1} << 40}) {
      Bytes gathered = 0;
      for (std::int64_t round = 1; round < p; ++round) gathered += group_bytes / p;
      EXPECT_EQ(sent_bytes(CollectiveKind::kAllGather, p, group_bytes), gathered);
      EXPECT_EQ(sent_bytes(CollectiveKind::kReduceScatter, p, group_bytes), gathered);
      if (group_bytes % p == 0) {
        EXPECT_EQ(sent_bytes(CollectiveKind::kAllReduce, p, group_bytes), 2 * gathered);
      }
    }
  }
  // If p does not divide it, it is rounded up where partial pieces have to be sent: 2 * 2 * 10 / 3.
  EXPECT_EQ(sent_bytes(CollectiveKind::kAllReduce, 3, 10), 14);
}

TEST(CollectiveTest, NoStepLeavesTheNumbers) {
  const auto huge = std::make_shared<TestCosts>(INT64_MAX, std::vector<TestCosts::Axis>{{0, 0}});
  constexpr std::int64_t kMost = std::int64_t{1} << 55;
  const StepCost cost = step_cost(CollectiveKind::kAllGather, {{0, 1, 2}}, INT64_MAX, *huge);
  EXPECT_EQ(cost, (StepCost{kMost, kMost}));
}

}  // namespace
}  // namespace shardplan
