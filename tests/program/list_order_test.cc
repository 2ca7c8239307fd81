#include "program/list_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/random.h"
#include "program/overlapped_timeline.h"
#include "tests/support/time_sketch.h"

namespace shardplan {
namespace {

class Draft : public TimeSketch {
 public:
  /// The end of the step in this order.
  Picoseconds end(const std::vector<std::uint32_t>& sequence) const {
    ParallelProgram ordered = program;
    ordered.instructions.clear();
    for (const std::size_t i : sequence) ordered.instructions.push_back(program.instructions[i]);
    return overlapped_timeline(ordered).end;
  }

  /// The times of the instructions of an order; a bucket takes the time of its members together.
  OverlappedTimeline times(const IssueOrder& order) const {
    ParallelProgram ordered = program;
    ordered.instructions.clear();
    std::map<std::uint32_t, std::uint32_t> ids;
    for (const std::size_t i : order.sequence) {
      Instruction& instruction = ordered.instructions.emplace_back(program.instructions[i]);
      if (order.buckets[i] == 0) continue;
      instruction.fusion = ids.try_emplace(order.buckets[i], static_cast<std::uint32_t>(ids.size() + 1)).first->second;
      if (ordered.buckets.size() < ids.size()) {
        ordered.buckets.emplace_back();
        ordered.buckets.back().buffer = ordered.values.push_back({});
      }
      ordered.buckets[instruction.fusion - 1].time += instruction.time;
    }
    return overlapped_timeline(ordered);
  }
};

TEST(ListOrderTest, WhatALongChainWaitsForGoesFirst) {
  Draft draft;
  const ValueId a = draft.kernel(1, {});
  draft.kernel(12, {a});
  const ValueId b = draft.kernel(1, {a});
  const ValueId reduced = draft.collective(15, b);
  draft.kernel(1, {reduced});
  EXPECT_EQ(list_order(InstructionTable(draft.program)), (std::vector<std::uint32_t>{0, 2, 3, 1, 4}));
  EXPECT_EQ(draft.end({0, 1, 2, 3, 4}), 30);
  EXPECT_EQ(draft.end(list_order(InstructionTable(draft.program))), 18);
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
  EXPECT_EQ(draft.end(list_order(InstructionTable(draft.program))), 31);
}

// Three gradients that occupy the links for long, and a chain of kernels that communicates nothing.
TEST(ListOrderTest, FromTheEndWhatTakesTheLinksGoesFirst) {
  Draft draft;
  const ValueId a = draft.kernel(5, {});
  const ValueId b = draft.kernel(5, {a});
  const ValueId c = draft.kernel(5, {b});
  draft.kernel(5, {c});
  for (int i = 0; i < 3; ++i) draft.collective(5, draft.kernel(2, {}));
  EXPECT_EQ(draft.end(list_order(InstructionTable(draft.program))), 32);
  EXPECT_EQ(draft.end(list_order_from_end(InstructionTable(draft.program))), 26);
}

// Four recomputed layers; kernels wait for the first gradient. From the end, only the forward pass comes before a copy,
// so the copy would be placed right after it, and all copies would be held at once.
TEST(ListOrderTest, WhatIsComputedAgainComesOneBlockAheadAtMost) {
  Draft draft;
  const auto backward = [&](ValueId made, bool is_copy) {
    Instruction& instruction = draft.program.instructions[made.value()];  // each makes one value
    instruction.pass = Pass::kBackward;
    instruction.is_copy = is_copy;
    return made;
  };
  std::vector<ValueId> kept{draft.kernel(5, {})};
  for (int layer = 0; layer < 3; ++layer) kept.push_back(draft.kernel(5, {kept.back()}));
  ValueId gradient = draft.kernel(20, {kept.back()});
  std::vector<ValueId> copies, gradients;
  for (std::size_t layer = 4; layer-- > 0;) {
    copies.push_back(backward(draft.kernel(5, {kept[layer]}), true));
    gradients.push_back(backward(draft.kernel(9, {copies.back(), gradient}), false));
    gradient = layer == 3 ? backward(draft.collective(12, gradients[0]), false) : gradients.back();
  }
  const InstructionTable table(draft.program);
  const auto place = [](const std::vector<std::uint32_t>& sequence, ValueId made) {
    return std::ranges::find(sequence, made.value()) - sequence.begin();
  };
  IssueOrder order = given_order(draft.program);
  for (const auto list : {list_order, list_order_from_end}) {
    order.sequence = list(table);
    EXPECT_LT(place(order.sequence, gradients[0]), place(order.sequence, copies[2]));
    EXPECT_LT(place(order.sequence, gradients[1]), place(order.sequence, copies[3]));
    EXPECT_LT(place(order.sequence, copies[2]), place(order.sequence, gradients[1]));  // beside the sum
    EXPECT_EQ(draft.end(order.sequence), 4 * 5 + 20 + 5 + 9 + 12 + 9 + 9 + 5 + 9);
  }
  for (const auto justified : {justified_to_end, justified_to_beginning}) {
    const std::vector<std::uint32_t> in_time =
        justified(table, {order, draft.times(order).spans}, {Recomputation::kInTime});
    EXPECT_LT(place(in_time, gradients[1]), place(in_time, copies[2]));
    EXPECT_EQ(draft.end(in_time), 4 * 5 + 20 + 5 + 9 + 12 + 9 + 5 + 9 + 5 + 9);
    const std::vector<std::uint32_t> ahead = justified(table, {order, draft.times(order).spans}, {});
    EXPECT_EQ(draft.end(ahead), draft.end(order.sequence));
  }
  draft.program.instructions[copies[3].value()].is_copy = false;
  const std::vector<std::uint32_t> free = list_order_from_end(InstructionTable(draft.program));
  EXPECT_LT(place(free, copies[3]), place(free, gradients[1]));
}

// A new weight overwrites the old one, which may still be on its way to a reader.
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
  for (const auto& order :
       {list_order(InstructionTable(draft.program)), list_order_from_end(InstructionTable(draft.program))}) {
    const auto place = [&](std::size_t i) { return std::find(order.begin(), order.end(), i) - order.begin(); };
    EXPECT_LT(place(2), place(3));
  }
}

// The sum is issued first, then the gather, and a kernel that needs neither is placed after the one that needs the
// gather.
TEST(ListOrderTest, JustifiedFillsTheGapsOfAnOrder) {
  Draft draft;
  const ValueId weight = draft.program.values.push_back({});
  draft.program.given.push_back({TensorId(0), weight});
  const ValueId a = draft.kernel(2, {});
  const ValueId sum = draft.collective(6, a);
  const ValueId gathered = draft.collective(5, weight);
  draft.kernel(3, {gathered});
  draft.kernel(4, {a});
  draft.kernel(1, {sum});
  IssueOrder order = given_order(draft.program);
  OverlappedTimeline times = draft.times(order);
  EXPECT_EQ(times.end, 2 + 6 + 5 + 3 + 4 + 1);
  order.sequence = justified_to_end(InstructionTable(draft.program), {order, times.spans});
  times = draft.times(order);
  EXPECT_EQ(times.end, 13);
  order.sequence = justified_to_beginning(InstructionTable(draft.program), {order, times.spans});
  EXPECT_EQ(draft.times(order).end, 12);
}

// The gather is ready from the start, and the links are idle until the first sum is ready: if the gather starts then,
// both sums come later, and kernels wait for them.
TEST(ListOrderTest, ASerialScheduleDelaysNothingThatIsMoreUrgent) {
  Draft draft;
  const ValueId weight = draft.program.values.push_back({});
  draft.program.given.push_back({TensorId(0), weight});
  const ValueId first = draft.kernel(4, {draft.collective(3, draft.kernel(2, {}))});
  const ValueId second = draft.kernel(1, {draft.collective(3, first)});
  draft.kernel(2, {draft.collective(4, weight), second});
  IssueOrder order = given_order(draft.program);
  const OverlappedTimeline times = draft.times(order);
  EXPECT_EQ(times.end, 2 + 3 + 4 + 3 + 1 + 4 + 2);
  const InstructionTable table(draft.program);
  EXPECT_EQ(draft.end(justified_to_beginning(table, {order, times.spans}, {.scheme = ScheduleScheme::kParallel})),
            4 + 3 + 4 + 3 + 1 + 2);
  EXPECT_EQ(draft.end(justified_to_beginning(table, {order, times.spans}, {.scheme = ScheduleScheme::kSerial})),
            2 + 3 + 4 + 3 + 1 + 2);
}

/// Up to forty kernels and collectives that read each other's results.
Draft random_draft(Random& random) {
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
  return draft;
}

void expect_order(const Draft& draft, const std::vector<std::uint32_t>& order) {
  const std::size_t count = draft.program.instructions.size();
  std::vector<char> is_there(count, 0);
  for (const std::size_t i : order) {
    for (const ValueId input : draft.program.instructions[i].inputs) EXPECT_TRUE(is_there[input.value()]);
    EXPECT_FALSE(is_there[i]);
    is_there[i] = 1;
  }
  EXPECT_EQ(std::count(is_there.begin(), is_there.end(), 1), static_cast<std::ptrdiff_t>(count));
}

TEST(ListOrderTest, IsAnOrderOfTheProgram) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Draft draft = random_draft(random);
    for (const auto& order :
         {list_order(InstructionTable(draft.program)), list_order_from_end(InstructionTable(draft.program))})
      expect_order(draft, order);
  }
}

void expect_few_longer(ScheduleScheme scheme) {
  int shorter = 0, longer = 0, buckets = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Draft draft = random_draft(random);
    IssueOrder order = given_order(draft.program);
    for (std::size_t i = 0; i < order.buckets.size(); ++i) {
      const Instruction& instruction = draft.program.instructions[i];
      const bool is_joined = instruction.kind == InstructionKind::kCollective && instruction.time > 0;
      if (is_joined && random.below(2) == 0) order.buckets[i] = instruction.links;
    }
    order = with_buckets(InstructionReads(draft.program), order);
    buckets += *std::max_element(order.buckets.begin(), order.buckets.end()) > 0 ? 1 : 0;
    const Picoseconds given = draft.times(order).end;
    Picoseconds least = given;
    for (const auto justified : {justified_to_end, justified_to_beginning}) {
      order.sequence =
          justified(InstructionTable(draft.program), {order, draft.times(order).spans}, {.scheme = scheme});
      expect_order(draft, order.sequence);
      const IssueOrder grouped = with_buckets(InstructionReads(draft.program), order);
      EXPECT_EQ(grouped.sequence, order.sequence);  // else a bucket was split
      least = draft.times(order).end;
    }
    shorter += least < given ? 1 : 0;
    longer += least > given ? 1 : 0;
  }
  EXPECT_GT(buckets, 50);
  EXPECT_GT(shorter, 100);
  EXPECT_LT(longer, 10);
}

TEST(ListOrderTest, JustifiedKeepsBucketsTogetherAndIsSeldomLonger) {
  for (const ScheduleScheme scheme : {ScheduleScheme::kParallel, ScheduleScheme::kSerial}) expect_few_longer(scheme);
}

}  // namespace
}  // namespace shardplan
