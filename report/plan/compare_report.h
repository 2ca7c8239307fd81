#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/plan.h"

namespace shardplan {

/// One row of `compare`: a plan, or a baseline of which only the figures are known.
struct ComparedPlan {
  std::string name;       // "level 0", "propagation", "data_parallel"
  std::string objective;  // "ratio", "memory", "speed"; empty for baselines
  StepTime time;
  Bytes peak = 0;
  bool fits = true;
  std::optional<double> gap;                // in the row's own objective
  std::optional<MindSporeValue> mindspore;  // what MindSpore's cost model says of it; nothing if it has no such plan
  const Plan* plan = nullptr;               // for what differs; may be null
};

ComparedPlan compared(std::string name, const Plan& plan);
ComparedPlan compared(const Baseline& baseline);

struct CompareOptions {
  bool colour = false;
  bool all = false;  // every layout and operator that differs
};

/// What `shardplan compare` prints: plans side by side, the best figure of each column in bold, and below the table one
/// sentence on each plan: which parallelism it is, and in how much it differs from the first; with `all` the layouts
/// and strategies that differ, too, repeats folded. A column in weighted bytes is added where a row has a value of
/// MindSpore's cost model. Requires one plan at least, all of one graph on one mesh.
std::string compare_report(const std::vector<ComparedPlan>& plans, const CompareOptions& options = {});
/// The same as one JSON document.
std::string compare_json(const std::vector<ComparedPlan>& plans);

/// One line of what differs.
struct Difference {
  std::string name;   // folded: "layers.*.attn.qkv.weight", or several joined by ", "
  std::string words;  // "stored [{pcie, hccs}, {}] instead of [{}, {}]", "b over pcie, hccs instead of ..."
};
/// In what `plan` differs from `from`: stored tensors, then operators. `num_operators`, if given, receives how many
/// operators differ.
std::vector<Difference> differences(const Plan& from, const Plan& plan, std::size_t* num_operators = nullptr);

}  // namespace shardplan
