#pragma once

#include <array>
#include <string>
#include <vector>

#include "planner/plan.h"
#include "program/critical_path.h"

namespace shardplan {

/// The classes of kernels and collectives on a step's critical path:
///   matmul, attention, convolution    contractions, by the efficiencies that the cluster file distinguishes
///   elementwise                       all other kernels: activation functions, norms, softmax, look-ups, losses, sums
///   update                            kernels of the optimizer
///   all_gather of weights, ...        collectives by kind and by what they move (report/text/origin_words.h)
///   halo exchange, send
struct PathClass {
  std::string name;
  std::array<Picoseconds, 3> passes{};  // of a step, by `Pass`
  Picoseconds slowed = 0;               // the part of all passes lost because something else runs at the same time

  Picoseconds time() const { return passes[0] + passes[1] + passes[2]; }
};

/// The critical path of a plan whose collectives run beside its kernels. Empty for others: without overlap the whole
/// step is on it, one instruction after the other, as the table of times shows; workers (`place`) wait for each other,
/// as the table of workers shows.
CriticalPath step_path(const Plan& plan);

/// The classes of the path, longest first; their times sum to the step. Empty if the path is.
std::vector<PathClass> path_classes(const Plan& plan, const CriticalPath& path);

}  // namespace shardplan
