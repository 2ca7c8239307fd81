#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/overlap/concurrency.h"
#include "planner/overlap/overlap_weights.h"
#include "planner/problem/model_problem.h"

namespace shardplan {

/// Lower bounds on the overlapped step as weighted sums of instruction times. They hold for all strategies,
/// instruction orders and buckets.
///
/// At any moment at most one kernel runs, and no two running collectives use the same level of links. Let a kernel
/// that runs beside a collective keep the fraction k of its speed, and the collective the fraction q. If the sum of
/// weight times speed of everything that may run at the same time (`Concurrency`) never exceeds 1, the step is at
/// least the weighted sum of all times: the weighted sum of completed work never grows faster than time passes.
///
/// So of a kernel and a collective that may overlap, one has weight 1 and the other the weight of the slowdown it
/// causes: (1 - q) / k for the kernel or (1 - k) / q for the collective; if they cannot overlap both have weight 1.
/// Of two collectives that may use different levels one has weight 1 and the other 0, or each has 1 / number of
/// levels. Weights are therefore given by vertex covers: the members with reduced weight cover all pairs that may
/// overlap. For one choice the best cover is a minimum cut.
///
///     cover                             the sum is
///     all collectives                   the kernels, plus the least by which communication slows them down
///     all kernels                       how long the links are busy
///     the kernels of the backward pass  the forward pass, plus the communication of gradients and updated weights
///     nothing, if all is one chain      kernels plus collectives
///
/// Copies in repeated layers have equal weights: they form one group, which may overlap with whatever one of them may
/// overlap with. So a weighted problem has no more distinct tables than the original one, and its layers can be tied.
///
/// Time and memory: communications * operators / 8 bytes; with several levels of links, time also grows with the square
/// of communications / 8.
class StepBound {
 public:
  struct Matrices {                     // by edge of the problem
    IdVector<EdgeId, MatrixId> on_all;  // times on all levels of links
    /// Parts of these times; none with one level of links. Coarse: one part, the time on the busiest level of what
    /// may be joined. Fine: two parts, the time on that level, and the time on other levels only.
    std::vector<IdVector<EdgeId, MatrixId>> on_part;
    IdVector<EdgeId, char> joins;  // whether it may share a bucket with others
  };
  /// The problem must outlive the bound. `ties` numbers sets of nodes that correspond to each other in copies of a
  /// layer (`uniform_ties`); `speeds` are those of the levels in use.
  StepBound(const OperatorGraph& graph, const TensorVersions& versions, const ModelProblem& problem, Matrices matrices,
            const IdVector<NodeId, NodeId>& ties, const std::vector<SpeedsTogether>& speeds,
            bool has_collective_matmul);

  /// Switches to these finer times, and treats recomputed operators as separate from their originals and delayed (see
  /// `Concurrency`). Which edges join stays as it is.
  void refine(Matrices matrices);

  /// By edge the matrix of its times on all levels, without the start-ups that buckets share; the finer ones after
  /// `refine`.
  const IdVector<EdgeId, MatrixId>& on_all() const { return matrices_.on_all; }

  /// The times of a choice, by group: summed over all members and runs.
  struct Times {
    std::vector<Picoseconds> kernels, items;
    std::vector<std::vector<Picoseconds>> on_part;
  };
  Times times_of(const Choice& choice) const;
  /// The mean of several times, each repeated `counts` times.
  static Times mean(const std::vector<Times>& times, const std::vector<std::int64_t>& counts);

  /// Candidate weights with large sums for a choice with these times.
  std::vector<OverlapWeights> weights_at(const Times& times) const;
  /// The largest of their sums: a lower bound on the step of any choice with these times.
  Picoseconds least_step(const Times& times) const;
  /// Weight 1 for all kernels, and for communications the least by which they slow kernels down.
  OverlapWeights weights_of_slowdown() const;

  /// The weighted sum: at most the step of any choice with these times.
  static Picoseconds sum(const OverlapWeights& weights, const Times& times);
  /// The problem with weighted costs, rounded down; forbidden costs stay forbidden. Its minimum is a lower bound on
  /// the step.
  StrategyProblem weighted(const OverlapWeights& weights) const;

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;

  /// Communications that correspond to each other in copies of a layer: those of edges, or internal ones of operators.
  struct Group {
    bool is_of_edges = false;
    bool joins = false;         // may share a bucket with others
    bool outlives_run = false;  // of the micro-batch loop
    std::int64_t runs = 1;
    OperatorSet beside;  // groups of kernels that may overlap with it
    // Only with several levels of links:
    OperatorSet before, behind;  // kernels that all members wait for, and kernels that wait for all members
    OperatorSet together;  // groups of communications (possibly itself) that may run at the same time on other levels
  };
  /// A member of a group, with what decides which others it may run together with.
  struct Item {
    std::optional<EdgeId> edge;
    std::uint32_t group = kNone;
    OperatorSet before;
    std::vector<OperatorId> waiting;  // some of the operators that wait for it
  };
  /// Weights of the items and kernels of one region: an iteration of the loop, or the last iteration and everything
  /// after it.
  struct Weighing {
    std::vector<std::int64_t> items;
    std::vector<std::int64_t> kernels;
    std::vector<std::int64_t>
        others;  // of communications that count in addition to `items`; empty if all are on one level
  };

  static constexpr std::size_t kOnLevel = 0, kElsewhere = 1;  // parts
  void group();
  void group_kernels();
  /// The members of all groups; none if there is one level of links.
  std::vector<Item> group_items(const Concurrency& concurrency);
  bool is_told_copy(OperatorId op) const { return tells_copies_ && graph_.operators()[op].is_copy; }
  bool is_of_told_copy(const ModelProblem::Communicated& what) const;
  void find_together(const std::vector<Item>& items);
  bool is_apart(std::size_t item, const std::vector<std::size_t>& others) const;
  Picoseconds edge_time(MatrixId matrix, EdgeId id, const Choice& choice) const {
    const ProblemEdge& edge = problem_.problem.edges[id];
    return problem_.problem.matrices[matrix].at(choice.strategy[edge.from].value(), choice.strategy[edge.to].value());
  }
  Weighing one_level(const std::vector<std::size_t>& region, const std::vector<Picoseconds>& items,
                     const std::vector<Picoseconds>& kernels) const;
  std::vector<std::int64_t> most_of_each(const std::vector<std::size_t>& others, const std::vector<Picoseconds>& items,
                                         const std::vector<Picoseconds>& kernels, bool shares, std::int64_t part) const;
  /// Which communications count, by group: the `first` with times of their own, then `others` with weights of at most
  /// `most`.
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
  bool tells_copies_ = false;  // separately from their originals
  std::size_t num_levels_;
  std::int64_t kernels_ppm_ = 0, collectives_ppm_ = 0;  // the largest share of speed that any level leaves
  std::int64_t slowed_kernel_ = 0, slowing_collective_ = 0;
  IdVector<OperatorId, std::uint32_t> kernel_group_;
  std::vector<std::int64_t> kernel_runs_;  // by group
  std::vector<Group> groups_;
  IdVector<OperatorId, std::uint32_t> own_group_;  // kNone if an operator has no internal communication
  IdVector<EdgeId, std::uint32_t> edge_group_;     // kNone if an edge has no communication
};

}  // namespace shardplan
