#include "program/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "model/read_model.h"
#include "operators/catalogue.h"
#include "planner/model_planner.h"
#include "program/memory_profile.h"
#include "program/overlapped_timeline.h"
#include "program/program_checker.h"
#include "program/timeline.h"

namespace shardplan {
namespace {

/// Programs of kernels and collectives that are only times and dependencies.
class Sketch {
 public:
  Sketch() { program.instructions.reserve(64); }

  ValueId kernel(Picoseconds time, std::vector<ValueId> inputs) {
    return add(InstructionKind::kOperator, time, std::move(inputs), 0, 0);
  }
  ValueId collective(Picoseconds time, ValueId input, std::uint32_t links = 1, std::uint32_t fusion = 0) {
    return add(InstructionKind::kCollective, time, {input}, links, fusion);
  }

  ParallelProgram program;

 private:
  std::shared_ptr<const Operation> relu_ =
      std::make_shared<const Operation>(make_operation(*find_operator_type("ReLU"), {}, {{{1}, DataType::kF32}}));

  ValueId add(InstructionKind kind, Picoseconds time, std::vector<ValueId> inputs, std::uint32_t links,
              std::uint32_t fusion) {
    Instruction instruction;
    instruction.kind = kind;
    instruction.time = time;
    instruction.inputs = std::move(inputs);
    instruction.outputs = {program.values.push_back({})};
    instruction.operation = relu_;
    instruction.step.kind = CollectiveKind::kAllReduce;
    instruction.links = links;
    instruction.fusion = fusion;
    program.instructions.push_back(std::move(instruction));
    return program.instructions.back().outputs[0];
  }
};

class OneByteAPicosecond final : public CollectiveCosts {
 public:
  Picoseconds time(CollectiveKind, const std::vector<AxisRef>&, Bytes bytes) const override { return bytes; }
};

using Span = OverlappedTimeline::Span;

TEST(OverlappedTimelineTest, ACollectiveRunsBesideTheKernelsThatDoNotReadIt) {
  Sketch sketch;
  const ValueId a = sketch.kernel(10, {});
  const ValueId reduced = sketch.collective(7, a);
  const ValueId b = sketch.kernel(5, {a});
  sketch.kernel(3, {b, reduced});
  const OverlappedTimeline times = overlapped_timeline(sketch.program);
  EXPECT_EQ(times.spans, (std::vector<Span>{{0, 10}, {10, 17}, {10, 15}, {17, 20}}));
  EXPECT_EQ(times.end, 20);
  EXPECT_EQ(times.exposed(), 2);
  EXPECT_EQ(times.critical, (std::vector<std::size_t>{0, 1, 3}));
}

TEST(OverlappedTimelineTest, OneLevelOfLinksIsSharedTwoAreNot) {
  for (const std::uint32_t other : {1u, 2u}) {
    Sketch sketch;
    const ValueId a = sketch.kernel(1, {});
    sketch.collective(7, a, 1);
    sketch.collective(5, a, other);
    EXPECT_EQ(overlapped_timeline(sketch.program).end, other == 1 ? 13 : 8);
  }
}

TEST(OverlappedTimelineTest, ABucketBeginsWhenItsLastMemberIsThereAndTakesItsOwnTime) {
  Sketch sketch;
  const ValueId a = sketch.kernel(10, {});
  const ValueId b = sketch.kernel(10, {a});
  sketch.collective(7, a, 1, 1);
  sketch.collective(6, b, 1, 1);
  sketch.program.buckets = {{CollectiveKind::kAllReduce, {}, 11, 0, 2, {}}};
  const OverlappedTimeline times = overlapped_timeline(sketch.program);
  EXPECT_EQ(times.spans[2], (Span{20, 31}));
  EXPECT_EQ(times.spans[3], times.spans[2]);
  EXPECT_EQ(times.communication, 11);
}

TEST(OverlappedTimelineTest, ManyMicroBatchesTakeWhatSimulatingThemAllTakes) {
  const auto looped = [](std::int64_t micro_batches) {
    Sketch sketch;
    const ValueId a = sketch.kernel(10, {});
    sketch.collective(13, a);  // slower than the kernels: the link falls behind by 1 a run
    sketch.kernel(2, {a});
    for (Instruction& instruction : sketch.program.instructions) instruction.runs = micro_batches;
    sketch.program.micro_batches = micro_batches;
    return overlapped_timeline(sketch.program).end;
  };
  EXPECT_EQ(looped(1), 23);
  EXPECT_EQ(looped(2), 36);
  EXPECT_EQ(looped(50), 10 + 50 * 13);
}

// max(C, M) <= step <= C + M; a longer instruction never shortens the step.
TEST(OverlappedTimelineTest, LiesBetweenItsBoundsOnRandomPrograms) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    Sketch sketch;
    std::vector<ValueId> made{sketch.kernel(5, {})};
    const std::uint64_t count = 2 + random.below(30);
    for (std::uint64_t i = 0; i < count; ++i) {
      const ValueId input = made[random.below(made.size())];
      const auto time = static_cast<Picoseconds>(random.below(20));
      made.push_back(random.below(2) == 0
                         ? sketch.kernel(time, {input, made.back()})
                         : sketch.collective(time, input, 1 + static_cast<std::uint32_t>(random.below(3))));
    }
    const OverlappedTimeline times = overlapped_timeline(sketch.program);
    EXPECT_LE(times.computation, times.end) << seed;
    for (const Picoseconds busy : times.link_busy) EXPECT_LE(busy, times.end) << seed;
    EXPECT_LE(times.end, times.computation + times.communication) << seed;
    Sketch longer = sketch;
    longer.program.instructions[random.below(longer.program.instructions.size())].time += 9;
    EXPECT_GE(overlapped_timeline(longer.program).end, times.end) << seed;
  }
}

/// Plans of the shipped models, scheduled: never slower than one after the other, in as much memory as is allowed, and
/// the same instructions in an order that the checker takes.
class Scheduled : public testing::TestWithParam<const char*> {};

TEST_P(Scheduled, IsThePlansProgramInAnotherOrder) {
  const auto model = std::make_shared<const Model>(read_model(GetParam()));
  PlanOptions options;
  options.work_limit = 20'000'000;
  const ModelPlanner planner(model, read_cluster("dgx-a100"), options);
  options.overlap = false;
  const ModelPlanner plain(model, read_cluster("dgx-a100"), options);
  const Plan overlapped = planner.plan(Level::kSpeed, "auto");
  const Plan one_by_one = plain.plan(Level::kSpeed, "auto");
  ASSERT_TRUE(overlapped.is_overlapped);
  EXPECT_FALSE(one_by_one.is_overlapped);
  EXPECT_EQ(check_program(overlapped.program, planner.graph()), "");
  EXPECT_EQ(overlapped.strategies, one_by_one.strategies);
  EXPECT_EQ(overlapped.time.additive(), one_by_one.time.step());
  EXPECT_LT(overlapped.time.step(), one_by_one.time.step());
  EXPECT_EQ(timeline(overlapped.program).end, one_by_one.time.step());
  EXPECT_LE(overlapped.memory.peak, overlapped.usable);
  const auto names = [](const Plan& plan) {
    std::vector<std::string> all;
    for (const Instruction& instruction : plan.program.instructions) all.push_back(instruction.name);
    std::sort(all.begin(), all.end());
    return all;
  };
  EXPECT_EQ(names(overlapped), names(one_by_one));
  const bool has_bucket = std::any_of(overlapped.program.instructions.begin(), overlapped.program.instructions.end(),
                                      [](const Instruction& instruction) { return instruction.fusion > 0; });
  EXPECT_TRUE(has_bucket);
}
INSTANTIATE_TEST_SUITE_P(ScheduleTest, Scheduled, testing::Values("configs/gpt2-small.yaml", "configs/bert-base.yaml"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
                           return name;
                         });

TEST(ScheduleTest, NothingFitsWhereTheOrderGivenDoesNot) {
  Sketch sketch;
  sketch.kernel(1, {});
  for (ProgramValue& value : sketch.program.values) value.bytes = 100;
  ScheduleOptions options;
  options.most_memory = 99;
  EXPECT_FALSE(scheduled(sketch.program, OperatorGraph(), OneByteAPicosecond(), options));
}

}  // namespace
}  // namespace shardplan
