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
};

/// Most communication of weights and gradients is hidden, gathers of updated weights are not.
inline constexpr Guess kMostlyHidden{25, 100};

/// The problem in which communication costs its estimated share, so that the cost of a choice estimates its
/// overlapped step. Internal communication of operators counts fully.
StrategyProblem guessed_problem(const ModelProblem& problem, const OperatorGraph& graph, const TensorVersions& versions,
                                const Guess& guess);

/// `percent` of a cost that is at least 0 and not forbidden, rounded up; at most 1000 percent, so that 64 bits suffice.
inline std::int64_t percent_of(std::int64_t cost, std::int64_t percent) {
  return cost / 100 * percent + (cost % 100 * percent + 99) / 100;
}

/// The problem without its matrices: its edges must get others.
StrategyProblem without_matrices(const StrategyProblem& problem);

/// The cost of one choice in that problem.
Picoseconds guessed_step(const ModelProblem& problem, const OperatorGraph& graph, const TensorVersions& versions,
                         const Guess& guess, const Choice& choice);

}  // namespace shardplan
