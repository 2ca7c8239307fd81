// comm_fusion of a model file, from the file to the executed program.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "model/read_model.h"
#include "planner/model_planner.h"
#include "program/buckets.h"
#include "program/overlapped_timeline.h"
#include "program/program_checker.h"
#include "simulator/proof/validate.h"

namespace shardplan {
namespace {

constexpr char kMode[] = "parallel_mode: data_parallel, mesh: {dp: 4}";

/// Four layers of 1 MiB and 2 KiB of bias each; `first` is added to the first two, `second` to the parameter given
/// directly.
std::string model_text(const std::string& parallel, const std::string& first = "", const std::string& second = "",
                       int channels = 512) {
  return R"(shardplan: 1
model: four
dims: {B: 16, C: )" +
         std::to_string(channels) + R"(}
inputs: {x: [B, C], y: [B, C]}
parameters: {scale: {shape: [C])" +
         second + R"(}}
operators:
  a: {block: nn.Dense, in: x, out_channels: C)" +
         first + R"(}
  b: {block: nn.Dense, in: a, out_channels: C)" +
         first + R"(}
  c: {block: nn.Dense, in: b, out_channels: C}
  d: {block: nn.Dense, in: c, out_channels: C}
  s: {op: Mul, in: [d, scale]}
  error:  {op: Sub, in: [s, y]}
  square: {op: Square, in: error}
  loss:   {op: ReduceMean, in: square}
loss: loss
training: {optimizer: momentum, learning_rate: 0.01}
parallel: {)" +
         parallel + "}\n";
}

/// One level of links, on which an all_reduce of many bytes is one collective.
Cluster cluster() {
  return read_cluster_text(R"(shardplan: 1
cluster: four
device:
  name: one
  memory: {capacity: 4 GiB, reserved: 0 GiB, bandwidth: 100 GB/s}
  flops: {f32: 1 TFLOP/s}
  efficiency: {matmul: 1, memory: 1}
  start: 1 us
levels: [{name: net, count: 4, latency: 5 us, bandwidth: 10 GB/s, link_per: device}]
)",
                           "four.yaml");
}

struct Planned {
  explicit Planned(const std::string& text, Level level = Level::kSpeed, bool overlap = true, bool reorders = true)
      : planner(std::make_shared<const Model>(read_model_text(text, "m.yaml")), cluster(), options(overlap, reorders)),
        plan(planner.plan(level, "auto")) {
    EXPECT_EQ(check_program(plan.program, planner.graph()), "");
  }
  static PlanOptions options(bool overlap, bool reorders) {
    PlanOptions options;
    options.overlap = overlap;
    options.reorders_kernels = reorders;
    return options;
  }

  /// The names of the parameters of each bucket of gradients, in the order of issue; those without a bucket are
  /// omitted.
  std::vector<std::set<std::string>> buckets() const {
    std::map<std::uint32_t, std::set<std::string>> found;
    for (const Instruction& instruction : plan.program.instructions) {
      if (instruction.fusion == 0) continue;
      found[instruction.fusion].insert(
          planner.graph().tensor(*parameter_of(planner.graph(), plan.program, instruction)).name);
    }
    std::vector<std::set<std::string>> result;
    for (const auto& [fusion, names] : found) result.push_back(names);
    return result;
  }

  ModelPlanner planner;
  Plan plan;
};

/// True if the devices compute the same as one device, on a small model whose program has buckets.
bool is_proven(const std::string& parallel, const std::string& first = "", const std::string& second = "") {
  const Planned small(model_text(parallel, first, second, 16));
  EXPECT_FALSE(small.plan.program.buckets.empty());
  ValidationOptions options;
  options.seed = 3;
  return validate(small.plan.program, small.planner.graph(), options).is_equal();
}

using Names = std::vector<std::set<std::string>>;

std::string fusion(const std::string& text) { return std::string(kMode) + ", comm_fusion: {" + text + "}"; }

// The gradients are computed from the last layer to the first.
TEST(CommFusionTest, AutoJoinsUpTo64MiBAndSizeUpToItsNumber) {
  const Planned by_auto(model_text(fusion("allreduce: {mode: auto}")));
  EXPECT_EQ(by_auto.buckets(),
            (Names{{"a.bias", "a.weight", "b.bias", "b.weight", "c.bias", "c.weight", "d.bias", "d.weight", "scale"}}));
  const Planned by_size(model_text(fusion("allreduce: {mode: size, config: 2}")));
  ASSERT_GE(by_size.plan.program.buckets.size(), 2u);
  for (const Bucket& bucket : by_size.plan.program.buckets) EXPECT_LE(bucket.group_bytes, Bytes{2} << 20);
  EXPECT_TRUE(is_proven(fusion("allreduce: {mode: auto}")));
}

TEST(CommFusionTest, IndexBeginsABucketAtEachOfItsNumbers) {
  const Planned planned(model_text(fusion("allreduce: {mode: index, config: [3, 7]}")));
  const Names buckets = planned.buckets();
  ASSERT_EQ(buckets.size(), 3u);
  EXPECT_EQ(buckets[0].size(), 3u);  // 0, 1, 2
  EXPECT_EQ(buckets[1].size(), 4u);  // 3 to 6
  EXPECT_EQ(buckets[2].size(), 2u);  // the rest
  EXPECT_TRUE(is_proven(fusion("allreduce: {mode: index, config: [3, 7]}")));
}

// Nine gradients: 0 to 8. MindSpore warns of an index beyond the last and ignores it.
TEST(CommFusionTest, AnIndexBeyondTheLastGradientIsNoticed) {
  const Planned beyond(model_text(fusion("allreduce: {mode: index, config: [3, 9, 35]}")));
  EXPECT_EQ(beyond.buckets().size(), 2u);
  ASSERT_EQ(beyond.plan.notices.size(), 1u);
  EXPECT_EQ(
      beyond.plan.notices[0],
      "comm_fusion: allreduce: index 9 has no effect: there are 9 all_reduces of gradients to join, counted from 0");
  EXPECT_TRUE(Planned(model_text(fusion("allreduce: {mode: index, config: [3, 8]}"))).plan.notices.empty());
}

TEST(CommFusionTest, OpenstateFalseJoinsNothing) {
  EXPECT_TRUE(Planned(model_text(fusion("openstate: false"))).buckets().empty());
  EXPECT_FALSE(Planned(model_text(fusion("openstate: true"))).buckets().empty());
}

TEST(CommFusionTest, EqualIdsOfBlocksAndParametersAreJoinedAndZeroIsNot) {
  const Planned planned(model_text(fusion("allreduce: {mode: auto}"), ", comm_fusion: 5", ", comm_fusion: 0"));
  EXPECT_EQ(planned.buckets(),
            (Names{{"c.bias", "c.weight", "d.bias", "d.weight"}, {"a.bias", "a.weight", "b.bias", "b.weight"}}));
  EXPECT_TRUE(is_proven(fusion("allreduce: {mode: auto}"), ", comm_fusion: 5", ", comm_fusion: 0"));
}

TEST(CommFusionTest, TheParallelOptimizersScattersAndGathersAreJoined) {
  const std::string mode = std::string(kMode) + ", enable_parallel_optimizer: true, comm_fusion: {";
  const std::string kinds_of =
      "reducescatter: {mode: auto}, allgather: {mode: size, config: 3}, allreduce: {mode: auto}}";
  const Planned planned(model_text(mode + kinds_of));
  std::map<CollectiveKind, std::size_t> kinds;
  for (const Bucket& bucket : planned.plan.program.buckets) ++kinds[bucket.kind];
  EXPECT_EQ(kinds[CollectiveKind::kReduceScatter], 1u);
  EXPECT_GE(kinds[CollectiveKind::kAllGather], 1u);
  for (const Bucket& bucket : planned.plan.program.buckets) {
    if (bucket.kind != CollectiveKind::kAllGather) continue;
    EXPECT_LE(bucket.group_bytes, Bytes{3} << 20);
  }
  EXPECT_TRUE(is_proven(mode + kinds_of));
}

TEST(CommFusionTest, ABucketTakesOneCollectiveOfAllItsBytesAndItsBufferIsCounted) {
  const Planned joined(model_text(fusion("allreduce: {mode: auto}")));
  const Planned alone(model_text(fusion("openstate: false")));
  ASSERT_EQ(joined.plan.program.buckets.size(), 1u);
  const Bucket& bucket = joined.plan.program.buckets[0];
  EXPECT_EQ(bucket.members, 9u);
  EXPECT_EQ(bucket.group_bytes, 4 * (512 * 512 + 512) * 4 + 512 * 4);
  EXPECT_EQ(joined.plan.program.values[bucket.buffer].bytes, bucket.group_bytes);
  Picoseconds members = 0;
  for (const Instruction& instruction : joined.plan.program.instructions) {
    if (instruction.fusion == 1) members += instruction.time;
  }
  EXPECT_LT(bucket.time, members);
  // The search and `evaluate` count each collective alone.
  EXPECT_EQ(joined.plan.time.additive(), alone.plan.time.additive());
  const auto buffer_is_alive = [](const Planned& planned) {
    const auto& alive = planned.plan.memory.alive_at_peak;
    return std::any_of(alive.begin(), alive.end(), [&](const MemoryProfile::Alive& one) {
      return !planned.plan.program.values[one.value].tensor && one.bytes > (Bytes{4} << 20);
    });
  };
  EXPECT_TRUE(buffer_is_alive(joined) || joined.plan.memory.peak > alone.plan.memory.peak);
}

// `best` gives the same as without the key, and no other mode is faster.
TEST(CommFusionTest, BestIsFasterThanAnyOtherModeOrAsFast) {
  const auto step = [](const std::string& text) { return Planned(model_text(text)).plan.time.step(); };
  const std::string all = "allreduce: {mode: best}, allgather: {mode: best}, reducescatter: {mode: best}";
  const Picoseconds best = step(fusion(all));
  EXPECT_EQ(step(kMode), best);
  EXPECT_LT(best, step(fusion("openstate: false")));
  for (const char* other :
       {"openstate: true", "allreduce: {mode: size, config: 1}", "allreduce: {mode: size, config: 3}",
        "allreduce: {mode: index, config: [4]}", "allreduce: {mode: index, config: [2, 4, 6]}"}) {
    EXPECT_LE(best, step(fusion(other))) << other;
  }
  EXPECT_TRUE(is_proven(kMode));
}

// On one link and with kernels in graph order, compared with the overlapped step of every way to group neighbours of
// the nine all_reduces.
TEST(CommFusionTest, BestIsTheLeastOverlappedStepOfAllBoundaries) {
  const Picoseconds best = Planned(model_text(kMode), Level::kSpeed, true, false).plan.time.step();
  const Planned none(model_text(fusion("openstate: false")), Level::kSpeed, true, false);
  std::vector<std::uint32_t> members;
  const ParallelProgram& program = none.plan.program;
  std::vector<std::uint32_t> given(program.instructions.size());
  std::iota(given.begin(), given.end(), std::uint32_t{0});
  for (const JoinableCollective& one : joinable_collectives(program, none.planner.graph(), given)) {
    members.push_back(one.instruction);
  }
  ASSERT_EQ(members.size(), 9u);
  // The plan issues each when it begins; joined ones may begin as soon as their inputs are ready.
  IssueOrder order;
  for (const std::uint32_t i : given) {
    if (std::ranges::find(members, i) != members.end()) continue;
    order.sequence.push_back(i);
    for (const std::uint32_t member : members) {
      const ValueId input = program.instructions[member].inputs[0];
      const ShortVector<ValueId>& made = program.instructions[i].outputs;
      if (std::ranges::find(made, input) != made.end()) order.sequence.push_back(member);
    }
  }
  const std::shared_ptr<const CollectiveCosts> costs = none.planner.costs().collectives();
  Picoseconds least = none.plan.time.step();
  for (std::uint64_t cuts = 0; cuts < (1u << 8); ++cuts) {
    order.buckets.assign(program.instructions.size(), 0);
    std::uint32_t bucket = 1;
    for (std::size_t i = 0; i < members.size(); ++i) {
      order.buckets[members[i]] = bucket;
      if ((cuts >> i & 1) != 0) ++bucket;
    }
    const IssueOrder joined = with_buckets(InstructionReads(program), order);
    least = std::min(least, overlapped_timeline(in_order(program, joined, *costs)).end);
  }
  EXPECT_EQ(best, least);
}

TEST(CommFusionTest, WhereItCannotHoldThatIsSaid) {
  const Planned planned(model_text(fusion("allreduce: {mode: auto}")), Level::kSpeed, false);
  EXPECT_TRUE(planned.plan.program.buckets.empty());
  ASSERT_FALSE(planned.plan.notices.empty());
  EXPECT_EQ(planned.plan.notices.back(), "comm_fusion has no effect: every collective runs separately (--overlap off)");
  // At level 1, whose order is that of the graph, it holds.
  EXPECT_FALSE(Planned(model_text(fusion("allreduce: {mode: auto}")), Level::kMemory).buckets().empty());
}

}  // namespace
}  // namespace shardplan
