#include "layouts/redistribution/search/shared_layouts.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/layouts/all_layouts.h"
#include "tests/layouts/all_paths.h"

namespace shardplan {
namespace {

LayoutSpace space(const DeviceMesh& mesh, const PartBorders& borders, const Shape& shape) {
  return space_of_pieces(whole_axes(mesh), borders, shape, mesh.num_devices());
}

TEST(SharedLayoutsTest, CountsWhatBeginsWhereASlotOfBothDoes) {
  const DeviceMesh mesh = DeviceMesh::parse("a=2,b=2,c=2");
  struct Case {
    Shape shape;
    PartBorders a;
    PartBorders b;
    std::int64_t most;
  };
  const Case cases[] = {
      {{240}, {{6}}, {{8}}, 2},          // only the first of the 6 rows' halves
      {{240}, {{6}}, {{8, 24}}, 2},      // 24 is no border of the first
      {{240}, {{6, 24}}, {{8, 24}}, 4},  // and half of the 10 behind 24
      {{240, 8}, {{6}, {}}, {{8}, {}}, 8},
      {{240, 2}, {{6}, {}}, {{8}, {}}, 4},
      {{240}, {{2, 4}}, {{4}}, 8},  // through full slots
      {{240}, {{3}}, {{5}}, 1},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(most_shards_in_both(space(mesh, c.a, c.shape), space(mesh, c.b, c.shape), c.shape), c.most)
        << testing::PrintToString(c.shape) << testing::PrintToString(c.a) << testing::PrintToString(c.b);
  }
}

TEST(SharedLayoutsTest, NoRandomLayoutOfBothSpacesHasMoreShards) {
  constexpr std::uint64_t kSeed = 3;
  Random random(kSeed);
  std::size_t in_both = 0, at_most = 0;
  for (const char* const text : {"x=3,y=4", "x=6,y=2", "x=2,y=2,z=3", "x=8"}) {
    const DeviceMesh mesh = DeviceMesh::parse(text);
    for (const Shape& shape : {Shape{72, 4}, Shape{24, 6}, Shape{48}}) {
      for (int i = 0; i < 40; ++i) {
        const TensorLayout from = random_layout(mesh, shape, random, true, true);
        const TensorLayout to = random_layout(mesh, shape, random, true, true);
        const auto refinement = static_cast<Refinement>(random.below(5));
        const LayoutSpace a = common_spaces(from, from, mesh, shape, refinement).front();
        const LayoutSpace b = common_spaces(to, to, mesh, shape, refinement).front();
        const std::int64_t most = most_shards_in_both(a, b, shape);
        std::int64_t found = 1;
        for (int j = 0; j < 200; ++j) {
          const TensorLayout layout = random_layout(mesh, shape, random, true, true);
          if (!a.encode(layout, shape) || !b.encode(layout, shape)) continue;
          ++in_both;
          found = std::max(found, num_shards(layout));
        }
        EXPECT_LE(found, most) << to_string(from, mesh) << ", " << to_string(to, mesh) << " on " << text
                               << ", refinement " << static_cast<int>(refinement) << ", seed " << kSeed;
        at_most += found == most ? 1 : 0;
      }
    }
  }
  EXPECT_GT(in_both, 10'000u);
  EXPECT_GT(at_most, 200u);
}

// If it calls the spaces of a random pair apart, a search of all states finds no path.
TEST(SharedLayoutsTest, ThereIsNoPathBetweenSpacesThatAreApart) {
  constexpr std::uint64_t kSeed = 4;
  Random random(kSeed);
  std::size_t apart = 0, without_path = 0;
  for (const char* const text : {"x=3,y=4", "x=6,y=2", "x=2,y=2,z=2"}) {
    const DeviceMesh mesh = DeviceMesh::parse(text);
    for (const Shape& shape : {Shape{48, 2}, Shape{120}, Shape{36, 4}}) {
      for (int i = 0; i < 20'000; ++i) {
        const TensorLayout from = random_layout(mesh, shape, random, true, true);
        const TensorLayout to = random_layout(mesh, shape, random, true, true);
        const std::int64_t least_shards = std::min(num_shards(from), num_shards(to));
        if (least_shards * 2 < mesh.num_devices()) continue;
        const auto refinement = static_cast<Refinement>(random.below(5));
        RedistributionGraph graph = graph_of(from, to, mesh, shape, refinement);
        if (graph.spaces().size() == 1) continue;
        const std::uint32_t source = *graph.find(from, shape), target = *graph.find(to, shape);
        const std::optional<bool> found = has_path(graph, source, target, least_shards);
        if (!found) continue;
        without_path += *found ? 0 : 1;
        if (!are_spaces_apart(graph, shape, source, target, least_shards)) continue;
        ++apart;
        EXPECT_FALSE(*found) << to_string(from, mesh) << " -> " << to_string(to, mesh) << " on " << text
                             << ", refinement " << static_cast<int>(refinement) << ", seed " << kSeed;
      }
    }
  }
  EXPECT_GT(apart, 300u);
  EXPECT_GT(apart * 2, without_path);
}

}  // namespace
}  // namespace shardplan
