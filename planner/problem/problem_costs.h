#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/index.h"
#include "costmodel/cost_model.h"
#include "costmodel/kernel_fusion.h"
#include "layouts/redistribution/redistribution_planner.h"
#include "planner/problem/layout_tables.h"
#include "solver/strategy_problem.h"
#include "strategies/strategy.h"

namespace shardplan {

/// A strategy that takes longer (40 hours) is none; so sums of a step stay far below what 64 bits hold.
constexpr std::int64_t kLongestStep = kForbidden / 2;

/// Whose costs are asked for: one operator with each of these strategies.
struct CostedOperator {
  std::shared_ptr<const Operation> operation;
  std::shared_ptr<const std::vector<Strategy>> strategies;
  KernelTraffic traffic;
};

struct ProblemCosts {
  std::vector<StrategyTable> tables;                                 // by operator
  IdVector<MatrixRequestId, std::optional<CostMatrix>> of_requests;  // nothing where all would be zero
};

/// What strategies and redistributions of a problem cost, whose nodes and edges are known. None depends on another, so they
/// are found side by side; a planner keeps what it learns, so that each thread has one of its own: the first has
/// `redistributions`, which keeps no times. Throws what the first operator's costs throw.
ProblemCosts problem_costs(const std::vector<CostedOperator>& operators, const LayoutTables& layouts,
                           const CostModel& costs, RedistributionPlanner& redistributions);

/// Adds to each strategy what it costs to run so often what `table` says of one run.
void add_runs(const StrategyTable& table, std::int64_t runs, StrategyTable& sum);

}  // namespace shardplan
