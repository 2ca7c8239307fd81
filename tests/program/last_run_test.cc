#include "program/last_run.h"

#include <gtest/gtest.h>

#include "tests/support/operations.h"

namespace shardplan {
namespace {

/// A loop of three kernels, whose results are summed after it, then an update.
class LoopDraft {
 public:
  LoopDraft() {
    for (int i = 0; i < 3; ++i) made_.push_back(add(InstructionKind::kOperator, {}, 4));
  }
  ValueId made(std::size_t i) const { return made_[i]; }
  ValueId reduce(ValueId input, std::uint32_t fusion = 0) {
    const ValueId output = add(InstructionKind::kCollective, {input}, 1);
    program.instructions.back().fusion = fusion;
    return output;
  }
  void update(ValueId input) { add(InstructionKind::kOperator, {input}, 1); }

  ParallelProgram program;

 private:
  std::shared_ptr<const Operation> relu_ = std::make_shared<const Operation>(operation_of("ReLU", {}, {{1}}));
  ValueId add(InstructionKind kind, std::vector<ValueId> inputs, std::int64_t runs) {
    program.micro_batches = 4;
    program.reduces_in_last_run = true;
    Instruction instruction;
    instruction.kind = kind;
    instruction.step.edit().kind = CollectiveKind::kAllReduce;
    instruction.inputs = std::move(inputs);
    instruction.outputs = {program.values.push_back({})};
    instruction.runs = runs;
    if (kind == InstructionKind::kOperator) instruction.operation = relu_;
    program.instructions.push_back(std::move(instruction));
    return program.instructions.back().outputs[0];
  }
  std::vector<ValueId> made_;
};

std::string text(const ParallelProgram& program) {
  std::string result;
  for (const LastRunCollective& one : issued_in_last_run(program)) {
    result += std::to_string(one.begin) + "-" + std::to_string(one.end) + " after " + std::to_string(one.after) + "; ";
  }
  return result;
}

TEST(LastRunTest, EachIsIssuedBehindWhatItSums) {
  LoopDraft draft;
  draft.reduce(draft.made(0));
  draft.reduce(draft.made(1));
  draft.update(draft.reduce(draft.made(2)));
  EXPECT_EQ(text(draft.program), "3-4 after 1; 4-5 after 2; 5-6 after 3; ");
}

// If one comes after another in the sequence, it cannot be issued before it.
TEST(LastRunTest, TheOrderOfTheSequenceStays) {
  LoopDraft draft;
  draft.reduce(draft.made(2));
  draft.reduce(draft.made(0));
  EXPECT_EQ(text(draft.program), "3-4 after 3; 4-5 after 3; ");
}

TEST(LastRunTest, ABucketIsOne) {
  LoopDraft draft;
  draft.program.buckets.resize(1);
  draft.program.buckets[0].members = 2;
  draft.reduce(draft.made(0), 1);
  draft.reduce(draft.made(1), 1);
  draft.reduce(draft.made(2));
  EXPECT_EQ(text(draft.program), "3-5 after 2; 5-6 after 3; ");
}

TEST(LastRunTest, OnlyWhatStandsRightBehindTheLoop) {
  LoopDraft draft;
  draft.update(draft.reduce(draft.made(0)));
  draft.reduce(draft.made(1));
  EXPECT_EQ(text(draft.program), "3-4 after 1; ");
  draft.program.reduces_in_last_run = false;
  EXPECT_EQ(text(draft.program), "");
  LoopDraft once;
  once.reduce(once.made(0));
  once.program.micro_batches = 1;
  EXPECT_EQ(text(once.program), "");
}

}  // namespace
}  // namespace shardplan
