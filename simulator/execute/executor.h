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

/// What all devices hold of one value: a buffer of float64 each, whatever the dtype, which no other device reads but
/// through a collective (those that hold equal copies may share its memory: device_buffer.h).
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
  /// The micro-batch in which the next instruction runs; the last one after the loop. Where workers overlap the runs of
  /// the loop they alternate.
  std::size_t micro_batch() const { return micro_batch_; }
  /// Runs one instruction; `fault`, if it is for this one, makes it wrong. Throws Stopped if asked to stop.
  void run_next(const Fault* fault = nullptr);

  /// Requires a value that is alive: given, just made, still to be read, an output or an update. Of what each micro-batch
  /// has, that of the instruction that has run last; in the end, of the last micro-batch.
  const PlacedValue& value(ValueId id) const { return *at(id, is_done() ? last_run() : run_); }

 private:
  using Values = IdVector<ValueId, std::shared_ptr<const PlacedValue>>;

  std::shared_ptr<const PlacedValue> place(ValueId id, TensorValues tensor) const;
  /// Finds what has a value for each run of the loop, where runs overlap.
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
  /// Before a worker's first instruction of a run that overlaps others: its inputs.
  void begin_run(int worker, std::size_t run);
  /// False for what another worker holds, which runs in a process of its own.
  bool is_here(ValueId id) const;
  /// All but the first device of each group draw numbers of their own, and are then sent those of the first.
  void broadcast(std::size_t number, const Fault* fault);
  /// The micro-batch's number, counted on through all steps.
  std::uint64_t draw() const { return draw_of(run_); }
  std::uint64_t draw_of(std::size_t run) const {
    return step_ * static_cast<std::uint64_t>(program_->micro_batches) + run;
  }
  /// To the next instruction, or to the first one of the next micro-batch.
  void step_on();
  void begin_walk();
  void start_next_micro_batch();
  PlacedValue make_constant(const Instruction& instruction) const;
  /// What the kernel of one device is called with.
  struct DeviceCall {
    struct Operand {
      const DeviceBuffer* buffer = nullptr;
      Shape buffer_shape;
      Shape shape;  // without what pads the buffer
      Shape begin;  // `OperandView::begin`
    };
    std::int64_t believed = 0;  // where the device takes itself to be
    std::vector<Box> boxes;
    std::vector<Operand> operands;
    std::vector<Shape> results;  // that it is to write
    std::vector<Shape> held;     // what of them is kept: the rest is padding

    /// All that the kernel's results depend on; the same for all devices left out.
    AlikeDevices::Key key() const;
  };
  DeviceCall call_of(const Instruction& instruction, std::size_t device, const Fault* fault) const;
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
  std::shared_ptr<const std::vector<std::vector<ValueId>>> freed_after_;  // by instruction
  std::size_t num_in_micro_batch_ = 0;
  Values values_;
  IdVector<ValueId, char> is_of_run_;            // empty unless the loop's runs overlap
  std::vector<Values> of_runs_;                  // run r's at r modulo their number
  std::map<ValueId, ValueId> given_to_next_;     // what a run stores: what the next one has as given
  std::vector<std::vector<std::size_t>> begun_;  // by worker and place in `of_runs_`: the run whose inputs are there
  std::shared_ptr<const std::vector<DeviceBuffers>> bucket_;  // what the members of the present bucket give, in order
  std::size_t bucket_begin_ = 0;
  std::optional<LoopWalk> walk_;
  std::optional<std::size_t> last_;  // the instruction that has run last
  std::size_t run_ = 0;              // the micro-batch in which it ran
  std::size_t next_ = 0;
  std::size_t micro_batch_ = 0;  // of the next one
  std::uint64_t step_ = 0;
  StoredValues inputs_;
};

}  // namespace shardplan
