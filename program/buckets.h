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

/// In which order instructions are issued, and which collectives run as one.
struct IssueOrder {
  std::vector<std::uint32_t> sequence;  // instructions as numbered in the program
  std::vector<std::uint32_t> buckets;   // by instruction; 0: alone
  bool reduces_in_last_run = false;     // as in ParallelProgram
};

/// One past the last place that is issued together with `begin`: the end of its bucket, or `begin + 1`.
std::size_t end_of_bucket(const IssueOrder& order, std::size_t begin);

/// What stands at each place goes behind the place that is said, earlier or later, and stays where that is its own. What is
/// moved keeps its order.
IssueOrder moved_behind(const IssueOrder& order, const std::vector<std::size_t>& behind);

/// A collective that may run as one with others: it sums a gradient or gathers an updated weight or state.
struct JoinableCollective {
  std::uint32_t instruction = 0;
  CollectiveKind kind = CollectiveKind::kAllReduce;
  TensorId parameter;
  std::uint32_t key = 0;  // those with one key agree in kind, group, dtype, reduction and number of runs
  Bytes bytes = 0;        // of its group
};

/// In the order of `sequence`.
std::vector<JoinableCollective> joinable_collectives(const ParallelProgram& program, const OperatorGraph& graph,
                                                     std::span<const std::uint32_t> sequence);

/// Which instruction reads what which other makes, within the loop of micro-batches and within what is behind it.
class InstructionReads {
 public:
  explicit InstructionReads(const ParallelProgram& program);

  std::size_t size() const { return num_made_.size(); }
  std::size_t loop() const { return loop_; }  // instructions of the loop, the first ones
  /// The readers of what `i` makes; one that reads it twice stands there twice.
  std::span<const std::uint32_t> readers(std::size_t i) const {
    return std::span(readers_).subspan(first_[i], first_[i + 1] - first_[i]);
  }
  /// How many of the operands of `i` other instructions make.
  std::uint32_t num_made(std::size_t i) const { return num_made_[i]; }

 private:
  std::size_t loop_ = 0;
  std::vector<std::uint32_t> first_;  // in readers_, by instruction
  std::vector<std::uint32_t> readers_;
  std::vector<std::uint32_t> num_made_;
};

/// The same instructions, each bucket behind the last of its members' producers and what reads one of them behind it;
/// all else keeps its order. A bucket of which one member needs what another one gives, directly or through other
/// instructions and buckets, is split there; one that is left with a single member is none.
IssueOrder with_buckets(const InstructionReads& reads, IssueOrder order);

/// The program in this order, its fusion ids counted from 1 in the order of issue, with a flat buffer for each bucket.
ParallelProgram in_order(const ParallelProgram& program, const IssueOrder& order, const CollectiveCosts& costs);
/// The same as timelines and memory profiles read it: without moving an instruction.
TableOrder in_order(const InstructionTable& table, const IssueOrder& order, const CollectiveCosts& costs);

/// Fills `buckets` from the fusion ids, which count from 1 in the order of issue; buffers that are there keep their
/// values' places. Without `costs` the buckets take no time.
void describe_buckets(ParallelProgram& program, const CollectiveCosts* costs);

/// The parameter whose gradient or new value an instruction brings about, also of a state; nothing for others.
std::optional<TensorId> parameter_of(const OperatorGraph& graph, const ParallelProgram& program,
                                     const Instruction& instruction);

}  // namespace shardplan
