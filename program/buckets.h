#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "graph/operator_graph.h"
#include "layouts/collective.h"
#include "program/instruction_table.h"
#include "program/parallel_program.h"

namespace shardplan {

/// The order in which instructions are issued, and which collectives run as one.
struct IssueOrder {
  std::vector<std::uint32_t> sequence;  // instructions as numbered in the program
  std::vector<std::uint32_t> buckets;   // by instruction; 0: alone
  bool reduces_in_last_run = false;     // as in ParallelProgram
};

/// One past the last position that is issued together with `begin`: the end of its bucket, or `begin + 1`.
std::size_t end_of_bucket(const IssueOrder& order, std::size_t begin);

/// Moves the instruction at each position to after the position given for it, earlier or later; one that names itself
/// stays. Instructions that are moved keep their order.
IssueOrder moved_behind(const IssueOrder& order, const std::vector<std::size_t>& behind);

/// A collective that may share a bucket: it reduces a gradient or gathers an updated weight or state.
struct JoinableCollective {
  std::uint32_t instruction = 0;
  CollectiveKind kind = CollectiveKind::kAllReduce;
  TensorId parameter;
  std::uint32_t key = 0;  // equal for collectives with the same kind, group, dtype, reduction and number of runs
  Bytes bytes = 0;        // of its group
};

/// In the order of `sequence`.
std::vector<JoinableCollective> joinable_collectives(const ParallelProgram& program, const OperatorGraph& graph,
                                                     std::span<const std::uint32_t> sequence);

/// Which instruction reads the results of which other one, within the micro-batch loop and within the part after it.
class InstructionReads {
 public:
  explicit InstructionReads(const ParallelProgram& program);

  std::size_t size() const { return num_made_.size(); }
  std::size_t loop() const { return loop_; }  // number of instructions in the loop, which come first
  /// The readers of the results of `i`; one that reads two results is listed twice.
  std::span<const std::uint32_t> readers(std::size_t i) const {
    return std::span(readers_).subspan(first_[i], first_[i + 1] - first_[i]);
  }
  /// The number of operands of `i` that other instructions produce.
  std::uint32_t num_made(std::size_t i) const { return num_made_[i]; }

 private:
  std::size_t loop_ = 0;
  std::vector<std::uint32_t> first_;  // in readers_, by instruction
  std::vector<std::uint32_t> readers_;
  std::vector<std::uint32_t> num_made_;
};

/// The same instructions with each bucket right after the last of its members' producers, and readers of its members
/// after it; everything else keeps its order. A bucket in which one member depends on another, directly or through
/// other instructions and buckets, is split there; a bucket with a single member is dissolved.
IssueOrder with_buckets(const InstructionReads& reads, IssueOrder order);

/// The program in this order, with fusion ids counted from 1 in the order of issue and a flat buffer for each bucket.
ParallelProgram in_order(const ParallelProgram& program, const IssueOrder& order, const CollectiveCosts& costs);
/// The same for timelines and memory profiles, without moving instructions.
TableOrder in_order(const InstructionTable& table, const IssueOrder& order, const CollectiveCosts& costs);

/// Fills `buckets` from the fusion ids, which count from 1 in the order of issue; existing buffers keep their values.
/// Without `costs` the buckets take no time.
void describe_buckets(ParallelProgram& program, const CollectiveCosts* costs);

/// The parameter (also of a state) whose gradient or new value an instruction contributes to; nothing for others.
std::optional<TensorId> parameter_of(const OperatorGraph& graph, const ParallelProgram& program,
                                     const Instruction& instruction);

}  // namespace shardplan
