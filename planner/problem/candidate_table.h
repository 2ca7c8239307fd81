#pragma once

#include <memory>
#include <vector>

#include "costmodel/cost_model.h"
#include "planner/problem/layout_tables.h"
#include "solver/strategy_problem.h"
#include "strategies/enumerate.h"

namespace shardplan {

/// Everything that equal operators with equal candidates share.
struct CandidateTable {
  OperatorId first;  // one of them
  OperationId operation;
  SharedValue<KernelTraffic> traffic;
  PartialGroups groups;         // of an enumeration
  std::vector<Strategy> fixed;  // or the strategies it was narrowed to
  std::shared_ptr<const std::vector<Strategy>> strategies;
  bool complete = true;
  StrategyTableId table;         // filled with costs at the end
  std::vector<ListId> operands;  // layouts by strategy
  std::vector<ListId> results;
  std::vector<UsageTableId> operand_usage;
  std::vector<UsageTableId> result_usage;
};

}  // namespace shardplan
