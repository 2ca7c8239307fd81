#include "program/critical_path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include "model/read_model.h"
#include "planner/model_planner.h"
#include "program/instruction_table.h"
#include "program/last_run.h"
#include "program/overlapped_timeline.h"
#include "program/timeline_log.h"
#include "tests/support/random_sketch.h"
#include "tests/support/time_sketch.h"

namespace shardplan {
namespace {

std::vector<Picoseconds> times_of(const CriticalPath& path) {
  std::vector<Picoseconds> times;
  for (const CriticalPath::Share& share : path.shares) times.push_back(share.time);
  return times;
}

Picoseconds sum(const std::vector<Picoseconds>& times) {
  return std::accumulate(times.begin(), times.end(), Picoseconds{0});
}

std::vector<Picoseconds> path_of(const TimeSketch& sketch) { return times_of(critical_path(sketch.program)); }

TEST(CriticalPathTest, GoesThroughWhatIsWaitedFor) {
  TimeSketch sketch;
  const ValueId a = sketch.kernel(10, {});
  const ValueId reduced = sketch.collective(7, a);
  const ValueId b = sketch.kernel(5, {a});
  sketch.kernel(3, {b, reduced});
  EXPECT_EQ(path_of(sketch), (std::vector<Picoseconds>{10, 7, 0, 3}));
  sketch.program.instructions[2].time = 9;
  EXPECT_EQ(path_of(sketch), (std::vector<Picoseconds>{10, 0, 9, 3}));
  sketch.program.instructions[2].time = 7;  // both wait for the kernel before
  EXPECT_EQ(path_of(sketch), (std::vector<Picoseconds>{10, 0, 7, 3}));
}

TEST(CriticalPathTest, GoesBackAlongTheLinks) {
  for (const std::uint32_t other : {1u, 2u}) {
    TimeSketch sketch;
    const ValueId a = sketch.kernel(1, {});
    sketch.collective(5, a, other);
    sketch.collective(7, a, 1);
    EXPECT_EQ(path_of(sketch), (std::vector<Picoseconds>{1, other == 1 ? 5 : 0, 7}));
  }
}

TEST(CriticalPathTest, ABucketIsItsFirstMembersAndTakesItsOwnTime) {
  TimeSketch sketch;
  const ValueId a = sketch.kernel(10, {});
  const ValueId b = sketch.kernel(10, {a});
  sketch.collective(7, a, 1, 1);
  sketch.collective(6, b, 1, 1);
  sketch.program.buckets = {{CollectiveKind::kAllReduce, {}, 11, 0, 2, {}}};
  EXPECT_EQ(path_of(sketch), (std::vector<Picoseconds>{10, 10, 11, 0}));
}

// A kernel of 40 at half speed beside a collective of 12 at 3/5, that is for 20: 20 at half speed, then 30 at full
// speed.
TEST(CriticalPathTest, SaysWhatIsLostToWhatRunsBesideIt) {
  TimeSketch sketch;
  const ValueId a = sketch.kernel(1, {});
  sketch.collective(12, a);
  sketch.kernel(40, {a});
  sketch.program.speeds_together = {{500'000, 600'000}};
  EXPECT_EQ(critical_path(sketch.program).shares, (std::vector<CriticalPath::Share>{{1, 0}, {0, 0}, {50, 10}}));
}

// The kernels of a run take 10, its collective 7: the runs wait for the kernels, and the end for the last collective.
TEST(CriticalPathTest, EveryRunOfTheLoopIsFollowed) {
  for (const std::int64_t runs : {1, 2, 3, 100, 1000}) {
    for (const Picoseconds length : {7, 23}) {
      TimeSketch sketch;
      const ValueId a = sketch.kernel(10, {});
      sketch.kernel(1, {sketch.collective(length, a)});
      sketch.program.micro_batches = runs;
      for (Instruction& instruction : sketch.program.instructions) instruction.runs = runs;
      EXPECT_EQ(path_of(sketch), (std::vector<Picoseconds>{10 * runs, length * runs, runs}));
    }
  }
  // Read one run later, by an earlier instruction: hidden if it takes no longer than the kernels.
  for (const std::int64_t runs : {2, 3, 100, 1000}) {
    for (const Picoseconds length : {7, 23}) {
      TimeSketch sketch;
      const ValueId a = sketch.kernel(10, {});
      const ValueId reduced = sketch.collective(length, a);
      sketch.program.instructions[0].inputs = {reduced};
      sketch.kernel(15, {a});
      sketch.program.micro_batches = runs;
      for (Instruction& instruction : sketch.program.instructions) instruction.runs = runs;
      const bool is_beside = length < 15;
      EXPECT_EQ(path_of(sketch),
                (std::vector<Picoseconds>{10 * runs, is_beside ? 0 : length * runs, is_beside ? 15 * runs : 0}));
    }
  }
}

// Links that fall behind more with every run: the loop does not settle, and its later runs are not simulated.
TEST(CriticalPathTest, AddsUpToTheStepWhereALoopDoesNotComeToRest) {
  for (const std::int64_t runs : {100, 250, 257, 1000}) {
    TimeSketch sketch;
    sketch.collective(23, sketch.kernel(10, {}));
    sketch.program.micro_batches = runs;
    for (Instruction& instruction : sketch.program.instructions) instruction.runs = runs;
    sketch.kernel(3, {});
    const std::vector<Picoseconds> times = path_of(sketch);
    EXPECT_EQ(sum(times), overlapped_timeline(sketch.program).end) << runs;
    if (runs < 256) {
      EXPECT_EQ(times, (std::vector<Picoseconds>{10, 23 * runs, 0}));
    }
  }
}

// A product of 40 in pieces of 10 beside its gather of 100: the last piece waits for the gather. Beside one of 20 it
// does not.
TEST(CriticalPathTest, AProductWaitsForItsGatherInItsLastPiece) {
  static const auto product = std::make_shared<const Operation>(
      make_operation(*find_operator_type("MatMul"), {}, {{{4, 4}, DataType::kF32}, {{4, 4}, DataType::kF32}}));
  for (const Picoseconds length : {100, 20}) {
    TimeSketch sketch;
    const ValueId a = sketch.kernel(5, {});
    const ValueId gathered = sketch.collective(length, a);
    Instruction& gather = sketch.program.instructions.back();
    gather.step.edit().kind = CollectiveKind::kAllGather;
    gather.step.edit().axes = {AxisRef{0, 1, 4}};
    gather.in_pieces = true;
    sketch.kernel(40, {gathered});
    sketch.program.instructions.back().operation = product;
    EXPECT_EQ(path_of(sketch),
              length == 100 ? (std::vector<Picoseconds>{5, 100, 10}) : (std::vector<Picoseconds>{5, 0, 40}));
  }
}

/// The same with the loop unrolled, and the program's instruction for each of its own. A run reads the results of the
/// same run; those that are produced later in the loop, of the run before.
struct Unrolled {
  ParallelProgram program;
  std::vector<std::size_t> of;

  explicit Unrolled(const ParallelProgram& loop) {
    program.values = loop.values;
    program.speeds_together = loop.speeds_together;
    for (const ValueId value : loop.values.ids()) now_.push_back(value);
    const std::size_t end = loop.num_in_micro_batch();
    const std::vector<LastRunCollective> early = issued_in_last_run(loop);
    const InstructionTable table(loop);
    const TableOrder order(table);
    for (std::int64_t run = 0; run < (end > 0 ? loop.micro_batches : 0); ++run) {
      auto issued = run + 1 == loop.micro_batches ? early.begin() : early.end();
      for (std::size_t i = 0; i < end;) {
        // Nothing may be placed within a bucket, or between a product and what scatters its result in pieces.
        std::size_t next = order.end_of_bucket(i);
        if (order.scatters_pieces_behind(i) && next < end) ++next;
        add(loop, i, next);
        i = next;
        for (; issued != early.end() && issued->after <= i; ++issued) add(loop, issued->begin, issued->end);
      }
      bucket_of_.clear();
    }
    add(loop, early.empty() ? end : early.back().end, loop.instructions.size());
  }

 private:
  IdVector<ValueId, ValueId> now_;
  std::map<std::uint32_t, std::uint32_t> bucket_of_;  // of one run

  void add(const ParallelProgram& loop, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      Instruction instruction = loop.instructions[i];
      instruction.runs = 1;
      for (ValueId& input : instruction.inputs) input = now_[input];
      for (ValueId& output : instruction.outputs) {
        const ValueId fresh = program.values.push_back(loop.values[output]);
        output = now_[output] = fresh;
      }
      if (instruction.fusion > 0) {
        const auto [found, is_new] = bucket_of_.try_emplace(instruction.fusion, program.buckets.size() + 1);
        if (is_new) program.buckets.push_back(loop.buckets[instruction.fusion - 1]);
        instruction.fusion = found->second;
      }
      program.instructions.push_back(std::move(instruction));
      of.push_back(i);
    }
  }
};

std::vector<Picoseconds> folded(const Unrolled& unrolled, std::size_t size) {
  std::vector<Picoseconds> times(size, 0);
  const std::vector<Picoseconds> all = times_of(critical_path(unrolled.program));
  for (std::size_t i = 0; i < all.size(); ++i) times[unrolled.of[i]] += all[i];
  return times;
}

/// Each level leaves kernels and collectives between 0.4 and 1 of their speeds.
std::vector<SpeedsTogether> random_speeds(Random& random) {
  const auto share = [&] { return 400'000 + 100'000 * static_cast<std::int64_t>(random.below(7)); };
  std::vector<SpeedsTogether> speeds;
  for (int level = 0; level < 3; ++level) speeds.push_back({share(), share()});
  return speeds;
}

TEST(CriticalPathTest, AddsUpToTheStepOfRandomProgramsAndIsThatOfTheLoopWrittenOut) {
  std::size_t loops = 0, skipping = 0, slowed = 0;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    Random random(seed);
    ParallelProgram program = random_sketch(random);
    if (program.micro_batches > 1 && random.below(2) == 0) {
      const std::int64_t runs = 6 + static_cast<std::int64_t>(random.below(30));
      program.micro_batches = runs;
      for (Instruction& instruction : program.instructions) {
        if (instruction.runs > 1) instruction.runs = runs;
      }
    }
    if (random.below(2) == 0) program.speeds_together = random_speeds(random);
    const CriticalPath path = critical_path(program);
    const std::vector<Picoseconds> times = times_of(path);
    ASSERT_EQ(sum(times), overlapped_timeline(program).end) << "seed " << seed;
    for (std::size_t i = 0; i < times.size(); ++i) {
      ASSERT_GE(times[i], path.shares[i].slowed) << "seed " << seed;
      slowed += path.shares[i].slowed > 0;
    }
    const InstructionTable table(program);
    const TimelineLog log = timeline_log(TableOrder(table));
    const Unrolled unrolled(program);
    loops += program.num_in_micro_batch() > 0;
    skipping += log.skipped > 0;
    ASSERT_EQ(overlapped_timeline(unrolled.program).end, log.end) << "seed " << seed;
    ASSERT_EQ(folded(unrolled, times.size()), times) << "seed " << seed;
  }
  EXPECT_GT(loops, 300u);
  EXPECT_GT(skipping, 100u);
  EXPECT_GT(slowed, 300u);
}

// What is not on the path does not matter: without it the step is equally long.
TEST(CriticalPathTest, WhatIsNotOnItDoesNotMatterAtFullSpeed) {
  std::size_t shortened = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Random random(seed);
    ParallelProgram program = random_sketch(random);
    const Picoseconds end = overlapped_timeline(program).end;
    const CriticalPath path = critical_path(program);
    for (std::size_t i = 0; i < program.instructions.size();) {
      Instruction& instruction = program.instructions[i];
      const std::size_t first = i;
      for (++i; instruction.fusion > 0 && i < program.instructions.size() &&
                program.instructions[i].fusion == instruction.fusion;) {
        ++i;
      }
      if (path.shares[first].time > 0) continue;
      Picoseconds& time = instruction.fusion > 0 ? program.buckets[instruction.fusion - 1].time : instruction.time;
      shortened += time > 1;
      time = std::min<Picoseconds>(time, 1);
    }
    ASSERT_EQ(overlapped_timeline(program).end, end) << "seed " << seed;
  }
  EXPECT_GT(shortened, 3000u);
}

TEST(CriticalPathTest, AddsUpToTheStepOfShippedModels) {
  for (const char* const model : {"configs/gpt2-small.yaml", "configs/llama-7b-train.yaml", "configs/mixture.yaml"}) {
    for (const bool in_pieces : {false, true}) {
      Cluster cluster = read_cluster("dgx-a100");
      cluster.collectives.collective_matmul = in_pieces;
      ModelOverrides overrides;
      if (std::string(model).find("llama") != std::string::npos) overrides.dims = {{"L", 2}};
      PlanOptions options;
      options.work_limit = 200'000;
      const Plan plan = ModelPlanner(std::make_shared<const Model>(read_model(model, overrides)), cluster, options)
                            .plan(Level::kSpeed, "auto");
      ASSERT_TRUE(plan.is_overlapped);
      const std::vector<Picoseconds> times = times_of(critical_path(plan.program));
      EXPECT_EQ(sum(times), plan.time.step()) << model;
      const Unrolled unrolled(plan.program);
      EXPECT_EQ(folded(unrolled, times.size()), times) << model;
    }
  }
}

TEST(CriticalPathTest, OfNoInstructionsIsEmpty) { EXPECT_EQ(critical_path(ParallelProgram()).shares.size(), 0u); }

}  // namespace
}  // namespace shardplan
