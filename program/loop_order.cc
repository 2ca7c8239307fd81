#include "program/loop_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "program/instruction_facts.h"

// A discrete-event simulation. A priority queue holds what each worker could begin next: earliest start first, then
// sends, then the oldest iteration. What is taken from it advances the clocks of its workers and enables further
// instructions. Only the order is kept: the timeline computes the times again.

namespace shardplan {
namespace {

constexpr std::size_t kNothing = static_cast<std::size_t>(-1);

/// By instruction of the loop: the one of the previous iteration that must be done before, on the same worker;
/// kNothing: none.
std::vector<std::size_t> needed_of_run_before(const ParallelProgram& program) {
  const std::size_t loop = program.num_in_micro_batch();
  std::map<ValueId, std::size_t> maker;
  for (std::size_t i = 0; i < loop; ++i) {
    for (const ValueId output : program.instructions[i].outputs) maker.emplace(output, i);
  }
  std::map<TensorId, std::size_t> update;  // the instruction that updates a stored tensor in each iteration
  for (const Binding& binding : program.updates) {
    const auto made = maker.find(binding.value);
    if (made != maker.end()) update.emplace(binding.tensor, made->second);
  }
  std::map<ValueId, std::size_t> updated;
  for (const Binding& given : program.given) {
    const auto found = update.find(given.tensor);
    if (found != update.end() && !given.is_input) updated.emplace(given.value, found->second);
  }
  std::vector<std::size_t> needed(loop, kNothing);
  const auto need = [&](std::size_t i, std::size_t before) {
    needed[i] = needed[i] == kNothing ? before : std::max(needed[i], before);
  };
  for (std::size_t i = 0; i < loop; ++i) {
    const Instruction& instruction = program.instructions[i];
    if (is_accumulating(instruction)) need(i, i);
    for (const ValueId input : instruction.inputs) {
      const auto found = updated.find(input);
      if (found != updated.end()) need(i, found->second);
    }
  }
  return needed;
}

/// Simulates the workers and records what they do, in the order of the starts.
class Overlapping {
 public:
  Overlapping(const ParallelProgram& program, std::span<const int> in_flight)
      : program_(program),
        loop_(program.num_in_micro_batch()),
        runs_(program.micro_batches),
        needed_(needed_of_run_before(program)),
        workers_(static_cast<std::size_t>(program.workers)),
        offered_(loop_ * static_cast<std::size_t>(program.micro_batches), 0) {
    for (std::size_t i = 0; i < loop_; ++i) {
      worker(i).list.push_back(i);
      if (is_send(i)) receiver(i).list.push_back(i);
    }
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      workers_[w].next.resize(static_cast<std::size_t>(runs_), 0);
      workers_[w].in_flight = in_flight[w];
      most_in_flight_ = std::max(most_in_flight_, in_flight[w]);
    }
  }

  LoopOrder order() {
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      finish_empty(workers_[w]);
      for (std::int64_t run = 0; run < admitted(workers_[w]); ++run) offer(w, run);
    }
    LoopOrder order;
    order.in_flight = most_in_flight_;
    while (!queue_.empty()) {
      const auto [start, is_own, run, i] = queue_.top();
      queue_.pop();
      const Picoseconds now = start_of(i);
      if (now > start) {
        queue_.push({now, is_own, run, i});  // a worker became busy after the offer
        continue;
      }
      order.turns.push_back({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(run)});
      const Picoseconds end = start + program_.instructions[i].time;
      worker(i).free_at = receiver(i).free_at = end;
      advance(index_of(worker(i)), run);
      if (is_send(i)) advance(index_of(receiver(i)), run);
    }
    SHARDPLAN_CHECK(order.turns.size() == loop_ * static_cast<std::size_t>(runs_));
    return order;
  }

 private:
  struct Worker {
    std::vector<std::size_t> list;  // its part of the loop
    std::vector<std::size_t> next;  // by iteration: position in `list`
    std::int64_t finished = 0;      // number of finished iterations, all earlier ones included
    int in_flight = 1;
    Picoseconds free_at = 0;
  };

  bool is_send(std::size_t i) const { return program_.instructions[i].kind == InstructionKind::kSend; }
  Worker& worker(std::size_t i) {
    return workers_[static_cast<std::size_t>(worker_of(program_, program_.instructions[i]))];
  }
  Worker& receiver(std::size_t i) {
    return workers_[static_cast<std::size_t>(result_worker(program_, program_.instructions[i]))];
  }
  std::size_t index_of(const Worker& worker) const { return static_cast<std::size_t>(&worker - workers_.data()); }
  Picoseconds start_of(std::size_t i) { return std::max(worker(i).free_at, receiver(i).free_at); }

  void finish_empty(Worker& worker) const {
    if (worker.list.empty()) worker.finished = runs_;
  }
  std::int64_t admitted(const Worker& worker) const { return std::min(runs_, worker.finished + worker.in_flight); }

  /// The instruction that a worker has reached in an iteration it may work on; nothing if there is none.
  std::optional<std::size_t> at(const Worker& worker, std::int64_t run) const {
    if (run >= admitted(worker)) return std::nullopt;
    const std::size_t position = worker.next[static_cast<std::size_t>(run)];
    if (position == worker.list.size()) return std::nullopt;
    return worker.list[position];
  }

  /// True if the worker has passed this instruction of its list in that iteration.
  static bool has_passed(const Worker& worker, std::size_t i, std::int64_t run) {
    const std::size_t position = worker.next[static_cast<std::size_t>(run)];
    return position == worker.list.size() || worker.list[position] > i;
  }

  /// Queues what a worker has reached in an iteration if it can be done; called when the last of its conditions is
  /// met.
  void offer(std::size_t w, std::int64_t run) {
    if (run >= runs_) return;
    const std::optional<std::size_t> i = at(workers_[w], run);
    if (!i) return;
    if (is_send(*i) && (at(worker(*i), run) != i || at(receiver(*i), run) != i)) return;
    const Worker& on = worker(*i);
    if (run > 0 && needed_[*i] != kNothing && !has_passed(on, needed_[*i], run - 1)) return;
    char& was_offered = offered_[static_cast<std::size_t>(run) * loop_ + *i];
    if (was_offered != 0) return;
    was_offered = 1;
    queue_.push({start_of(*i), !is_send(*i), run, *i});
  }

  void advance(std::size_t w, std::int64_t run) {
    Worker& worker = workers_[w];
    const std::int64_t before = admitted(worker);
    ++worker.next[static_cast<std::size_t>(run)];
    while (worker.finished < runs_ && worker.next[static_cast<std::size_t>(worker.finished)] == worker.list.size()) {
      ++worker.finished;
    }
    offer(w, run);
    offer(w, run + 1);  // it may have waited for this one
    for (std::int64_t begun = before; begun < admitted(worker); ++begun) offer(w, begun);
  }

  const ParallelProgram& program_;
  const std::size_t loop_;
  const std::int64_t runs_;
  int most_in_flight_ = 1;
  const std::vector<std::size_t> needed_;
  std::vector<Worker> workers_;
  std::vector<char> offered_;                                                  // by run and instruction
  using Candidate = std::tuple<Picoseconds, bool, std::int64_t, std::size_t>;  // start, no send, run, instruction
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue_;
};

}  // namespace

LoopWalk::LoopWalk(const ParallelProgram& program)
    : turns_(&program.loop_order.turns), loop_(program.num_in_micro_batch()), runs_(program.micro_batches) {
  if (loop_ == 0) runs_ = 0;
}

bool LoopWalk::is_done() const { return turns_->empty() ? run_ >= runs_ : turn_ == turns_->size(); }

std::size_t LoopWalk::instruction() const { return turns_->empty() ? instruction_ : (*turns_)[turn_].instruction; }

std::int64_t LoopWalk::run() const { return turns_->empty() ? run_ : (*turns_)[turn_].run; }

void LoopWalk::next() {
  if (!turns_->empty()) {
    ++turn_;
    return;
  }
  if (++instruction_ < loop_) return;
  instruction_ = 0;
  ++run_;
}

LoopOrder overlapped_runs(const ParallelProgram& program, std::span<const int> in_flight) {
  const std::size_t loop = program.num_in_micro_batch();
  SHARDPLAN_CHECK(program.workers > 1 && loop > 0 && in_flight.size() == static_cast<std::size_t>(program.workers));
  const auto [least, most] = std::minmax_element(in_flight.begin(), in_flight.end());
  SHARDPLAN_CHECK(*least >= 1);
  if (*most == 1 || program.micro_batches > kMostTurns / static_cast<std::int64_t>(loop)) return {};
  return Overlapping(program, in_flight).order();
}

std::vector<std::vector<int>> runs_in_flight_to_try(const ParallelProgram& program) {
  const auto workers = static_cast<std::size_t>(program.workers);
  const auto most = static_cast<int>(std::min<std::int64_t>(2 * program.workers, program.micro_batches));
  std::vector<int> by_stage(workers, 0);
  int begun = 0;
  for (std::size_t i = 0; i < program.num_in_micro_batch(); ++i) {
    const Instruction& instruction = program.instructions[i];
    if (instruction.time == 0) continue;
    int& own = by_stage[static_cast<std::size_t>(result_worker(program, instruction))];
    if (own == 0) own = std::max(1, program.workers - begun++);
  }
  for (int& own : by_stage) own = std::clamp(own, 1, most);
  std::vector<std::vector<int>> tries{by_stage};
  std::set<int> sizes{std::min(program.workers, most), most};
  for (int size = 2; size <= most; size = size < 4 ? size + 1 : size + size / 2) sizes.insert(size);
  for (const int size : sizes) tries.emplace_back(workers, size);
  return tries;
}

std::string check_loop_order(const ParallelProgram& program) {
  if (program.loop_order.turns.empty()) return {};
  const std::size_t loop = program.num_in_micro_batch();
  const auto runs = static_cast<std::size_t>(program.micro_batches);
  const std::vector<std::size_t> needed = needed_of_run_before(program);
  std::vector<std::vector<char>> is_done(runs, std::vector<char>(loop, 0));
  std::map<std::pair<int, std::size_t>, std::size_t> last;  // (worker, run): instruction
  std::map<std::pair<int, std::size_t>, std::size_t> left;  // (worker, run): number of instructions left
  std::vector<std::size_t> parts(static_cast<std::size_t>(program.workers), 0);
  std::vector<int> in_flight(static_cast<std::size_t>(program.workers), 0);
  const auto workers_at = [&](std::size_t i) {
    const Instruction& instruction = program.instructions[i];
    std::vector<int> both{worker_of(program, instruction)};
    if (result_worker(program, instruction) != both[0]) both.push_back(result_worker(program, instruction));
    return both;
  };
  for (std::size_t i = 0; i < loop; ++i) {
    for (const int worker : workers_at(i)) ++parts[static_cast<std::size_t>(worker)];
  }
  std::size_t turns = 0;
  for (LoopWalk walk(program); !walk.is_done(); walk.next(), ++turns) {
    const std::size_t i = walk.instruction();
    const auto run = static_cast<std::size_t>(walk.run());
    if (i >= loop) return fmt::format("turn {} is of no instruction of the loop", turns);
    const std::string& name = program.instructions[i].name;
    if (is_done[run][i] != 0) return fmt::format("{}: run {} twice", name, run);
    is_done[run][i] = 1;
    if (run > 0 && needed[i] != kNothing && is_done[run - 1][needed[i]] == 0) {
      return fmt::format("{}: run {} comes before what it needs of the run before", name, run);
    }
    for (const int worker : workers_at(i)) {
      const auto w = static_cast<std::size_t>(worker);
      const auto [known, is_new] = last.try_emplace({worker, run}, i);
      if (!is_new && known->second >= i) return fmt::format("{}: run {} out of order", name, run);
      known->second = i;
      if (is_new && ++in_flight[w] > program.loop_order.in_flight) {
        return fmt::format("{}: worker {} has {} runs in flight", name, worker, in_flight[w]);
      }
      std::size_t& rest = left.try_emplace({worker, run}, parts[w]).first->second;
      if (--rest == 0) --in_flight[w];
    }
  }
  if (turns != loop * runs) return fmt::format("{} turns of {} runs of {} instructions", turns, runs, loop);
  return {};
}

}  // namespace shardplan
