#include "layouts/redistribution/uneven_states.h"

#include <gtest/gtest.h>

#include <set>

#include "layouts/uneven.h"
#include "tests/layouts/held_elements.h"
#include "tests/layouts/test_costs.h"

namespace shardplan {
namespace {

struct StatesCase {
  const char* mesh;
  Shape shape;
  std::vector<AxisRef> pieces;
  const char* from;   // the layout from which states are reached
  std::size_t kinds;  // how many of the seven kinds of steps there are between them
};
const StatesCase kStates[] = {
    {"x=4", {10}, {{0, 1, 4}}, "[{x}]", 5},
    {"x=2,y=4", {10, 7}, {{0, 1, 2}, {1, 1, 4}}, "[{y}, {x}]", 6},
    {"x=2,y=4", {15, 8}, {{0, 1, 2}, {1, 1, 2}, {1, 2, 2}}, "[{x}, {}] unreduced={y}", 7},
    {"x=2,y=3", {11, 6}, {{0, 1, 2}, {1, 1, 3}}, "[{x}, {y}]", 7},
};

// Every step between states is possible for a group with what its members hold, a state's buffer has as many elements
// as the fullest device, and layouts are read back unchanged.
TEST(UnevenStatesTest, StepsMoveOnlyWhatGroupsHold) {
  for (const StatesCase& c : kStates) {
    const DeviceMesh mesh = DeviceMesh::parse(c.mesh);
    const std::shared_ptr<const CollectiveCosts> costs = even_costs(mesh.axes().size());
    UnevenStates states(c.shape, 4, c.pieces, *costs);
    std::vector<UnevenStates::State> found = {states.encode(parse_layout(c.from, mesh))};
    std::set<UnevenStates::State> known = {found[0]};
    std::set<CollectiveKind> kinds;
    std::size_t num_edges = 0;
    for (std::size_t at = 0; at < found.size(); ++at) {
      const UnevenStates::State state = found[at];
      const TensorLayout before = states.decode(state);
      const std::string name = std::string(c.mesh) + ": " + to_string(before, mesh);
      ASSERT_EQ(check_uneven_layout(before, mesh, c.shape), "") << name;
      EXPECT_EQ(states.encode(before), state) << name;
      std::size_t most = 0;
      for (const Elements& held : held_elements(before, mesh, c.shape)) {
        EXPECT_FALSE(held.empty()) << name;
        most = std::max(most, held.size());
      }
      EXPECT_EQ(states.local_elements(state), static_cast<std::int64_t>(most)) << name;
      states.leave(state, nullptr, [&](const UnevenStates::Edge& edge) {
        const TensorLayout after = states.decode(edge.target);
        ++num_edges;
        kinds.insert(edge.step.kind);
        ASSERT_EQ(fault_of_move(edge.step.kind, edge.step.axes, before, after, mesh, c.shape), "")
            << name << " " << to_string(edge.step.kind) << " " << mesh.to_string(edge.step.axes) << " "
            << to_string(after, mesh);
        if (known.insert(edge.target).second) found.push_back(edge.target);
      });
    }
    EXPECT_GT(num_edges, found.size()) << c.mesh;
    EXPECT_EQ(kinds.size(), c.kinds) << c.mesh;
    EXPECT_EQ(states.num_known(), 1u) << c.mesh;  // sums; no dimension in parts
  }
}

TEST(UnevenStatesTest, BuffersOfStepsHavePadding) {
  const DeviceMesh mesh = DeviceMesh::parse("x=4,y=2");
  const Shape shape = {10, 6};
  const std::shared_ptr<const CollectiveCosts> costs = even_costs(2);
  UnevenStates states(shape, 4, {mesh.whole(0), mesh.whole(1)}, *costs);
  const auto cost = [&](const char* from, const char* to, CollectiveKind kind) {
    const UnevenStates::State target = states.encode(parse_layout(to, mesh));
    const UnevenStates::State source = states.encode(parse_layout(from, mesh));
    std::optional<StepCost> found;
    states.leave(source, nullptr, [&](const UnevenStates::Edge& edge) {
      if (edge.target == target && edge.step.kind == kind) found = states.cost_of(source, edge);
    });
    EXPECT_TRUE(found) << from << " -> " << to;
    return found ? found->sent : -1;
  };
  // Rows of 3, 3, 3 and 1, of 6 elements of 4 bytes: a device receives three other buffers of 3 x 6.
  EXPECT_EQ(cost("[{x}, {}]", "[{}, {}]", CollectiveKind::kAllGather), 3 * 3 * 6 * 4);
  EXPECT_EQ(cost("[{}, {}] unreduced={x}", "[{x}, {}]", CollectiveKind::kReduceScatter), 3 * 3 * 6 * 4);
  EXPECT_EQ(cost("[{x}, {}]", "[{x}, {y}]", CollectiveKind::kSlice), 0);
  // Columns of 3 in two halves, of 5 rows to 3: each device sends half of 5 x 6.
  EXPECT_EQ(cost("[{y}, {}]", "[{}, {y}]", CollectiveKind::kAllToAll), 5 * 3 * 4);
}

TEST(UnevenStatesTest, TellsWhichLayoutsConsistOfPieces) {
  const DeviceMesh mesh = DeviceMesh::parse("x=2,y=8");
  const std::vector<AxisRef> pieces = {mesh.whole(0), {1, 1, 2}, {1, 2, 4}};
  const auto consists = [&](const char* layout) { return consists_of(parse_layout(layout, mesh), pieces); };
  EXPECT_TRUE(consists("[{x, y}, {}]"));
  EXPECT_TRUE(consists("[{y:(1)2}, {y:(2)4}] unreduced={x}"));
  EXPECT_TRUE(consists("[{}, {}]"));
  EXPECT_FALSE(consists("[{y:(1)4}, {}]"));
  EXPECT_FALSE(consists("[{y:(2)2}, {}]"));
  EXPECT_FALSE(consists("[{}, {}] unreduced={y:(4)2}"));
}

}  // namespace
}  // namespace shardplan
