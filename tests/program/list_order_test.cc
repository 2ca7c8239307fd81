#include "program/list_order.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "program/overlapped_timeline.h"
#include "tests/support/time_sketch.h"

namespace shardplan {
namespace {

class Draft : public TimeSketch {
 public:
  /// The end of the step in this order.
  Picoseconds end(const std::vector<std::size_t>& sequence) const {
    ParallelProgram ordered = program;
    ordered.instructions.clear();
    for (const std::size_t i : sequence) ordered.instructions.push_back(program.instructions[i]);
    return overlapped_timeline(ordered).end;
  }
};

TEST(ListOrderTest, WhatALongChainWaitsForGoesFirst) {
  Draft draft;
  const ValueId a = draft.kernel(1, {});
  draft.kernel(12, {a});
  const ValueId b = draft.kernel(1, {a});
  const ValueId reduced = draft.collective(15, b);
  draft.kernel(1, {reduced});
  EXPECT_EQ(list_order(draft.program), (std::vector<std::size_t>{0, 2, 3, 1, 4}));
  EXPECT_EQ(draft.end({0, 1, 2, 3, 4}), 30);
  EXPECT_EQ(draft.end(list_order(draft.program)), 18);
}

// An update fills the time in which the backward pass waits for its own communication.
TEST(ListOrderTest, WhatCanWaitFillsTheGaps) {
  Draft draft;
  const ValueId first = draft.kernel(10, {});
  const ValueId gradient = draft.collective(5, first);
  const ValueId passed = draft.collective(10, first, 2);
  const ValueId second = draft.kernel(10, {passed});
  draft.kernel(4, {gradient});
  draft.kernel(1, {second});
  EXPECT_EQ(draft.end({0, 1, 2, 3, 4, 5}), 35);
  EXPECT_EQ(draft.end(list_order(draft.program)), 31);
}

// Three gradients that take the links for long, and a chain of kernels that has nothing to communicate.
TEST(ListOrderTest, FromTheEndWhatTakesTheLinksGoesFirst) {
  Draft draft;
  const ValueId a = draft.kernel(5, {});
  const ValueId b = draft.kernel(5, {a});
  const ValueId c = draft.kernel(5, {b});
  draft.kernel(5, {c});
  for (int i = 0; i < 3; ++i) draft.collective(5, draft.kernel(2, {}));
  EXPECT_EQ(draft.end(list_order(draft.program)), 32);
  EXPECT_EQ(draft.end(list_order_from_end(draft.program)), 26);
}

// A new weight is written over the old one, which may still be on its way to a reader.
// Two layers computed again. From the end, a copy has nothing but the forward pass before it and would stand right behind
// that; both copies would be held at once.
TEST(ListOrderTest, WhatIsComputedAgainWaitsForTheGradientThatItIsFor) {
  Draft draft;
  const auto mark = [&](ValueId made, Pass pass, bool is_copy) {
    Instruction& instruction = draft.program.instructions[made.value()];  // each makes one value
    instruction.pass = pass;
    instruction.is_copy = is_copy;
    return made;
  };
  const ValueId first = draft.kernel(5, {});
  const ValueId second = draft.kernel(5, {first});
  const ValueId third = draft.kernel(20, {second});
  const ValueId copy_of_third = mark(draft.kernel(5, {second}), Pass::kBackward, true);
  const ValueId gradient = mark(draft.kernel(9, {copy_of_third, third}), Pass::kBackward, false);
  const ValueId summed = mark(draft.collective(7, gradient), Pass::kBackward, false);
  mark(draft.kernel(12, {gradient}), Pass::kBackward, false);  // of a weight
  const ValueId copy_of_second = mark(draft.kernel(5, {first}), Pass::kBackward, true);
  const ValueId last = mark(draft.kernel(9, {copy_of_second, summed}), Pass::kBackward, false);
  mark(draft.kernel(1, {last}), Pass::kBackward, false);
  for (const auto order : {list_order, list_order_from_end}) {
    const std::vector<std::size_t> sequence = order(draft.program);
    const auto place = [&](ValueId made) { return std::ranges::find(sequence, made.value()) - sequence.begin(); };
    EXPECT_LT(place(gradient), place(copy_of_second));
    EXPECT_LT(place(summed), place(copy_of_second));  // beside what is computed again
    EXPECT_EQ(draft.end(sequence), 5 + 5 + 20 + 5 + 9 + 12 + 5 + 9 + 1);
  }
  draft.program.instructions[copy_of_second.value()].is_copy = false;
  const std::vector<std::size_t> free = list_order_from_end(draft.program);
  EXPECT_LT(std::ranges::find(free, copy_of_second.value()), std::ranges::find(free, gradient.value()));
}

TEST(ListOrderTest, AnUpdateWaitsForTheReadersOfTheOldValue) {
  Draft draft;
  const ValueId weight = draft.program.values.push_back({});
  draft.program.given.push_back({TensorId(0), weight});
  const ValueId gathered = draft.collective(9, weight);
  const ValueId gradient = draft.kernel(2, {});
  draft.kernel(3, {gathered});
  const ValueId updated = draft.kernel(1, {weight, gradient});
  draft.kernel(20, {updated});
  draft.program.updates.push_back({TensorId(0), updated});
  for (const auto& order : {list_order(draft.program), list_order_from_end(draft.program)}) {
    const auto place = [&](std::size_t i) { return std::find(order.begin(), order.end(), i) - order.begin(); };
    EXPECT_LT(place(2), place(3));
  }
}

TEST(ListOrderTest, IsAnOrderOfTheProgram) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Draft draft;
    std::vector<ValueId> values;
    for (std::uint64_t i = 0, count = 1 + random.below(40); i < count; ++i) {
      std::vector<ValueId> inputs;
      for (std::uint64_t k = random.below(3); k > 0 && !values.empty(); --k) {
        inputs.push_back(values[random.below(values.size())]);
      }
      const auto time = static_cast<Picoseconds>(random.below(3));
      const bool is_kernel = inputs.empty() || random.below(2) == 0;
      values.push_back(is_kernel ? draft.kernel(time, inputs)
                                 : draft.collective(time, inputs[0], static_cast<std::uint32_t>(1 + random.below(3))));
    }
    for (const auto& order : {list_order(draft.program), list_order_from_end(draft.program)}) {
      std::vector<char> is_there(values.size(), 0);
      for (const std::size_t i : order) {
        for (const ValueId input : draft.program.instructions[i].inputs) EXPECT_TRUE(is_there[input.value()]);
        EXPECT_FALSE(is_there[i]);
        is_there[i] = 1;
      }
      EXPECT_EQ(std::count(is_there.begin(), is_there.end(), 1), static_cast<std::ptrdiff_t>(values.size()));
    }
  }
}

}  // namespace
}  // namespace shardplan
