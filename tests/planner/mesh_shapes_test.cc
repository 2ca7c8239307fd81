#include "planner/mesh_shapes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace shardplan {
namespace {

std::vector<std::string> texts(const std::string& mesh_text) {
  const DeviceMesh mesh = DeviceMesh::parse(mesh_text);
  std::vector<std::string> result;
  for (const std::vector<AxisRef>& shape : mesh_shapes(mesh)) result.push_back(mesh.to_string(shape));
  return result;
}

using Texts = std::vector<std::string>;

TEST(MeshShapesTest, ShapesCutTheLevelsInThreePiecesTheUsualOneFirst) {
  EXPECT_EQ(texts("node=8, nvlink=8"), (Texts{"{node, nvlink:(1)2, nvlink:(2)4}", "{node:(1)2, node:(2)4, nvlink}",
                                              "{node:(1)4, node:(4)2, nvlink}", "{node, nvlink:(1)4, nvlink:(4)2}"}));
  EXPECT_EQ(texts("x=12").size(), 3u);  // 2 2 3, 2 3 2, 3 2 2
  EXPECT_EQ(texts("x=8"), (Texts{"{x:(1)2, x:(2)2, x:(4)2}"}));
  EXPECT_EQ(texts("a=7"), (Texts{"{a}"}));
  EXPECT_EQ(texts("a=2, b=2, c=2, d=2"), (Texts{"{a, b, c, d}"}));
  EXPECT_EQ(texts("a=2, b=1, c=8").size(), 2u);
}

// Compared with an independent count: compositions of the exponents.
TEST(MeshShapesTest, OfOneAxisAllOrderedFactorizationsAreTried) {
  for (const std::int64_t size : {16, 30, 36, 64, 128, 210}) {
    std::set<std::string> expected;
    for (std::int64_t a = 2; a < size; ++a) {
      for (std::int64_t b = 2; a * b < size; ++b) {
        if (size % (a * b) == 0) expected.insert(fmt::format("{} {} {}", a, b, size / a / b));
      }
    }
    std::set<std::string> found;
    for (const std::vector<AxisRef>& shape : mesh_shapes(DeviceMesh({{"x", size}}))) {
      ASSERT_EQ(shape.size(), 3u);
      EXPECT_EQ(shape[1].before, shape[0].size);
      EXPECT_EQ(shape[2].end(), size);
      found.insert(fmt::format("{} {} {}", shape[0].size, shape[1].size, shape[2].size));
    }
    EXPECT_EQ(found, expected) << size;
  }
}

}  // namespace
}  // namespace shardplan
