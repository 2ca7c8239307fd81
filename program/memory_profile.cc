#include "program/memory_profile.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error.h"
#include "program/instruction_facts.h"
#include "program/instruction_table.h"
#include "program/last_run.h"
#include "program/loop_order.h"

// Three passes: which value's memory each value occupies (views, updates in place); from which instruction to which
// each owner is live; and a walk through the program with one counter per worker. If workers overlap micro-batches,
// each run's values have live ranges of their own, and the walk goes through turns instead of instructions.

namespace shardplan {
namespace {

constexpr std::uint32_t kNeverMade = std::numeric_limits<std::uint32_t>::max();

/// The value whose memory each value occupies: its own, unless it is a view of another value, or a stored tensor's new
/// value, which overwrites the old one once that is no longer read.
IdVector<ValueId, ValueId> memory_owners(const TableOrder& order) {
  IdVector<ValueId, std::uint32_t> last_reader(order.num_values(), 0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const ValueId input : order.inputs(i)) last_reader[input] = static_cast<std::uint32_t>(i);
  }
  IdVector<ValueId, ValueId> owner;
  owner.reserve(order.num_values());
  for (std::size_t v = 0; v < order.num_values(); ++v) owner.push_back(ValueId(v));
  for (std::size_t i = 0; i < order.size(); ++i) {
    const bool is_joined = order.fusion[i] > 0 && order[i].is_collective(CollectiveKind::kAllReduce);
    for (const ValueId output : order.outputs(i)) {
      const std::optional<ValueId> old = order.table->old_value(output);
      if (old && last_reader[*old] <= i) {
        owner[output] = *old;
      } else if (order[i].is_view) {
        owner[output] = owner[order.inputs(i)[0]];
      } else if (is_joined) {
        owner[output] = order.buckets[order.fusion[i] - 1].buffer;
      }
    }
  }
  return owner;
}

/// The live range of each value's memory, by owner: the first and the last position of an order.
struct MemoryLives {
  IdVector<ValueId, ValueId> owner;
  IdVector<ValueId, std::uint32_t> first;  // kNeverMade: not live
  IdVector<ValueId, std::uint32_t> last;
  // For the loop's last run, if it issues reductions of its own (program/last_run.h). Earlier runs
  std::vector<ValueId> held;        // hold these sums to their end
  std::vector<ValueId> never_made;  // and make none of these

  /// Turns these into the live ranges of the runs before the last.
  void make_of_earlier_runs(std::size_t loop) {
    for (const ValueId id : held) last[id] = static_cast<std::uint32_t>(loop - 1);
    for (const ValueId id : never_made) first[id] = kNeverMade;
  }
};

/// Without `times` instructions run one after the other.
MemoryLives memory_lives(const TableOrder& order, const OverlappedTimeline* times) {
  const ParallelProgram& program = order.table->program();
  const std::size_t count = order.size();
  MemoryLives lives{memory_owners(order), {}, {}, {}, {}};
  auto& [owner, first, last, held, never_made] = lives;
  const std::span<const OverlappedTimeline::Span> spans =
      times == nullptr ? std::span<const OverlappedTimeline::Span>() : times->spans;
  first.resize(order.num_values(), kNeverMade);
  last.resize(order.num_values(), 0);
  const auto end = static_cast<std::uint32_t>(count == 0 ? 0 : count - 1);
  // Kernels begin in program order. Finds the last that begins before a collective ends, in the same run.
  const std::size_t loop = order.table->loop();
  std::vector<std::uint32_t> kernels;
  std::size_t kernels_in_loop = 0;
  for (std::uint32_t i = 0; !spans.empty() && i < count; ++i) {
    if (i == loop) kernels_in_loop = kernels.size();
    if (order[i].is_timed_kernel()) kernels.push_back(i);
  }
  if (loop >= count) kernels_in_loop = kernels.size();
  std::size_t kernels_before = 0;  // kernels before the current instruction
  const auto last_beside = [&](std::uint32_t i) {
    while (kernels_before < kernels.size() && kernels[kernels_before] <= i) ++kernels_before;
    if (!order[i].is_communication) return i;
    const auto first_behind = kernels.begin() + static_cast<std::ptrdiff_t>(kernels_before);
    const auto end_of_run = i < loop ? kernels.begin() + static_cast<std::ptrdiff_t>(kernels_in_loop) : kernels.end();
    const auto not_beside = std::lower_bound(first_behind, end_of_run, spans[i].end,
                                             [&](std::size_t kernel, auto time) { return spans[kernel].begin < time; });
    return not_beside == first_behind ? i : *std::prev(not_beside);
  };
  std::vector<std::uint32_t> issued_at(count);
  std::iota(issued_at.begin(), issued_at.end(), std::uint32_t{0});
  for (std::uint32_t i = 0; !spans.empty() && i + 1 < count; ++i) {
    if (order.scatters_pieces_behind(i)) issued_at[i + 1] = i;
  }
  const std::vector<LastRunCollective> early = issued_in_last_run(order);
  for (const LastRunCollective& one : early) {  // its results are made once what it waits for has freed its operands
    for (std::size_t i = one.begin; i < one.end; ++i) issued_at[i] = static_cast<std::uint32_t>(one.after);
  }
  const std::size_t end_of_early = early.empty() ? 0 : early.back().end;
  /// The last kernel of the loop that an early reduction overlaps in the last run, unless it continues after the loop.
  const auto last_beside_early = [&](std::uint32_t i) {
    const auto in_loop = std::span(kernels).first(kernels_in_loop);
    if (times->last_run.empty() || in_loop.empty()) return last_beside(i);
    if (spans[i].end > times->last_run[in_loop.back()] + order[in_loop.back()].time) return last_beside(i);
    const auto behind = std::lower_bound(in_loop.begin(), in_loop.end(), spans[i].end,
                                         [&](std::size_t kernel, auto time) { return times->last_run[kernel] < time; });
    return std::max(issued_at[i], behind == in_loop.begin() ? std::uint32_t{0} : *std::prev(behind));
  };
  for (std::uint32_t i = 0; i < count; ++i) {
    const bool is_early = !spans.empty() && i >= loop && i < end_of_early;
    const std::uint32_t until = spans.empty() ? i : is_early ? last_beside_early(i) : last_beside(i);
    for (const ValueId input : order.inputs(i)) last[owner[input]] = std::max(last[owner[input]], until);
    if (const std::uint32_t fusion = order.fusion[i]; fusion > 0) {
      const ValueId buffer = order.buckets[fusion - 1].buffer;
      first[buffer] = std::min(first[buffer], issued_at[i]);
      last[buffer] = std::max(last[buffer], until);
    }
    for (const ValueId output : order.outputs(i)) {
      if (owner[output] == output) first[output] = order[i].is_accumulating ? 0 : issued_at[i];
      last[owner[output]] = std::max(last[owner[output]], is_early ? issued_at[i] : i);
      if (is_early && owner[output] == output) never_made.push_back(output);
    }
  }
  for (std::size_t i = loop; i < end_of_early; ++i) {
    if (order.fusion[i] > 0) never_made.push_back(order.buckets[order.fusion[i] - 1].buffer);
  }
  for (std::size_t i = 0; i < loop && end_of_early > 0; ++i) {
    if (!order[i].is_accumulating) continue;
    for (const ValueId output : order.outputs(i)) {
      if (last[owner[output]] < loop) held.push_back(owner[output]);
    }
  }
  for (const Binding& given : program.given) {
    first[given.value] = 0;
    if (!given.is_input) last[given.value] = end;  // parameters and states stay; inputs go after their last reader
  }
  for (const Binding& output : program.outputs) last[owner[output.value]] = end;
  for (const Binding& update : program.updates) last[owner[update.value]] = end;
  for (const ValueId id : program.values.ids()) {
    if (order.table->is_in_registers(id)) first[id] = kNeverMade;
  }
  return lives;
}

/// The memory in use on every worker during a walk through the program, and the maximum.
class WorkerMemory {
 public:
  explicit WorkerMemory(const ParallelProgram& program) : program_(program) { clear(); }

  /// An empty profile.
  MemoryProfile empty_profile() const {
    MemoryProfile profile;
    profile.bytes.resize(program_.instructions.size(), 0);
    profile.worker_peaks.resize(static_cast<std::size_t>(program_.workers), 0);
    return profile;
  }

  void clear() { in_use_.assign(static_cast<std::size_t>(program_.workers), 0); }
  void add(ValueId id, int sign) {
    in_use_[static_cast<std::size_t>(program_.values[id].worker)] += sign * program_.values[id].bytes;
  }

  /// Records the memory in use while instruction i runs; turns count from 0. Returns whether it is a new peak.
  bool note(MemoryProfile& profile, std::size_t i, std::size_t turn) {
    const int worker = result_worker(program_, program_.instructions[i]);
    profile.bytes[i] = std::max(profile.bytes[i], in_use_[static_cast<std::size_t>(worker)]);
    bool is_peak = false;
    // Given values count from the beginning, also on workers that have done nothing yet.
    for (int of = turn == 0 ? 0 : worker; of < (turn == 0 ? program_.workers : worker + 1); ++of) {
      const Bytes now = in_use_[static_cast<std::size_t>(of)];
      Bytes& most = profile.worker_peaks[static_cast<std::size_t>(of)];
      most = std::max(most, now);
      if (now <= profile.peak) continue;
      profile.peak = now;
      profile.peak_instruction = i;
      peak_worker_ = of;
      is_peak = true;
    }
    return is_peak;
  }
  /// Whether a value is on the worker that has the peak.
  bool is_at_peak(ValueId id) const { return program_.values[id].worker == peak_worker_; }

 private:
  const ParallelProgram& program_;
  std::vector<Bytes> in_use_;
  int peak_worker_ = 0;
};

/// For each instruction, the values for which `when` is that instruction.
class ValuesByInstruction {
 public:
  /// Values with kNeverMade in `when` are left out.
  ValuesByInstruction(const IdVector<ValueId, std::uint32_t>& when, std::size_t num_instructions)
      : first_(num_instructions + 1, 0) {
    for (const std::uint32_t i : when) {
      if (i != kNeverMade) ++first_[i];
    }
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    values_.resize(first_.back());
    for (std::size_t v = when.size(); v-- > 0;) {
      if (const std::uint32_t i = when[ValueId(v)]; i != kNeverMade) values_[--first_[i]] = ValueId(v);
    }
  }

  std::span<const ValueId> at(std::size_t i) const {
    return std::span(values_).subspan(first_[i], first_[i + 1] - first_[i]);
  }

 private:
  std::vector<std::uint32_t> first_;
  std::vector<ValueId> values_;
};

void sort_by_bytes(std::vector<MemoryProfile::Alive>& alive) {
  std::stable_sort(alive.begin(), alive.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
}

/// If workers overlap the loop's runs, each run has its own values, live from the instruction that makes them (inputs:
/// from the worker's first) to their last reader. `first` and `last` are of memory owners.
class ProfileOfTurns {
 public:
  ProfileOfTurns(const ParallelProgram& program, const IdVector<ValueId, ValueId>& owner,
                 const IdVector<ValueId, std::uint32_t>& first, const IdVector<ValueId, std::uint32_t>& last)
      : program_(program), loop_(program.num_in_micro_batch()), memory_(program), alive_(program.values.size(), 0) {
    const std::size_t count = program.instructions.size();
    IdVector<ValueId, std::uint32_t> last_in_loop(program.values.size(), 0);
    std::vector<std::uint32_t> begin(static_cast<std::size_t>(program.workers), kNeverMade);
    IdVector<ValueId, char> is_of_run(program.values.size(), 0), is_read(program.values.size(), 0);
    for (std::uint32_t i = 0; i < loop_; ++i) {
      const Instruction& instruction = program.instructions[i];
      for (const int worker : {worker_of(program, instruction), result_worker(program, instruction)}) {
        begin[static_cast<std::size_t>(worker)] = std::min(begin[static_cast<std::size_t>(worker)], i);
      }
      for (const ValueId input : instruction.inputs) {
        last_in_loop[owner[input]] = i;
        is_read[owner[input]] = 1;
      }
      for (const ValueId output : instruction.outputs) {
        last_in_loop[owner[output]] = i;
        if (owner[output] == output && !is_accumulating(instruction)) is_of_run[output] = 1;
      }
    }
    begins_.resize(count);
    ends_.resize(count);
    IdVector<ValueId, std::uint32_t> from = first;
    for (const Binding& given : program.given) {
      const std::size_t worker = static_cast<std::size_t>(program.values[given.value].worker);
      if (!given.is_input || is_read[given.value] == 0) continue;
      is_of_run[given.value] = 1;
      from[given.value] = begin[worker];
    }
    for (const ValueId id : program.values.ids()) {
      if (from[id] == kNeverMade) continue;
      if (is_of_run[id] == 0 && from[id] == 0) {
        at_start_.push_back(id);
      } else {
        begins_[from[id]].push_back(id);
      }
      if (is_of_run[id] == 0) {
        ends_[last[id]].push_back({id, Which::kLast});
      } else if (last[id] < loop_) {
        ends_[last[id]].push_back({id, Which::kAll});
      } else {  // the last run's value is read after the loop
        ends_[last_in_loop[id]].push_back({id, Which::kAllButLast});
        ends_[last[id]].push_back({id, Which::kLast});
      }
    }
  }

  MemoryProfile run() {
    profile_ = memory_.empty_profile();
    walk(std::nullopt);
    walk(peak_turn_);
    for (const ValueId id : program_.values.ids()) {
      if (alive_[id] == 0 || !memory_.is_at_peak(id)) continue;
      profile_.alive_at_peak.push_back({id, alive_[id] * program_.values[id].bytes});
    }
    sort_by_bytes(profile_.alive_at_peak);
    return std::move(profile_);
  }

 private:
  enum class Which { kAll, kAllButLast, kLast };  // runs; the part after the loop belongs to the last
  struct End {
    ValueId id;
    Which runs = Which::kAll;
  };

  void add(ValueId id, int sign) {
    alive_[id] += sign;
    memory_.add(id, sign);
  }

  /// Walks through the step; stops at turn `until`, if given, with the values live at that turn in `alive_`.
  void walk(std::optional<std::size_t> until) {
    memory_.clear();
    alive_ = IdVector<ValueId, std::int64_t>(program_.values.size(), 0);
    std::size_t turn = 0;
    for (const ValueId id : at_start_) add(id, 1);
    const auto step = [&](std::size_t i, bool is_last_run) {
      for (const ValueId id : begins_[i]) add(id, 1);
      if (!until && memory_.note(profile_, i, turn)) peak_turn_ = turn;
      if (until == turn) return false;
      for (const End& end : ends_[i]) {
        if (end.runs == Which::kAll || (end.runs == Which::kLast) == is_last_run) add(end.id, -1);
      }
      ++turn;
      return true;
    };
    for (LoopWalk loop(program_); !loop.is_done(); loop.next()) {
      if (!step(loop.instruction(), loop.run() + 1 == program_.micro_batches)) return;
    }
    for (std::size_t i = loop_; i < program_.instructions.size(); ++i) {
      if (!step(i, true)) return;
    }
  }

  const ParallelProgram& program_;
  const std::size_t loop_;
  std::vector<ValueId> at_start_;
  std::vector<std::vector<ValueId>> begins_;  // by instruction
  std::vector<std::vector<End>> ends_;        // after it
  WorkerMemory memory_;
  IdVector<ValueId, std::int64_t> alive_;  // number of runs whose value is live
  MemoryProfile profile_;
  std::size_t peak_turn_ = 0;
};

MemoryProfile profile_of(const ParallelProgram& program, const OverlappedTimeline* times) {
  const InstructionTable table(program);
  MemoryLives lives = memory_lives(TableOrder(table), times);
  const std::size_t count = program.instructions.size();
  if (!program.loop_order.turns.empty()) return ProfileOfTurns(program, lives.owner, lives.first, lives.last).run();
  WorkerMemory memory(program);
  MemoryProfile profile = memory.empty_profile();
  const auto walk = [&](MemoryLives of_run, std::size_t end) {
    auto& [owner, first, last, held, never_made] = of_run;
    for (const ValueId id : program.values.ids()) {
      if (first[id] == kNeverMade) last[id] = kNeverMade;
    }
    const ValuesByInstruction begins(first, count), ends(last, count);
    bool has_peak = false;
    memory.clear();
    for (std::size_t i = 0; i < end; ++i) {
      for (const ValueId id : begins.at(i)) memory.add(id, 1);
      has_peak = memory.note(profile, i, i) || has_peak;
      for (const ValueId id : ends.at(i)) memory.add(id, -1);
    }
    if (!has_peak) return;
    profile.alive_at_peak.clear();
    for (const ValueId id : program.values.ids()) {
      if (first[id] != kNeverMade && first[id] <= profile.peak_instruction && profile.peak_instruction <= last[id] &&
          memory.is_at_peak(id)) {
        profile.alive_at_peak.push_back({id, program.values[id].bytes});
      }
    }
  };
  if (!lives.held.empty() || !lives.never_made.empty()) {
    MemoryLives earlier = lives;
    earlier.make_of_earlier_runs(table.loop());
    walk(std::move(earlier), table.loop());
  }
  const Bytes before_last_run = profile.peak;
  walk(std::move(lives), count);
  profile.is_peak_of_last_run = before_last_run > 0 && profile.peak > before_last_run;
  sort_by_bytes(profile.alive_at_peak);
  return profile;
}

}  // namespace

MemoryProfile memory_profile(const ParallelProgram& program) { return profile_of(program, nullptr); }

MemoryProfile memory_profile(const ParallelProgram& program, const OverlappedTimeline& times) {
  return profile_of(program, &times);
}

Bytes memory_peak(const TableOrder& order, const OverlappedTimeline* times) {
  SHARDPLAN_CHECK(order.table->program().workers == 1);
  MemoryLives lives = memory_lives(order, times);
  const auto peak_of = [&](std::size_t end) {
    std::vector<Bytes> changes(order.size() + 1, 0);  // by position
    const auto add = [&](ValueId id, Bytes bytes) {
      if (lives.first[id] == kNeverMade) return;
      changes[lives.first[id]] += bytes;
      changes[lives.last[id] + 1] -= bytes;
    };
    for (std::size_t v = 0; v < order.table->num_values(); ++v) add(ValueId(v), order.table->bytes(ValueId(v)));
    if (order.num_buffers > 0) {
      for (const TableOrder::TriedBucket& bucket : order.buckets) add(bucket.buffer, bucket.bytes);
    }
    Bytes in_use = 0, peak = 0;
    for (std::size_t place = 0; place < end; ++place) peak = std::max(peak, in_use += changes[place]);
    return peak;
  };
  const Bytes of_last_run = peak_of(order.size());
  if (lives.held.empty() && lives.never_made.empty()) return of_last_run;
  lives.make_of_earlier_runs(order.table->loop());
  return std::max(of_last_run, peak_of(order.table->loop()));
}

}  // namespace shardplan
