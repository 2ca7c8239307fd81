#include "costmodel/cluster/cluster_mesh.h"

#include <gtest/gtest.h>

#include "tests/support/text.h"

namespace shardplan {
namespace {

TEST(ClusterMeshTest, MeshesOfTheUserMultiplyToTheDevicesAndSayWhatTheySpan) {
  const Cluster ascend = read_cluster("ascend-910");
  const DeviceMesh mesh = make_mesh(ascend, {{"dp", 2}, {"mp", 4}});
  EXPECT_EQ(spanned_levels(ascend, mesh, mesh.whole(0)), (std::vector<std::string>{"pcie"}));
  EXPECT_EQ(spanned_levels(ascend, mesh, mesh.whole(1)), (std::vector<std::string>{"hccs"}));
  const DeviceMesh other = make_mesh(ascend, {{"dp", 4}, {"mp", 2}});
  EXPECT_EQ(spanned_levels(ascend, other, other.whole(0)), (std::vector<std::string>{"pcie", "hccs"}));
  EXPECT_EQ(spanned_levels(ascend, other, {0, 1, 2}), (std::vector<std::string>{"pcie"}));
  EXPECT_EQ(error_of([&] {
              make_mesh(ascend, {{"dp", 3}, {"mp", 2}});
            }),
            "error: mesh dp=3, mp=2 has 6 devices, but ascend-910 has 8");
}

TEST(ClusterMeshTest, SearchesCutTheInnerLevelsFirst) {
  const auto pieces = [](const DeviceMesh& mesh, std::size_t most) {
    return mesh.to_string(search_pieces(mesh, most));
  };
  EXPECT_EQ(pieces(DeviceMesh::parse("nvlink=8"), 3), "{nvlink:(1)2, nvlink:(2)2, nvlink:(4)2}");
  EXPECT_EQ(pieces(DeviceMesh::parse("ib=8, nvlink=8"), 3), "{ib, nvlink:(1)2, nvlink:(2)4}");
  EXPECT_EQ(pieces(DeviceMesh::parse("pcie=2, hccs=4"), 3), "{pcie, hccs:(1)2, hccs:(2)2}");
  EXPECT_EQ(pieces(DeviceMesh::parse("roce=2, pcie=2, hccs=4"), 3), "{roce, pcie, hccs}");
  EXPECT_EQ(pieces(DeviceMesh::parse("a=2, b=2, c=2, d=4"), 3), "{a, b, c, d}");
  EXPECT_EQ(pieces(DeviceMesh::parse("a=4, b=3"), 3), "{a:(1)2, a:(2)2, b}");
  EXPECT_EQ(pieces(DeviceMesh::parse("a=12"), 2), "{a:(1)2, a:(2)6}");
  EXPECT_EQ(pieces(DeviceMesh::parse("a=7"), 3), "{a}");
  EXPECT_EQ(pieces(DeviceMesh(), 3), "{}");
}

// For all sizes: pieces in mesh order that make up the axes; none is split while an inner one could be.
TEST(ClusterMeshTest, PiecesMakeUpTheAxes) {
  for (const char* text : {"a=2", "a=12", "a=30,b=4", "a=7,b=9", "a=16,b=8", "a=2,b=1,c=6"}) {
    const DeviceMesh mesh = DeviceMesh::parse(text);
    for (std::size_t most = 1; most < 7; ++most) {
      const std::vector<AxisRef> pieces = search_pieces(mesh, most);
      EXPECT_TRUE(std::is_sorted(pieces.begin(), pieces.end())) << text;
      EXPECT_EQ(num_pieces(pieces), mesh.num_devices()) << text;
      std::size_t axes = 0;
      for (const MeshAxis& axis : mesh.axes()) axes += axis.size > 1 ? 1 : 0;
      EXPECT_EQ(joined(pieces).size(), axes) << text;
      EXPECT_LE(pieces.size(), std::max(most, axes)) << text;
    }
  }
}

}  // namespace
}  // namespace shardplan
