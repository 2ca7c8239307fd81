#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "graph/operator_graph.h"
#include "graph/tensor_versions.h"
#include "planner/problem/model_problem.h"

namespace shardplan {

/// A set of operators, or of groups of them, one bit each.
class OperatorSet {
 public:
  explicit OperatorSet(std::size_t num_operators = 0) : words_((num_operators + 63) / 64, 0) {}

  void insert(OperatorId op) { words_[op.value() / 64] |= std::uint64_t{1} << op.value() % 64; }
  void erase(OperatorId op) { words_[op.value() / 64] &= ~(std::uint64_t{1} << op.value() % 64); }
  bool contains(OperatorId op) const { return (words_[op.value() / 64] >> op.value() % 64 & 1) != 0; }
  OperatorSet& operator|=(const OperatorSet& other);
  OperatorSet& operator&=(const OperatorSet& other);
  OperatorSet& operator-=(const OperatorSet& other);
  bool meets(const OperatorSet& other) const;
  /// The same set in room for so many; none beyond the present room are in it.
  OperatorSet resized(std::size_t num_operators) const;
  const std::vector<std::uint64_t>& words() const { return words_; }
  /// In order.
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

/// Whether what is made of a tensor is made from what another communication makes of it.
bool is_made_from(const TensorVersions& versions, const ModelProblem::Communicated& made,
                  const ModelProblem::Communicated& of);

/// Which operators' kernels may run at the same time as a communication of the model, in any order of any program that
/// its graph is lowered to, whatever the strategies: all that neither give what is communicated nor need it.
///
///     y = f(x);  dw = g(dy, x);  dx = h(dy, w):    what sums dw may run beside h, what brings y to its reader beside neither
///                                                  f nor that reader
///
/// Kernels run in the order of the program, and one run of the loop of micro-batches after the other. So what a run
/// communicates may run beside kernels of that run alone, if the run needs it; what is communicated once a step, beside
/// those of the loop's last run and of what is behind it.
///
/// Where collectives run in pieces (program/collective_matmul.h), a product that makes or reads an activation may run beside
/// what communicates that; all that is before the product or behind it may not.
///
/// Copies may be taken to be delayed: a block is computed again one block ahead of the gradient that it is computed for at
/// the earliest (program/list_order.h), and no product is put off (program/early_issue.h). So it runs behind the last
/// product that the gradient of the block before it needs, the first block behind that of its own.
///
/// Where an operator may run in phases it need not be all before what one of its results is for, nor all behind what
/// brings one of its operands; which phases need which is looked up for each of its candidates.
///
/// Time and memory: operators * tensors / 8 bytes.
class Concurrency {
 public:
  Concurrency(const OperatorGraph& graph, const TensorVersions& versions, const ModelProblem& problem,
              bool has_collective_matmul, bool delays_copies = false);

  /// Where a communication stands: kernels that it waits for, and kernels that wait for it.
  struct Place {
    OperatorSet before, behind;
    bool is_in_loop = false;
  };
  /// Of what makes a version, of what brings an operand to its operator, and of what an operator does for itself.
  Place of_version(VersionId version) const;
  Place of_operand(const Reader& reader) const;
  Place of_own(OperatorId op) const;

  /// The kernels that may run at the same time.
  OperatorSet beside(const Place& place) const;
  /// Whether what runs with every micro-batch may still run when the next one begins: no kernel of its run waits for it.
  bool outlives_run(const Place& place) const;

 private:
  /// What holds of an operator under all of its candidates.
  struct Inside {
    std::vector<char> is_whole_behind;     // by operand: every kernel needs it
    std::vector<char> is_whole_before;     // by result: every kernel is needed for it
    std::vector<std::vector<char>> leads;  // by operand and result
    std::vector<std::size_t> exchanged;    // operands of which halos may be exchanged
    bool has_phases = false;
    // Of what phases leave partial and others need whole, where there are any.
    std::vector<char> is_before_own;  // by operand: all of it needs that
    std::vector<char> is_behind_own;  // by result: it needs all of it
    bool is_own_in_chain = true;      // each phase is before it or behind it
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
  OperatorSet all_, loop_, timed_;  // timed_: kernels that take time whatever the strategy
  IdVector<OperatorId, std::shared_ptr<const Inside>> inside_;
  std::map<OperatorId, OperatorId> product_before_;  // by copy: the product behind which it runs, where one is known
  std::map<OperatorId, std::vector<OperatorId>> copies_behind_;  // by product
  IdVector<TensorId, OperatorSet> before_;                       // of a result: all kernels that it needs
  IdVector<TensorId, OperatorSet> behind_;                       // all kernels that need it
};

}  // namespace shardplan
