#include "layouts/redistribution/uneven_times.h"

#include <gtest/gtest.h>

#include "layouts/redistribution/uneven_redistribution.h"
#include "layouts/uneven.h"
#include "tests/layouts/all_layouts.h"
#include "tests/layouts/test_costs.h"

namespace shardplan {
namespace {

struct UnevenTimesCase {
  const char* mesh;
  Shape shape;
};
const UnevenTimesCase kUnevenTimes[] = {{"x=2,y=4", {10, 7}}, {"x=3,y=2", {11, 9}}, {"x=2,y=2,z=2", {15, 13}}};

/// A dimension in parts too: one part that the mesh divides, and one that it does not.
TensorLayout random_uneven(const DeviceMesh& mesh, const Shape& shape, Random& random) {
  TensorLayout layout = TensorLayout::replicated(shape.size());
  layout.reduction = random.below(3) == 0 ? Reduction::kMax : Reduction::kSum;
  for (const AxisRef& axis : whole_axes(mesh)) {
    const std::size_t where = random.below(shape.size() + 2);
    if (where > shape.size()) continue;
    TensorLayout next = layout;
    if (where == shape.size()) {
      next.partial.push_back(axis);
    } else {
      next.dimensions[where].parts[0].axes.push_back(axis);
    }
    if (check_uneven_layout(next, mesh, shape).empty()) layout = next;
  }
  return canonical(layout, mesh, shape);
}

TEST(UnevenTimesTest, AreThoseOfTheSearchForOnePair) {
  constexpr std::uint64_t kSeed = 29;
  Random random(kSeed);
  std::size_t longer = 0;
  for (const UnevenTimesCase& c : kUnevenTimes) {
    const DeviceMesh mesh = DeviceMesh::parse(c.mesh);
    const std::shared_ptr<const CollectiveCosts> costs = cost_cases()[2].costs;
    for (const bool is_bounded : {true, false}) {
      UnevenTimes times(c.shape, 4, *costs, is_bounded, whole_axes(mesh));
      std::vector<TensorLayout> layouts;
      std::vector<UnevenTimes::End> ends;
      for (int i = 0; i < 14; ++i) {
        layouts.push_back(random_uneven(mesh, c.shape, random));
        ends.push_back(times.add(layouts.back()));
      }
      for (std::size_t i = 0; i < layouts.size(); ++i) {
        for (std::size_t j = 0; j < layouts.size(); ++j) {
          if (i == j) continue;
          const bool is_other = layouts[i].reduction != layouts[j].reduction;
          const bool sums_and_maxima = is_other && !layouts[i].partial.empty() && !layouts[j].partial.empty() &&
                                       layouts[i].reduction != Reduction::kSum &&
                                       layouts[j].reduction != Reduction::kSum;
          ASSERT_FALSE(sums_and_maxima);
          const std::optional<Picoseconds> time = times.time(ends[i], ends[j]);
          const Redistribution plan =
              uneven_redistribution(layouts[i], layouts[j], c.shape, 4, mesh, *costs, is_bounded, whole_axes(mesh));
          ASSERT_EQ(time, plan.time) << to_string(layouts[i], mesh) << " -> " << to_string(layouts[j], mesh)
                                     << (is_bounded ? "" : ", unbounded") << ", seed " << kSeed;
          longer += plan.steps.size() > 1 ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(longer, 50u);
}

TEST(UnevenTimesTest, KnowsNothingOfOtherPieces) {
  const DeviceMesh mesh = DeviceMesh::parse("x=2,y=4");
  const std::shared_ptr<const CollectiveCosts> costs = even_costs(2);
  UnevenTimes times({10, 7}, 4, *costs, true, whole_axes(mesh));
  const UnevenTimes::End whole = times.add(parse_layout("[{y}, {}]", mesh));
  const UnevenTimes::End half = times.add(parse_layout("[{y:(1)2}, {}]", mesh));
  EXPECT_TRUE(times.time(whole, whole));
  EXPECT_EQ(times.time(whole, half), std::nullopt);
  EXPECT_EQ(times.time(half, whole), std::nullopt);
  UnevenTimes none({10, 7}, 4, *costs, true, {});
  const UnevenTimes::End end = none.add(parse_layout("[{y}, {}]", mesh));
  EXPECT_EQ(none.time(end, end), std::nullopt);
}

}  // namespace
}  // namespace shardplan
