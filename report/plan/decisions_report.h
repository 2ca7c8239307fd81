#pragma once

#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "report/plan/explain_report.h"

namespace shardplan {

/// One decision of the search: the strategy that an operator and its copies in other layers take.
struct Decision {
  OperatorId op;                  // the first copy
  std::string name;               // folded: "layers.*.up.matmul"
  std::size_t copies = 1;         // operators that take the strategy
  Picoseconds computation = 0;    // all copies in one step
  Picoseconds communication = 0;  // the collectives that bring their operands and complete or move their results

  Picoseconds time() const { return computation + communication; }
};

/// The decisions whose operators and collectives take most of the step, costliest first, at most `most` of them.
std::vector<Decision> costliest_decisions(const Plan& plan, std::size_t most);

/// A decision and the effects of its alternatives.
struct ExplainedDecision {
  Decision decision;
  Explanation explanation;
};

/// Searches alternatives of the costliest decisions; `progress`, if given, receives a line before each.
std::vector<ExplainedDecision> explain_costliest(const ModelPlanner& planner, const Plan& plan, std::size_t most,
                                                 std::stop_token stop = {},
                                                 const std::function<void(const std::string&)>& progress = {});

/// The output of `shardplan explain PLAN`: each decision with its share of the step, the chosen strategy, and the
/// nearest alternatives (all of them with `options.all`).
std::string decisions_report(const Plan& plan, const std::vector<ExplainedDecision>& decisions,
                             const ExplainOptions& options = {});
/// The same as one JSON document with all alternatives, "schema": "shardplan.decisions/1".
std::string decisions_json(const Plan& plan, const std::vector<ExplainedDecision>& decisions);

}  // namespace shardplan
