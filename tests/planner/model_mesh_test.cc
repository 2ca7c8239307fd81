#include "planner/model_mesh.h"

#include <gtest/gtest.h>

#include "model/read_model.h"
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
  EXPECT_EQ(mesh.to_string(model_pieces(model, mesh, 16)), "{dp, mp}");
}

TEST(ModelMeshTest, AxesOfSizeOneShardNothing) {
  const Model model = with_mesh({{"dp", 8}, {"tp", 1}, {"pp", 1}});
  const DeviceMesh mesh = model_mesh(model, read_cluster("ascend-910"));
  EXPECT_EQ(mesh.to_string(), "dp=8, tp=1, pp=1");
  EXPECT_EQ(mesh.to_string(model_pieces(model, mesh, 16)), "{dp}");
}

TEST(ModelMeshTest, OtherwiseTheLevelsMayBeCut) {
  const Cluster cluster = read_cluster("ascend-910");
  const DeviceMesh mesh = model_mesh(with_mesh({}), cluster);
  EXPECT_EQ(mesh.to_string(), "pcie=2, hccs=4");
  EXPECT_EQ(mesh.to_string(model_pieces(with_mesh({}), mesh, 16)), "{pcie, hccs:(1)2, hccs:(2)2}");
}

TEST(ModelMeshTest, TheOutermostLevelIsCutWhereTheBatchNeedsIt) {
  const auto pieces_of = [](const char* cluster, std::int64_t batch, bool allows_uneven = true) {
    Model model = with_mesh({});
    model.parallel.allows_uneven = allows_uneven;
    const DeviceMesh mesh = model_mesh(model, read_cluster(cluster));
    return mesh.to_string(model_pieces(model, mesh, batch));
  };
  EXPECT_EQ(pieces_of("dgx-a100x256", 768), "{ib, nvlink:(1)2, nvlink:(2)4}");
  EXPECT_EQ(pieces_of("dgx-a100x512", 768), "{ib:(1)2, ib:(2)256, nvlink}");
  EXPECT_EQ(pieces_of("dgx-a100x12288", 768), "{ib:(1)16, ib:(16)768, nvlink}");
  EXPECT_EQ(pieces_of("dgx-a100x64", 16), "{ib:(1)4, ib:(4)16, nvlink}");
  EXPECT_EQ(pieces_of("dgx-a100x64", 8), "{ib, nvlink:(1)2, nvlink:(2)4}") << "nvlink cuts as much";
  EXPECT_EQ(pieces_of("dgx-a100x64", 1), "{ib, nvlink:(1)2, nvlink:(2)4}");
  // 1520 in 64 pieces of 24 has little padding. In equal pieces 16 is the most.
  EXPECT_EQ(pieces_of("dgx-a100x64", 1520), "{ib, nvlink:(1)2, nvlink:(2)4}");
  EXPECT_EQ(pieces_of("dgx-a100x64", 1520, false), "{ib:(1)4, ib:(4)16, nvlink}");
}

// On y=16, x=16 the usual pieces 16, 2 and 8 shard a batch of 64 into 32.
TEST(ModelMeshTest, InnerLevelsAreCutWhereTheBatchNeedsIt) {
  const auto pieces_of = [](const char* cluster, std::int64_t batch) {
    const DeviceMesh mesh = model_mesh(with_mesh({}), read_cluster(cluster));
    return mesh.to_string(model_pieces(with_mesh({}), mesh, batch));
  };
  EXPECT_EQ(pieces_of("tpu-v5e", 64), "{y, x:(1)4, x:(4)4}");
  EXPECT_EQ(pieces_of("tpu-v5e", 256), "{y, x:(1)2, x:(2)8}");
  EXPECT_EQ(pieces_of("tpu-v5e", 128), "{y, x:(1)2, x:(2)8}");
  EXPECT_EQ(pieces_of("tpu-v5e", 32), "{y, x:(1)2, x:(2)8}");
  EXPECT_EQ(pieces_of("tpu-v5e", 1), "{y, x:(1)2, x:(2)8}");
}

TEST(ModelMeshTest, AMeshThatDoesNotFitIsAnErrorAtItsPlace) {
  EXPECT_EQ(error_of([] {
              model_mesh(with_mesh({{"dp", 4}}), read_cluster("ascend-910"));
            }),
            "m.yaml:7:9: error: mesh dp=4 has 4 devices, but ascend-910 has 8");
}

TEST(ModelMesh, TheBatchTakesThePiecesThatShardItTheMost) {
  const DeviceMesh mesh = DeviceMesh::parse("a=8, b=2, c=4");
  const auto pieces = [&](std::int64_t batch, bool allows_uneven = false) {
    return mesh.to_string(batch_pieces({mesh.whole(0), mesh.whole(1), mesh.whole(2)}, batch, allows_uneven));
  };
  EXPECT_EQ(pieces(64), "{a, b, c}");
  EXPECT_EQ(pieces(32), "{a, c}");
  EXPECT_EQ(pieces(16), "{a, b}");
  EXPECT_EQ(pieces(8), "{a}");  // as b and c would
  EXPECT_EQ(pieces(12), "{c}");
  EXPECT_EQ(pieces(3), "{}");
  EXPECT_EQ(pieces(255, true), "{a, b, c}");
}

}  // namespace
}  // namespace shardplan
