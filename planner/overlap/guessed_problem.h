#pragma once

#include <cstdint>

#include "graph/tensor_versions.h"
#include "planner/problem/model_problem.h"

namespace shardplan {

/// A guess of what communication takes beside kernels, in percent of what it takes alone.
struct Guess {
  std::int64_t weights;            // gathers of weights that are stored in pieces, and sums of gradients
  std::int64_t new_weights;        // gathers of new weights, behind which nothing is left to compute
  std::int64_t activations = 100;  // for which kernels wait
};

/// Of weights and gradients most is hidden, of what comes last nothing.
inline constexpr Guess kMostlyHidden{25, 100};

/// The problem in which communication costs what is guessed, so that a choice costs about what its step takes. What operators
/// communicate themselves counts whole.
StrategyProblem guessed_problem(const ModelProblem& problem, const OperatorGraph& graph, const TensorVersions& versions,
                                const Guess& guess);

/// What one choice costs in that problem.
Picoseconds guessed_step(const ModelProblem& problem, const OperatorGraph& graph, const TensorVersions& versions,
                         const Guess& guess, const Choice& choice);

}  // namespace shardplan
