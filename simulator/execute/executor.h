#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "program/loop_order.h"
#include "program/parallel_program.h"
#include "simulator/execute/collectives.h"
#include "simulator/execute/data.h"
#include "simulator/execute/fault.h"
#include "simulator/execute/reference.h"
#include "simulator/execute/send_channel.h"

namespace shardplan {

/// One value on all devices: one float64 buffer per device, whatever the dtype, which other devices read only through a
/// collective (equal copies may share memory: device_buffer.h).
struct PlacedValue {
  DeviceBuffers data;
  /// Only for a value with a halo (after a halo exchange): each device's extents, and how many of the positions precede
  /// its own shard, by dimension.
  std::vector<Shape> shapes;
  std::vector<Shape> before;
};

struct ExecutionOptions {
  Precision precision = Precision::kFloat64;
  std::uint64_t seed = 0;
  int threads = 1;  // simulate devices in parallel; results do not depend on it
  std::stop_token stop = {};
  /// With a channel, only the instructions and values of this worker are run, and its sends go through the channel.
  int worker = 0;
  SendChannel* channel = nullptr;
};

/// N simulated devices that run one program together: an instruction runs on all of them before the next one starts, so
/// that a thousand devices need no thousand threads. A value is freed after its last reader has run.
///
/// Copying an executor is cheap (values are shared and never changed once written): the copy continues separately, for
/// instance with an injected fault.
///
/// Requires: the program passes `check_program`, every operator has a kernel; program and graph outlive the executor.
class Executor {
 public:
  Executor(const ParallelProgram& program, const OperatorGraph& graph, const ExecutionOptions& options);

  /// Begins `step` with the given inputs, parameters and states from `stored`. Of values that the program broadcasts
  /// before its first step, only the first device of each group gets those. `stored` is called again for the inputs of
  /// each further micro-batch and must live until the step is done.
  void start(std::uint64_t step, const StoredValues& stored, const Fault* fault = nullptr);
  /// Begins the next step: updated values replace the stored ones; only inputs are given again.
  void start_next(std::uint64_t step, const StoredValues& inputs);

  bool is_done() const { return next_ == program_->instructions.size(); }
  std::size_t next_instruction() const { return next_; }
  /// The micro-batch of the next instruction; the last one after the loop. If workers overlap the runs of the loop,
  /// micro-batches alternate.
  std::size_t micro_batch() const { return micro_batch_; }
  /// Runs one instruction, with `fault` if that is for this one. Throws Stopped if asked to stop.
  void run_next(const Fault* fault = nullptr);

  /// Requires a live value: given, just made, still to be read, an output or an update. A value with one instance per
  /// micro-batch is that of the instruction that ran last; at the end, that of the last micro-batch.
  const PlacedValue& value(ValueId id) const { return *at(id, is_done() ? last_run() : run_); }

 private:
  using Values = IdVector<ValueId, std::shared_ptr<const PlacedValue>>;

  std::shared_ptr<const PlacedValue> place(ValueId id, TensorValues tensor) const;
  /// Finds the values with one instance per run of the loop, if runs overlap.
  void find_values_of_runs();
  std::size_t last_run() const { return static_cast<std::size_t>(program_->micro_batches) - 1; }
  const std::shared_ptr<const PlacedValue>& at(ValueId id, std::size_t run) const {
    return is_of_run_.empty() || is_of_run_[id] == 0 ? values_[id] : of_runs_[run % of_runs_.size()][id];
  }
  std::shared_ptr<const PlacedValue>& at(ValueId id, std::size_t run) {
    return is_of_run_.empty() || is_of_run_[id] == 0 ? values_[id] : of_runs_[run % of_runs_.size()][id];
  }
  const std::shared_ptr<const PlacedValue>& at(ValueId id) const { return at(id, run_); }
  std::shared_ptr<const PlacedValue>& at(ValueId id) { return at(id, run_); }
  /// Places a worker's inputs before its first instruction of a run that overlaps others.
  void begin_run(int worker, std::size_t run);
  /// False for values of another worker, which runs in its own process.
  bool is_here(ValueId id) const;
  /// All but the first device of each group draw their own numbers and then receive those of the first.
  void broadcast(std::size_t number, const Fault* fault);
  /// The micro-batch's number, counted through all steps.
  std::uint64_t draw() const { return draw_of(run_); }
  std::uint64_t draw_of(std::size_t run) const {
    return step_ * static_cast<std::uint64_t>(program_->micro_batches) + run;
  }
  /// Advances to the next instruction, or to the first one of the next micro-batch.
  void step_on();
  void begin_walk();
  void start_next_micro_batch();
  PlacedValue make_constant(const Instruction& instruction) const;
  /// The arguments of one device's kernel.
  struct DeviceCall {
    struct Operand {
      const DeviceBuffer* buffer = nullptr;
      Shape buffer_shape;
      Shape shape;  // without the buffer's padding
      Shape begin;  // `OperandView::begin`
    };
    std::int64_t believed = 0;  // the position for which the device computes
    std::vector<Box> boxes;
    std::vector<Operand> operands;
    std::vector<Shape> results;  // of the results the kernel writes
    std::vector<Shape> held;     // of the results without padding

    /// All arguments on which the results depend, except those that are the same for all devices.
    AlikeDevices::Key key() const;
  };
  DeviceCall call_of(const Instruction& instruction, std::size_t device, const Fault* fault) const;
  std::vector<PlacedValue> run_operator(const Instruction& instruction, const Fault* fault) const;
  PlacedValue run_collective(const Instruction& instruction, const Fault* fault);
  /// Runs all members of the bucket whose first member is the next instruction.
  void run_bucket();
  PlacedValue exchange_halo(const Instruction& instruction, const Fault* fault) const;
  PlacedValue send(const Instruction& instruction, const Fault* fault) const;
  PlacedValue receive(const Instruction& instruction) const;

  const ParallelProgram* program_;
  const OperatorGraph* graph_;
  ExecutionOptions options_;
  std::shared_ptr<const std::vector<std::vector<ValueId>>> freed_after_;  // by instruction
  std::size_t num_in_micro_batch_ = 0;
  Values values_;
  IdVector<ValueId, char> is_of_run_;            // whether a value has one instance per run; empty unless runs overlap
  std::vector<Values> of_runs_;                  // by run modulo the size
  std::map<ValueId, ValueId> given_to_next_;     // from values a run stores to those given to the next run
  std::vector<std::vector<std::size_t>> begun_;  // by worker and place in `of_runs_`: the run whose inputs it has
  std::shared_ptr<const std::vector<DeviceBuffers>> bucket_;  // results of the current bucket's members, in order
  std::size_t bucket_begin_ = 0;
  std::optional<LoopWalk> walk_;
  std::optional<std::size_t> last_;  // the instruction that ran last
  std::size_t run_ = 0;              // the micro-batch in which it ran
  std::size_t next_ = 0;
  std::size_t micro_batch_ = 0;  // of the next instruction
  std::uint64_t step_ = 0;
  StoredValues inputs_;
};

}  // namespace shardplan
