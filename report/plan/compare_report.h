#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/plan.h"

namespace shardplan {

/// One row of `compare`: a plan, or a baseline with known figures only.
struct ComparedPlan {
  std::string name;       // "level 0", "propagation", "data_parallel"
  std::string objective;  // "ratio", "memory", "speed": also by which level a baseline's order was made; may be empty
  StepTime time;
  Bytes peak = 0;
  bool fits = true;
  bool ended_early = false;                 // a time limit or an interruption ended its search
  std::optional<double> gap;                // in the row's own objective
  std::optional<MindSporeValue> mindspore;  // value in MindSpore's cost model; empty if it has no such plan
  const Plan* plan = nullptr;               // to list differences; may be null
};

ComparedPlan compared(std::string name, const Plan& plan);
ComparedPlan compared(const Baseline& baseline);

struct CompareOptions {
  bool colour = false;
  bool all = false;  // every layout and operator that differs
};

/// The output of `shardplan compare`: plans side by side, the best figure of each column in bold, and below the table
/// one sentence on each plan: its kind of parallelism, and how much it differs from the first plan. `all` also lists
/// the layouts and strategies that differ, repeats folded. A column in weighted bytes is added if a row has a value of
/// MindSpore's cost model. Requires at least one plan, and all plans of one graph on one mesh.
std::string compare_report(const std::vector<ComparedPlan>& plans, const CompareOptions& options = {});
/// The same as one JSON document.
std::string compare_json(const std::vector<ComparedPlan>& plans);

/// One line of the differences.
struct Difference {
  std::string name;   // folded: "layers.*.attn.qkv.weight", or several joined by ", "
  std::string words;  // "stored [{pcie, hccs}, {}] instead of [{}, {}]", "b over pcie, hccs instead of ..."
};
/// Where `plan` differs from `from`: stored tensors, then operators. `num_operators`, if given, receives the number of
/// operators that differ.
std::vector<Difference> differences(const Plan& from, const Plan& plan, std::size_t* num_operators = nullptr);

}  // namespace shardplan
