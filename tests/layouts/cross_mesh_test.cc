#include "layouts/redistribution/cross_mesh.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/layouts/all_layouts.h"

namespace shardplan {
namespace {

struct OnMeshCase {
  const char* mesh;
  const char* layout;
  const char* other;
  const char* expressed;  // empty: there is no such layout
};
const OnMeshCase kOnMesh[] = {
    {"a=4,b=2", "[{a}, {b}]", "x=2,y=4", "[{x, y:(1)2}, {y:(2)2}]"},
    {"a=6", "[{a:(1)2}, {a:(2)3}]", "x=2,y=3", "[{x}, {y}]"},
    {"x=2,y=3", "[{y, x}, {}]", "a=6", "[{a:(2)3, a:(1)2}, {}]"},
    {"a=8", "[{a}, {}] unreduced={}", "x=2,y=2,z=2", "[{x, y, z}, {}]"},
    {"a=8", "[{}, {}] unreduced={a:(2)4}", "x=2,y=2,z=2", "[{}, {}] unreduced={y, z}"},
    {"a=2,b=3", "[{a}, {}]", "x=3,y=2", ""},
    {"a=2,b=3", "[{a, b}, {}]", "x=3,y=2", ""},
    {"a=2", "[{a}, {}]", "x=4", ""},
};
TEST(CrossMeshTest, TellsALayoutInTheAxesOfAnotherMesh) {
  for (const OnMeshCase& c : kOnMesh) {
    const DeviceMesh mesh = DeviceMesh::parse(c.mesh);
    const DeviceMesh other = DeviceMesh::parse(c.other);
    const TensorLayout layout = parse_layout(c.layout, mesh);
    const auto expressed = on_mesh(layout, mesh, other);
    EXPECT_EQ(expressed ? to_string(*expressed, other) : "", c.expressed) << c.layout;
    for (std::int64_t point = 0; expressed && point < mesh.num_devices(); ++point) {
      EXPECT_EQ(held_indices(layout, mesh, {24, 24}, point), held_indices(*expressed, other, {24, 24}, point));
    }
  }
  const DeviceMesh mesh = DeviceMesh::parse("a=2");
  EXPECT_EQ(on_mesh(parse_layout("[{a}]", mesh), mesh, DeviceMesh({{"a", 2}}, {1, 0})), std::nullopt);
}

struct SendsCase {
  const char* name;
  DeviceMesh from;
  DeviceMesh to;
};

// Every receiver gets each element of its shard once, from a device that holds it; it keeps what it already holds.
TEST(CrossMeshTest, SendsAreTheIntersectionsOfBoxes) {
  const SendsCase cases[] = {
      {"stage_of_4_to_stage_of_8", DeviceMesh({{"a", 2}, {"b", 2}}, {0, 1, 2, 3}),
       DeviceMesh({{"x", 4}, {"y", 2}}, {4, 5, 6, 7, 8, 9, 10, 11})},
      {"other_order", DeviceMesh::parse("a=2,b=3"), DeviceMesh({{"x", 3}, {"y", 2}}, {5, 3, 1, 4, 2, 0})},
      {"no_common_refinement", DeviceMesh::parse("a=2,b=3"), DeviceMesh::parse("x=3,y=2")},
      {"partly_the_same", DeviceMesh({{"a", 4}}, {0, 1, 2, 3}), DeviceMesh({{"x", 6}}, {2, 3, 4, 5, 6, 7})},
  };
  const Shape shape = {24, 12};
  Random random(41);
  for (const auto& [name, from_mesh, to_mesh] : cases) {
    const auto device = [](const DeviceMesh& mesh, std::int64_t point) {
      return mesh.devices().empty() ? point : mesh.devices()[static_cast<std::size_t>(point)];
    };
    const auto elements = [](const std::vector<std::vector<std::int64_t>>& positions) {
      std::set<std::pair<std::int64_t, std::int64_t>> result;
      for (const std::int64_t i : positions[0]) {
        for (const std::int64_t j : positions[1]) result.emplace(i, j);
      }
      return result;
    };
    for (int i = 0; i < 100; ++i) {
      TensorLayout from = random_layout(from_mesh, shape, random, true, true);
      from.partial.clear();
      const TensorLayout to = random_layout(to_mesh, shape, random, true, true);
      std::map<std::int64_t, std::set<std::pair<std::int64_t, std::int64_t>>> held;
      for (std::int64_t point = 0; point < from_mesh.num_devices(); ++point) {
        held[device(from_mesh, point)] = elements(held_indices(from, from_mesh, shape, point));
      }
      std::map<std::int64_t, std::multiset<std::pair<std::int64_t, std::int64_t>>> received;
      for (const BoxSend& send : plan_sends(from, from_mesh, to, to_mesh, shape)) {
        ASSERT_GT(send.num_elements(), 0);
        for (const auto& element : elements(send.positions)) {
          ASSERT_TRUE(held[send.from_device].contains(element)) << name;
          ASSERT_TRUE(send.from_device == send.to_device || !held[send.to_device].contains(element)) << name;
          received[send.to_device].insert(element);
        }
      }
      for (std::int64_t point = 0; point < to_mesh.num_devices(); ++point) {
        const auto wanted = elements(held_indices(to, to_mesh, shape, point));
        const auto& got = received[device(to_mesh, point)];
        const bool is_zero = to.reduction == Reduction::kSum && to_mesh.coordinate(point, to.partial) != 0;
        if (is_zero) {
          ASSERT_TRUE(got.empty()) << name;
        } else {
          ASSERT_EQ(got, (std::multiset<std::pair<std::int64_t, std::int64_t>>(wanted.begin(), wanted.end()))) << name;
        }
      }
    }
  }
}

TEST(CrossMeshTest, CopiesShareTheSending) {
  const DeviceMesh from_mesh({{"a", 4}}, {0, 1, 2, 3});
  const DeviceMesh to_mesh({{"x", 4}}, {4, 5, 6, 7});
  std::map<std::int64_t, std::int64_t> sent;
  for (const BoxSend& send :
       plan_sends(parse_layout("[{}]", from_mesh), from_mesh, parse_layout("[{x}]", to_mesh), to_mesh, {8})) {
    sent[send.from_device] += send.num_elements();
  }
  EXPECT_EQ(sent, (std::map<std::int64_t, std::int64_t>{{0, 2}, {1, 2}, {2, 2}, {3, 2}}));
}

}  // namespace
}  // namespace shardplan
