#include "planner/problem/problem_costs.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/side_by_side.h"
#include "costmodel/operator_steps.h"
#include "layouts/shape.h"

namespace shardplan {
namespace {

/// More threads would mostly relearn what the others already know.
constexpr std::size_t kMostThreads = 4;
/// This many matrix entries take as long as starting a thread and building its planner's first graphs. A strategy of
/// an operator takes as long as this many entries.
constexpr std::size_t kWorthAThread = 100'000;
constexpr std::size_t kEntriesPerStrategy = 100;

StrategyTable table_of(const CostedOperator& op, const CostModel& costs, RedistributionPlanner& redistributions) {
  StrategyTable table;
  table.costs.reserve(op.strategies->size());
  try {
    for (const Strategy& strategy : *op.strategies) {
      const OperatorSteps steps = operator_steps(op.operation, strategy, costs, redistributions, op.traffic);
      const bool is_too_long = steps.computation > kLongestStep || steps.communication > kLongestStep;
      table.costs.push_back(is_too_long ? Cost{0, kForbidden} : Cost{steps.computation, steps.communication});
    }
  } catch (const InputError& error) {
    throw InputError(op.place, "{}: {}", op.name, error.diagnostics()[0].message);
  }
  return table;
}

std::optional<CostMatrix> matrix_of(const LayoutTables& layouts, const MatrixRequest& request,
                                    RedistributionPlanner& redistributions) {
  const std::vector<ListedLayout>& from = layouts.entries(request.from);
  const std::vector<ListedLayout>& to = layouts.entries(request.to);
  std::vector<std::int64_t> costs;
  if (request.kind == EdgeKind::kShares) {
    costs.assign(from.size() * to.size(), 0);
  } else if (request.kind == EdgeKind::kKeptAs) {
    for (const ListedLayout& one : from) {
      TensorLayout kept = layouts[one.layout];
      kept.partial.clear();
      for (const ListedLayout& other : to) costs.push_back(layouts[other.layout] == kept ? 0 : kForbidden);
    }
  } else {
    const WholeTensor& tensor = layouts[request.type];
    costs = redistributions.times(layouts.layouts_of(request.from), layouts.layouts_of(request.to), tensor.shape,
                                  tensor.element_bytes);
    for (std::int64_t& cost : costs) cost = repeated_cost(cost, request.runs);
  }
  const bool may_share = std::any_of(to.begin(), to.end(), [](const ListedLayout& entry) { return entry.shares; });
  for (std::size_t i = 0; may_share && i < from.size(); ++i) {
    for (std::size_t j = 0; j < to.size(); ++j) {
      std::int64_t& cost = costs[i * to.size() + j];
      const bool says_never =
          request.kind != EdgeKind::kMadeOrShared && to[j].shares != (from[i].layout == to[j].layout);
      if (says_never) {
        cost = kForbidden;
      } else if (to[j].shares) {
        cost = 0;
      }
    }
  }
  const bool is_zero = std::all_of(costs.begin(), costs.end(), [](std::int64_t c) { return c == 0; });
  if (is_zero) return std::nullopt;
  return CostMatrix{static_cast<std::uint32_t>(from.size()), static_cast<std::uint32_t>(to.size()), std::move(costs)};
}

/// Redistributions of tensors of equal size share what a planner learns about their times.
struct SameSize {
  std::vector<MatrixRequestId> requests;
  std::size_t entries = 0;
};

/// The largest first, so that no thread is left with it at the end.
std::vector<SameSize> by_size(const LayoutTables& layouts) {
  std::map<Bytes, SameSize> sizes;
  for (const MatrixRequestId id : layouts.requests().ids()) {
    const MatrixRequest& request = layouts.requests()[id];
    const WholeTensor& tensor = layouts[request.type];
    SameSize& same = sizes[num_bytes(tensor.shape, tensor.element_bytes)];
    same.requests.push_back(id);
    same.entries += layouts.entries(request.from).size() * layouts.entries(request.to).size();
  }
  std::vector<SameSize> result;
  for (auto& [bytes, same] : sizes) result.push_back(std::move(same));
  std::stable_sort(result.begin(), result.end(),
                   [](const SameSize& a, const SameSize& b) { return a.entries > b.entries; });
  return result;
}

}  // namespace

ProblemCosts problem_costs(const std::vector<CostedOperator>& operators, const LayoutTables& layouts,
                           const CostModel& costs, RedistributionPlanner& redistributions) {
  const std::vector<SameSize> sizes = by_size(layouts);
  std::size_t work = 0;
  for (const SameSize& same : sizes) work += same.entries;
  for (const CostedOperator& op : operators) work += op.strategies->size() * kEntriesPerStrategy;
  const std::size_t threads = std::min(num_processors(kMostThreads), work / kWorthAThread + 1);
  std::vector<std::unique_ptr<RedistributionPlanner>> others(threads);
  const auto planner_of = [&](std::size_t thread) -> RedistributionPlanner& {
    if (thread == 0) return redistributions;
    if (!others[thread]) others[thread] = redistributions.another();
    return *others[thread];
  };

  ProblemCosts result;
  result.tables.resize(operators.size());
  result.of_requests.resize(layouts.requests().size());
  side_by_side(threads, operators.size() + sizes.size(), [&](std::size_t thread, std::size_t i) {
    RedistributionPlanner& planner = planner_of(thread);
    if (i < operators.size()) {
      result.tables[i] = table_of(operators[i], costs, planner);
      return;
    }
    for (const MatrixRequestId id : sizes[i - operators.size()].requests) {
      result.of_requests[id] = matrix_of(layouts, layouts.requests()[id], planner);
    }
    planner.forget_times();
  });
  return result;
}

void add_runs(const StrategyTable& table, std::int64_t runs, StrategyTable& sum) {
  const auto add = [&](std::int64_t cost, std::int64_t& to) {
    to = std::min(kForbidden, to + repeated_cost(cost, runs));
  };
  for (std::size_t i = 0; i < table.costs.size(); ++i) {
    add(table.costs[i].computation, sum.costs[i].computation);
    add(table.costs[i].communication, sum.costs[i].communication);
  }
}

}  // namespace shardplan
