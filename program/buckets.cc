#include "program/buckets.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "program/instruction_facts.h"

// Joining collectives must not create a cycle: a bucket comes after the producers of all its members and before their
// readers. So the instructions are listed again: whatever is ready in the given order, and a bucket when its last
// member is ready. Members that depend on each other through other instructions can never be ready together; there
// the bucket is split.

namespace shardplan {
namespace {

constexpr std::uint32_t kUnmade = std::numeric_limits<std::uint32_t>::max();

bool is_joinable(const OperatorGraph& graph, const Instruction& instruction) {
  if (instruction.kind != InstructionKind::kCollective) return false;
  const bool is_updated = instruction.origin->kind == Origin::Kind::kParallelOptimizer && !instruction.op;
  const bool finishes = instruction.op && graph.operators()[*instruction.op].parameter.has_value();
  switch (instruction.step->kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kReduceScatter:
      return is_updated || finishes || instruction.origin->kind == Origin::Kind::kMirror;
    case CollectiveKind::kAllGather:
      return is_updated;
    default:
      return false;
  }
}

/// A set of ready positions from which the first is taken: one bit for each, and on every level above one bit per
/// word below.
class ReadyPlaces {
 public:
  explicit ReadyPlaces(std::size_t count) {
    do {
      count = (count + 63) / 64;
      levels_.emplace_back(count, 0);
    } while (count > 1);
  }

  bool empty() const { return levels_.back().front() == 0; }
  void insert(std::size_t place) {
    for (std::vector<std::uint64_t>& level : levels_) {
      level[place / 64] |= std::uint64_t{1} << place % 64;
      place /= 64;
    }
  }
  std::size_t take_first() {
    std::size_t place = 0;
    for (std::size_t level = levels_.size(); level-- > 0;) {
      place = place * 64 + static_cast<std::size_t>(std::countr_zero(levels_[level][place]));
    }
    std::size_t at = place;
    for (std::vector<std::uint64_t>& level : levels_) {
      level[at / 64] &= ~(std::uint64_t{1} << at % 64);
      if (level[at / 64] != 0) break;
      at /= 64;
    }
    return place;
  }

 private:
  std::vector<std::vector<std::uint64_t>> levels_;
};

/// Lists the instructions of one region (the micro-batch loop or the part after it) such that every bucket is
/// contiguous. Of what is ready, the first in the given order comes first; a bucket takes the position of its last
/// member.
class Regrouping {
 public:
  Regrouping(const InstructionReads& reads, const IssueOrder& order)
      : reads_(reads), order_(order), queue_(order.sequence.size()) {
    places_.resize(reads.size());
    for (std::size_t place = 0; place < order.sequence.size(); ++place) {
      places_[order.sequence[place]] = static_cast<std::uint32_t>(place);
    }
    result_.buckets.resize(reads.size(), 0);
    result_.sequence.reserve(reads.size());
    issued_.resize(reads.size(), 0);
    missing_.resize(reads.size());
    const std::uint32_t last = *std::max_element(order.buckets.begin(), order.buckets.end());
    groups_.resize(last + 1);
  }

  IssueOrder run() {
    result_.reduces_in_last_run = order_.reduces_in_last_run;
    run(0, reads_.loop());
    run(reads_.loop(), order_.sequence.size());
    return std::move(result_);
  }

 private:
  struct Group {
    std::size_t left = 0;              // members that are not issued yet
    std::size_t place = 0;             // of the last member
    std::vector<std::uint32_t> ready;  // members whose inputs are ready
  };
  void run(std::size_t begin, std::size_t end) {
    for (std::size_t place = begin; place < end; ++place) {
      const std::size_t i = order_.sequence[place];
      missing_[i] = reads_.num_made(i);
      if (Group& group = groups_[order_.buckets[i]]; order_.buckets[i] != 0) {
        ++group.left;
        group.place = place;
      }
    }
    for (std::size_t place = begin; place < end; ++place) {
      if (missing_[order_.sequence[place]] == 0) is_ready(order_.sequence[place]);
    }
    const std::size_t all = result_.sequence.size() + (end - begin);
    std::size_t first_left = begin;  // a position
    while (result_.sequence.size() < all) {
      if (queue_.empty()) {
        // Every bucket that is not issued waits for another one: the first member that can run is issued without those
        // that cannot.
        while (is_issued(order_.sequence[first_left])) ++first_left;
        split(groups_[order_.buckets[order_.sequence[first_left]]]);
      }
      for (std::size_t issued = issue(order_.sequence[queue_.take_first()]); issued < result_.sequence.size();
           ++issued) {
        for (const std::uint32_t reader : reads_.readers(result_.sequence[issued])) {
          if (--missing_[reader] == 0) is_ready(reader);
        }
      }
    }
  }

  bool is_issued(std::size_t i) const { return issued_[i] != 0; }

  void is_ready(std::size_t i) {
    const std::uint32_t bucket = order_.buckets[i];
    if (bucket == 0) {
      queue_.insert(places_[i]);
      return;
    }
    Group& group = groups_[bucket];
    group.ready.push_back(static_cast<std::uint32_t>(i));
    if (group.ready.size() == group.left) queue_.insert(group.place);
  }

  void split(Group& group) {
    SHARDPLAN_CHECK(!group.ready.empty());
    queue_.insert(places_[group.ready.front()]);
  }

  /// Emits an instruction, or all members of its bucket that are ready; returns where they begin in the sequence.
  std::size_t issue(std::size_t i) {
    const std::size_t begin = result_.sequence.size();
    if (order_.buckets[i] == 0) {
      result_.sequence.push_back(static_cast<std::uint32_t>(i));
    } else {
      Group& group = groups_[order_.buckets[i]];
      std::vector<std::uint32_t> members = std::exchange(group.ready, {});
      group.left -= members.size();
      std::sort(members.begin(), members.end(), [&](std::size_t a, std::size_t b) { return places_[a] < places_[b]; });
      if (members.size() > 1) {
        ++last_bucket_;
        for (const std::size_t member : members) result_.buckets[member] = last_bucket_;
      }
      result_.sequence.insert(result_.sequence.end(), members.begin(), members.end());
    }
    for (std::size_t at = begin; at < result_.sequence.size(); ++at) issued_[result_.sequence[at]] = 1;
    return begin;
  }

  const InstructionReads& reads_;
  const IssueOrder& order_;
  std::vector<std::uint32_t> places_;   // by instruction
  std::vector<std::uint32_t> missing_;  // by instruction: operands that are not computed yet
  std::vector<Group> groups_;           // by bucket
  std::vector<char> issued_;
  ReadyPlaces queue_;  // of ready positions; a bucket's is that of its last member
  std::uint32_t last_bucket_ = 0;
  IssueOrder result_;
};

}  // namespace

std::optional<TensorId> parameter_of(const OperatorGraph& graph, const ParallelProgram& program,
                                     const Instruction& instruction) {
  if (instruction.op && graph.operators()[*instruction.op].parameter) {
    return graph.operators()[*instruction.op].parameter;
  }
  if (const std::optional<TensorId> stored = stored_tensor(graph, program, instruction)) {
    const GraphTensor& tensor = graph.tensor(*stored);
    return tensor.state_of.value_or(*stored);
  }
  for (const ValueId output : instruction.outputs) {
    if (!program.values[output].tensor) continue;
    for (const Reader& reader : graph.tensor(*program.values[output].tensor).readers) {
      if (graph.operators()[reader.op].parameter) return graph.operators()[reader.op].parameter;
    }
  }
  return std::nullopt;
}

std::vector<JoinableCollective> joinable_collectives(const ParallelProgram& program, const OperatorGraph& graph,
                                                     std::span<const std::uint32_t> sequence) {
  std::map<std::tuple<CollectiveKind, std::vector<AxisRef>, DataType, Reduction, std::int64_t>, std::uint32_t> keys;
  std::vector<JoinableCollective> result;
  for (const std::uint32_t i : sequence) {
    const Instruction& instruction = program.instructions[i];
    if (!is_joinable(graph, instruction)) continue;
    const std::optional<TensorId> parameter = parameter_of(graph, program, instruction);
    if (!parameter) continue;
    const CollectiveStep& step = instruction.step;
    const auto key = keys.try_emplace(
        {step.kind, step.axes, program.values[instruction.inputs[0]].type.dtype, step.reduction, instruction.runs},
        static_cast<std::uint32_t>(keys.size()));
    result.push_back({i, step.kind, *parameter, key.first->second, group_bytes(program, instruction)});
  }
  result.shrink_to_fit();
  return result;
}

InstructionReads::InstructionReads(const ParallelProgram& program) : loop_(program.num_in_micro_batch()) {
  const std::size_t count = program.instructions.size();
  IdVector<ValueId, std::uint32_t> producers(program.values.size(), kUnmade);
  for (std::size_t i = 0; i < count; ++i) {
    for (const ValueId output : program.instructions[i].outputs) producers[output] = static_cast<std::uint32_t>(i);
  }
  first_.resize(count + 1, 0);
  num_made_.resize(count, 0);
  const auto for_each_read = [&](const auto& visit) {
    for (std::size_t i = 0; i < count; ++i) {
      for (const ValueId input : program.instructions[i].inputs) {
        const std::uint32_t producer = producers[input];
        if (producer != kUnmade && (producer < loop_) == (i < loop_)) visit(producer, i);
      }
    }
  };
  for_each_read([&](std::uint32_t producer, std::size_t reader) {
    ++first_[producer + 1];
    ++num_made_[reader];
  });
  for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
  readers_.resize(first_.back());
  std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
  for_each_read([&](std::uint32_t producer, std::size_t reader) {
    readers_[next[producer]++] = static_cast<std::uint32_t>(reader);
  });
}

IssueOrder with_buckets(const InstructionReads& reads, IssueOrder order) {
  const bool has_bucket =
      std::any_of(order.buckets.begin(), order.buckets.end(), [](std::uint32_t bucket) { return bucket != 0; });
  return has_bucket ? Regrouping(reads, order).run() : order;
}

ParallelProgram in_order(const ParallelProgram& program, const IssueOrder& order, const CollectiveCosts& costs) {
  ParallelProgram result = program;
  result.instructions.clear();
  std::map<std::uint32_t, std::uint32_t> ids;
  for (const std::size_t i : order.sequence) {
    result.instructions.push_back(program.instructions[i]);
    if (const std::uint32_t bucket = order.buckets[i]; bucket != 0) {
      result.instructions.back().fusion =
          ids.try_emplace(bucket, static_cast<std::uint32_t>(ids.size() + 1)).first->second;
    }
  }
  describe_buckets(result, &costs);
  return result;
}

TableOrder in_order(const InstructionTable& table, const IssueOrder& order, const CollectiveCosts& costs) {
  const ParallelProgram& program = table.program();
  TableOrder result(table, order.sequence);
  result.reduces_in_last_run = order.reduces_in_last_run;
  if (order.buckets.empty()) return result;
  std::vector<std::uint32_t> ids(*std::max_element(order.buckets.begin(), order.buckets.end()) + 1, 0);
  std::vector<std::size_t> firsts;  // by bucket: one of its members
  std::vector<Bytes> together;      // group_bytes of all members
  for (std::size_t place = 0; place < result.size(); ++place) {
    const std::size_t i = order.sequence[place];
    if (order.buckets[i] == 0) continue;
    std::uint32_t& id = ids[order.buckets[i]];
    if (id == 0) {
      result.buckets.push_back({0, ValueId(table.num_values() + result.buckets.size()), 0});
      firsts.push_back(i);
      together.push_back(0);
      id = static_cast<std::uint32_t>(result.buckets.size());
    }
    result.fusion[place] = id;
    const ProgramValue& input = program.values[table.inputs(i)[0]];
    const ProgramValue& output = program.values[table.outputs(i)[0]];
    result.buckets[id - 1].bytes +=
        std::max(num_elements(input.local_shape), num_elements(output.local_shape)) * element_bytes(input.type.dtype);
    together[id - 1] += group_bytes(program, program.instructions[i]);
  }
  result.num_buffers = result.buckets.size();
  for (std::size_t b = 0; b < result.buckets.size(); ++b) {
    const CollectiveStep& step = program.instructions[firsts[b]].step;
    result.buckets[b].time = costs.time(step.kind, step.axes, together[b]);
  }
  return result;
}

void describe_buckets(ParallelProgram& program, const CollectiveCosts* costs) {
  const std::vector<Bucket> before = std::exchange(program.buckets, {});
  std::vector<std::int64_t> elements;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.fusion == 0) continue;
    SHARDPLAN_CHECK(instruction.fusion <= program.buckets.size() + 1);
    const ProgramValue& input = program.values[instruction.inputs[0]];
    if (instruction.fusion > program.buckets.size()) {
      Bucket bucket{instruction.step->kind, instruction.step->axes, 0, 0, 0, {}};
      const std::size_t number = program.buckets.size();
      ProgramValue buffer;
      buffer.name = fmt::format("bucket{}", number + 1);
      buffer.type.dtype = input.type.dtype;
      buffer.layout = TensorLayout::replicated(1);
      bucket.buffer = number < before.size() ? before[number].buffer : program.values.push_back({});
      program.values[bucket.buffer] = std::move(buffer);
      program.buckets.push_back(std::move(bucket));
      elements.push_back(0);
    }
    Bucket& bucket = program.buckets[instruction.fusion - 1];
    ++bucket.members;
    bucket.group_bytes += group_bytes(program, instruction);
    const ProgramValue& output = program.values[instruction.outputs[0]];
    elements[instruction.fusion - 1] +=
        std::max(num_elements(program.values[instruction.inputs[0]].local_shape), num_elements(output.local_shape));
  }
  for (std::size_t i = 0; i < program.buckets.size(); ++i) {
    Bucket& bucket = program.buckets[i];
    ProgramValue& buffer = program.values[bucket.buffer];
    buffer.type.shape = {elements[i]};
    buffer.local_shape = {elements[i]};
    buffer.bytes = local_bytes(buffer.type, buffer.layout);
    if (costs != nullptr) bucket.time = costs->time(bucket.kind, bucket.axes, bucket.group_bytes);
  }
}

std::size_t end_of_bucket(const IssueOrder& order, std::size_t begin) {
  const std::uint32_t bucket = order.buckets[order.sequence[begin]];
  std::size_t end = begin + 1;
  while (bucket > 0 && end < order.sequence.size() && order.buckets[order.sequence[end]] == bucket) ++end;
  return end;
}

IssueOrder moved_behind(const IssueOrder& order, const std::vector<std::size_t>& behind) {
  std::vector<std::size_t> places(order.sequence.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(behind[a], behind[a] > a) < std::pair(behind[b], behind[b] > b);
  });
  IssueOrder result = order;
  for (std::size_t place = 0; place < places.size(); ++place) {
    result.sequence[place] = order.sequence[places[place]];
  }
  return result;
}

}  // namespace shardplan
