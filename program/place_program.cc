// From one sequence to one sequence with workers.
//
// Two steps: `Cutting` gives every value a worker and puts a send before the first reader on another worker;
// `Ordering` then chooses the order. MindSpore's splitter instead cuts the graph into segments in topological order,
// ties sends to later receives by control edges, and lets each process run what is ready; its freedom from deadlock
// rests on these edges. Here it rests on the single sequence: each worker runs its projection, and both ends of a
// send are at one position, so the first send of the sequence that has not happened can always happen.
//
// The order matters: a worker that receives waits. `Ordering` simulates the workers and takes, of what each could
// start next, the earliest (ties: by the given order), which runs independent branches side by side. It does not look
// ahead, so it is not optimal, and may take more memory than the given order.

#include "program/place_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <utility>

#include "base/error.h"
#include "program/instruction_facts.h"

namespace shardplan {
namespace {

/// Where a parameter, or the parameter of a state, is stored: where it is first read.
int home_of(const OperatorGraph& graph, TensorId id) {
  const GraphTensor& tensor = graph.tensor(id);
  const TensorId parameter = tensor.kind == TensorKind::kState && tensor.state_of ? *tensor.state_of : id;
  const std::vector<Reader>& readers = graph.tensor(parameter).readers;
  return readers.empty() ? 0 : graph.operators()[readers.front().op].worker;
}

class Cutting {
 public:
  Cutting(const ParallelProgram& program, const OperatorGraph& graph, int workers, const SendTime& send_time)
      : old_(program), graph_(graph), send_time_(send_time) {
    new_ = program;
    new_.workers = workers;
    new_.instructions.clear();
  }

  ParallelProgram run() {
    for (std::size_t i = 0; i < old_.given.size(); ++i) {
      const Binding& given = old_.given[i];
      if (given.is_input) {
        input_of_.emplace(given.value, given.tensor);
      } else {
        new_.values[given.value].worker = home_of(graph_, given.tensor);
      }
    }
    for (const Instruction& instruction : old_.instructions) add(instruction);
    return std::move(new_);
  }

 private:
  void add(Instruction instruction) {
    // An instruction without an operator runs where its input is, so that nothing needs to be sent.
    const int worker = instruction.op               ? graph_.operators()[*instruction.op].worker
                       : instruction.inputs.empty() ? 0
                                                    : new_.values[instruction.inputs[0]].worker;
    SHARDPLAN_CHECK(worker >= 0 && worker < new_.workers);
    for (ValueId& input : instruction.inputs) input = at(input, worker, instruction);
    for (const ValueId output : instruction.outputs) new_.values[output].worker = worker;
    new_.instructions.push_back(std::move(instruction));
  }

  /// The value on this worker.
  ValueId at(ValueId id, int worker, const Instruction& reader) {
    const auto input = input_of_.find(id);
    const bool is_first_of_input = input != input_of_.end() && loaded_.insert(id).second;
    if (is_first_of_input) new_.values[id].worker = worker;
    if (new_.values[id].worker == worker) return id;
    const auto [known, is_new] = elsewhere_.try_emplace({id, worker});
    if (!is_new) return known->second;
    ProgramValue value = new_.values[id];
    value.worker = worker;
    value.in_registers = false;
    const ValueId there = new_.values.push_back(std::move(value));
    known->second = there;
    if (input != input_of_.end()) {
      new_.given.push_back({input->second, there, true});
    } else {
      send(id, there, reader);
    }
    return there;
  }

  void send(ValueId id, ValueId there, const Instruction& reader) {
    const ProgramValue& value = new_.values[id];
    SHARDPLAN_CHECK(!value.in_registers);
    const int from = value.worker;
    const int to = new_.values[there].worker;
    Instruction instruction;
    instruction.kind = InstructionKind::kSend;
    instruction.name = fmt::format("{}.send{}to{}", value.name, from, to);
    for (int more = 1; !names_.insert(instruction.name).second; ++more) {
      instruction.name = fmt::format("{}.send{}to{}_{}", value.name, from, to, more);
    }
    instruction.inputs = {id};
    instruction.outputs = {there};
    instruction.time = send_time_(from, to, value.bytes);
    instruction.runs = reader.runs;
    instruction.pass = reader.pass;
    Origin& origin = instruction.origin.edit();
    origin.producer = value.name;
    if (value.tensor && graph_.tensor(*value.tensor).producer) {
      origin.producer = graph_.operators()[*graph_.tensor(*value.tensor).producer].name;
    }
    if (reader.op) origin.consumer = graph_.operators()[*reader.op].name;
    origin.because = fmt::format("place: worker {} to worker {}", from, to);
    new_.instructions.push_back(std::move(instruction));
  }

  const ParallelProgram& old_;
  const OperatorGraph& graph_;
  const SendTime& send_time_;
  ParallelProgram new_;
  std::map<ValueId, TensorId> input_of_;                  // inputs: new in each step
  std::set<ValueId> loaded_;                              // inputs that some worker reads already
  std::map<std::pair<ValueId, int>, ValueId> elsewhere_;  // (value, worker): that worker's copy of it
  std::set<std::string> names_;                           // of sends
};

/// Orders the instructions [begin, end) of a program by when they can start.
class Ordering {
 public:
  Ordering(const ParallelProgram& program, std::size_t begin, std::size_t end)
      : program_(program), begin_(begin), count_(end - begin), workers_(static_cast<std::size_t>(program.workers)) {
    std::map<ValueId, std::size_t> maker;
    waits_for_.resize(count_, 0);
    readers_.resize(count_);
    ready_.resize(count_, 0);
    for (std::size_t i = 0; i < count_; ++i) {
      const Instruction& instruction = at(i);
      for (const ValueId input : instruction.inputs) {
        const auto made = maker.find(input);
        if (made == maker.end()) continue;
        readers_[made->second].push_back(i);
        ++waits_for_[i];
      }
      for (const ValueId output : instruction.outputs) maker.emplace(output, i);
    }
  }

  std::vector<std::size_t> run() {
    for (std::size_t i = 0; i < count_; ++i) {
      if (waits_for_[i] == 0) enqueue(i);
    }
    std::vector<std::size_t> order;
    while (order.size() < count_) order.push_back(begin_ + take_next());
    return order;
  }

 private:
  struct Worker {
    Picoseconds free_at = 0;
    std::set<std::size_t> available;                       // inputs are ready: in the given order
    std::set<std::pair<Picoseconds, std::size_t>> coming;  // by the time when their inputs are ready
  };

  const Instruction& at(std::size_t i) const { return program_.instructions[begin_ + i]; }
  Worker& worker(std::size_t i) { return workers_[static_cast<std::size_t>(worker_of(program_, at(i)))]; }
  Worker& other(std::size_t i) { return workers_[static_cast<std::size_t>(result_worker(program_, at(i)))]; }

  void enqueue(std::size_t i) {
    Worker& on = worker(i);
    if (ready_[i] <= on.free_at) {
      on.available.insert(i);
    } else {
      on.coming.insert({ready_[i], i});
    }
  }

  /// The next instruction of a worker, and when it would start.
  std::optional<std::pair<Picoseconds, std::size_t>> candidate(Worker& on) {
    if (on.available.empty() && on.coming.empty()) return std::nullopt;
    const std::size_t i = on.available.empty() ? on.coming.begin()->second : *on.available.begin();
    return std::pair(std::max({ready_[i], on.free_at, other(i).free_at}), i);
  }

  std::size_t take_next() {
    std::optional<std::pair<Picoseconds, std::size_t>> best;
    for (Worker& on : workers_) {
      const auto next = candidate(on);
      if (next && (!best || *next < *best)) best = next;
    }
    SHARDPLAN_CHECK(best.has_value());
    const auto [start, i] = *best;
    Worker& on = worker(i);
    on.available.erase(i);
    on.coming.erase({ready_[i], i});
    const Picoseconds end = start + at(i).time;
    for (Worker* busy : {&on, &other(i)}) {
      busy->free_at = end;
      while (!busy->coming.empty() && busy->coming.begin()->first <= end) {
        busy->available.insert(busy->coming.begin()->second);
        busy->coming.erase(busy->coming.begin());
      }
    }
    for (const std::size_t reader : readers_[i]) {
      ready_[reader] = std::max(ready_[reader], end);
      if (--waits_for_[reader] == 0) enqueue(reader);
    }
    return i;
  }

  const ParallelProgram& program_;
  const std::size_t begin_;
  const std::size_t count_;
  std::vector<Worker> workers_;
  std::vector<std::size_t> waits_for_;             // producers of inputs that have not run
  std::vector<std::vector<std::size_t>> readers_;  // once per input that they read
  std::vector<Picoseconds> ready_;                 // when all inputs are ready
};

}  // namespace

ParallelProgram place_program(const ParallelProgram& program, const OperatorGraph& graph, int workers,
                              const SendTime& send_time) {
  ParallelProgram placed = Cutting(program, graph, workers, send_time).run();
  const std::size_t loop = placed.num_in_micro_batch();
  std::vector<Instruction> ordered;
  for (const auto& [begin, end] : {std::pair(std::size_t{0}, loop), std::pair(loop, placed.instructions.size())}) {
    for (const std::size_t i : Ordering(placed, begin, end).run()) {
      ordered.push_back(std::move(placed.instructions[i]));
    }
  }
  placed.instructions = std::move(ordered);
  return placed;
}

}  // namespace shardplan
