#include "program/prefetch.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

namespace shardplan {
namespace {

/// A gather and the collectives that continue from it: positions of the order from `begin` on, before `end`, which
/// move before the position `to`.
struct Chain {
  std::size_t begin = 0, end = 0, to = 0;
  std::size_t made = 0;             // the first position at which its operand is ready
  std::optional<std::size_t> cast;  // the position of the kernel that converts its operand, which moves with it
};

class Prefetch {
 public:
  Prefetch(const InstructionTable& table, const OperatorGraph& graph, const IssueOrder& order)
      : table_(table),
        graph_(graph),
        old_(order.sequence),
        made_(table.num_values(), 0),
        first_reader_(table.num_values(), kNone),
        result_(order) {
    for (std::size_t place = 0; place < old_.size(); ++place) {
      for (const ValueId output : table.outputs(old_[place])) made_[output] = static_cast<std::uint32_t>(place + 1);
      for (const ValueId input : table.inputs(old_[place])) {
        if (first_reader_[input] == kNone) first_reader_[input] = old_[place];
      }
    }
    result_.sequence.clear();
    last_bucket_ = order.buckets.empty() ? 0 : *std::max_element(order.buckets.begin(), order.buckets.end());
  }

  IssueOrder run(std::optional<Bytes> joins) {
    const std::vector<Chain> chains = this->chains();
    std::vector<char> is_moved(old_.size(), 0);
    for (const Chain& chain : chains) {
      for (std::size_t place = chain.begin; place < chain.end; ++place) is_moved[place] = 1;
      if (chain.cast) is_moved[*chain.cast] = 1;
    }
    std::size_t next = 0;  // the next chain to be placed; chains are sorted by target
    for (std::size_t place = 0; place < old_.size(); ++place) {
      std::size_t end = next;
      while (end < chains.size() && chains[end].to <= place) ++end;
      const std::span<const Chain> here = std::span(chains).subspan(next, end - next);
      for (const Chain& chain : here) {
        if (chain.cast) result_.sequence.push_back(old_[*chain.cast]);
      }
      if (joins) {
        emit_joined(here, *joins);
      } else {
        emit(here);
      }
      next = end;
      if (!is_moved[place]) result_.sequence.push_back(old_[place]);
    }
    return std::move(result_);
  }

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  using GatherKey = std::tuple<std::vector<AxisRef>, DataType, int>;

  /// An all_gather of given values, of given values that a kernel converts first, or of values kept since the forward
  /// pass.
  bool begins_gather(std::size_t i) const {
    if (!table_[i].is_collective(CollectiveKind::kAllGather)) return false;
    const std::uint32_t made = made_[table_.inputs(i)[0]];
    return made == 0 || cast_before(i) || (pass(i) == Pass::kBackward && pass(old_[made - 1]) == Pass::kForward);
  }
  /// The position of the kernel of the same pass that converts a given value, first of all for this gather (FSDP2's float8
  /// all-gather).
  std::optional<std::size_t> cast_before(std::size_t i) const {
    const std::uint32_t made = made_[table_.inputs(i)[0]];
    if (made == 0 || table_[old_[made - 1]].kind != InstructionKind::kOperator) return std::nullopt;
    const std::size_t cast = old_[made - 1];
    const bool converts = table_.program().instructions[cast].operation->type->role == OperatorRole::kConversion;
    if (!converts || made_[table_.inputs(cast)[0]] != 0 || pass(cast) != pass(i)) return std::nullopt;
    return first_reader_[table_.inputs(i)[0]] == i ? std::optional<std::size_t>(made - 1) : std::nullopt;
  }
  Pass pass(std::size_t i) const { return table_.program().instructions[i].pass; }
  bool continues(std::size_t previous, std::size_t i) const {
    const auto inputs = table_.inputs(i), outputs = table_.outputs(previous);
    return table_[i].kind == InstructionKind::kCollective &&
           std::equal(inputs.begin(), inputs.end(), outputs.begin(), outputs.end());
  }

  std::vector<Chain> chains() const {
    const std::size_t loop = table_.loop();
    std::vector<Picoseconds> before(old_.size() + 1, 0);  // kernel time before each position
    for (std::size_t place = 0; place < old_.size(); ++place) {
      const InstructionTable::Row& row = table_[old_[place]];
      before[place + 1] = before[place] + (row.kind == InstructionKind::kOperator ? row.time : 0);
    }
    std::vector<Chain> chains;
    for (std::size_t place = 0; place < old_.size(); ++place) {
      if (!begins_gather(old_[place])) continue;
      std::size_t end = place + 1;
      while (end < old_.size() && end != loop && continues(old_[end - 1], old_[end])) ++end;
      const std::optional<std::size_t> cast = cast_before(old_[place]);
      chains.push_back({place, end, place, cast ? 0 : made_[table_.inputs(old_[place])[0]], cast});
      place = end - 1;
    }
    Picoseconds link_is_free = std::numeric_limits<Picoseconds>::max();
    for (std::size_t c = chains.size(); c-- > 0;) {
      Chain& chain = chains[c];
      Picoseconds time = 0;
      for (std::size_t place = chain.begin; place < chain.end; ++place) time += table_[old_[place]].time;
      const std::size_t region = std::max(chain.begin < loop ? 0 : loop, chain.made);
      if (c + 1 < chains.size() && chains[c + 1].begin >= loop && chain.begin < loop) {
        link_is_free = std::numeric_limits<Picoseconds>::max();
      }
      link_is_free = std::max<Picoseconds>(before[region], std::min(before[chain.begin], link_is_free) - time);
      const auto first = before.begin() + static_cast<std::ptrdiff_t>(region);
      const auto last = before.begin() + static_cast<std::ptrdiff_t>(chain.begin) + 1;
      chain.to = static_cast<std::size_t>(std::upper_bound(first, last, link_is_free) - before.begin());
      chain.to = chain.to > region ? chain.to - 1 : region;
    }
    // The links take them one after the other, even if one cannot move as far forward as the next.
    for (std::size_t c = 1; c < chains.size(); ++c) chains[c].to = std::max(chains[c].to, chains[c - 1].to);
    return chains;
  }

  void emit(std::span<const Chain> chains) {
    for (const Chain& chain : chains) {
      for (std::size_t place = chain.begin; place < chain.end; ++place) result_.sequence.push_back(old_[place]);
    }
  }

  /// Step by step, so that equal steps of several chains are adjacent.
  void emit_joined(std::span<const Chain> chains, Bytes joins) {
    for (std::size_t step = 0, left = chains.size(); left > 0; ++step) {
      left = 0;
      std::optional<GatherKey> last;
      std::size_t previous = 0;
      Bytes bytes = 0;
      for (const Chain& chain : chains) {
        if (chain.begin + step >= chain.end) continue;
        ++left;
        const std::uint32_t i = old_[chain.begin + step];
        const std::optional<GatherKey> key = gather_key(table_.program().instructions[i]);
        const Bytes gathered = table_.bytes(table_.outputs(i)[0]);
        if (key && last == key && bytes + gathered <= joins) {
          if (result_.buckets[previous] == 0) result_.buckets[previous] = ++last_bucket_;
          result_.buckets[i] = result_.buckets[previous];
          bytes += gathered;
        } else {
          bytes = gathered;
        }
        last = key;
        previous = i;
        result_.sequence.push_back(i);
      }
    }
  }

  /// Gathers of given values with one key may be joined; empty for others, and for gathers that the user never joins.
  std::optional<GatherKey> gather_key(const Instruction& instruction) const {
    if (instruction.kind != InstructionKind::kCollective || instruction.step->kind != CollectiveKind::kAllGather) {
      return std::nullopt;
    }
    const std::uint32_t made = made_[instruction.inputs[0]];
    if (made != 0 && instruction.pass != Pass::kForward && pass(old_[made - 1]) == Pass::kForward) return std::nullopt;
    const ParallelProgram& program = table_.program();
    const std::optional<TensorId> parameter = parameter_of(graph_, program, instruction);
    const std::optional<int> id = parameter ? graph_.tensor(*parameter).comm_fusion : std::nullopt;
    if (id == 0) return std::nullopt;
    return GatherKey{instruction.step->axes, program.values[instruction.inputs[0]].type.dtype, id.value_or(0)};
  }

  const InstructionTable& table_;
  const OperatorGraph& graph_;
  const std::vector<std::uint32_t>& old_;
  IdVector<ValueId, std::uint32_t> made_;          // by value: the position after its producer; 0: given
  IdVector<ValueId, std::uint32_t> first_reader_;  // by value: the instruction
  std::uint32_t last_bucket_ = 0;
  IssueOrder result_;
};

}  // namespace

IssueOrder prefetched(const InstructionTable& table, const OperatorGraph& graph, const IssueOrder& order,
                      std::optional<Bytes> joins) {
  return Prefetch(table, graph, order).run(joins);
}

}  // namespace shardplan
