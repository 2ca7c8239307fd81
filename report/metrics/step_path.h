#pragma once

#include <array>
#include <string>
#include <vector>

#include "planner/plan.h"
#include "program/critical_path.h"

namespace shardplan {

/// What a step's critical path runs through, in classes:
///   matmul, attention, convolution    contractions, as the cluster file's efficiencies tell them apart
///   elementwise                       all other kernels: activation functions, norms, softmax, look-ups, losses, sums
///   update                            kernels of the optimizer
///   all_gather of weights, ...        collectives by kind and by what they move (report/text/origin_words.h)
///   halo exchange, send
struct PathClass {
  std::string name;
  std::array<Picoseconds, 3> passes{};  // of a step, by `Pass`
  Picoseconds slowed = 0;               // of all of them, lost to what runs beside it

  Picoseconds time() const { return passes[0] + passes[1] + passes[2]; }
};

/// The critical path of a plan whose collectives run beside its kernels. Empty for others: without overlap all of a step is
/// on it, one instruction after the other, which the table of times says; workers (`place`) wait for each other, of which
/// the table of workers tells.
CriticalPath step_path(const Plan& plan);

/// Its classes, the longest first; together they take the step. Empty where the path is.
std::vector<PathClass> path_classes(const Plan& plan, const CriticalPath& path);

}  // namespace shardplan
