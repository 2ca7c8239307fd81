#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/index.h"
#include "base/optional_index.h"
#include "base/shared_text.h"
#include "base/shared_value.h"
#include "base/shared_vector.h"
#include "base/short_vector.h"
#include "base/units.h"
#include "costmodel/cluster/cluster.h"
#include "graph/operator_graph.h"
#include "layouts/collective.h"
#include "strategies/strategy.h"

namespace shardplan {

using ValueId = Index<struct ValueTag>;

/// A tensor in one layout, on all devices of one worker. Written by one instruction (or given from outside), then not
/// changed.
struct ProgramValue {
  SharedText name;                 // the tensor's, or that of the phase or redistribution that makes it
  OptionalIndex<TensorId> tensor;  // the graph's tensor that it holds; nothing for values inside an operator's phases
  TensorType type;                 // global
  TensorLayout layout;             // canonical
  SharedShape local_shape;         // one device's, without halo
  Bytes bytes = 0;                 // one device's
  bool in_registers = false;       // passed on inside a fused kernel: takes no memory
  int worker = 0;  // that holds it; an instruction reads and writes what one worker holds, but for kSend
};

/// Why a collective is there; names the inserted operator in reports.
struct Origin {
  enum class Kind : std::uint8_t {
    kForwardOp,          // completes the producer's own partial result, or runs between its phases, or fetches its halo
    kRedistribution,     // from one layout to another on the way to `consumer`
    kMirror,             // sums the gradient of a parameter
    kParallelOptimizer,  // gathers or scatters around a sharded update
  };
  Kind kind = Kind::kRedistribution;
  SharedText producer;  // operator, or tensor for inputs and parameters
  SharedText consumer;  // operator; empty for a delivery to several, an output or a stored value
  std::size_t operand = 0;
  SharedText because;  // "sum over k", "halo of x", ...
};

/// What one instruction does.
enum class InstructionKind : std::uint8_t {
  kConstant,    // makes a constant's piece on each device: no inputs
  kOperator,    // runs a kernel on each device's box
  kCollective,  // one step of a redistribution, or an all_reduce between phases
  kHalo,        // neighbours exchange the halo of a windowed dimension; the output holds the halo as well
  kSend,        // each device of one worker sends its piece to the device of another that has the same place there
};

struct Instruction {
  InstructionKind kind = InstructionKind::kOperator;
  Pass pass = Pass::kForward;
  bool is_phase = false;
  bool is_copy = false;    // kOperator: computes a forward operator again (GraphOperator::is_copy)
  bool in_pieces = false;  // kCollective: beside the product that it is for (program/collective_matmul.h)
  SharedText name;         // full name of the operator, or of the inserted step: unique
  ShortVector<ValueId> inputs;
  ShortVector<ValueId> outputs;
  Picoseconds time = 0;                        // per run of the instruction
  std::int64_t runs = 1;                       // in a step: once, or with every micro-batch
  OptionalIndex<OperatorId> op;                // the graph's operator, for kOperator and for what belongs to one
  std::uint32_t fusion = 0;                    // above 0: a member of that bucket of `ParallelProgram::buckets`
  std::uint32_t links = 0;                     // the cluster's levels of links that it uses: bit l for level l
  std::shared_ptr<const Operation> operation;  // kOperator (a phase has one of its own), kHalo: whose operand it is
  SharedValue<Strategy> strategy;              // kOperator, kHalo
  SharedValue<CollectiveStep> step;            // kCollective
  SharedVector<Halo> halo;                     // kHalo: the dimensions of one operand
  SharedValue<Origin> origin;                  // kCollective, kHalo, kSend

  Picoseconds time_of_step() const { return time * runs; }
};

/// A graph's tensor and the value that holds it.
struct Binding {
  TensorId tensor;
  ValueId value;
  bool is_input = false;  // a new value each step, dropped after its last reader
};

/// Collectives that run as one over one flat buffer: those with one fusion id, which stand beside each other behind the
/// last of their producers. Members are of one kind, group, dtype and reduction, and none reads what another makes. Each
/// keeps its own values, layouts and time (what it would take alone); the bucket is issued once and takes `time`.
///
/// A device's buffer is put together and taken apart by the kernel that packs it: all_reduce leaves its results in the
/// buffer, of which they are then views; what all_gather and reduce_scatter move stands in another order in the buffer
/// than in the tensors, so that it is held beside them while the collective runs.
struct Bucket {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  std::vector<AxisRef> axes;
  Picoseconds time = 0;   // per run
  Bytes group_bytes = 0;  // of all members together (program/instruction_facts.h)
  std::size_t members = 0;
  ValueId buffer;  // of one dimension; no instruction names it
};

/// Sent once, before the first step: what is given, from the first member of each group along `axes` to the others, which
/// then hold the same as it does. Devices begin with numbers of their own where a program has these.
struct StartupBroadcast {
  std::size_t given = 0;      // a position in `ParallelProgram::given`
  std::vector<AxisRef> axes;  // those over which its layout repeats it
  Picoseconds time = 0;
};

/// One run of one instruction of the loop.
struct Turn {
  std::uint32_t instruction = 0;
  std::uint32_t run = 0;
};

/// In which order the runs of the loop follow each other.
struct LoopOrder {
  std::vector<Turn> turns;  // empty: all of one run, then all of the next
  int in_flight = 1;        // runs that a worker has begun and not finished, at most
};

/// What every device runs: one sequence for the whole job, collectives explicit. Groups are (mesh, axes) and are
/// expanded only when printed. What is printed is what is costed is what is executed.
///
/// With several workers (`place`) the mesh is that of each worker's devices, and a worker runs the instructions whose
/// values it holds, in the order of the sequence. A send stands in the lists of two workers, at one place of the sequence:
/// whoever comes to it first waits for the other. So no workers ever wait for each other in a circle.
///
/// With micro-batches the first `num_in_micro_batch` instructions are a loop that runs `micro_batches` times a step,
/// each time on other inputs; the rest runs once behind it. Three things outlive one run of the loop: what is given;
/// the new value of a parameter or state that the loop makes, which the next run reads; and what an accumulating
/// operator (`OperatorType::accumulates`) gives, to which each run adds.
struct ParallelProgram {
  DeviceMesh mesh;  // of one worker's devices
  int workers = 1;
  IdVector<ValueId, ProgramValue> values;
  std::vector<Instruction> instructions;
  std::vector<Binding> given;    // inputs, parameters and states, in the layouts they are stored in
  std::vector<Binding> outputs;  // graph outputs, in the layouts they are delivered in
  std::vector<Binding> updates;  // (parameter or state, its new value): in the layout that `given` has for it

  std::vector<Bucket> buckets;  // fusion id n is buckets[n - 1]
  std::vector<StartupBroadcast> broadcasts;

  std::int64_t micro_batches = 1;
  std::size_t num_in_micro_batch() const;  // 0 if there is but one
  LoopOrder loop_order;                    // workers may overlap the runs (program/loop_order.h)
  /// What sums gradients right behind the loop is issued in the loop's last run, as soon as its inputs are there
  /// (program/last_run.h). No value depends on it.
  bool reduces_in_last_run = false;

  std::vector<SpeedsTogether> speeds_together;  // by the cluster's level; beyond: both at full speed
};

}  // namespace shardplan
