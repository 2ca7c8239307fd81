#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "graph/operator_graph.h"
#include "graph/tensor_versions.h"
#include "planner/problem/model_problem.h"

namespace shardplan {

/// A set of operators, or of groups of operators, as a bit set.
class OperatorSet {
 public:
  explicit OperatorSet(std::size_t num_operators = 0) : words_((num_operators + 63) / 64, 0) {}
  explicit OperatorSet(std::span<const std::uint64_t> words) : words_(words.begin(), words.end()) {}

  void insert(OperatorId op) { words_[op.value() / 64] |= std::uint64_t{1} << op.value() % 64; }
  void erase(OperatorId op) { words_[op.value() / 64] &= ~(std::uint64_t{1} << op.value() % 64); }
  bool contains(OperatorId op) const { return (words_[op.value() / 64] >> op.value() % 64 & 1) != 0; }
  OperatorSet& operator|=(const OperatorSet& other);
  OperatorSet& operator&=(const OperatorSet& other);
  OperatorSet& operator-=(const OperatorSet& other);
  bool meets(const OperatorSet& other) const;
  /// The same set with room for `num_operators`; additional ones are not in it.
  OperatorSet resized(std::size_t num_operators) const;
  const std::vector<std::uint64_t>& words() const { return words_; }
  /// Visits the members in ascending order.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      for (std::uint64_t word = words_[i]; word != 0; word &= word - 1) {
        visit(OperatorId(i * 64 + static_cast<std::size_t>(std::countr_zero(word))));
      }
    }
  }

 private:
  std::vector<std::uint64_t> words_;
};

/// The versions of the same tensor that what is communicated is made from: their communications are over before it
/// begins.
std::vector<VersionId> made_from(const TensorVersions& versions, const ModelProblem::Communicated& made);

/// Which operators' kernels may run at the same time as a communication, in any order of any program that the graph
/// is lowered to and for any strategies: all kernels that the communicated data do not depend on and that do not
/// depend on them.
///
///     y = f(x);  dw = g(dy, x);  dx = h(dy, w):    the reduction of dw may overlap with h;
///                                                  what brings y to its reader overlaps with neither f nor that reader
///
/// Kernels run in program order, and the iterations of the micro-batch loop run one after the other. So what an
/// iteration communicates for itself may only overlap with kernels of the same iteration; what is communicated once
/// per step, with those of the last iteration and with those after the loop.
///
/// If collectives run in pieces (program/collective_matmul.h), a product may also overlap with the communication of
/// an activation that it produces or reads; kernels that the product depends on, or that depend on it, may not.
///
/// With `delays_copies`, recomputation is known to be delayed: a block is recomputed at most one block ahead of the
/// gradient that needs it (program/list_order.h), and products are not postponed (program/early_issue.h). So a
/// recomputed operator runs after the last product that the gradient of the block before it needs; the first
/// recomputed block, after the last product that its own gradient needs.
///
/// An operator that may run in phases need not lie completely before the communication of one of its results, or
/// completely after the communication of one of its operands. Which phases need which operand is looked up for each
/// of its candidates.
///
/// Time and memory: operators * tensors / 8 bytes.
class Concurrency {
 public:
  Concurrency(const OperatorGraph& graph, const TensorVersions& versions, const ModelProblem& problem,
              bool has_collective_matmul, bool delays_copies = false);

  /// The position of a communication: the kernels that it waits for, and the kernels that wait for it.
  struct Place {
    OperatorSet before, behind;
    bool is_in_loop = false;
  };
  /// Of the communication that produces a version, that brings an operand to its operator, and that an operator does
  /// internally.
  Place of_version(VersionId version) const;
  Place of_operand(const Reader& reader) const;
  Place of_own(OperatorId op) const;

  /// The kernels that may run at the same time as the communication.
  OperatorSet beside(const Place& place) const;
  /// Whether a communication that runs with every micro-batch may still run when the next one begins: no kernel of
  /// its iteration waits for it.
  bool outlives_run(const Place& place) const;

 private:
  /// What holds for an operator under all of its candidates.
  struct Inside {
    std::vector<char> is_whole_behind;     // by operand: all kernels of the operator depend on it
    std::vector<char> is_whole_before;     // by result: it depends on all kernels of the operator
    std::vector<std::vector<char>> leads;  // by operand and result: the result depends on the operand
    std::vector<std::size_t> exchanged;    // operands that may need a halo exchange
    bool has_phases = false;
    // About the operator's internal communication of partial results between phases, if there is any.
    std::vector<char> is_before_own;  // by operand: all internal communication depends on it
    std::vector<char> is_behind_own;  // by result: it depends on all internal communication
    bool is_own_in_chain = true;      // each phase comes completely before or after it
  };
  static Inside inside(const Operation& operation, const std::vector<Strategy>& candidates);
  static void add_phases(const Operation& operation, const Strategy& strategy, Inside& inside);
  const Inside& inside(OperatorId op) const { return *inside_[op]; }
  void find_before();
  void delay_copies();
  std::optional<OperatorId> last_product_before(OperatorId reader) const;
  void add_behind(const Reader& reader, OperatorSet& set) const;
  void add_behind_version(VersionId version, OperatorSet& set) const;
  void let_products_run_beside(TensorId tensor, Place& place) const;

  const OperatorGraph& graph_;
  const TensorVersions& versions_;
  bool has_collective_matmul_;
  OperatorSet all_, loop_, timed_;  // timed_: kernels that take time under every strategy
  IdVector<OperatorId, std::shared_ptr<const Inside>> inside_;
  std::map<OperatorId, OperatorId> product_before_;              // by copy: the product after which it runs, if known
  std::map<OperatorId, std::vector<OperatorId>> copies_behind_;  // by product
  IdVector<TensorId, OperatorSet> before_;                       // by result: all kernels it depends on
  IdVector<TensorId, OperatorSet> behind_;                       // by result: all kernels that depend on it
};

}  // namespace shardplan
