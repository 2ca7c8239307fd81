#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/overlap/concurrency.h"
#include "planner/overlap/overlap_weights.h"
#include "planner/problem/model_problem.h"

namespace shardplan {

/// Lower bounds on a step in which collectives run beside kernels, as sums: they hold whatever the strategies, the order of
/// the instructions and the buckets.
///
/// At any moment at most one kernel runs, and collectives of which no two use the same level of links. Let a kernel run at
/// the share k of its speed beside a collective, and that at the share q. If the weights of all that may run together
/// (`Concurrency`), each times its speed, never add up to more than 1, the step is no shorter than the weighted sum of all
/// times: in every moment it grows by no more than that moment takes.
///
/// Of a kernel and a collective that may run together one therefore counts whole, and the other with what it slows that one
/// down: (1 - q) / k of the kernel or (1 - k) / q of the collective; where they exclude each other both count whole. Of two
/// collectives that may use different levels one counts whole and the other not, or each with one part of as many as there
/// are levels. So weights are covers: what does not count whole is one of each pair that may run together. For one choice
/// the best is a least cut.
///
///     cover                             the sum says
///     all collectives                   the kernels, and what communication slows them down at least
///     all kernels                       how long the links are busy
///     the kernels of the backward pass  the forward pass, and what gradients and new weights take
///     nothing, where all is one chain   kernels and collectives one after the other
///
/// Copies in repeated layers weigh the same: they are one group, which may run beside all that one of them may run beside.
/// So a weighted problem has as few different tables as its problem, and layers can be tied.
///
/// Time and memory: communications * operators / 8 bytes; with several levels of links communications squared.
class StepBound {
 public:
  struct Matrices {                     // by edge of the problem
    IdVector<EdgeId, MatrixId> on_all;  // at the times on all levels of links
    /// Parts of these, none with one level of links. Coarse: one, what counts of that which may join on the level in use the
    /// most. Fine: two, what counts of everything on that level and what counts of everything on others alone.
    std::vector<IdVector<EdgeId, MatrixId>> on_part;
    IdVector<EdgeId, char> joins;  // whether it is thought to run as one with others
  };
  /// The problem must outlive the bound. `ties` numbers sets of its nodes that stand for the same thing in copies of a
  /// layer (`uniform_ties`); `speeds` are those of the levels in use.
  StepBound(const OperatorGraph& graph, const TensorVersions& versions, const ModelProblem& problem, Matrices matrices,
            const IdVector<NodeId, NodeId>& ties, const std::vector<SpeedsTogether>& speeds,
            bool has_collective_matmul);

  /// From now on with these finer times, and with what is computed again told from what it repeats and delayed (see
  /// `Concurrency`); which edges join stays as it is.
  void refine(Matrices matrices);

  /// What a choice takes, by groups: all members and all runs.
  struct Times {
    std::vector<Picoseconds> kernels, items;
    std::vector<std::vector<Picoseconds>> on_part;
  };
  Times times_of(const Choice& choice) const;
  /// Of several choices, each counted so often.
  static Times mean(const std::vector<Times>& times, const std::vector<std::int64_t>& counts);

  /// Weights whose sums are large for one choice.
  std::vector<OverlapWeights> weights_at(const Times& times) const;
  /// The largest of their sums: no step of a choice that takes these times is shorter.
  Picoseconds least_step(const Times& times) const;
  /// All kernels, and what communications slow them down at least.
  OverlapWeights weights_of_slowdown() const;

  /// No more than any step of the choice that takes these times.
  static Picoseconds sum(const OverlapWeights& weights, const Times& times);
  /// The problem with these costs, rounded down; what is forbidden stays so. No step is shorter than its least cost.
  StrategyProblem weighted(const OverlapWeights& weights) const;

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;

  /// What an edge pays for, or an operator for itself.
  struct Item {
    std::optional<EdgeId> edge;
    OperatorId op;
    Concurrency::Place place;
    std::vector<OperatorId> waiting;  // operators behind it; not all
  };
  /// Items of copies.
  struct Group {
    std::vector<Item> members;
    bool joins = false;         // it may run as one with others
    bool outlives_run = false;  // of the loop of micro-batches
    std::int64_t runs = 1;
    OperatorSet beside;    // groups of kernels
    OperatorSet together;  // other groups of items and itself: two of which may run at the same time, if levels differ
  };
  /// What is decided of the items and kernels of one region: a run of the loop, or its last with all that is behind.
  struct Weighing {
    std::vector<std::int64_t> items;
    std::vector<std::int64_t> kernels;
    std::vector<std::int64_t> others;  // of communications counted beside `items`; none where all are on one level
  };

  static constexpr std::size_t kOnLevel = 0, kElsewhere = 1;  // parts
  void group();
  void group_kernels();
  void group_items(const Concurrency& concurrency);
  bool is_told_copy(OperatorId op) const { return tells_copies_ && graph_.operators()[op].is_copy; }
  bool is_of_told_copy(const ModelProblem::Communicated& what) const;
  void find_together();
  bool may_meet(const Group& a, const Group& b) const;
  bool is_before(const Item& a, const Item& b) const;
  bool is_made_from(const Item& made, const Item& of) const {
    return made.edge && of.edge &&
           shardplan::is_made_from(versions_, problem_.communicated[*made.edge], problem_.communicated[*of.edge]);
  }
  bool is_apart(std::size_t item, const std::vector<std::size_t>& others) const;
  Picoseconds edge_time(MatrixId matrix, EdgeId id, const Choice& choice) const {
    const ProblemEdge& edge = problem_.problem.edges[id];
    return problem_.problem.matrices[matrix].at(choice.strategy[edge.from].value(), choice.strategy[edge.to].value());
  }
  Weighing one_level(const std::vector<std::size_t>& region, const std::vector<Picoseconds>& items,
                     const std::vector<Picoseconds>& kernels) const;
  std::vector<std::int64_t> most_of_each(const std::vector<std::size_t>& others, const std::vector<Picoseconds>& items,
                                         const std::vector<Picoseconds>& kernels, bool shares, std::int64_t part) const;
  /// What counts beside what, by group: first at times of their own, then at others, of which no more than `most`.
  struct Counting {
    std::vector<std::size_t> first, others;
    std::vector<Picoseconds> time_first, time_others;
    std::vector<std::int64_t> most;
  };
  Weighing several_levels(const Counting& counting, const std::vector<Picoseconds>& kernels) const;
  enum class Counted { kAll, kJoining, kOnLevel, kElsewhere, kBoth };
  Weighing weighing(const std::vector<std::size_t>& region, const Times& of_run, Counted counted, bool shares) const;
  OverlapWeights weights_at(const Times& times, Counted counted, bool shares) const;
  bool is_fine() const { return matrices_.on_part.size() > 1; }

  const OperatorGraph& graph_;
  const TensorVersions& versions_;
  const ModelProblem& problem_;
  Matrices matrices_;
  IdVector<NodeId, NodeId> ties_;
  bool has_collective_matmul_;
  bool tells_copies_ = false;  // apart from what they repeat
  std::size_t num_levels_;
  std::int64_t kernels_ppm_ = 0, collectives_ppm_ = 0;  // the most that any level leaves
  std::int64_t slowed_kernel_ = 0, slowing_collective_ = 0;
  IdVector<OperatorId, std::uint32_t> kernel_group_;
  std::vector<std::int64_t> kernel_runs_;  // by group
  std::vector<Group> groups_;
  IdVector<OperatorId, std::uint32_t> own_group_;  // kNone where an operator communicates nothing for itself
  IdVector<EdgeId, std::uint32_t> edge_group_;     // kNone where an edge pays for nothing
};

}  // namespace shardplan
