// Times of collectives that others measured, compared with the DGX H100 preset.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "costmodel/cluster/cluster_mesh.h"
#include "costmodel/hierarchical_costs.h"

namespace shardplan {
namespace {

struct Published {
  const char* source;
  CollectiveKind kind;
  int nodes;
  double mib;  // of the group's whole tensor
  double us;
  double within;  // |ln(ours / published)| at most
};

constexpr Published kPublished[] = {
    {"Mooncake PR 3484, 8 GPUs", CollectiveKind::kAllReduce, 1, 1.0 / 16, 19, 0.25},
    {"Mooncake PR 3484, 8 GPUs", CollectiveKind::kAllReduce, 1, 1, 27.8, 0.25},
    {"Mooncake PR 3484, 8 GPUs", CollectiveKind::kAllReduce, 1, 4, 53, 0.25},
    {"Mooncake PR 3484, 8 GPUs", CollectiveKind::kAllReduce, 1, 16, 121, 0.25},
    {"Mooncake PR 3484, 8 GPUs", CollectiveKind::kAllReduce, 1, 32, 195, 0.25},
    {"AutoParallel table", CollectiveKind::kAllReduce, 1, 1, 28, 0.25},
    {"AutoParallel table", CollectiveKind::kAllReduce, 1, 64, 382, 0.25},
    {"AutoParallel table", CollectiveKind::kAllReduce, 1, 1024, 5276, 0.25},
    {"AutoParallel table", CollectiveKind::kAllGather, 1, 8, 49.5, 0.25},
    {"AutoParallel table", CollectiveKind::kAllGather, 1, 8192, 20910, 0.25},
    {"NCCL issue 1218, 340 GB/s busbw", CollectiveKind::kAllReduce, 32, 2048, 2 * 255.0 / 256 * 2147.48 / 0.340, 0.25},
    {"NCCL issue 1218, 200 GB/s busbw", CollectiveKind::kAllGather, 32, 2048, 255.0 / 256 * 2147.48 / 0.200, 0.8},
    {"AutoParallel fit, 2 nodes, 409.6 GB/s + 70 us", CollectiveKind::kAllGather, 2, 1024, 70 + 1073.74 / 0.4096, 0.25},
    {"AutoParallel fit, 8 nodes, 390.1 GB/s + 296.8 us", CollectiveKind::kAllGather, 8, 1024, 296.8 + 1073.74 / 0.3901,
     0.25},
    {"AutoParallel fit, 32 nodes, 385.5 GB/s + 1204 us", CollectiveKind::kAllGather, 32, 1024, 1204 + 1073.74 / 0.3855,
     0.25},
    // DeepEP's README (V2), SM90 with CX7: of 256 MiB on each device, its own part and its node's are counted too.
    {"DeepEP dispatch, EP 8 x 2, 90 GB/s", CollectiveKind::kAllToAll, 2, 16 * 256, 268.435456 / 0.090, 0.25},
    {"DeepEP combine, EP 8 x 2, 81 GB/s", CollectiveKind::kAllToAll, 2, 16 * 256, 268.435456 / 0.081, 0.25},
    {"DeepEP dispatch and combine, EP 8 x 4, 61 GB/s", CollectiveKind::kAllToAll, 4, 32 * 256, 268.435456 / 0.061,
     0.25},
};

TEST(PublishedCollectives, AreWithinTheirTolerance) {
  for (const Published& row : kPublished) {
    const Cluster cluster = read_cluster(fmt::format("dgx-h100x{}", row.nodes));
    const DeviceMesh mesh = make_mesh(cluster);
    std::vector<AxisRef> all;
    for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
      if (mesh.axes()[axis].size > 1) all.push_back(mesh.whole(axis));
    }
    const HierarchicalCosts costs(cluster, mesh);
    const double ours = static_cast<double>(costs.time(row.kind, all, static_cast<Bytes>(row.mib * (1 << 20)))) / 1e6;
    fmt::print("{:<14} {:>3} x 8  {:>9.3f} MiB  ours {:>9.1f} us  published {:>9.1f} us  ratio {:.2f}  {}\n",
               to_string(row.kind), row.nodes, row.mib, ours, row.us, ours / row.us, row.source);
    EXPECT_LE(std::abs(std::log(ours / row.us)), row.within) << row.source << ", " << row.mib << " MiB";
  }
}

}  // namespace
}  // namespace shardplan
