#include "program/program_checker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/support/hand_plan.h"

namespace shardplan {
namespace {

Instruction& first(ParallelProgram& program, InstructionKind kind) {
  return *std::find_if(program.instructions.begin(), program.instructions.end(),
                       [&](const Instruction& instruction) { return instruction.kind == kind; });
}

struct Breakage {
  const char* name;
  std::function<void(ParallelProgram&)> breaks;
  const char* fault;  // part of the message
};

void PrintTo(const Breakage& breakage, std::ostream* out) { *out << breakage.name; }

const Breakage kBreakages[] = {
    {"a layout that does not fit",
     [](ParallelProgram& program) { program.values[ValueId(0)].layout = TensorLayout::replicated(7); }, "tokens: "},
    {"a local shape of another layout",
     [](ParallelProgram& program) { program.values[ValueId(0)].local_shape[0] *= 2; },
     "tokens: local shape does not follow from its layout"},
    {"another type", [](ParallelProgram& program) { program.values[ValueId(0)].type.dtype = DataType::kF64; },
     "tokens: type differs from the graph's"},
    {"an input that is not made yet",
     [](ParallelProgram& program) { std::swap(program.instructions.front(), program.instructions.back()); },
     " before it is made"},
    {"an instruction twice",
     [](ParallelProgram& program) { program.instructions.push_back(program.instructions.front()); }, " a second time"},
    {"a collective from elsewhere",
     [](ParallelProgram& program) {
       Instruction& instruction = first(program, InstructionKind::kCollective);
       instruction.step.edit().before = instruction.step->after;
     },
     ": its layouts are not those of its values"},
    {"a collective over nothing",
     [](ParallelProgram& program) { first(program, InstructionKind::kCollective).step.edit().axes.clear(); },
     ": no axes"},
    {"a strategy of other layouts",
     [](ParallelProgram& program) {
       for (auto& axes : first(program, InstructionKind::kOperator).strategy.edit().factors) axes.clear();
     },
     "in another layout than its strategy takes"},
    {"a loop in the middle", [](ParallelProgram& program) { program.instructions[3].runs = 2; }, ": runs 2 times"},
    {"an output that nobody makes",
     [](ParallelProgram& program) {
       program.values.push_back(program.values[program.outputs[0].value]);
       program.outputs[0].value = ValueId(program.values.size() - 1);
     },
     " is never made"},
    {"an update stored elsewhere",
     [](ParallelProgram& program) { program.updates[0].value = program.outputs[0].value; },
     " is updated in another layout than it is stored in"},
};

class BrokenProgram : public testing::TestWithParam<Breakage> {};

TEST_P(BrokenProgram, IsFound) {
  Plan plan = tiny_plan();
  ASSERT_EQ(check_program(plan.program, *plan.graph), "");
  GetParam().breaks(plan.program);
  const std::string fault = check_program(plan.program, *plan.graph);
  EXPECT_NE(fault.find(GetParam().fault), std::string::npos) << fault;
}
INSTANTIATE_TEST_SUITE_P(ProgramCheckerTest, BrokenProgram, testing::ValuesIn(kBreakages));

}  // namespace
}  // namespace shardplan
