// The times of whole lists at once, compared with those of single pairs.

#include "layouts/redistribution/search/pairwise_times.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "layouts/redistribution/redistribution_planner.h"
#include "tests/layouts/all_layouts.h"
#include "tests/layouts/test_costs.h"

namespace shardplan {
namespace {

struct ListsCase {
  const char* name;
  const char* mesh;
  Shape shape;
  std::vector<AxisRef> pieces;  // of the planner's options
  bool bounded_memory;
};
const ListsCase kLists[] = {
    {"whole_axes", "x=2,y=4", {16, 24}, {{0, 1, 2}, {1, 1, 4}}, true},
    {"pieces_of_an_axis", "x=2,y=4", {24, 16}, {{0, 1, 2}, {1, 1, 2}, {1, 2, 2}}, true},
    {"unbounded", "x=2,y=4", {24, 16}, {{0, 1, 2}, {1, 1, 2}, {1, 2, 2}}, false},
    {"other_primes", "x=3,y=4", {24, 36}, {{0, 1, 3}, {1, 1, 2}, {1, 2, 2}}, true},
    {"pieces_unknown", "x=2,y=4", {24, 16}, {}, true},
};

// Lists with parts of dimensions, with pieces that the caller did not name, and partial over maxima.
TEST(TimesTest, AreThoseOfThePlans) {
  for (const ListsCase& c : kLists) {
    SCOPED_TRACE(c.name);
    const DeviceMesh mesh = DeviceMesh::parse(c.mesh);
    const auto costs = std::make_shared<TestCosts>(100, std::vector<TestCosts::Axis>{{50, 3}, {10, 1}});
    const RedistributionOptions options{c.bounded_memory, c.pieces};
    RedistributionPlanner asked_at_once(mesh, costs, options);
    RedistributionPlanner asked_in_turn(mesh, costs, options);
    Random random(7);
    std::vector<TensorLayout> layouts = all_layouts(mesh, c.shape, whole_axes(mesh), {Reduction::kSum});
    for (int i = 0; i < 40; ++i) layouts.push_back(random_layout(mesh, c.shape, random, true, true));
    std::vector<const TensorLayout*> from, to;
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      if (i % 3 != 0) from.push_back(&layouts[i]);
      if (i % 3 != 1) to.push_back(&layouts[i]);
    }
    for (const Bytes element_bytes : {4, 2}) {
      // A few are computed one by one, and are the same when all are computed at once.
      const std::vector<Picoseconds> first = asked_at_once.times({from.data(), 1}, to, c.shape, element_bytes);
      const std::vector<Picoseconds> times = asked_at_once.times(from, to, c.shape, element_bytes);
      ASSERT_EQ(times.size(), from.size() * to.size());
      ASSERT_TRUE(std::equal(first.begin(), first.end(), times.begin()));
      asked_at_once.forget_times();
      ASSERT_EQ(times, asked_at_once.times(from, to, c.shape, element_bytes));
      for (std::size_t i = 0; i < from.size(); ++i) {
        for (std::size_t j = 0; j < to.size(); ++j) {
          ASSERT_EQ(times[i * to.size() + j], asked_in_turn.plan(*from[i], *to[j], c.shape, element_bytes).time)
              << to_string(*from[i], mesh) << " -> " << to_string(*to[j], mesh);
        }
      }
    }
  }
}

}  // namespace
}  // namespace shardplan
