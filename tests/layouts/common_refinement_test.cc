#include "layouts/redistribution/search/common_refinement.h"

#include <gtest/gtest.h>

#include "layouts/redistribution/search/search_graphs.h"
#include "tests/layouts/all_layouts.h"

namespace shardplan {
namespace {

constexpr Refinement kRefinements[] = {Refinement::kFull, Refinement::kPrime, Refinement::kEnds, Refinement::kOneSpare,
                                       Refinement::kMinimal};

struct PiecesCase {
  const char* mesh;
  Shape shape;
  const char* from;
  const char* to;
  Refinement refinement;
  const char* pieces;  // of each space
};
const PiecesCase kPieces[] = {
    // y is split where x ends in the other layout's first dimension, although neither layout says so
    {"x=2,y=4", {8, 8}, "[{x}, {y}]", "[{y}, {x}]", Refinement::kEnds, "{x, y:(1)2, y:(2)2}"},
    {"x=2,y=4", {8, 8}, "[{x}, {}]", "[{}, {x}]", Refinement::kEnds, "{x, y}"},
    {"x=2,y=4", {8, 8}, "[{x}, {}]", "[{}, {x}]", Refinement::kPrime, "{x, y:(1)2, y:(2)2}"},
    {"x=2,y=4", {8, 8}, "[{x}, {}]", "[{}, {x}]", Refinement::kMinimal, "{x}"},
    {"y=8", {8, 8}, "[{y:(1)2}, {}]", "[{y}, {}]", Refinement::kEnds, "{y:(1)2, y:(2)4}"},
    // 6 as 2 x 3 and as 3 x 2, of an axis and of a dimension's parts
    {"a=6", {6}, "[{a:(1)2}]", "[{a:(1)3}]", Refinement::kEnds, "{a:(1)2, a:(2)3} and {a:(1)3, a:(3)2}"},
    {"x=2,y=3", {24}, "[(2:{}, 12:{x})]", "[(3:{}, 8:{x})]", Refinement::kMinimal, "{x} and {x}"},
};
TEST(CommonRefinementTest, CutsAxesWhereEitherEndDoes) {
  for (const PiecesCase& c : kPieces) {
    const DeviceMesh mesh = DeviceMesh::parse(c.mesh);
    std::string pieces;
    for (const LayoutSpace& space :
         common_spaces(parse_layout(c.from, mesh), parse_layout(c.to, mesh), mesh, c.shape, c.refinement)) {
      pieces += (pieces.empty() ? "" : " and ") + mesh.to_string(space.pieces);
    }
    EXPECT_EQ(pieces, c.pieces) << c.from << " -> " << c.to;
  }
}

// Both ends are among the states found for them, at every refinement; among refinements without digits of dimensions, a
// finer one has at least as many placements.
TEST(CommonRefinementTest, HoldsBothEnds) {
  constexpr std::uint64_t kSeed = 13;
  Random random(kSeed);
  std::size_t in_two = 0;
  for (const auto& [text, shape] : {std::pair{"x=2,y=4", Shape{24, 16}}, std::pair{"a=6,b=2", Shape{24, 36}}}) {
    const DeviceMesh mesh = DeviceMesh::parse(text);
    for (int i = 0; i < 150; ++i) {
      const TensorLayout from = random_layout(mesh, shape, random, true, true);
      const TensorLayout to = random_layout(mesh, shape, random, true, true);
      const std::string name = to_string(from, mesh) + " -> " + to_string(to, mesh);
      std::int64_t last = INT64_MAX;
      for (const Refinement refinement : kRefinements) {
        const std::vector<LayoutSpace> spaces = common_spaces(from, to, mesh, shape, refinement);
        ASSERT_LE(spaces.size(), 2u);
        std::int64_t placements = 0;
        for (std::size_t k = 0; k < spaces.size(); ++k) {
          ASSERT_TRUE(can_be_searched(spaces[k])) << name;
          placements += num_placements(spaces[k]);
          for (const TensorLayout* end : {&from, &to}) {
            if (spaces.size() == 2 && end != (k == 0 ? &from : &to)) continue;
            const std::optional<Placement> placement = spaces[k].encode(*end, shape);
            ASSERT_TRUE(placement) << name << ", seed " << kSeed;
            EXPECT_EQ(spaces[k].decode(*placement, shape), *end) << name << ", seed " << kSeed;
          }
        }
        in_two += spaces.size() == 2 ? 1 : 0;
        if (refinement != Refinement::kFull) {
          EXPECT_LE(placements, last) << name << ", seed " << kSeed;
          last = placements;
        }
      }
    }
  }
  EXPECT_GT(in_two, 20u);
}

TEST(CommonRefinementTest, ReductionsAreThoseOfPartialEnds) {
  const DeviceMesh mesh = DeviceMesh::parse("x=2,y=4");
  const auto reductions = [&](const char* from, const char* to) {
    return reductions_of(parse_layout(from, mesh), parse_layout(to, mesh));
  };
  EXPECT_EQ(reductions("[{x}]", "[{y}]"), std::vector<Reduction>{});
  EXPECT_EQ(reductions("[{}] unreduced={x} unreduced_kind=max", "[{}]"), std::vector<Reduction>{Reduction::kMax});
  EXPECT_EQ(reductions("[{}] unreduced={x} unreduced_kind=max", "[{}] unreduced={y}"),
            (std::vector<Reduction>{Reduction::kSum, Reduction::kMax}));
}

}  // namespace
}  // namespace shardplan
