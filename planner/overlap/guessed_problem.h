#pragma once

#include <cstdint>

#include "graph/tensor_versions.h"
#include "planner/problem/model_problem.h"

namespace shardplan {

/// An estimate of how much of its time communication adds to the step when it overlaps with kernels, in percent.
struct Guess {
  std::int64_t weights;            // gathers of weights that are stored sharded, and reductions of gradients
  std::int64_t new_weights;        // gathers of updated weights, after which nothing is left to compute
  std::int64_t activations = 100;  // communication of activations, which kernels wait for
  std::int64_t start_ups = 100;    // of all of these, the start-ups that collectives may share in buckets
};

/// Most communication of weights and gradients is hidden, gathers of updated weights are not.
inline constexpr Guess kMostlyHidden{25, 100};

/// How much of its start-up a collective in a bucket is taken to pay, in percent: as in one of five.
inline constexpr std::int64_t kStartUpInBucket = 20;

/// The problem in which communication costs its estimated share, so that the cost of a choice estimates its
/// overlapped step. Internal communication of operators counts fully.
///
/// `without_start_ups`: as in SearchedModel.
StrategyProblem guessed_problem(const ModelProblem& problem, const OperatorGraph& graph, const TensorVersions& versions,
                                const IdVector<EdgeId, MatrixId>* without_start_ups, const Guess& guess);

/// `percent` of a cost that is at least 0 and not forbidden, rounded up; at most 1000 percent, so that 64 bits suffice.
inline std::int64_t percent_of(std::int64_t cost, std::int64_t percent) {
  return cost / 100 * percent + (cost % 100 * percent + 99) / 100;
}

/// A time of which what exceeds `without`, the time without start-ups that may be shared, counts `percent`.
inline Picoseconds with_start_ups(Picoseconds time, Picoseconds without, std::int64_t percent) {
  return time < kForbidden && without < time ? without + percent_of(time - without, percent) : time;
}

/// The problem without its matrices: its edges must get others.
StrategyProblem without_matrices(const StrategyProblem& problem);

/// The cost of one choice in that problem.
Picoseconds guessed_step(const ModelProblem& problem, const OperatorGraph& graph, const TensorVersions& versions,
                         const IdVector<EdgeId, MatrixId>* without_start_ups, const Guess& guess, const Choice& choice);

}  // namespace shardplan
