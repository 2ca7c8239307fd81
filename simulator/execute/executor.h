#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "program/parallel_program.h"
#include "simulator/execute/collectives.h"
#include "simulator/execute/data.h"
#include "simulator/execute/fault.h"
#include "simulator/execute/reference.h"
#include "simulator/execute/send_channel.h"

namespace shardplan {

/// What all devices hold of one value: a buffer of float64 each, whatever the dtype, which no other device reads but
/// through a collective.
struct PlacedValue {
  DeviceBuffers data;
  /// Only of a value with a halo (after a halo exchange): each device's extents, and how many positions of them stand
  /// before its own shard, by dimension.
  std::vector<Shape> shapes;
  std::vector<Shape> before;
};

struct ExecutionOptions {
  Precision precision = Precision::kFloat64;
  std::uint64_t seed = 0;
  int threads = 1;  // devices side by side; the numbers do not depend on it
  std::stop_token stop = {};
  /// With a channel: the instructions and values of this worker alone, and its sends go through the channel.
  int worker = 0;
  SendChannel* channel = nullptr;
};

/// N simulated devices, stepped through a program's one sequence together: an instruction runs on all of them before
/// the next one starts, so that a thousand devices need no thousand threads. A value is freed when its last reader has
/// run.
///
/// Copying an executor is cheap (values are shared, and never changed once written): the copy continues on its own, as
/// one does that is made wrong on purpose.
///
/// Requires: the program passes `check_program`, every operator has a kernel; program and graph outlive the executor.
class Executor {
 public:
  Executor(const ParallelProgram& program, const OperatorGraph& graph, const ExecutionOptions& options);

  /// Begins `step` with all that is given: inputs, parameters and states, from `stored`, which of what the program
  /// broadcasts before its first step only the first device of each group has; `stored` is called again for the
  /// inputs of each further micro-batch and must live until the step is done.
  void start(std::uint64_t step, const StoredValues& stored, const Fault* fault = nullptr);
  /// Begins the next step: what was updated takes the place of what was stored, only inputs are given again.
  void start_next(std::uint64_t step, const StoredValues& inputs);

  bool is_done() const { return next_ == program_->instructions.size(); }
  std::size_t next_instruction() const { return next_; }
  /// The micro-batch in which the next instruction runs; the last one after the loop.
  std::size_t micro_batch() const { return micro_batch_; }
  /// Runs one instruction; `fault`, if it is for this one, makes it wrong. Throws Stopped if asked to stop.
  void run_next(const Fault* fault = nullptr);

  /// Requires a value that is alive: given, just made, still to be read, an output or an update.
  const PlacedValue& value(ValueId id) const { return *values_[id]; }

 private:
  std::shared_ptr<const PlacedValue> place(ValueId id, TensorValues tensor) const;
  /// False for what another worker holds, which runs in a process of its own.
  bool is_here(ValueId id) const;
  /// All but the first device of each group draw numbers of their own, and are then sent those of the first.
  void broadcast(std::size_t number, const Fault* fault);
  /// The micro-batch's number, counted on through all steps.
  std::uint64_t draw() const { return step_ * static_cast<std::uint64_t>(program_->micro_batches) + micro_batch_; }
  /// To the next instruction, or to the first one of the next micro-batch.
  void step_on();
  void start_next_micro_batch();
  PlacedValue make_constant(const Instruction& instruction) const;
  std::vector<PlacedValue> run_operator(const Instruction& instruction, const Fault* fault) const;
  PlacedValue run_collective(const Instruction& instruction, const Fault* fault);
  /// Runs all members of the bucket whose first member is next.
  void run_bucket();
  PlacedValue exchange_halo(const Instruction& instruction, const Fault* fault) const;
  PlacedValue send(const Instruction& instruction, const Fault* fault) const;
  PlacedValue receive(const Instruction& instruction) const;

  const ParallelProgram* program_;
  const OperatorGraph* graph_;
  ExecutionOptions options_;
  std::shared_ptr<const std::vector<std::vector<ValueId>>> freed_before_;  // by instruction
  std::size_t num_in_micro_batch_ = 0;
  IdVector<ValueId, std::shared_ptr<const PlacedValue>> values_;
  std::shared_ptr<const std::vector<DeviceBuffers>> bucket_;  // what the members of the present bucket give, in order
  std::size_t bucket_begin_ = 0;
  std::size_t next_ = 0;
  std::uint64_t step_ = 0;
  std::size_t micro_batch_ = 0;
  StoredValues inputs_;
};

}  // namespace shardplan
