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

/// A tensor in one layout, on all devices of one worker. Written once, by one instruction or from outside.
struct ProgramValue {
  SharedText name;                 // name of the tensor, or of the phase or redistribution that makes it
  OptionalIndex<TensorId> tensor;  // the graph's tensor that it holds; not set for values inside an operator's phases
  int worker = 0;   // the worker that holds it; except for kSend, an instruction reads and writes values of one worker
  TensorType type;  // global
  SharedValue<TensorLayout> layout;  // canonical
  SharedShape local_shape;           // of one device, without halo
  Bytes bytes = 0;                   // of one device
  bool in_registers = false;         // passed on inside a fused kernel: takes no memory
};

/// Why a collective is in the program; names the inserted operator in reports.
struct Origin {
  enum class Kind : std::uint8_t {
    kForwardOp,          // completes the producer's own partial result, runs between its phases, or fetches its halo
    kRedistribution,     // from one layout to another, for `consumer`
    kMirror,             // reduces the gradient of a parameter
    kParallelOptimizer,  // gathers or reduce-scatters around a sharded update
  };
  Kind kind = Kind::kRedistribution;
  SharedText producer;  // operator, or tensor for inputs and parameters
  /// Operator; empty for a delivery to several readers or of a stored tensor, an output or a stored value.
  SharedText consumer;
  std::size_t operand = 0;
  SharedText because;  // "sum over k", "halo of x", ...
};

/// What an instruction does.
enum class InstructionKind : std::uint8_t {
  kConstant,    // generates a constant's shard on each device: no inputs
  kOperator,    // runs a kernel on each device's box
  kCollective,  // one step of a redistribution, or an all_reduce between phases
  kHalo,        // neighbours exchange the halo of a windowed dimension; the output includes the halo
  kSend,        // each device of one worker sends its shard to the device of another worker at the same position
};

struct Instruction {
  InstructionKind kind = InstructionKind::kOperator;
  Pass pass = Pass::kForward;
  bool is_phase = false;
  bool is_copy = false;    // kOperator: recomputes a forward operator (GraphOperator::is_copy)
  bool in_pieces = false;  // kCollective: runs in pieces beside its product (program/collective_matmul.h)
  SharedText name;         // full name of the operator, or of the inserted step; unique
  ShortVector<ValueId> inputs;
  ShortVector<ValueId> outputs;
  Picoseconds time = 0;          // per run of the instruction
  std::int64_t runs = 1;         // per step: 1, or the number of micro-batches
  OptionalIndex<OperatorId> op;  // the graph's operator, for kOperator and for instructions that belong to one
  std::uint32_t fusion = 0;      // above 0: number of its bucket in `ParallelProgram::buckets`, counted from 1
  std::uint32_t links = 0;       // the levels of links that it uses: bit l for level l
  std::shared_ptr<const Operation>
      operation;  // kOperator: the operation (of a phase, the phase's own); kHalo: the operation whose operand it is
  SharedValue<Strategy> strategy;    // kOperator, kHalo
  SharedValue<CollectiveStep> step;  // kCollective
  SharedVector<Halo> halo;           // kHalo: the dimensions of one operand
  SharedValue<Origin> origin;        // kCollective, kHalo, kSend

  Picoseconds time_of_step() const { return time * runs; }
};

/// A graph's tensor and the value that holds it.
struct Binding {
  TensorId tensor;
  ValueId value;
  bool is_input = false;  // new in each step, dropped after its last reader
};

/// Collectives that run as one over one flat buffer: those with the same fusion id, which are adjacent in the
/// program, after the last of their producers. Members have one kind, group, dtype and reduction, and none reads
/// another's result. Each keeps its own values, layouts and time (that of running alone); the bucket is issued once
/// and takes `time`.
///
/// Packing kernels fill and unpack a device's buffer. The results of an all_reduce are views of the buffer. For
/// all_gather and reduce_scatter the buffer has another order than the tensors, so it takes memory in addition to
/// them while the collective runs.
struct Bucket {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  std::vector<AxisRef> axes;
  Picoseconds time = 0;   // per run
  Bytes group_bytes = 0;  // of all members (program/instruction_facts.h)
  std::size_t members = 0;
  ValueId buffer;  // one-dimensional; not named by any instruction
};

/// A broadcast before the first step: the first member of each group along `axes` sends a given value to the others.
/// In programs with startup broadcasts the devices start with different values.
struct StartupBroadcast {
  std::size_t given = 0;      // a position in `ParallelProgram::given`
  std::vector<AxisRef> axes;  // the axes over which its layout replicates it
  Picoseconds time = 0;
};

/// One run of one instruction of the loop.
struct Turn {
  std::uint32_t instruction = 0;
  std::uint32_t run = 0;
};

/// The order in which the iterations of the loop are interleaved.
struct LoopOrder {
  std::vector<Turn> turns;  // empty: all of one iteration, then all of the next
  int in_flight = 1;        // maximal number of iterations that a worker has begun and not finished
};

/// What every device runs: one sequence for the whole job, with explicit collectives. Groups are (mesh, axes) and are
/// expanded only when printed. The same program is costed, printed and executed.
///
/// With several workers (`place`) the mesh is that of one worker's devices, and a worker runs the instructions on
/// whose values it holds, in the order of the sequence. A send belongs to two workers, at the same position of the
/// sequence: the first to arrive waits for the other. So workers cannot deadlock.
///
/// With micro-batches the first `num_in_micro_batch` instructions are a loop that runs `micro_batches` times per
/// step, each time on other inputs; the rest runs once after it. Three things outlive an iteration: given values; the
/// new value of a parameter or state that the loop computes, which the next iteration reads; and the result of an
/// accumulating operator (`OperatorType::accumulates`), to which each iteration adds.
struct ParallelProgram {
  DeviceMesh mesh;  // of one worker's devices
  int workers = 1;
  IdVector<ValueId, ProgramValue> values;
  std::vector<Instruction> instructions;
  std::vector<Binding> given;    // inputs, parameters and states, in their stored layouts
  std::vector<Binding> outputs;  // graph outputs, in the layouts in which they are delivered
  std::vector<Binding> updates;  // (parameter or state, its new value), in the layout that it has in `given`

  std::vector<Bucket> buckets;  // fusion id n is buckets[n - 1]
  std::vector<StartupBroadcast> broadcasts;

  std::int64_t micro_batches = 1;
  std::size_t num_in_micro_batch() const;  // 0 without micro-batches
  LoopOrder loop_order;                    // how workers interleave the iterations (program/loop_order.h)
  /// Reductions of gradients right after the loop are issued during its last iteration, as soon as their inputs are
  /// ready (program/last_run.h). This does not change any value.
  bool reduces_in_last_run = false;

  std::vector<SpeedsTogether> speeds_together;  // by the cluster's level; levels not listed run at full speed
};

}  // namespace shardplan
