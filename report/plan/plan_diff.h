#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan.h"

namespace shardplan {

/// Two plans compared, operators and tensors matched by name: one model planned twice (other options, another cluster,
/// another version of the file), or two models that share names.
struct PlanDiff {
  /// A quantity in both plans.
  struct Change {
    std::string name;
    std::int64_t before = 0;
    std::int64_t after = 0;

    std::int64_t change() const { return after - before; }
  };
  /// Operators or tensors with different strategies or layouts; copies in the layers of a repeat are joined, and so are
  /// names with the same texts.
  struct Difference {
    std::vector<std::string> names;  // folded: "layers.*.up.weight"
    std::string before;              // "[{}, {hccs}]", "m over dp, k over mp", "" if the plan has none of that name
    std::string after;
    std::int64_t bytes = 0;  // memory of the stored tensors on one device, all copies together
  };

  std::vector<Change> path;    // picoseconds by class of the critical path (report/metrics/step_path.h); they sum to
                               // the change of the step; empty unless collectives run beside kernels in both plans
  std::vector<Change> blocks;  // picoseconds of a step attributed to each block of the model; changed ones only
  std::vector<Change> collectives;  // picoseconds of each kind of collective, by origin; changed ones only
  std::vector<Change> holders;      // bytes alive at each plan's peak; changed ones only
  std::vector<Difference> stored;   // inputs, parameters and optimizer states
  std::vector<Difference> operators;
  std::size_t num_differing = 0;  // differing operators, copies counted
  std::size_t num_operators = 0;  // operators that either plan has

  bool is_empty() const {
    return path.empty() && blocks.empty() && collectives.empty() && stored.empty() && operators.empty();
  }
};

/// The changes from `before` to `after`, ordered by size, and the differences in the models' order.
PlanDiff plan_diff(const Plan& before, const Plan& after);

struct DiffOptions {
  std::string before = "before";  // the plans' names in the table's header
  std::string after = "after";
  bool colour = false;
  bool all = false;  // every line, not just the largest
};

/// The output of `shardplan diff`: the commands' options, time and memory side by side, then the differences.
std::string diff_report(const Plan& before, const Plan& after, const DiffOptions& options = {});
/// The same as one JSON document, "schema": "shardplan.diff/1".
std::string diff_json(const Plan& before, const Plan& after, const DiffOptions& options = {});

}  // namespace shardplan
