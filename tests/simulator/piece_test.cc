#include "simulator/checkpoint/piece.h"

#include <gtest/gtest.h>

#include <map>

#include "layouts/uneven.h"
#include "tests/layouts/all_layouts.h"

namespace shardplan {
namespace {

using Coordinates = std::vector<std::int64_t>;

/// The offset of every position of a piece, counted one by one.
std::map<Coordinates, std::int64_t> offsets_of(const PieceRuns& piece) {
  std::vector<Coordinates> held(1);
  for (const std::vector<PieceRuns::Run>& runs : piece.dimensions) {
    std::vector<Coordinates> longer;
    for (const Coordinates& position : held) {
      for (const PieceRuns::Run& run : runs) {
        for (std::int64_t k = 0; k < run.count; ++k) {
          longer.push_back(position);
          longer.back().push_back(run.begin + k);
        }
      }
    }
    held = std::move(longer);
  }
  std::map<Coordinates, std::int64_t> offsets;
  for (const Coordinates& position : held) offsets.emplace(position, static_cast<std::int64_t>(offsets.size()));
  return offsets;
}

TEST(PieceTest, HoldsWhatTheLayoutGivesTheDevice) {
  const DeviceMesh mesh = DeviceMesh::parse("x=2, y=4");
  const auto held = [&](const char* layout, Shape shape, std::int64_t point) {
    return held_piece(parse_layout(layout, mesh), mesh, shape, point).dimensions;
  };
  using Runs = std::vector<std::vector<PieceRuns::Run>>;
  EXPECT_EQ(held("[{x}, {}]", {8, 6}, 4), (Runs{{{4, 4}}, {{0, 6}}}));
  EXPECT_EQ(held("[(2:{}, 4:{x}), {}]", {8, 6}, 4), (Runs{{{2, 2}, {6, 2}}, {{0, 6}}})) << "two intervals";
  EXPECT_EQ(held("[{y}]", {10}, 3), (Runs{{{9, 1}}})) << "the last piece of 3, 3, 3, 1";
  EXPECT_EQ(held("[]", {}, 0), Runs{});
  EXPECT_EQ(whole_piece({2, 3}).shape(), (Shape{2, 3}));
  EXPECT_EQ(held_piece(parse_layout("[{y}]", mesh), mesh, {10}, 2).begin(), (Shape{6}));
}

/// Rows that two pieces have in common, compared with single positions.
TEST(PieceTest, SharedRowsAreTheSharedPositions) {
  Random random(11);
  const DeviceMesh meshes[] = {DeviceMesh::parse("x=2, y=4"), DeviceMesh::parse("x=3, y=2")};
  const Shape shapes[] = {{12, 4, 6}, {24}, {8, 24}, {}, {10, 5}};
  std::int64_t shared = 0;
  for (int i = 0; i < 200; ++i) {
    const Shape& shape = shapes[random.below(std::size(shapes))];
    PieceRuns pieces[2];
    for (PieceRuns& piece : pieces) {
      const DeviceMesh& mesh = meshes[random.below(2)];
      const TensorLayout layout = random_layout(mesh, shape, random, true, true);
      piece = held_piece(layout, mesh, shape, static_cast<std::int64_t>(random.below(mesh.num_devices())));
    }
    const std::map<Coordinates, std::int64_t> from = offsets_of(pieces[0]), to = offsets_of(pieces[1]);
    std::map<std::int64_t, std::int64_t> expected, copied;
    for (const auto& [position, offset] : from) {
      if (const auto there = to.find(position); there != to.end()) expected.emplace(offset, there->second);
    }
    for_each_shared_row(pieces[0], pieces[1], [&](std::int64_t a, std::int64_t b, std::int64_t count) {
      for (std::int64_t k = 0; k < count; ++k) EXPECT_TRUE(copied.emplace(a + k, b + k).second) << "copied twice";
    });
    EXPECT_EQ(copied, expected);
    shared += static_cast<std::int64_t>(expected.size());
  }
  EXPECT_GT(shared, 1000);
}

}  // namespace
}  // namespace shardplan
