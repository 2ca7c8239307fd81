#include "program/early_issue.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace shardplan {
namespace {

constexpr std::uint32_t kAbsent = std::numeric_limits<std::uint32_t>::max();

/// By value: the instruction that computes it; none for given values.
IdVector<ValueId, std::uint32_t> producers(const InstructionTable& table) {
  IdVector<ValueId, std::uint32_t> result(table.num_values(), kAbsent);
  for (std::size_t i = 0; i < table.size(); ++i) {
    for (const ValueId output : table.outputs(i)) result[output] = static_cast<std::uint32_t>(i);
  }
  return result;
}

bool is_operator(const InstructionTable& table, std::size_t i) { return table[i].kind == InstructionKind::kOperator; }
bool is_collective(const InstructionTable& table, std::size_t i) {
  return table[i].kind == InstructionKind::kCollective;
}

bool never_grows(const InstructionTable& table, std::size_t i) {
  switch (table[i].collective) {
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kCollectivePermute:
      return true;
    default:
      return false;
  }
}

/// Whether a cheap kernel reads something that `waits`, and otherwise only values that are available from the
/// beginning.
bool only_waits(const InstructionTable& table, std::size_t kernel, const IdVector<ValueId, std::uint32_t>& producer,
                const IdVector<ValueId, char>& waits) {
  if (table.program().instructions[kernel].operation->type->work == WorkKind::kContraction) return false;
  bool is_waiting = false;
  for (const ValueId input : table.inputs(kernel)) {
    const std::uint32_t made_by = producer[input];
    if (waits[input] != 0) {
      is_waiting = true;
    } else if (made_by != kAbsent && table[made_by].kind != InstructionKind::kConstant) {
      return false;
    }
  }
  return is_waiting;
}

}  // namespace

IssueOrder issued_early(const InstructionTable& table, IssueOrder order) {
  const IdVector<ValueId, std::uint32_t> made_by = producers(table);
  const std::size_t loop = table.loop();
  // The instruction after which each one is moved (its own number if it stays); moved instructions keep their order.
  // Those that go to the beginning of the part after the loop are in the order in which the loop computes their
  // inputs.
  struct Place {
    std::size_t behind = 0;
    bool is_late = false;  // comes after others that go to the same position
    std::size_t made = 0;
    auto operator<=>(const Place&) const = default;
  };
  std::vector<Place> places(order.sequence.size());
  std::vector<Bytes> began_with(order.sequence.size(), 0);  // by collective: the operand of the first one of its chain
  const auto behind = [&](std::size_t i) -> std::size_t& { return places[i].behind; };
  for (const std::size_t i : order.sequence) {
    places[i] = {i, i >= loop, 0};
    if (!is_collective(table, i) || table.inputs(i).size() != 1) continue;
    const std::uint32_t producer = made_by[table.inputs(i)[0]];
    if (producer == kAbsent) continue;
    const bool is_moved = behind(producer) != producer;
    began_with[i] = is_moved ? began_with[producer] : table.bytes(table.inputs(i)[0]);
    // The second part of an all_reduce in two parts follows the first.
    const bool goes_on = is_moved && table.bytes(table.outputs(i)[0]) <= began_with[i];
    if (!goes_on && !never_grows(table, i)) continue;
    if (i >= loop && producer < loop) {
      places[i] = {loop, false, producer};
    } else {
      places[i] = {behind(producer), producer < loop || places[producer].is_late, places[producer].made};
    }
  }
  std::stable_sort(order.sequence.begin(), order.sequence.end(),
                   [&](std::size_t a, std::size_t b) { return std::pair(places[a], a) < std::pair(places[b], b); });
  order.reduces_in_last_run = loop > 0;
  return order;
}

IssueOrder delayed(const InstructionTable& table, IssueOrder order) {
  const IdVector<ValueId, std::uint32_t> made_by = producers(table);
  const std::size_t loop = table.loop();
  const std::vector<std::uint32_t>& old = order.sequence;
  IdVector<ValueId, char> waits(table.num_values(), 0);
  std::vector<char> is_delayed(old.size(), 0);  // by instruction
  for (const std::size_t i : old) {
    if (is_operator(table, i)) {
      is_delayed[i] = only_waits(table, i, made_by, waits);
    } else if (!is_collective(table, i)) {
      continue;
    }
    bool waits_here = is_delayed[i] != 0;
    if (is_collective(table, i)) waits_here = never_grows(table, i) || waits[table.inputs(i)[0]] != 0;
    for (const ValueId output : table.outputs(i)) waits[output] = waits_here;
  }
  // The position before which each instruction is issued (its own if it stays).
  std::vector<std::uint32_t> before(old.size());
  IdVector<ValueId, std::uint32_t> needed(table.num_values(), kAbsent);
  for (auto place = static_cast<std::uint32_t>(old.size()); place-- > 0;) {
    const std::uint32_t i = old[place];
    before[i] = place;
    if (is_delayed[i] != 0) {
      std::uint32_t first = kAbsent;
      for (const ValueId output : table.outputs(i)) first = std::min(first, needed[output]);
      is_delayed[i] = first != kAbsent;
      if (first != kAbsent) before[i] = i < loop ? std::min(first, static_cast<std::uint32_t>(loop)) : first;
    }
    for (const ValueId input : table.inputs(i)) needed[input] = std::min(needed[input], before[i]);
  }
  std::stable_sort(order.sequence.begin(), order.sequence.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(before[a], is_delayed[a] == 0) < std::pair(before[b], is_delayed[b] == 0);
  });
  return order;
}

}  // namespace shardplan
