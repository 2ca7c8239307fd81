#include "operators/building/phase_list.h"

#include <gtest/gtest.h>

#include "tests/support/operations.h"

namespace shardplan {
namespace {

std::string outline(const Phases& phases) {
  std::string text;
  for (const Phase& phase : phases.phases) {
    text += phase.type + "(";
    for (const std::size_t input : phase.inputs) text += (text.back() == '(' ? "" : " ") + std::to_string(input);
    text += ") ";
  }
  text += "->";
  for (const std::size_t result : phases.results) text += " " + std::to_string(result);
  return text;
}

// Softmax has the operand 0 and the result y; values are numbered in the order of the lines that produce them.
TEST(PhaseListTest, NumbersValuesInTheOrderOfTheLines) {
  const Operation softmax = operation_of("Softmax", {}, {{4, 8}});
  const Phases phases = make_phases(
      softmax,
      {{"max = ReduceMax(x)", {{"keep_dims", true}}}, {"exp, sum = SoftmaxExp(x, max)"}, {"y = RealDiv(exp, sum)"}});
  EXPECT_EQ(outline(phases), "ReduceMax(0) SoftmaxExp(0 1) RealDiv(2 3) -> 4");
  EXPECT_EQ(phases.phases[0].attributes, (Attributes{{"keep_dims", true}}));
  EXPECT_TRUE(phases.phases[1].attributes.empty());
}

TEST(PhaseListTest, ALaterValueOfANameIsTheOneThatIsMeant) {
  const Operation softmax = operation_of("Softmax", {}, {{4, 8}});
  EXPECT_EQ(outline(make_phases(softmax, {{"x = Neg(x)"}, {"x, y = Twice(x)"}, {"x = Neg(x)"}, {"y = Add(x, y)"}})),
            "Neg(0) Twice(1) Neg(2) Add(4 3) -> 5");
}

TEST(PhaseListTest, ALineWithoutOperandsReadsNothing) {
  const Operation softmax = operation_of("Softmax", {}, {{4, 8}});
  EXPECT_EQ(outline(make_phases(softmax, {{"y = Zeros()"}})), "Zeros() -> 1");
}

TEST(PhaseListTest, AnUnknownNameStops) {
  const Operation softmax = operation_of("Softmax", {}, {{4, 8}});
  EXPECT_DEATH(make_phases(softmax, {{"y = Neg(z)"}}), "at != values.rend");
  EXPECT_DEATH(make_phases(softmax, {{"z = Neg(x)"}}), "at != values.rend");  // no line produces the result
  EXPECT_DEATH(make_phases(softmax, {{"y = Neg x"}}), "equals != std::string_view::npos");
}

}  // namespace
}  // namespace shardplan
