#include "solver/presolve/dominance.h"

#include <algorithm>
#include <numeric>

namespace shardplan {
namespace {

constexpr std::uint64_t kDominanceWork = 30'000'000;  // comparisons per distinct node

/// Whether row `better` is at most row `worse` + `allowance` everywhere; takes what it needs of the allowance. Rows are
/// normalised (each has a zero, none is negative), so that every edge needs at least nothing.
bool fits(const CostMatrix& table, std::size_t better, std::size_t worse, std::int64_t& allowance,
          std::uint64_t& work) {
  const std::int64_t* const b = table.costs.data() + better * table.columns;
  const std::int64_t* const w = table.costs.data() + worse * table.columns;
  std::int64_t needed = 0;
  for (std::size_t column = 0; column < table.columns; ++column) {
    if (w[column] >= kForbidden) continue;
    needed = std::max(needed, b[column] - w[column]);
    if (needed > allowance) {
      work += column;
      return false;
    }
  }
  work += table.columns;
  allowance -= needed;
  return true;
}

std::vector<std::uint32_t> dominated_values(const std::vector<std::int64_t>& costs, const std::vector<TableRef>& rows,
                                            const std::vector<UsageSegment>& memory) {
  std::vector<std::uint32_t> order(costs.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return costs[a] < costs[b]; });
  // Most pairs fail where the worse row is least, so these columns are looked at first.
  std::vector<std::size_t> least_columns(rows.size() * costs.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t value = 0; value < costs.size(); ++value) {
      const auto row = rows[i]->costs.begin() + static_cast<std::ptrdiff_t>(value * rows[i]->columns);
      least_columns[value * rows.size() + i] =
          static_cast<std::size_t>(std::min_element(row, row + rows[i]->columns) - row);
    }
  }
  const auto fails_at_least = [&](std::uint32_t better, std::uint32_t value) {
    std::int64_t allowance = costs[value] - costs[better];
    for (std::size_t i = 0; i < rows.size() && allowance >= 0; ++i) {
      const std::size_t column = least_columns[value * rows.size() + i];
      const std::int64_t least = rows[i]->at(value, column);
      if (least < kForbidden) allowance -= std::max<std::int64_t>(0, rows[i]->at(better, column) - least);
    }
    return allowance < 0;
  };
  std::vector<std::uint32_t> kept, dominated;
  std::uint64_t work = 0;
  for (const std::uint32_t value : order) {
    const bool is_dominated = work < kDominanceWork && std::any_of(kept.begin(), kept.end(), [&](std::uint32_t better) {
                                work += memory.size() + 1;
                                if (fails_at_least(better, value)) return false;
                                for (const UsageSegment& segment : memory) {
                                  if ((*segment.bytes)[better] > (*segment.bytes)[value]) return false;
                                }
                                std::int64_t allowance = costs[value] - costs[better];
                                return std::all_of(rows.begin(), rows.end(), [&](const TableRef& table) {
                                  return fits(*table, better, value, allowance, work);
                                });
                              });
    (is_dominated ? dominated : kept).push_back(value);
  }
  std::sort(dominated.begin(), dominated.end());
  return dominated;
}

}  // namespace

std::size_t remove_dominated_values(ReductionGraph& graph, const Deadline& deadline) {
  Memo<Positions> known;
  std::size_t num_removed = 0;
  for (std::size_t id = 0; id < graph.num_nodes(); ++id) {
    ReductionGraph::Node& node = graph.node(id);
    if (!node.is_alive || !node.is_changed || node.costs.size() < 2) continue;
    if (deadline.is_over()) break;
    node.is_changed = false;
    graph.normalise_costs(id);
    std::vector<TableRef> rows;
    for (const std::uint32_t edge : graph.edges_of(id)) rows.push_back(graph.oriented(edge, id));
    Memo<Positions>::Key key(rows.begin(), rows.end());
    key.push_back(graph.shared().numbers.intern(std::vector(node.costs)));
    for (const UsageSegment& segment : node.memory) key.push_back(segment.bytes);
    const Positions& dominated = known.get(std::move(key), [&] {
      return graph.shared().positions.intern(dominated_values(node.costs, rows, node.memory));
    });
    for (const std::uint32_t value : *dominated) graph.mark_for_removal(id, value);
    num_removed += dominated->size();
    // Tables of the neighbours shrink at once, so that two nodes do not drop values on the strength of each other's.
    if (!dominated->empty()) graph.settle();
    if (graph.is_infeasible()) break;
  }
  return num_removed;
}

}  // namespace shardplan
