#include "program/yielding.h"

#include <gtest/gtest.h>

#include <numeric>

#include "operators/catalogue.h"

namespace shardplan {
namespace {

/// Kernels and collectives on one level of links that are only times and dependencies.
class LinkSketch {
 public:
  LinkSketch() { program.instructions.reserve(16); }

  ValueId kernel(Picoseconds time, std::vector<ValueId> inputs) {
    return add(InstructionKind::kOperator, time, std::move(inputs), 0);
  }
  ValueId collective(Picoseconds time, ValueId input, std::uint32_t fusion = 0) {
    const ValueId output = add(InstructionKind::kCollective, time, {input}, fusion);
    program.instructions.back().links = 1;
    return output;
  }
  /// What becomes of the order given.
  std::vector<std::size_t> yielded() const {
    IssueOrder order;
    order.sequence.resize(program.instructions.size());
    std::iota(order.sequence.begin(), order.sequence.end(), std::size_t{0});
    for (const Instruction& instruction : program.instructions) order.buckets.push_back(instruction.fusion);
    return yielding(InstructionTable(program), order, overlapped_timeline(program).spans).sequence;
  }

  ParallelProgram program;

 private:
  std::shared_ptr<const Operation> relu_ =
      std::make_shared<const Operation>(make_operation(*find_operator_type("ReLU"), {}, {{{1}, DataType::kF32}}));

  ValueId add(InstructionKind kind, Picoseconds time, std::vector<ValueId> inputs, std::uint32_t fusion) {
    Instruction instruction;
    instruction.kind = kind;
    instruction.time = time;
    instruction.inputs = std::move(inputs);
    instruction.outputs = {program.values.push_back({})};
    instruction.operation = relu_;
    instruction.step.edit().kind = CollectiveKind::kAllReduce;
    instruction.fusion = fusion;
    program.instructions.push_back(std::move(instruction));
    return program.instructions.back().outputs[0];
  }
};

using Places = std::vector<std::size_t>;

TEST(YieldingTest, AGatherThatBeginsWhenAReductionIsReadyGoesBehindIt) {
  for (const Picoseconds made : {20, 40}) {
    LinkSketch sketch;
    const ValueId first = sketch.kernel(10, {});
    sketch.collective(30, first);                       // 1: from 10 to 40
    sketch.collective(30, first);                       // 2: from 40
    const ValueId last = sketch.kernel(made, {first});  // 3: until 30 or 50
    sketch.kernel(5, {sketch.collective(5, last)});     // 4, 5
    EXPECT_EQ(sketch.yielded(), made == 20 ? (Places{0, 1, 3, 4, 2, 5}) : (Places{0, 1, 2, 3, 4, 5}));
  }
}

TEST(YieldingTest, TheSecondStageOfAGatherFollowsTheFirst) {
  LinkSketch sketch;
  const ValueId first = sketch.kernel(10, {});
  sketch.collective(30, first);
  sketch.collective(30, sketch.collective(30, first));  // 2, 3
  sketch.kernel(5, {sketch.collective(5, sketch.kernel(20, {first}))});
  EXPECT_EQ(sketch.yielded(), (Places{0, 1, 4, 5, 2, 3, 6}));
}

TEST(YieldingTest, BucketsStayInOnePiece) {
  LinkSketch sketch;
  const ValueId first = sketch.kernel(10, {});
  sketch.collective(30, first);
  sketch.collective(20, first, 1);  // 2, 3: one gather
  sketch.collective(20, first, 1);
  const ValueId last = sketch.kernel(20, {first});
  const ValueId a = sketch.collective(5, last, 2);  // 5, 6: one reduction
  const ValueId b = sketch.collective(5, last, 2);
  sketch.kernel(5, {a, b});
  sketch.program.buckets = {{CollectiveKind::kAllGather, {}, 30, 0, 2, ValueId(0)},
                            {CollectiveKind::kAllReduce, {}, 6, 0, 2, ValueId(0)}};
  EXPECT_EQ(sketch.yielded(), (Places{0, 1, 4, 5, 6, 2, 3, 7}));
}

TEST(YieldingTest, WhatAKernelWaitsForStays) {
  LinkSketch sketch;
  const ValueId first = sketch.kernel(10, {});
  sketch.collective(30, first);
  const ValueId needed = sketch.collective(30, first);
  const ValueId last = sketch.kernel(20, {first});
  sketch.kernel(5, {sketch.collective(5, last), needed});
  EXPECT_EQ(sketch.yielded(), (Places{0, 2, 1, 3, 4, 5}));
}

}  // namespace
}  // namespace shardplan
