#include "program/joined_waiting.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

namespace shardplan {
namespace {

/// For each collective, this many that would start later are considered.
constexpr std::size_t kLookAhead = 256;

/// An instruction or a bucket that may be joined with others.
struct Waiting {
  Picoseconds begin = 0, ready = 0;
  std::size_t place = 0, end = 0;
  Bytes bytes = 0;
};

/// By region and key, in the order of their starts.
using WaitingByKey = std::map<std::pair<bool, std::uint32_t>, std::vector<Waiting>>;

WaitingByKey waiting_by_key(const TableOrder& order, std::span<const OverlappedTimeline::Span> spans,
                            const IssueOrder& given, std::span<const JoinKey> keys) {
  WaitingByKey result;
  IdVector<ValueId, Picoseconds> made(order.num_values(), 0);
  for (std::size_t place = 0; place < order.size();) {
    const std::size_t end = order.end_of_bucket(place);
    Waiting one{spans[place].begin, 0, place, end, 0};
    bool may_join = true;
    for (std::size_t i = place; i < end; ++i) {
      const JoinKey& key = keys[given.sequence[i]];
      may_join = may_join && key.key > 0;
      one.bytes += key.bytes;
      for (const ValueId input : order.inputs(i)) one.ready = std::max(one.ready, made[input]);
      for (const ValueId output : order.outputs(i)) made[output] = spans[i].end;
    }
    if (may_join) result[{place >= order.table->loop(), keys[given.sequence[place]].key}].push_back(one);
    place = end;
  }
  for (auto& [key, waiting] : result) {
    std::stable_sort(waiting.begin(), waiting.end(),
                     [](const Waiting& a, const Waiting& b) { return a.begin < b.begin; });
  }
  return result;
}

}  // namespace

std::vector<JoinKey> join_keys(const InstructionTable& table, const OperatorGraph& graph, const CommFusions& fusions,
                               std::span<const JoinableCollective> joinable) {
  const auto is_free = [](const CommFusion& rule) { return rule.mode == CommFusion::Mode::kBest; };
  const auto is_left = [&](CollectiveKind kind) {
    if (kind == CollectiveKind::kAllReduce) return is_free(fusions.all_reduce);
    return is_free(kind == CollectiveKind::kAllGather ? fusions.all_gather : fusions.reduce_scatter);
  };
  std::vector<JoinKey> keys(table.size());
  std::uint32_t last = 0;
  for (const JoinableCollective& one : joinable) {
    last = std::max(last, static_cast<std::uint32_t>(one.key) + 1);
    if (!is_left(one.kind) || graph.tensor(one.parameter).comm_fusion) continue;
    keys[one.instruction] = {static_cast<std::uint32_t>(one.key) + 1, one.bytes};
  }
  if (!is_left(CollectiveKind::kAllGather)) return keys;
  const ParallelProgram& program = table.program();
  IdVector<ValueId, char> is_made(table.num_values(), 0);
  for (std::size_t i = 0; i < table.size(); ++i) {
    for (const ValueId output : table.outputs(i)) is_made[output] = 1;
  }
  std::map<std::pair<std::vector<AxisRef>, DataType>, std::uint32_t> numbers;
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (!table[i].is_collective(CollectiveKind::kAllGather) || is_made[table.inputs(i)[0]] != 0) continue;
    const Instruction& gather = program.instructions[i];
    const std::optional<TensorId> parameter = parameter_of(graph, program, gather);
    if (parameter && graph.tensor(*parameter).comm_fusion) continue;
    const std::pair key(gather.step->axes, program.values[gather.inputs[0]].type.dtype);
    const auto next = static_cast<std::uint32_t>(last + 1 + numbers.size());
    keys[i] = {numbers.try_emplace(key, next).first->second, table.bytes(table.outputs(i)[0])};
  }
  return keys;
}

IssueOrder joined_waiting(const TableOrder& order, std::span<const OverlappedTimeline::Span> spans,
                          const IssueOrder& given, std::span<const JoinKey> keys, Bytes most) {
  IssueOrder result = given;
  std::uint32_t last = *std::max_element(given.buckets.begin(), given.buckets.end());
  std::vector<std::size_t> behind(order.size());  // by position: the one after which it is moved, its own if it stays
  std::iota(behind.begin(), behind.end(), std::size_t{0});
  for (const auto& [key, waiting] : waiting_by_key(order, spans, given, keys)) {
    std::vector<char> is_joined(waiting.size(), 0);
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      if (is_joined[i] != 0) continue;
      const Waiting& first = waiting[i];
      Bytes bytes = first.bytes;
      bool is_bucket = false;
      for (std::size_t j = i + 1; j < std::min(waiting.size(), i + kLookAhead); ++j) {
        const Waiting& other = waiting[j];
        if (is_joined[j] != 0 || other.ready > first.begin) continue;
        bytes += other.bytes;
        if (bytes > most) break;
        is_joined[j] = 1;
        if (!std::exchange(is_bucket, true)) ++last;
        for (std::size_t place = other.place; place < other.end; ++place) {
          result.buckets[given.sequence[place]] = last;
          behind[place] = first.place;
        }
      }
      for (std::size_t place = first.place; is_bucket && place < first.end; ++place) {
        result.buckets[given.sequence[place]] = last;
      }
    }
  }
  return moved_behind(result, behind);
}

}  // namespace shardplan
