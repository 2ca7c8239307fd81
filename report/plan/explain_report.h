#pragma once

#include <cstddef>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "planner/model_planner.h"
#include "planner/plan.h"

namespace shardplan {

/// Why one operator is sharded as it is, and the costs of its other strategies: each alternative is the best plan with
/// this operator's strategy forced.
struct Explanation {
  const Plan* plan = nullptr;
  OperatorId op;

  struct Alternative {
    Strategy strategy;
    StepTime time;
    Bytes peak = 0;
    bool fits = true;
  };
  std::vector<Alternative> alternatives;  // in any order, without the chosen strategy
  bool is_complete = true;                // false: stopped early, so that alternatives are missing
};

/// Searches the best plan for every other strategy of one operator.
Explanation explain(const ModelPlanner& planner, const Plan& plan, OperatorId op, std::stop_token stop = {});

/// The alternatives, cheapest first in the plan's objective.
std::vector<const Explanation::Alternative*> by_cost(const Explanation& explanation);

struct ExplainOptions {
  bool colour = false;
  bool all = false;  // every alternative, not just the nearest
};

/// The output of `shardplan explain`: the operator, its layouts and times, the collectives it needs and which operators
/// require them, and the alternatives, cheapest first.
std::string explain_report(const Explanation& explanation, const ExplainOptions& options = {});
std::string explain_json(const Explanation& explanation);

/// The alternatives one below the other, cheapest first, with the change each makes to the plan: at most `most` of
/// them, indented by `indent` blanks. Empty if there is none.
std::string alternatives_table(const Explanation& explanation, std::size_t most, std::size_t indent,
                               bool colour = false);

/// In place of the table if there are none: that there are none, or that an interrupted search found none.
std::string no_alternatives(const Explanation& explanation);

/// Who set the operator's strategy: "set by the user", "data parallel by its mode", "follows fc1.matmul", "chosen by the
/// search".
std::string decided_by(const Plan& plan, OperatorId op);

/// Why an alternative has its cost, in a few words: "half of the work done twice", "adds up head, 1.5 GiB".
std::string alternative_reason(const Plan& plan, OperatorId op, const Strategy& strategy);

}  // namespace shardplan
