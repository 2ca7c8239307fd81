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

/// The cost of one choice in that problem.
Picoseconds guessed_step(const ModelProblem& problem, const OperatorGraph& graph, const TensorVersions& versions,
                         const Guess& guess, const Choice& choice);

}  // namespace shardplan
