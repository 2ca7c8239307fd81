#include "planner/model_mesh.h"

#include <gtest/gtest.h>

#include "tests/support/text.h"

namespace shardplan {
namespace {

Model with_mesh(std::vector<std::pair<std::string, std::int64_t>> axes) {
  Model model;
  model.parallel.mesh = std::move(axes);
  model.parallel.mesh_place = {"m.yaml", 7, 9};
  return model;
}

TEST(ModelMeshTest, TheUsersAxesStayWhole) {
  const Cluster cluster = read_cluster("ascend-910");  // pcie=2, hccs=4
  const Model model = with_mesh({{"dp", 4}, {"mp", 2}});
  const DeviceMesh mesh = model_mesh(model, cluster);
  EXPECT_EQ(mesh.to_string(), "dp=4, mp=2");
  EXPECT_EQ(mesh.to_string(model_pieces(model, mesh)), "{dp, mp}");
}

TEST(ModelMeshTest, OtherwiseTheLevelsMayBeCut) {
  const Cluster cluster = read_cluster("ascend-910");
  const DeviceMesh mesh = model_mesh(with_mesh({}), cluster);
  EXPECT_EQ(mesh.to_string(), "pcie=2, hccs=4");
  EXPECT_EQ(mesh.to_string(model_pieces(with_mesh({}), mesh)), "{pcie, hccs:(1)2, hccs:(2)2}");
}

TEST(ModelMeshTest, AMeshThatDoesNotFitIsAnErrorAtItsPlace) {
  EXPECT_EQ(error_of([] {
              model_mesh(with_mesh({{"dp", 4}}), read_cluster("ascend-910"));
            }),
            "m.yaml:7:9: error: mesh dp=4 has 4 devices, but ascend-910 has 8");
}

}  // namespace
}  // namespace shardplan
