#include "layouts/redistribution/search/stuck_piece.h"

#include <gtest/gtest.h>

#include "tests/layouts/all_layouts.h"
#include "tests/layouts/all_paths.h"

namespace shardplan {
namespace {

TEST(StuckPieceTest, SeesThatAnAxisCannotPassRowsThatNothingShards) {
  const DeviceMesh mesh = DeviceMesh::parse("x=3,y=8");
  const Shape shape = {64, 1920, 16, 16};
  struct Case {
    const char* from;
    const char* to;
    bool is_stuck;
  };
  const Case cases[] = {
      {"[{y}, (32:{}, 60:{x}), {}, {}]", "[{y}, {x}, {}, {}]", true},
      {"[{y}, {x}, {}, {}]", "[{}, (32:{}, 60:{x}), {y}, {}]", true},
      {"[{y}, {x}, {}, {}]", "[{}, (32:{y}, 60:{x}), {}, {}]", true},
      {"[{y}, (8:{}, 240:{x}), {}, {}]", "[{y}, {x}, {}, {}]", false},  // y shards these 8 rows
      {"[{y}, {x}, {}, {}]", "[{}, {x}, {}, {y}]", false},
      {"[{}, (32:{}, 60:{x}), {}, {}]", "[{y}, {}, {}, {}]", false},  // x may be gathered
  };
  for (const Case& c : cases) {
    const TensorLayout from = canonical(parse_layout(c.from, mesh), mesh, shape);
    const TensorLayout to = canonical(parse_layout(c.to, mesh), mesh, shape);
    RedistributionGraph graph = graph_of(from, to, mesh, shape, Refinement::kEnds);
    const std::uint32_t source = *graph.find(from, shape), target = *graph.find(to, shape);
    const std::int64_t least_shards = std::min(num_shards(from), num_shards(to));
    EXPECT_EQ(has_stuck_piece(graph, shape, source, target, least_shards), c.is_stuck) << c.from << " -> " << c.to;
  }
}

// If it calls a random pair stuck, a search of all states finds no path.
TEST(StuckPieceTest, IsRightWhereverItSaysSo) {
  struct Case {
    const char* mesh;
    Shape shape;
  };
  const Case cases[] = {
      {"x=3,y=4", {8, 24}}, {"x=6,y=2", {24, 4}}, {"x=6,y=2", {12, 18}}, {"x=6", {12, 6}}, {"x=2,y=5", {40, 4}},
  };
  constexpr std::uint64_t kSeed = 5;
  Random random(kSeed);
  std::size_t stuck = 0, of_several_spaces = 0;
  for (const Case& c : cases) {
    const DeviceMesh mesh = DeviceMesh::parse(c.mesh);
    for (int i = 0; i < 10'000; ++i) {
      const TensorLayout from = random_layout(mesh, c.shape, random, true, true);
      const TensorLayout to = random_layout(mesh, c.shape, random, true, true);
      const std::int64_t least_shards = std::min(num_shards(from), num_shards(to));
      if (least_shards * 2 < mesh.num_devices()) continue;
      for (const Refinement refinement :
           {Refinement::kFull, Refinement::kPrime, Refinement::kEnds, Refinement::kOneSpare, Refinement::kMinimal}) {
        RedistributionGraph graph = graph_of(from, to, mesh, c.shape, refinement);
        const std::uint32_t source = *graph.find(from, c.shape), target = *graph.find(to, c.shape);
        if (!has_stuck_piece(graph, c.shape, source, target, least_shards)) continue;
        const std::optional<bool> found = has_path(graph, source, target, least_shards);
        if (!found) continue;
        ++stuck;
        of_several_spaces += graph.spaces().size() > 1 ? 1 : 0;
        EXPECT_FALSE(*found) << to_string(from, mesh) << " -> " << to_string(to, mesh) << " on " << c.mesh
                             << ", refinement " << static_cast<int>(refinement) << ", seed " << kSeed;
      }
    }
  }
  EXPECT_GT(stuck, 50u);
  EXPECT_GT(of_several_spaces, 20u);
}

}  // namespace
}  // namespace shardplan
