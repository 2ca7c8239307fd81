#include "layouts/device_mesh.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace shardplan {
namespace {

std::string fault(const std::string& text) {
  try {
    DeviceMesh::parse(text);
  } catch (const InputError& error) {
    return error.diagnostics().at(0).message;
  }
  return "";
}

TEST(DeviceMeshTest, ReadsAndWritesAxes) {
  const DeviceMesh mesh = DeviceMesh::parse(" x = 2,y=4");
  EXPECT_EQ(mesh.to_string(), "x=2, y=4");
  EXPECT_EQ(mesh.num_devices(), 8);
  EXPECT_EQ(mesh.find("y"), (AxisRef{1, 1, 4}));
  EXPECT_EQ(mesh.find("z"), std::nullopt);
  EXPECT_EQ(mesh.to_string(AxisRef{1, 2, 2}), "y:(2)2");
  EXPECT_EQ(mesh.to_string({{1, 1, 2}, {0, 1, 2}}), "{y:(1)2, x}");
}

TEST(DeviceMeshTest, SaysWhatIsWrong) {
  EXPECT_EQ(fault("x"), "mesh 'x': found 'x'; expected axes and sizes such as x=2, y=4");
  EXPECT_EQ(fault(""), "mesh '': found ''; expected axes and sizes such as x=2, y=4");
  EXPECT_EQ(fault("x=2,x=3"), "mesh axis 'x' is given twice");
  EXPECT_EQ(fault("x=0"), "mesh 'x=0': axis 'x' has size '0'; expected a whole number from 1 to 2147483647");
  EXPECT_EQ(fault("x=2y"), "mesh 'x=2y': axis 'x' has size '2y'; expected a whole number from 1 to 2147483647");
  EXPECT_EQ(fault("=2"), "mesh axis 0 is named ''; expected letters, digits, '_', '.' or '-'");
  EXPECT_EQ(fault("x=65536,y=65536"), "mesh x=65536, y=65536 has more than 2147483647 devices");
  EXPECT_THROW(DeviceMesh({{"x", 2}}, {0, 0}), InputError);
  EXPECT_THROW(DeviceMesh({{"x", 2}}, {0, 1, 2}), InputError);
  EXPECT_THROW(DeviceMesh({{"x", 2}}, {0, -1}), InputError);
}

TEST(DeviceMeshTest, CoordinatesAreRowMajorDigits) {
  const DeviceMesh mesh = DeviceMesh::parse("x=2,y=4");
  EXPECT_EQ(mesh.coordinate(6, AxisRef{0, 1, 2}), 1);
  EXPECT_EQ(mesh.coordinate(6, AxisRef{1, 1, 4}), 2);
  EXPECT_EQ(mesh.coordinate(6, AxisRef{1, 1, 2}), 1);
  EXPECT_EQ(mesh.coordinate(6, AxisRef{1, 2, 2}), 0);
  EXPECT_EQ(mesh.coordinate(6, {AxisRef{1, 2, 2}, AxisRef{0, 1, 2}}), 1);
}

using Groups = std::vector<std::vector<std::int64_t>>;

TEST(DeviceMeshTest, GroupsDifferOnlyAlongTheirAxes) {
  const DeviceMesh mesh = DeviceMesh::parse("x=2,y=4");
  EXPECT_EQ(mesh.groups({AxisRef{0, 1, 2}}), (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(mesh.groups({AxisRef{1, 2, 2}}), (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(mesh.groups({AxisRef{1, 1, 2}, AxisRef{0, 1, 2}}), (Groups{{0, 4, 2, 6}, {1, 5, 3, 7}}));
  EXPECT_EQ(mesh.groups({}).size(), 8u);
}

/// reference/mindspore.md, table 1.D.
struct RankGroupCase {
  const char* name;
  const char* mesh;
  std::vector<std::int64_t> ranks;
  std::int64_t rank;
  std::vector<AxisRef> along;
  std::vector<std::int64_t> group;
};
const RankGroupCase kRankGroups[] = {
    {"M1_rows", "a=2,b=3", {}, 0, {{0, 1, 2}}, {0, 3}},
    {"M1_columns", "a=2,b=3", {}, 0, {{1, 1, 3}}, {0, 1, 2}},
    {"M3_first", "a=2,b=1,c=4,d=2", {}, 5, {{0, 1, 2}}, {5, 13}},
    {"M3_second", "a=2,b=1,c=4,d=2", {}, 5, {{1, 1, 1}}, {5}},
    {"M3_third", "a=2,b=1,c=4,d=2", {}, 5, {{2, 1, 4}}, {1, 3, 5, 7}},
    {"M3_fourth", "a=2,b=1,c=4,d=2", {}, 5, {{3, 1, 2}}, {4, 5}},
    {"M7_position_in_the_list_counts", "a=4,b=2", {10, 3, 2, 9, 11, 100, 1, 0}, 0, {{0, 1, 4}}, {3, 9, 100, 0}},
    {"M9_replicas", "a=4,b=2", {}, 6, {{0, 1, 4}}, {0, 2, 4, 6}},
};
TEST(DeviceMeshTest, GroupsAreMindSporesRankLists) {
  for (const RankGroupCase& c : kRankGroups) {
    const DeviceMesh mesh(DeviceMesh::parse(c.mesh).axes(), c.ranks);
    const auto device = [&](std::int64_t point) {
      return mesh.devices().empty() ? point : mesh.devices()[static_cast<std::size_t>(point)];
    };
    bool is_found = false;
    for (const std::vector<std::int64_t>& group : mesh.groups(c.along)) {
      std::vector<std::int64_t> ranks;
      for (const std::int64_t point : group) ranks.push_back(device(point));
      if (std::find(ranks.begin(), ranks.end(), c.rank) == ranks.end()) continue;
      is_found = true;
      EXPECT_EQ(ranks, c.group) << c.name;
    }
    EXPECT_TRUE(is_found) << c.name;
  }
}

}  // namespace
}  // namespace shardplan
