#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan.h"

namespace shardplan {

/// Two plans beside each other, operators and tensors matched by name: of one model planned twice (other options, another
/// cluster, another version of the file), or of two models that share names.
struct PlanDiff {
  /// A quantity of both plans.
  struct Change {
    std::string name;
    std::int64_t before = 0;
    std::int64_t after = 0;

    std::int64_t change() const { return after - before; }
  };
  /// What is laid out or sharded in another way; copies in the layers of a repeat are one, and so are names with the same
  /// words.
  struct Difference {
    std::vector<std::string> names;  // folded: "layers.*.up.weight"
    std::string before;              // "[{}, {hccs}]", "m over dp, k over mp", "" where the plan has none of that name
    std::string after;
    std::int64_t bytes = 0;  // memory on one device that stored tensors take, all copies together
  };

  std::vector<Change> path;    // picoseconds of each class of the critical path (report/metrics/step_path.h): together
                               // the change of the step; empty unless collectives run beside kernels in both plans
  std::vector<Change> blocks;  // picoseconds of a step spent for each block of the model; those that change
  std::vector<Change> collectives;  // picoseconds of each kind of collective, by where it comes from; those that change
  std::vector<Change> holders;      // bytes alive at each plan's peak; those that change
  std::vector<Difference> stored;   // inputs, parameters and optimizer states
  std::vector<Difference> operators;
  std::size_t num_differing = 0;  // operators that differ, copies counted
  std::size_t num_operators = 0;  // those that either plan has

  bool is_empty() const {
    return path.empty() && blocks.empty() && collectives.empty() && stored.empty() && operators.empty();
  }
};

/// From `before` to `after`; changes ordered by size, differences by the models' order.
PlanDiff plan_diff(const Plan& before, const Plan& after);

struct DiffOptions {
  std::string before = "before";  // the plans' names in the table's head
  std::string after = "after";
  bool colour = false;
  bool all = false;  // every line, not just the largest
};

/// What `shardplan diff` prints: what was asked for, time and memory side by side, then what differs.
std::string diff_report(const Plan& before, const Plan& after, const DiffOptions& options = {});
/// The same as one JSON document, "schema": "shardplan.diff/1".
std::string diff_json(const Plan& before, const Plan& after, const DiffOptions& options = {});

}  // namespace shardplan
