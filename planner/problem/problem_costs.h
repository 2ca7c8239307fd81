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

/// Strategies that take longer (40 hours) are dropped, so that sums over a step stay far below the limits of 64 bits.
constexpr std::int64_t kLongestStep = kForbidden / 2;

/// An operator, and the strategies whose costs are requested.
struct CostedOperator {
  std::shared_ptr<const Operation> operation;
  std::shared_ptr<const std::vector<Strategy>> strategies;
  KernelTraffic traffic;
  SourcePlace place = {};  // for errors, with the name
  SharedText name = {};
};

struct ProblemCosts {
  std::vector<StrategyTable> tables;                                 // by operator
  IdVector<MatrixRequestId, std::optional<CostMatrix>> of_requests;  // nothing if all entries would be zero
};

/// The costs of all strategies and redistributions of a problem whose nodes and edges are known. They are independent
/// and are computed side by side. A redistribution planner caches what it computes, so each thread has its own; the
/// first one is `redistributions`, which caches no times. Throws the first operator's InputError, with its name.
ProblemCosts problem_costs(const std::vector<CostedOperator>& operators, const LayoutTables& layouts,
                           const CostModel& costs, RedistributionPlanner& redistributions);

/// Adds to each strategy in `sum` the cost of `runs` runs, given the cost of one run in `table`.
void add_runs(const StrategyTable& table, std::int64_t runs, StrategyTable& sum);

}  // namespace shardplan
