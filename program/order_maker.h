#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/units.h"
#include "graph/operator_graph.h"
#include "layouts/collective.h"
#include "model/model.h"
#include "program/bucket_rules.h"
#include "program/buckets.h"
#include "program/instruction_table.h"
#include "program/joined_waiting.h"
#include "program/list_order.h"
#include "program/overlapped_timeline.h"
#include "program/parallel_program.h"

namespace shardplan {

/// Makes orders of one program in each of the ways of program/schedule.h. It holds what all of them need: a table of
/// the instructions, who reads what, and what may be joined. Program, graph and costs must outlive it. Several
/// threads may use it.
class OrderMaker {
 public:
  OrderMaker(const ParallelProgram& program, const OperatorGraph& graph, const CollectiveCosts& costs);

  IssueOrder as_given() const;
  IssueOrder issued_early(const IssueOrder& order) const;
  IssueOrder delayed(const IssueOrder& order) const;
  std::vector<std::uint32_t> listed() const;
  std::vector<std::uint32_t> listed_from_end() const;
  IssueOrder justified_to_end(IssueOrder order, Justification how) const;
  IssueOrder justified_to_beginning(IssueOrder order, Justification how) const;
  /// Whether anything is recomputed.
  bool has_copies() const;
  /// Communication that no kernel waits for makes way, by the timeline of that order.
  IssueOrder yielding(const IssueOrder& order) const;
  /// Gathers of stored tensors are moved before the kernels they can hide behind.
  IssueOrder prefetched(const IssueOrder& order, std::optional<Bytes> joins) const;
  IssueOrder issued_late(const IssueOrder& order, std::span<const OverlappedTimeline::Span> spans) const;
  /// Collectives that wait for their links in the timeline of that order are joined.
  IssueOrder joined_waiting(const IssueOrder& order, const std::vector<JoinKey>& keys, Bytes most) const;
  std::vector<JoinKey> join_keys(const CommFusions& fusions) const;

  /// An order, and what may be joined in it.
  struct Base {
    IssueOrder order;
    std::vector<JoinableCollective> joinable;
  };
  Base base(IssueOrder order) const;
  /// By joinable collective: the bucket given by the rules and the parameters' fusion ids; 0 if it would be the only
  /// member.
  std::vector<std::uint32_t> bucket_numbers(const Base& base, const BucketRules& rules) const;
  /// The order with these buckets.
  IssueOrder bucketed(const Base& base, const std::vector<std::uint32_t>& buckets) const;
  /// The same, with the boundaries of `best_buckets` for the kinds of mode `kBest`: one key after the other, each on
  /// the timeline that results from the previous ones.
  IssueOrder best_bucketed(const Base& base, const BucketRules& rules) const;

  /// The order as timelines and memory profiles read it.
  TableOrder tried(const IssueOrder& order) const { return in_order(table_, order, costs_); }

 private:
  template <class List>
  IssueOrder listed_again(const List& list, IssueOrder order, Justification how) const;
  std::vector<JoinableCollective> joinable(const IssueOrder& order) const;
  void set_best_buckets(IssueOrder& order, std::vector<JoinableCollective> members) const;
  const Instruction& at(std::size_t i) const { return program_.instructions[i]; }
  std::optional<int> fusion_id(const JoinableCollective& one) const { return graph_.tensor(one.parameter).comm_fusion; }

  const ParallelProgram& program_;
  const OperatorGraph& graph_;
  const CollectiveCosts& costs_;
  const InstructionTable table_;
  const std::size_t num_instructions_;
  const InstructionReads reads_;
  std::vector<JoinableCollective> joinable_;
  std::vector<std::uint32_t> joinable_at_;  // by instruction, in joinable_
  std::size_t num_keys_ = 0;                // of theirs
};

}  // namespace shardplan
