// In which order the instructions of a program are issued.
//
// Lowering writes every redistribution right before its reader, where nothing is left to hide it behind. Three moves of
// order change that, as the runtimes of DDP, FSDP and Megatron-LM do it:
//   1. A collective whose result is not larger than its operand (reduce_scatter, all_reduce, all_to_all, permute) is
//      issued where its operand is made: gradients are reduced beside the rest of the backward pass.
//   2. Buckets: reductions of gradients over one group, and gathers of updated weights, wait for each other until they
//      are `bucket_bytes` together or someone reads one of them, and then are one collective with one latency. What
//      finishes such a gradient (a cast, a scale) waits with it.
//   3. Prefetch: an all_gather of what is stored is issued so early that it ends when its reader begins, counted from
//      the end of the step as if the links had nothing else to do; those that then stand beside each other are one.
// Each move costs memory or delays what is joined, so that all are tried one on top of the other and the fastest order
// that fits is taken. The gradients of a bucket are views of its buffer, so that it takes no memory of its own.
#include "program/schedule.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "program/instruction_facts.h"
#include "program/memory_profile.h"
#include "program/overlapped_timeline.h"

namespace shardplan {
namespace {

/// Instructions in another order, and what is one collective; fusion ids count from 1.
struct Order {
  std::vector<std::size_t> sequence;
  std::vector<std::uint32_t> fusion;  // by instruction as numbered in the program given
  std::uint32_t last_fusion = 0;
};

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

class Scheduler {
 public:
  Scheduler(const ParallelProgram& program, const OperatorGraph& graph, const ScheduleOptions& options)
      : program_(program), graph_(graph), options_(options), loop_(program.num_in_micro_batch()) {
    producer_.resize(program.values.size(), kNone);
    for (std::size_t i = 0; i < program.instructions.size(); ++i) {
      for (const ValueId output : program.instructions[i].outputs) producer_[output] = i;
    }
  }

  Order as_given() const {
    Order order;
    order.sequence.resize(program_.instructions.size());
    std::iota(order.sequence.begin(), order.sequence.end(), std::size_t{0});
    order.fusion.resize(order.sequence.size(), 0);
    return order;
  }

  Order hoisted(Order order) const {
    // By the instruction behind which it goes, its own number if it stays; what is moved keeps its order.
    std::vector<std::size_t> behind(order.sequence.size());
    for (const std::size_t i : order.sequence) {
      behind[i] = i;
      const Instruction& instruction = at(i);
      if (instruction.kind != InstructionKind::kCollective || instruction.inputs.size() != 1) continue;
      const std::size_t producer = producer_[instruction.inputs[0]];
      if (producer == kNone) continue;
      const bool goes_on = behind[producer] != producer && instruction.step.kind == CollectiveKind::kSlice;
      if (!goes_on && !never_grows(instruction)) continue;
      behind[i] = std::max(behind[producer], i < loop_ ? 0 : loop_);
    }
    std::stable_sort(order.sequence.begin(), order.sequence.end(),
                     [&](std::size_t a, std::size_t b) { return std::pair(behind[a], a) < std::pair(behind[b], b); });
    return order;
  }

  Order bucketed(const Order& order) {
    out_ = order;
    out_.sequence.clear();
    pending_.clear();
    bytes_.clear();
    is_deferred_ = IdVector<ValueId, char>(program_.values.size(), 0);
    for (std::size_t place = 0; place < order.sequence.size(); ++place) {
      if (place == loop_) flush();
      const std::size_t i = order.sequence[place];
      const Instruction& instruction = at(i);
      if (is_joined(instruction)) {
        defer(i);
        Bytes& bytes = bytes_[key(instruction)];
        bytes += program_.values[instruction.inputs[0]].bytes;
        if (bytes >= options_.bucket_bytes) flush();
      } else if (!is_ready(i) && waits(instruction)) {
        defer(i);
      } else {
        if (!is_ready(i)) flush();
        out_.sequence.push_back(i);
      }
    }
    flush();
    return std::move(out_);
  }

  Order prefetched(const Order& order, bool joins) const {
    const std::vector<std::size_t>& old = order.sequence;
    std::vector<Picoseconds> before(old.size() + 1, 0);  // kernels before a place
    for (std::size_t place = 0; place < old.size(); ++place) {
      const bool is_kernel = at(old[place]).kind == InstructionKind::kOperator;
      before[place + 1] = before[place] + (is_kernel ? at(old[place]).time : 0);
    }
    struct Chain {
      std::size_t begin, end, to;
    };
    std::vector<Chain> chains;
    for (std::size_t place = 0; place < old.size(); ++place) {
      if (!begins_gather(old[place])) continue;
      std::size_t end = place + 1;
      while (end < old.size() && end != loop_ && continues(old[end - 1], old[end])) ++end;
      chains.push_back({place, end, place});
      place = end - 1;
    }
    Picoseconds link_is_free = std::numeric_limits<Picoseconds>::max();
    for (std::size_t c = chains.size(); c-- > 0;) {
      Chain& chain = chains[c];
      Picoseconds time = 0;
      for (std::size_t place = chain.begin; place < chain.end; ++place) time += at(old[place]).time;
      const std::size_t region = chain.begin < loop_ ? 0 : loop_;
      if (c + 1 < chains.size() && chains[c + 1].begin >= loop_ && chain.begin < loop_) {
        link_is_free = std::numeric_limits<Picoseconds>::max();
      }
      link_is_free = std::max<Picoseconds>(before[region], std::min(before[chain.begin], link_is_free) - time);
      const auto first = before.begin() + static_cast<std::ptrdiff_t>(region);
      const auto last = before.begin() + static_cast<std::ptrdiff_t>(chain.begin) + 1;
      chain.to = static_cast<std::size_t>(std::upper_bound(first, last, link_is_free) - before.begin());
      chain.to = chain.to > region ? chain.to - 1 : region;
    }
    Order result = order;
    result.sequence.clear();
    std::size_t next = 0;  // chain that is not placed yet; they are sorted by where they go
    std::vector<char> is_moved(old.size(), 0);
    for (const Chain& chain : chains) {
      for (std::size_t place = chain.begin; place < chain.end; ++place) is_moved[place] = 1;
    }
    for (std::size_t place = 0; place < old.size(); ++place) {
      std::size_t end = next;
      while (end < chains.size() && chains[end].to <= place) ++end;
      emit_chains(result, old, chains, next, end, joins);
      next = end;
      if (!is_moved[place]) result.sequence.push_back(old[place]);
    }
    return result;
  }

 private:
  using Key = std::tuple<CollectiveKind, std::vector<AxisRef>, DataType, Reduction>;

  const Instruction& at(std::size_t i) const { return program_.instructions[i]; }

  static bool never_grows(const Instruction& instruction) {
    switch (instruction.step.kind) {
      case CollectiveKind::kReduceScatter:
      case CollectiveKind::kAllReduce:
      case CollectiveKind::kAllToAll:
      case CollectiveKind::kCollectivePermute:
        return true;
      default:
        return false;
    }
  }

  Key key(const Instruction& instruction) const {
    return {instruction.step.kind, instruction.step.axes, program_.values[instruction.inputs[0]].type.dtype,
            instruction.step.reduction};
  }

  bool finishes_parameter(const Instruction& instruction) const {
    return instruction.op && graph_.operators()[*instruction.op].parameter.has_value();
  }

  /// Reductions of gradients and gathers of updated weights.
  bool is_joined(const Instruction& instruction) const {
    if (instruction.kind != InstructionKind::kCollective) return false;
    const bool is_updated = instruction.origin.kind == Origin::Kind::kParallelOptimizer && !instruction.op;
    switch (instruction.step.kind) {
      case CollectiveKind::kAllReduce:
      case CollectiveKind::kReduceScatter:
        return is_updated || instruction.origin.kind == Origin::Kind::kMirror || finishes_parameter(instruction);
      case CollectiveKind::kAllGather:
        return is_updated;
      default:
        return false;
    }
  }
  /// What may be done later because only the update reads it.
  bool waits(const Instruction& instruction) const {
    return finishes_parameter(instruction) ||
           (instruction.kind == InstructionKind::kCollective && instruction.pass == Pass::kUpdate);
  }

  bool is_ready(std::size_t i) const {
    const std::vector<ValueId>& inputs = at(i).inputs;
    return std::none_of(inputs.begin(), inputs.end(), [&](ValueId input) { return is_deferred_[input] != 0; });
  }
  void defer(std::size_t i) {
    pending_.push_back(i);
    for (const ValueId output : at(i).outputs) is_deferred_[output] = 1;
  }
  void put(std::size_t i) {
    out_.sequence.push_back(i);
    for (const ValueId output : at(i).outputs) is_deferred_[output] = 0;
  }

  /// Issues all that waits: what can be joined, joined.
  void flush() {
    while (!pending_.empty()) {
      std::vector<std::size_t> left, bucket;
      std::optional<Key> joined;
      for (const std::size_t i : pending_) {
        if (!is_ready(i)) {
          left.push_back(i);
        } else if (!is_joined(at(i))) {
          put(i);
        } else if (!joined || *joined == key(at(i))) {
          joined = key(at(i));
          bucket.push_back(i);
        } else {
          left.push_back(i);
        }
      }
      if (bucket.size() > 1) ++out_.last_fusion;
      for (const std::size_t i : bucket) {
        put(i);
        if (bucket.size() > 1) out_.fusion[i] = out_.last_fusion;
      }
      pending_ = std::move(left);
    }
    bytes_.clear();
  }

  bool begins_gather(std::size_t i) const {
    const Instruction& instruction = at(i);
    return instruction.kind == InstructionKind::kCollective && instruction.step.kind == CollectiveKind::kAllGather &&
           producer_[instruction.inputs[0]] == kNone;
  }
  bool continues(std::size_t previous, std::size_t i) const {
    const Instruction& instruction = at(i);
    return instruction.kind == InstructionKind::kCollective && instruction.inputs == at(previous).outputs;
  }

  template <class Chains>
  void emit_chains(Order& result, const std::vector<std::size_t>& old, const Chains& chains, std::size_t begin,
                   std::size_t end, bool joins) const {
    if (!joins) {
      for (std::size_t c = begin; c < end; ++c) {
        for (std::size_t place = chains[c].begin; place < chains[c].end; ++place) result.sequence.push_back(old[place]);
      }
      return;
    }
    // Step by step, so that equal steps of several chains stand beside each other.
    for (std::size_t step = 0, left = 1; left > 0; ++step) {
      left = 0;
      std::optional<Key> last;
      std::size_t previous = kNone;
      Bytes bytes = 0;
      for (std::size_t c = begin; c < end; ++c) {
        if (chains[c].begin + step >= chains[c].end) continue;
        ++left;
        const std::size_t i = old[chains[c].begin + step];
        const Bytes gathered = program_.values[at(i).outputs[0]].bytes;
        if (is_communication(at(i)) && last == key(at(i)) && bytes + gathered <= options_.bucket_bytes) {
          if (result.fusion[previous] == 0) result.fusion[previous] = ++result.last_fusion;
          result.fusion[i] = result.fusion[previous];
          bytes += gathered;
        } else {
          bytes = gathered;
        }
        last = key(at(i));
        previous = i;
        result.sequence.push_back(i);
      }
    }
  }

  const ParallelProgram& program_;
  const OperatorGraph& graph_;
  const ScheduleOptions& options_;
  const std::size_t loop_;
  IdVector<ValueId, std::size_t> producer_;
  // Of `bucketed`.
  Order out_;
  std::vector<std::size_t> pending_;
  std::map<Key, Bytes> bytes_;
  IdVector<ValueId, char> is_deferred_;
};

/// The program in one order after the other. Its instructions are moved, never copied: there may be a million of them.
class Arrangement {
 public:
  explicit Arrangement(const ParallelProgram& program) : program_(program), place_(program.instructions.size()) {
    std::iota(place_.begin(), place_.end(), std::size_t{0});
  }

  const ParallelProgram& in(const Order& order) {
    std::vector<Instruction> instructions;
    instructions.reserve(place_.size());
    for (const std::size_t i : order.sequence) {
      instructions.push_back(std::move(program_.instructions[place_[i]]));
      instructions.back().fusion = order.fusion[i];
    }
    for (std::size_t place = 0; place < place_.size(); ++place) place_[order.sequence[place]] = place;
    program_.instructions = std::move(instructions);
    return program_;
  }
  ParallelProgram release() { return std::move(program_); }

 private:
  ParallelProgram program_;
  std::vector<std::size_t> place_;  // by instruction as numbered in the program given
};

}  // namespace

std::optional<ParallelProgram> scheduled(const ParallelProgram& program, const OperatorGraph& graph,
                                         const ScheduleOptions& options) {
  Scheduler scheduler(program, graph, options);
  Arrangement arrangement(program);
  std::optional<Order> best;
  Picoseconds least = std::numeric_limits<Picoseconds>::max();
  const auto try_order = [&](const Order& order) {
    const ParallelProgram& trial = arrangement.in(order);
    const OverlappedTimeline times = overlapped_timeline(trial);
    if (times.end >= least || memory_profile(trial, times.spans).peak > options.most_memory) return;
    least = times.end;
    best = order;
  };
  try_order(scheduler.as_given());
  if (options.reorders) {
    const Order hoisted = scheduler.hoisted(scheduler.as_given());
    try_order(hoisted);
    const Order bucketed = scheduler.bucketed(hoisted);
    try_order(bucketed);
    for (const bool joins : {false, true}) {
      try_order(scheduler.prefetched(bucketed, joins));
      try_order(scheduler.prefetched(hoisted, joins));
    }
  }
  if (!best) return std::nullopt;
  arrangement.in(*best);
  return arrangement.release();
}

}  // namespace shardplan
