#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/tensor_versions.h"
#include "planner/problem/global_degrees.h"
#include "planner/problem/model_problem.h"
#include "planner/search/level_search.h"
#include "solver/limits.h"
#include "solver/tied_problem.h"

namespace shardplan {

/// What plans of one setting for a whole model are searched in.
struct KindSearch {
  const ModelProblem& free;  // layers not tied
  const OperatorGraph& graph;
  const TensorVersions& versions;
  const DeviceMesh& mesh;
  const TiedProblem& tied;   // of `free`, its costs about what steps take
  Picoseconds too_long = 0;  // what takes so long is of no interest
  LevelOptions options;      // of each search; its work is made less
  const Deadline& deadline;  // after which none begins
};

struct FoundKinds {
  std::int64_t searched = 0;    // kinds that the model has
  std::vector<Choice> choices;  // of `free`: the best of each kind, the shortest first
};

/// The best choice of each of these kinds (planner/overlap/kind_problems.h). None depends on another one: they are searched
/// side by side, and the answer is the same for any number of processors.
FoundKinds search_kinds(std::span<const GlobalDegrees> kinds, const KindSearch& search);

}  // namespace shardplan
