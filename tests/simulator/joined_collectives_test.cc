#include "simulator/execute/joined_collectives.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "layouts/redistribution/redistribution_planner.h"
#include "tests/layouts/all_layouts.h"
#include "tests/layouts/test_costs.h"

namespace shardplan {
namespace {

/// Equal bit for bit; padding is NaN in both.
bool same(const DeviceBuffers& a, const DeviceBuffers& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t d = 0; d < a.size(); ++d) {
    if (a[d].size() != b[d].size()) return false;
    for (std::size_t i = 0; i < a[d].size(); ++i) {
      if (a[d][i] != b[d][i] && !(a[d][i] != a[d][i] && b[d][i] != b[d][i])) return false;
    }
  }
  return true;
}

struct SingleCollective {
  CollectiveStep step;
  Shape shape;
  DeviceBuffers input;
};

/// Collectives of one kind between layouts of a few shapes, with the buffers before them.
std::vector<SingleCollective> single_collectives(CollectiveKind kind, const DeviceMesh& mesh, Random& random) {
  std::vector<SingleCollective> cases;
  const std::vector<TestCosts::Axis> axes{{2, 1}, {2, 1}};
  RedistributionPlanner planner(mesh, std::make_shared<TestCosts>(5, axes));
  for (const Shape& shape : {Shape{4, 6}, Shape{8}, Shape{2, 4, 3}}) {
    const auto layouts = all_layouts(mesh, shape, {mesh.whole(0), mesh.whole(1)}, {Reduction::kSum, Reduction::kMax});
    for (int draw = 0; draw < 400; ++draw) {
      const TensorLayout& from = layouts[random.below(layouts.size())];
      const TensorLayout& to = layouts[random.below(layouts.size())];
      const Redistribution plan = planner.plan(from, to, shape, 4);
      for (const CollectiveStep& step : plan.steps) {
        if (step.kind != kind) continue;
        std::vector<double> global(static_cast<std::size_t>(num_elements(shape)));
        for (double& value : global) value = random.unit();
        cases.push_back({step, shape, scatter(global, shape, step.before, mesh, random.below(1000))});
      }
    }
  }
  return cases;
}

// A bucket with members of any shapes and layouts gives the same as each member alone: the flat buffers bring every
// element to its place.
TEST(JoinedCollectivesTest, GiveWhatEachMemberGivesAlone) {
  const DeviceMesh mesh({{"x", 2}, {"y", 4}});
  for (const CollectiveKind kind :
       {CollectiveKind::kAllReduce, CollectiveKind::kReduceScatter, CollectiveKind::kAllGather}) {
    SCOPED_TRACE(to_string(kind));
    Random random(5);
    const std::vector<SingleCollective> cases = single_collectives(kind, mesh, random);
    ASSERT_GT(cases.size(), 10u);
    int joined = 0;
    for (int draw = 0; draw < 200; ++draw) {
      const SingleCollective& first = cases[random.below(cases.size())];
      std::vector<const SingleCollective*> bucket{&first};
      for (int more = 0; more < 40 && bucket.size() < 4; ++more) {
        const SingleCollective& other = cases[random.below(cases.size())];
        const bool fits = other.step.axes == first.step.axes && other.step.reduction == first.step.reduction;
        if (fits) bucket.push_back(&other);
      }
      std::vector<JoinedCollective> members;
      for (const SingleCollective* one : bucket) members.push_back({&one->step, one->shape, &one->input});
      const std::vector<DeviceBuffers> results = apply_joined(members, mesh);
      ASSERT_EQ(results.size(), bucket.size());
      for (std::size_t i = 0; i < bucket.size(); ++i) {
        EXPECT_TRUE(same(results[i], apply(bucket[i]->step, mesh, bucket[i]->shape, bucket[i]->input))) << draw;
      }
      joined += bucket.size() > 1 ? 1 : 0;
    }
    EXPECT_GT(joined, 100);
  }
}

}  // namespace
}  // namespace shardplan
