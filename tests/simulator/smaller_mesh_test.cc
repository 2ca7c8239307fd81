#include "simulator/proof/smaller_mesh.h"

#include <gtest/gtest.h>

#include "layouts/layout_axes.h"

namespace shardplan {
namespace {

/// A program with one value in each of these layouts.
ParallelProgram program_of(const char* mesh, const std::vector<const char*>& layouts) {
  ParallelProgram program;
  program.mesh = DeviceMesh::parse(mesh);
  for (const char* layout : layouts) {
    ProgramValue value;
    value.layout = parse_layout(layout, program.mesh);
    program.values.push_back(std::move(value));
  }
  return program;
}

struct SmallerCase {
  const char* mesh;
  std::vector<const char*> layouts;
  const char* smaller;
  const char* of_twos;
};
const SmallerCase kSmaller[] = {
    {"a=8,b=8", {"[{a}, {b}]"}, "a=3, b=2", "a=2, b=2"},
    {"a=8,b=2", {"[{a}, {b}]"}, "a=3, b=2", "a=2, b=2"},
    {"node=64,gpu=8", {"[{node:(1)2}, {gpu}]"}, "node=6, gpu=2", "node=4, gpu=2"},  // 2 x 3, then 2
    {"node=64,gpu=8", {"[{node:(2)4}, {}]", "[{node:(1)2}, {node:(8)8}]"}, "node=12, gpu=3", "node=8, gpu=2"},
    {"a=2,b=1,c=64", {"[{c}]"}, "a=2, b=1, c=3", "a=2, b=1, c=2"},
};
TEST(SmallerMeshTest, EveryPieceKeepsASizeOfTwoOrThree) {
  for (const SmallerCase& c : kSmaller) {
    const ParallelProgram program = program_of(c.mesh, c.layouts);
    const SmallerMesh smaller(program, 8, SmallerPieces::kThreesAndTwos);
    EXPECT_TRUE(smaller.is_smaller());
    EXPECT_EQ(smaller.mesh().to_string(), c.smaller) << c.mesh;
    EXPECT_EQ(SmallerMesh(program, 8, SmallerPieces::kTwos).mesh().to_string(), c.of_twos) << c.mesh;
    // Pieces stay pieces of their axis, disjoint ones stay disjoint, and none vanishes.
    for (const ProgramValue& value : program.values) {
      const std::vector<AxisRef> all = cutting_axes(value.layout);
      const std::vector<AxisRef> mapped = smaller.at(all);
      for (std::size_t i = 0; i < all.size(); ++i) {
        EXPECT_EQ(mapped[i].axis, all[i].axis);
        EXPECT_TRUE(mapped[i].size == 2 || mapped[i].size == 3 || smaller.mesh().is_whole(mapped[i])) << c.mesh;
        EXPECT_GT(mapped[i].size, 1);
        EXPECT_TRUE(contains(smaller.mesh().whole(mapped[i].axis), mapped[i]));
        for (std::size_t j = 0; j < i; ++j) {
          EXPECT_FALSE(overlaps(mapped[i], mapped[j])) << c.mesh;
          EXPECT_EQ(is_followed_by(all[i], all[j]), is_followed_by(mapped[i], mapped[j])) << c.mesh;
        }
      }
    }
  }
}

TEST(SmallerMeshTest, StrategiesAndGroupsAreCutsAsWell) {
  ParallelProgram program = program_of("a=64", {"[{}]"});
  Instruction instruction;
  instruction.strategy.edit().factors.push_back({{0, 1, 4}});
  instruction.step.edit().axes = {{0, 8, 8}};
  program.instructions.push_back(std::move(instruction));
  const SmallerMesh smaller(program, 8, SmallerPieces::kTwos);  // split at 4 and 8: pieces of 4, 2 and 8
  EXPECT_EQ(smaller.mesh().to_string(), "a=8");
  Strategy strategy;
  strategy.factors.push_back({{0, 1, 4}});
  strategy.partial = {{0, 8, 8}};
  const Strategy mapped = smaller.at(strategy);
  EXPECT_EQ(mapped.factors[0], (std::vector<AxisRef>{{0, 1, 2}}));
  EXPECT_EQ(mapped.partial, (std::vector<AxisRef>{{0, 4, 2}}));
}

TEST(SmallerMeshTest, AnAxisThatTakesThePlaceOfAnotherIsCutLikeIt) {
  // A permute from [{a}] to [{b}] moves pieces between axes of 8, one of which is split into 2 and 4.
  const ParallelProgram program = program_of("a=8,b=8,c=4", {"[{a}, {}]", "[{b}, {}]", "[{b:(2)4}, {c}]"});
  EXPECT_EQ(SmallerMesh(program, 8, SmallerPieces::kTwos).mesh().to_string(), "a=2, b=4, c=2");
  const SmallerMesh alike(program, 8, SmallerPieces::kTwosAlike);
  EXPECT_EQ(alike.mesh().to_string(), "a=4, b=4, c=2");
  EXPECT_EQ(alike.at(AxisRef{1, 2, 4}), (AxisRef{1, 2, 2}));
}

TEST(SmallerMeshTest, AMeshThatIsSmallStays) {
  const ParallelProgram program = program_of("a=8,b=4", {"[{a}, {b}]"});
  const SmallerMesh same(program, 32, SmallerPieces::kThreesAndTwos);
  EXPECT_FALSE(same.is_smaller());
  EXPECT_EQ(same.mesh(), program.mesh);
  EXPECT_EQ(same.at(AxisRef{0, 2, 4}), (AxisRef{0, 2, 4}));
  EXPECT_TRUE(SmallerMesh(program, 31, SmallerPieces::kThreesAndTwos).is_smaller());
}

}  // namespace
}  // namespace shardplan
