// The loop of micro-batches is simulated until two runs in a row leave the links equally far behind the kernels: from then
// on every run takes what the last one took, since a run depends on the one before it through nothing else. That happens
// after two or three runs.
#include "program/overlapped_timeline.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "program/instruction_facts.h"

namespace shardplan {
namespace {

constexpr std::size_t kLevels = 32;
constexpr std::size_t kNobody = std::numeric_limits<std::size_t>::max();
/// Runs of the loop that are simulated at most; those beyond take what the last one took.
constexpr std::int64_t kMostRuns = 256;

class Streams {
 public:
  explicit Streams(const ParallelProgram& program) : program_(program), ready_(program.values.size()), links_(kLevels) {
    result_.spans.resize(program.instructions.size());
    result_.link_busy.resize(kLevels, 0);
    before_.resize(program.instructions.size(), kNobody);
    has_run_.resize(program.instructions.size(), 0);
  }

  OverlappedTimeline run() {
    const std::size_t loop = program_.num_in_micro_batch();
    std::int64_t left = program_.micro_batches;
    std::vector<Picoseconds> lags;
    for (std::int64_t number = 0; loop > 0 && left > 0; ++number) {
      const Picoseconds began = kernels_.end;
      run(0, loop);
      --left;
      std::vector<Picoseconds> now;
      for (const Event& link : links_) now.push_back(std::max<Picoseconds>(0, link.end - kernels_.end));
      if (now == lags || number + 1 == kMostRuns) {
        skip(left * (kernels_.end - began));
        left = 0;
      }
      lags = std::move(now);
    }
    run(loop, program_.instructions.size());
    Event last = kernels_;
    for (const Event& link : links_) last = later(last, link);
    result_.end = last.end;
    for (std::size_t i = last.by; i != kNobody; i = before_[i]) result_.critical.push_back(i);
    std::reverse(result_.critical.begin(), result_.critical.end());
    for (const Instruction& instruction : program_.instructions) {
      if (is_computation(instruction)) result_.computation += instruction.time_of_step();
    }
    while (!result_.link_busy.empty() && result_.link_busy.back() == 0) result_.link_busy.pop_back();
    return std::move(result_);
  }

 private:
  /// When something is over, and what was the last to be.
  struct Event {
    Picoseconds end = 0;
    std::size_t by = kNobody;
  };
  static Event later(const Event& a, const Event& b) { return b.end > a.end ? b : a; }

  void run(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end;) {
      std::size_t next = i + 1;
      const Instruction& instruction = program_.instructions[i];
      if (is_communication(instruction)) {
        while (instruction.fusion > 0 && next < end && program_.instructions[next].fusion == instruction.fusion) ++next;
        communicate(i, next);
      } else {
        const bool has_kernel = instruction.kind == InstructionKind::kOperator && instruction.time > 0;
        Event start = inputs_of(instruction);
        if (has_kernel) start = later(start, kernels_);
        finish(i, start, instruction.time);
        if (has_kernel) kernels_ = {start.end + instruction.time, i};
      }
      i = next;
    }
  }

  Event inputs_of(const Instruction& instruction) const {
    Event start;
    for (const ValueId input : instruction.inputs) start = later(start, ready_[input]);
    return start;
  }

  void finish(std::size_t i, const Event& start, Picoseconds time) {
    OverlappedTimeline::Span& span = result_.spans[i];
    if (!has_run_[i]) {
      span = {start.end, start.end + time};
      before_[i] = start.by;
      has_run_[i] = 1;
    }
    for (const ValueId output : program_.instructions[i].outputs) ready_[output] = {start.end + time, i};
  }

  void communicate(std::size_t begin, std::size_t end) {
    Event start = kernels_;
    std::uint32_t links = 0;
    for (std::size_t i = begin; i < end; ++i) {
      start = later(start, inputs_of(program_.instructions[i]));
      links |= program_.instructions[i].links;
    }
    const std::uint32_t fusion = program_.instructions[begin].fusion;
    SHARDPLAN_CHECK(fusion <= program_.buckets.size());
    const Picoseconds time = fusion > 0 ? program_.buckets[fusion - 1].time : program_.instructions[begin].time;
    for (std::size_t level = 0; level < kLevels; ++level) {
      if ((links >> level & 1) != 0) start = later(start, links_[level]);
    }
    const std::int64_t runs = has_run_[begin] ? 0 : program_.instructions[begin].runs;
    for (std::size_t i = begin; i < end; ++i) finish(i, start, time);
    result_.communication += time * runs;
    for (std::size_t level = 0; level < kLevels; ++level) {
      if ((links >> level & 1) == 0) continue;
      links_[level] = {start.end + time, end - 1};
      result_.link_busy[level] += time * runs;
    }
  }

  /// Time goes on by what runs that are not simulated take.
  void skip(Picoseconds time) {
    kernels_.end += time;
    for (Event& link : links_) link.end += time;
    for (Event& value : ready_) value.end += time;
  }

  const ParallelProgram& program_;
  IdVector<ValueId, Event> ready_;
  Event kernels_;
  std::vector<Event> links_;
  std::vector<std::size_t> before_;
  std::vector<char> has_run_;  // by instruction
  OverlappedTimeline result_;
};

}  // namespace

OverlappedTimeline overlapped_timeline(const ParallelProgram& program) { return Streams(program).run(); }

}  // namespace shardplan
