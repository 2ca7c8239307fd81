#include "simulator/execute/fault.h"

#include <gtest/gtest.h>

#include <numeric>

#include "layouts/redistribution/redistribution_planner.h"
#include "tests/layouts/test_costs.h"

namespace shardplan {
namespace {

const DeviceMesh kFaultMesh = DeviceMesh::parse("x=2,y=2");
const Shape kFaultShape = {4, 4};

CollectiveStep only_step(const char* from, const char* to) {
  RedistributionPlanner planner(kFaultMesh, even_costs(2));
  const Redistribution& plan =
      planner.plan(parse_layout(from, kFaultMesh), parse_layout(to, kFaultMesh), kFaultShape, 4);
  EXPECT_EQ(plan.steps.size(), 1u) << from << " -> " << to;
  return plan.steps.at(0);
}

std::vector<double> sixteen() {
  std::vector<double> values(16);
  std::iota(values.begin(), values.end(), 1);
  return values;
}

double error_after(const CollectiveStep& step, const DeviceBuffers& buffers) {
  return largest_error(buffers, sixteen(), kFaultShape, step.after, kFaultMesh);
}

struct StepEnds {
  const char* from;
  const char* to;
};
const StepEnds kSteps[] = {
    {"[{x}, {}]", "[{}, {}]"},                // all_gather
    {"[{x}, {}]", "[{}, {x}]"},               // all_to_all
    {"[{}, {}] unreduced={x}", "[{x}, {}]"},  // reduce_scatter
    {"[{}, {}] unreduced={x}", "[{}, {}]"},   // all_reduce
    {"[{x, y}, {}]", "[{y, x}, {}]"},         // collective_permute
};

// A fault that left all numbers correct would not test a proof. Buffers keep their sizes.
TEST(FaultTest, EveryFaultShowsInTheNumbers) {
  for (const auto& [from, to] : kSteps) {
    const CollectiveStep step = only_step(from, to);
    const DeviceBuffers input = scatter(sixteen(), kFaultShape, step.before, kFaultMesh, 3);
    const DeviceBuffers right = apply(step, kFaultMesh, kFaultShape, input);
    ASSERT_LT(error_after(step, right), 1e-9) << from << " -> " << to;
    for (const FaultKind kind : {FaultKind::kRemoved, FaultKind::kSwapped, FaultKind::kRotated, FaultKind::kDoubled}) {
      const bool is_sum = step.kind == CollectiveKind::kReduceScatter || step.kind == CollectiveKind::kAllReduce;
      if (kind == FaultKind::kDoubled && !is_sum) continue;
      // All members have the same sum, and with y on top of x the next device has the same piece.
      if (kind == FaultKind::kSwapped && step.kind == CollectiveKind::kAllReduce) continue;
      const DeviceBuffers wrong = apply_wrongly(kind, step, kFaultMesh, kFaultShape, input);
      ASSERT_EQ(wrong.size(), right.size());
      for (std::size_t device = 0; device < wrong.size(); ++device) {
        EXPECT_EQ(wrong[device].size(), right[device].size()) << to_string(kind);
      }
      if (kind == FaultKind::kRotated && wrong == right) continue;
      EXPECT_GT(error_after(step, wrong), 0.5) << to_string(kind) << ": " << from << " -> " << to;
    }
  }
}

TEST(FaultTest, WithoutSendingADeviceKeepsWhatItHas) {
  const CollectiveStep step = only_step("[{x}, {}]", "[{}, {}]");
  const DeviceBuffers input = scatter(sixteen(), kFaultShape, step.before, kFaultMesh);
  const DeviceBuffers wrong = apply_wrongly(FaultKind::kRemoved, step, kFaultMesh, kFaultShape, input);
  // Rows 1 to 4 on the devices with x = 0: they occur twice where all rows should be.
  EXPECT_EQ(wrong[0], (std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(wrong[2], (std::vector<double>{9, 10, 11, 12, 13, 14, 15, 16, 9, 10, 11, 12, 13, 14, 15, 16}));
}

TEST(FaultTest, SwappedRotatedAndDoubledAreWhatTheySay) {
  const CollectiveStep gather = only_step("[{x}, {}]", "[{}, {}]");
  const DeviceBuffers pieces = scatter(sixteen(), kFaultShape, gather.before, kFaultMesh);
  // Rows 3 and 4 before rows 1 and 2, on all devices.
  EXPECT_EQ(apply_wrongly(FaultKind::kSwapped, gather, kFaultMesh, kFaultShape, pieces)[3],
            (std::vector<double>{9, 10, 11, 12, 13, 14, 15, 16, 1, 2, 3, 4, 5, 6, 7, 8}));
  const CollectiveStep exchange = only_step("[{x}, {}]", "[{}, {x}]");
  const DeviceBuffers right = apply(exchange, kFaultMesh, kFaultShape, pieces);
  const DeviceBuffers swapped = apply_wrongly(FaultKind::kSwapped, exchange, kFaultMesh, kFaultShape, pieces);
  EXPECT_EQ(swapped[0], right[2]);  // of the group {0, 2}
  EXPECT_EQ(swapped[2], right[0]);
  DeviceBuffers next = pieces;
  std::rotate(next.begin(), next.begin() + 1, next.end());
  EXPECT_EQ(apply_wrongly(FaultKind::kRotated, exchange, kFaultMesh, kFaultShape, pieces),
            apply(exchange, kFaultMesh, kFaultShape, next));
  const CollectiveStep reduce = only_step("[{}, {}] unreduced={x}", "[{}, {}]");
  const DeviceBuffers summands = scatter(sixteen(), kFaultShape, reduce.before, kFaultMesh);
  const DeviceBuffers doubled = apply_wrongly(FaultKind::kDoubled, reduce, kFaultMesh, kFaultShape, summands);
  for (std::size_t i = 0; i < 16; ++i) EXPECT_NEAR(doubled[1][i], 2 * (static_cast<double>(i) + 1), 1e-9);
}

// 3 rows in 2 pieces of 2: the padded row of 4 is trimmed at the wrong end.
TEST(FaultTest, UntrimmedRowsKeepThePadding) {
  const Shape shape = {3};
  CollectiveStep step;
  step.kind = CollectiveKind::kAllGather;
  step.axes = {kFaultMesh.whole(0)};
  step.from_dim = 0;
  step.before = parse_layout("[{x}]", kFaultMesh);
  step.after = parse_layout("[{}]", kFaultMesh);
  step.local_shape = {3};
  const DeviceBuffers input = scatter({1, 2, 3}, shape, step.before, kFaultMesh);
  const DeviceBuffers wrong = apply_wrongly(FaultKind::kUntrimmed, step, kFaultMesh, shape, input);
  EXPECT_EQ(wrong[0][0], 2);
  EXPECT_EQ(wrong[0][1], 3);
  EXPECT_TRUE(wrong[0][2] != wrong[0][2]) << "padding is not a number";
}

TEST(FaultTest, UnlikeBuffersAreSwapped) {
  DeviceBuffers buffers = {{1}, {1}, {2}, {3}};
  swap_unlike_buffers(buffers);
  EXPECT_EQ(buffers, (DeviceBuffers{{2}, {1}, {1}, {3}}));
  DeviceBuffers alike = {{1}, {1}};
  swap_unlike_buffers(alike);
  EXPECT_EQ(alike, (DeviceBuffers{{1}, {1}}));
}

}  // namespace
}  // namespace shardplan
