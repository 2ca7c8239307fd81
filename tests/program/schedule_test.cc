#include "program/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "base/random.h"
#include "base/yaml.h"
#include "model/read_model.h"
#include "planner/model_planner.h"
#include "program/bucket_rules.h"
#include "program/memory_profile.h"
#include "program/overlapped_timeline.h"
#include "program/program_checker.h"
#include "program/timeline.h"
#include "tests/support/time_sketch.h"

namespace shardplan {
namespace {

using Sketch = TimeSketch;

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
    sketch.collective(13, a);  // slower than the kernels: the link falls behind by 1 per run
    sketch.kernel(2, {a});
    for (Instruction& instruction : sketch.program.instructions) instruction.runs = micro_batches;
    sketch.program.micro_batches = micro_batches;
    return overlapped_timeline(sketch.program).end;
  };
  EXPECT_EQ(looped(1), 23);
  EXPECT_EQ(looped(2), 36);
  EXPECT_EQ(looped(50), 10 + 50 * 13);
}

TEST(OverlappedTimelineTest, KernelsAndCollectivesLeaveEachOtherAShareOfTheirSpeeds) {
  Sketch sketch;
  const ValueId a = sketch.kernel(10, {});
  sketch.collective(60, a);
  sketch.kernel(100, {a});
  sketch.program.speeds_together = {{500'000, 600'000}};
  const OverlappedTimeline times = overlapped_timeline(sketch.program);
  EXPECT_EQ(times.spans[1], (Span{10, 110}));  // all of it beside the kernel
  EXPECT_EQ(times.spans[2], (Span{10, 160}));  // 50 of 100 are done when the links are free
  EXPECT_EQ(times.exposed(), 50);
  sketch.program.speeds_together = {{}, {500'000, 500'000}};  // of a level that is not used
  EXPECT_EQ(overlapped_timeline(sketch.program).end, 110);
}

TEST(OverlappedTimelineTest, WhatTakesNoTimeWaitsWithoutHoldingUpTheKernels) {
  Sketch sketch;
  const ValueId a = sketch.kernel(10, {});
  const ValueId gathered = sketch.collective(20, a);
  const ValueId view = sketch.kernel(0, {gathered});
  const ValueId b = sketch.kernel(15, {a});
  sketch.kernel(1, {view, b});
  EXPECT_EQ(overlapped_timeline(sketch.program).spans,
            (std::vector<Span>{{0, 10}, {10, 30}, {30, 30}, {10, 25}, {30, 31}}));
}

TEST(OverlappedTimelineTest, GradientsAreReducedBesideTheLastRunOfTheLoop) {
  const auto end = [](std::int64_t micro_batches, bool in_last_run) {
    Sketch sketch;
    const ValueId a = sketch.kernel(10, {});
    sketch.kernel(30, {a});
    const std::size_t loop = sketch.program.instructions.size();
    const ValueId reduced = sketch.collective(25, a);
    sketch.kernel(1, {reduced});
    for (std::size_t i = 0; i < loop; ++i) sketch.program.instructions[i].runs = micro_batches;
    sketch.program.micro_batches = micro_batches;
    sketch.program.reduces_in_last_run = in_last_run;
    return overlapped_timeline(sketch.program).end;
  };
  EXPECT_EQ(end(3, false), 3 * 40 + 25 + 1);
  EXPECT_EQ(end(3, true), 3 * 40 + 1);
  EXPECT_EQ(end(1000, true), 1000 * 40 + 1);
}

/// Random kernels and collectives on two levels of links.
Sketch random_sketch(Random& random) {
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
  return sketch;
}

// At full speed everything begins when the last thing that it waits for ends.
TEST(OverlappedTimelineTest, IsTheLongestPathOnRandomPrograms) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const Sketch sketch = random_sketch(random);
    std::vector<Span> expected;
    std::vector<Picoseconds> ready(sketch.program.values.size(), 0);
    Picoseconds kernels = 0;
    std::array<Picoseconds, 2> links{};
    for (const Instruction& instruction : sketch.program.instructions) {
      Picoseconds begin = 0;
      for (const ValueId input : instruction.inputs) begin = std::max(begin, ready[input.value()]);
      const bool is_kernel = instruction.kind == InstructionKind::kOperator;
      if (!is_kernel || instruction.time > 0) begin = std::max(begin, kernels);
      for (std::size_t level = 0; level < 2; ++level) {
        if ((instruction.links >> level & 1) != 0) begin = std::max(begin, links[level]);
      }
      const Picoseconds end = begin + instruction.time;
      if (is_kernel && instruction.time > 0) kernels = end;
      for (std::size_t level = 0; level < 2; ++level) {
        if ((instruction.links >> level & 1) != 0) links[level] = end;
      }
      ready[instruction.outputs[0].value()] = end;
      expected.push_back({begin, end});
    }
    EXPECT_EQ(overlapped_timeline(sketch.program).spans, expected) << seed;
  }
}

// max(C, M) <= step <= C + M, as long as kernels and collectives together are not slower than one of them alone; at
// full speed, neither a longer instruction nor lower speeds shorten a step.
TEST(OverlappedTimelineTest, LiesBetweenItsBoundsOnRandomPrograms) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    Sketch sketch = random_sketch(random);
    const OverlappedTimeline times = overlapped_timeline(sketch.program);
    EXPECT_LE(times.computation, times.end) << seed;
    for (const Picoseconds busy : times.link_busy) EXPECT_LE(busy, times.end) << seed;
    EXPECT_LE(times.end, times.computation + times.communication) << seed;
    Sketch longer = sketch;
    longer.program.instructions[random.below(longer.program.instructions.size())].time += 9;
    EXPECT_GE(overlapped_timeline(longer.program).end, times.end) << seed;
    // In nanoseconds, so that rounding does not matter.
    for (Instruction& instruction : sketch.program.instructions) instruction.time *= 1000;
    const auto share = [&] { return static_cast<std::int64_t>(500'000 + 100'000 * random.below(6)); };
    sketch.program.speeds_together = {{share(), share()}, {share(), share()}};
    const OverlappedTimeline slowed = overlapped_timeline(sketch.program);
    EXPECT_GE(slowed.end, slowed.computation) << seed;
    EXPECT_GE(slowed.end, 1000 * times.end) << seed;
    const auto rounding = static_cast<Picoseconds>(sketch.program.instructions.size());
    EXPECT_LE(slowed.end, slowed.computation + slowed.communication + rounding) << seed;
  }
}

/// The step and the peak of a plan's program in the order that `schedule` gives it.
std::pair<Picoseconds, Bytes> ordered(const Plan& plan, const ModelPlanner& planner, bool prefers_lean) {
  ParallelProgram program = plan.program;
  const ScheduleOptions how{.most_memory = plan.usable, .prefers_lean = prefers_lean};
  EXPECT_TRUE(schedule(program, planner.graph(), *planner.costs().collectives(), how));
  const OverlappedTimeline times = overlapped_timeline(program);
  return {times.end, memory_profile(program, times).peak};
}

/// Plans of the shipped models, scheduled: never slower than without overlap, within the allowed memory, and the same
/// instructions in an order that the checker accepts.
class Scheduled : public testing::TestWithParam<const char*> {};

TEST_P(Scheduled, IsThePlansProgramInAnotherOrder) {
  const auto model = std::make_shared<const Model>(read_model(GetParam()));
  PlanOptions options;
  options.work_limit = 20'000'000;
  const ModelPlanner planner(model, read_cluster("dgx-a100"), options);
  options.overlap = false;
  const ModelPlanner plain(model, read_cluster("dgx-a100"), options);
  const Plan overlapped = planner.plan(Level::kSpeed, "auto");
  const Plan one_by_one =
      plain.decided({overlapped.strategies, overlapped.versions}, plain.unsolved(Level::kSpeed, "auto"));
  ASSERT_TRUE(overlapped.is_overlapped);
  EXPECT_FALSE(one_by_one.is_overlapped);
  EXPECT_EQ(check_program(overlapped.program, planner.graph()), "");
  EXPECT_EQ(overlapped.strategies, one_by_one.strategies);
  EXPECT_EQ(overlapped.time.additive(), one_by_one.time.step());
  EXPECT_LT(overlapped.time.step(), one_by_one.time.step());
  EXPECT_EQ(timeline(overlapped.program).end, one_by_one.time.step());
  EXPECT_LE(overlapped.memory.peak, overlapped.usable);
  const Plan searched = plain.plan(Level::kSpeed, "auto");
  const Plan scheduled =
      planner.decided({searched.strategies, searched.versions}, planner.unsolved(Level::kSpeed, "auto"));
  EXPECT_LE(overlapped.time.step(), scheduled.time.step());
  EXPECT_GE(overlapped.time.additive(), searched.time.step());
  // With list scheduling, an order without it is preferred if it holds much less for hardly more time.
  const auto [fast, fast_peak] = ordered(one_by_one, planner, false);
  const auto [lean, lean_peak] = ordered(one_by_one, planner, true);
  EXPECT_LE(lean, fast + fast / 200);
  EXPECT_TRUE(std::pair(lean, lean_peak) == std::pair(fast, fast_peak) || lean_peak <= fast_peak / 10 * 9);
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

// A gradient is reduced, then cast; the backward pass continues beside the reduction, and only the update waits for the
// cast. In the order of lowering the cast would delay the next gradient.
// With blocks recomputed, list scheduling computes them earlier than needed, for next to nothing.
TEST(ScheduleTest, MemoryIsNotTakenForHardlyShorterSteps) {
  std::string text = read_text_file("configs/models/vit-b16.yaml");
  const auto put_before = [&](const char* place, const char* more) { text.insert(text.find(place), more); };
  put_before("optimizer: adamw", "recompute: [layers.*], ");
  put_before("attention: fused", "parallel_mode: data_parallel, ");
  ModelOverrides overrides;
  overrides.dims = {{"L", 4}};
  const auto model = std::make_shared<const Model>(read_model_text(text, "vit.yaml", overrides));
  PlanOptions options;
  options.overlap = false;
  const ModelPlanner planner(model, read_cluster("dgx-a100"), options);
  const Plan plan = planner.plan(Level::kSpeed, "auto");
  const auto [fast, fast_peak] = ordered(plan, planner, false);
  const auto [lean, lean_peak] = ordered(plan, planner, true);
  EXPECT_LE(lean, fast + fast / 200);
  EXPECT_LE(lean_peak, fast_peak / 10 * 9);
}

TEST(ScheduleTest, WhatWaitsForAReductionDelaysNothingElse) {
  Sketch sketch;
  const ValueId last = sketch.kernel(10, {});
  const ValueId cast = sketch.kernel(1, {sketch.collective(8, last)});
  const ValueId first = sketch.kernel(10, {last});
  const ValueId other = sketch.kernel(1, {sketch.collective(8, first)});
  sketch.kernel(2, {cast, other});  // reads both, and so waits as well
  const OperatorGraph graph;
  ScheduleOptions options;
  EXPECT_EQ(overlapped_timeline(sketch.program).end, 40);
  ASSERT_TRUE(schedule(sketch.program, graph, OneByteAPicosecond(), options));
  EXPECT_EQ(overlapped_timeline(sketch.program).end, 31);  // 10 + 10 + 8 + the second cast and the update: 1 + 2
}

// A second gather of 30 would begin at 46, when the links are free. A gradient is ready at 36, and its reduction and
// update take 25: list scheduling puts the longer chain first, and the update waits until 81.
TEST(ScheduleTest, GathersOfNewWeightsMakeWayForReductionsBeforeUpdates) {
  Sketch sketch;
  const ValueId first = sketch.kernel(10, {});
  const ValueId update = sketch.kernel(1, {sketch.collective(5, first)});
  sketch.collective(30, update);
  sketch.collective(30, update);
  const ValueId last = sketch.kernel(20, {first, update});
  sketch.kernel(20, {sketch.collective(5, last)});
  ScheduleOptions options;
  EXPECT_EQ(overlapped_timeline(sketch.program).end, 16 + 30 + 30 + 5 + 20);
  ASSERT_TRUE(schedule(sketch.program, OperatorGraph(), OneByteAPicosecond(), options));
  EXPECT_EQ(overlapped_timeline(sketch.program).end, 16 + 30 + 5 + 30);
}

/// Kernels, each of which reads the one before it and something earlier, and collectives on two levels of links.
Sketch random_sketch(std::uint64_t seed, std::size_t num_instructions) {
  Random random(seed);
  Sketch sketch;
  std::vector<ValueId> values{sketch.kernel(10, {})};
  while (sketch.program.instructions.size() < num_instructions) {
    const ValueId input = values[values.size() - 1 - random.below(std::min<std::size_t>(values.size(), 20))];
    const auto time = static_cast<Picoseconds>(1 + random.below(20));
    values.push_back(random.below(3) > 0 ? sketch.kernel(time, {input, values.back()})
                                         : sketch.collective(time, input, 1u << random.below(2)));
  }
  return sketch;
}

std::vector<ValueId> outputs(const ParallelProgram& program) {
  std::vector<ValueId> all;
  for (const Instruction& instruction : program.instructions) all.push_back(instruction.outputs[0]);
  return all;
}

// Long enough for several methods to be tried in parallel: the best is taken, the same one every time.
TEST(ScheduleTest, OfWaysThatAreTriedSideBySideTheBestIsTaken) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    const Sketch sketch = random_sketch(seed, 600);
    const auto ordered = [&](bool lists_kernels) {
      ParallelProgram program = sketch.program;
      ScheduleOptions options;
      options.lists_kernels = lists_kernels;
      const std::optional<OrderRule> rule = schedule(program, OperatorGraph(), OneByteAPicosecond(), options);
      EXPECT_TRUE(rule);
      const auto by_rule = [&](bool is_refined) {
        return step_by_rule(sketch.program, OperatorGraph(), OneByteAPicosecond(), options, *rule, is_refined);
      };
      EXPECT_EQ(by_rule(true), overlapped_timeline(program).end);
      EXPECT_GE(by_rule(false), by_rule(true));
      options.most_memory = -1;
      EXPECT_FALSE(by_rule(false));
      return program;
    };
    const ParallelProgram listed = ordered(true), moved = ordered(false);
    EXPECT_LE(overlapped_timeline(listed).end, overlapped_timeline(moved).end);
    EXPECT_LT(overlapped_timeline(moved).end, overlapped_timeline(sketch.program).end);
    EXPECT_EQ(outputs(ordered(true)), outputs(listed));
  }
}

TEST(ScheduleTest, OfALongProgramAFewSizesAndSearchedBoundariesAreTried) {
  const std::vector<BucketRules> all = rules_to_try({}, false), few = rules_to_try({}, true);
  EXPECT_LT(few.size(), all.size() / 2);
  for (const std::vector<BucketRules>& rules : {all, few}) {
    EXPECT_EQ(rules.front().all_gather.mode, CommFusion::Mode::kNone);
    EXPECT_TRUE(rules.back().is_searched());
    for (std::size_t i = 2; i + 1 < rules.size(); ++i)
      EXPECT_GT(rules[i].all_gather.size, rules[i - 1].all_gather.size);
  }
}

// Too long for all rules to be tried: the listed orders are among those tried, and a rule gives the order.
TEST(ScheduleTest, OfALongProgramAFewOrdersAreTriedSideBySide) {
  const Sketch sketch = random_sketch(1, 50'100);
  const auto ordered = [&](bool lists_kernels) {
    ParallelProgram program = sketch.program;
    ScheduleOptions options;
    options.lists_kernels = lists_kernels;
    const std::optional<OrderRule> rule = schedule(program, OperatorGraph(), OneByteAPicosecond(), options);
    EXPECT_TRUE(rule);
    const bool is_listed =
        rule->sequence == OrderRule::Sequence::kListed || rule->sequence == OrderRule::Sequence::kListedFromEnd;
    EXPECT_EQ(is_listed, lists_kernels);
    EXPECT_EQ(step_by_rule(sketch.program, OperatorGraph(), OneByteAPicosecond(), options, *rule, true),
              overlapped_timeline(program).end);
    options.most_memory = -1;
    EXPECT_FALSE(schedule(program, OperatorGraph(), OneByteAPicosecond(), options));
    return program;
  };
  const ParallelProgram listed = ordered(true), moved = ordered(false);
  EXPECT_LT(overlapped_timeline(listed).end, overlapped_timeline(moved).end);
  EXPECT_LT(overlapped_timeline(moved).end, overlapped_timeline(sketch.program).end);
  EXPECT_EQ(outputs(ordered(true)), outputs(listed));
}

TEST(ScheduleTest, NothingFitsWhereTheOrderGivenDoesNot) {
  Sketch sketch;
  sketch.kernel(1, {});
  for (ProgramValue& value : sketch.program.values) value.bytes = 100;
  ScheduleOptions options;
  options.most_memory = 99;
  EXPECT_FALSE(schedule(sketch.program, OperatorGraph(), OneByteAPicosecond(), options));
}

}  // namespace
}  // namespace shardplan
