#include "report/cluster_report.h"

#include <gtest/gtest.h>

#include "base/json_tree.h"

namespace shardplan {
namespace {

TEST(ClusterReportTest, SummaryIsThatOfTheDocumentation) {
  EXPECT_EQ(cluster_summary(read_cluster("dgx-a100x8")),
            "dgx-a100x8: 64 devices, A100 SXM4 80GB, 76 GiB usable on each\n\n"
            "  level    axis size   link         line rate     used   latency   all_reduce of 1 GB along it\n"
            "  ib               8   per device     25 GB/s   86.0 %   14.0 us                       81.6 ms\n"
            "  nvlink           8   per device    300 GB/s   77.5 %    3.4 us                       7.58 ms\n\n"
            "  rank 0 is ib 0, nvlink 0; rank 9 is ib 1, nvlink 1\n"
            "  numbers from: device datasheet, nvlink measured, ib measured, latency measured elsewhere,\n"
            "                collectives measured elsewhere, together measured elsewhere,\n"
            "                efficiency.matmul measured elsewhere, efficiency.matmul_f32 measured elsewhere,\n"
            "                efficiency.odd_rows measured elsewhere, efficiency.attention measured elsewhere,\n"
            "                attention_fill measured elsewhere, efficiency.convolution measured elsewhere,\n"
            "                efficiency.depthwise measured elsewhere, depthwise_fill measured elsewhere,\n"
            "                efficiency.memory assumed, matrix_units assumed, start assumed\n");
  const std::string ascend = cluster_summary(read_cluster("ascend-910"));
  EXPECT_NE(ascend.find("rank 0 is pcie 0, hccs 0; rank 5 is pcie 1, hccs 1\n"), std::string::npos) << ascend;
  EXPECT_NE(
      ascend.find("  roce            -   per device   12.5 GB/s   90.0 %   20.0 us                             -\n"),
      std::string::npos)
      << ascend;
  const std::string json = cluster_json(read_cluster("dgx-a100x8"));
  EXPECT_EQ(parse_json(json, "c.json").find("levels")->items[1].find("all_reduce_1_gb")->text, "0.007581481721");
}

}  // namespace
}  // namespace shardplan
