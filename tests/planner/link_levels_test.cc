#include "planner/overlap/link_levels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "costmodel/cluster/cluster_mesh.h"
#include "costmodel/roofline_costs.h"
#include "model/read_model.h"
#include "planner/model_planner.h"

namespace shardplan {
namespace {

TEST(LinkLevelsTest, LevelsWithOneGroupAreNotUsed) {
  const Cluster one = read_cluster("dgx-a100"), several = read_cluster("dgx-a100x4");
  const RooflineCosts of_one(one, make_mesh(one)), of_several(several, make_mesh(several));
  ASSERT_EQ(used_levels(of_one).size(), 1u);
  ASSERT_EQ(used_levels(of_several).size(), 2u);
  EXPECT_TRUE(std::ranges::is_sorted(used_levels(of_several)));
  EXPECT_EQ(std::ranges::count(used_levels(of_several), used_levels(of_one).front()), 1);  // within a node
}

TEST(LinkLevelsTest, EveryUsedLevelHasSpeeds) {
  const Cluster cluster = read_cluster("dgx-a100x4");
  const RooflineCosts costs(cluster, make_mesh(cluster));
  const std::vector<int> levels = used_levels(costs);
  const std::vector<SpeedsTogether> speeds = speeds_of(levels, costs);
  ASSERT_EQ(speeds.size(), levels.size());
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const std::vector<SpeedsTogether> of_levels = costs.speeds_together();
    const auto level = static_cast<std::size_t>(levels[i]);
    const SpeedsTogether of_level = level < of_levels.size() ? of_levels[level] : SpeedsTogether{};
    EXPECT_EQ(speeds[i].kernels_ppm, of_level.kernels_ppm);
    EXPECT_EQ(speeds[i].collectives_ppm, of_level.collectives_ppm);
  }
}

// Of collectives on one level alone the sums say which is the busiest.
TEST(LinkLevelsTest, TheBusiestLevelHasTheMostCollectives) {
  const Cluster cluster = read_cluster("dgx-a100x2");
  const RooflineCosts costs(cluster, make_mesh(cluster));
  const std::vector<int> levels = used_levels(costs);
  ModelOverrides overrides;
  overrides.dims = {{"L", 1}};
  const auto model = std::make_shared<const Model>(read_model("configs/gpt2-small.yaml", overrides));
  PlanOptions options;
  options.memory_slack = 0.01;  // with less, this plan has collectives on one level only
  const Plan planned = ModelPlanner(model, cluster, options).plan(Level::kMemory, "auto");
  int num_levels = 0;
  for (std::size_t kept = 0; kept < levels.size(); ++kept) {
    Plan plan = planned;
    int num_collectives = 0;
    std::erase_if(plan.program.instructions, [&](const Instruction& instruction) {
      if (instruction.kind != InstructionKind::kCollective) return false;
      const bool is_kept = costs.links(instruction.step->axes) == std::uint32_t{1} << levels[kept];
      if (is_kept) ++num_collectives;
      return !is_kept;
    });
    if (num_collectives == 0) continue;
    ++num_levels;
    for (Instruction& instruction : plan.program.instructions) instruction.fusion = 0;
    plan.program.buckets.clear();
    EXPECT_EQ(busiest_level(levels, plan), levels[kept]);
  }
  EXPECT_EQ(num_levels, 2);
}

}  // namespace
}  // namespace shardplan
