#include "solver/presolve/dominance.h"

#include <algorithm>
#include <numeric>

#include "solver/core/vector_kernels.h"

namespace shardplan {
namespace {

constexpr std::uint64_t kDominanceWork = 30'000'000;  // comparisons per distinct node
constexpr std::size_t kColumnsTogether = 64;

/// Whether row `better` is at most row `worse` plus `allowance` everywhere; subtracts what it needs from the allowance.
/// Rows are normalised (each has a zero, none is negative), so no edge needs less than nothing.
bool fits(const CostMatrix& table, std::size_t better, std::size_t worse, std::int64_t& allowance,
          std::uint64_t& work) {
  const std::int64_t* const b = table.costs.data() + better * table.columns;
  const std::int64_t* const w = table.costs.data() + worse * table.columns;
  std::int64_t needed = 0;
  for (std::size_t begin = 0; begin < table.columns; begin += kColumnsTogether) {
    const std::size_t count = std::min(kColumnsTogether, table.columns - begin);
    needed = std::max(needed, largest_excess(b + begin, w + begin, kForbidden, count));
    if (needed > allowance) {
      std::size_t column = begin;
      while (w[column] >= kForbidden || b[column] - w[column] <= allowance) ++column;
      work += column;
      return false;
    }
  }
  work += table.columns;
  allowance -= needed;
  return true;
}

/// A quick test that rejects most pairs, done for one value against all kept values at once: in the column where the
/// value's row is smallest, the other row must not exceed it by more than the allowance. The rows of a table have their
/// minima in few columns, so only these are stored.
class LeastColumns {
 public:
  LeastColumns(const std::vector<std::int64_t>& costs, const std::vector<TableRef>& rows) : costs_(costs) {
    for (const TableRef& table : rows) tables_.push_back(least_columns(*table));
  }

  /// By kept value, what remains of the allowance of each table at this value's smallest column; -1 where it is
  /// exceeded.
  const std::vector<std::int64_t>& allowances(std::uint32_t value) {
    allowances_.resize(kept_costs_.size());
    for (std::size_t at = 0; at < kept_costs_.size(); ++at) allowances_[at] = costs_[value] - kept_costs_[at];
    for (const Table& table : tables_) {
      const Least& least = table.least[value];
      if (least.cost >= kForbidden) continue;
      take_excess(table.kept.data() + least.column * costs_.size(), least.cost, kept_costs_.size(), allowances_.data());
    }
    return allowances_;
  }
  void keep(std::uint32_t value) {
    for (Table& table : tables_) {
      const std::int64_t* const row = table.whole->costs.data() + value * table.whole->columns;
      std::int64_t* out = table.kept.data() + kept_costs_.size();
      for (const std::uint32_t column : table.columns) {
        *out = row[column];
        out += costs_.size();
      }
    }
    kept_costs_.push_back(costs_[value]);
  }

 private:
  struct Least {
    std::int64_t cost = 0;
    std::size_t column = 0;  // position in `columns`
  };
  struct Table {
    const CostMatrix* whole = nullptr;
    std::vector<Least> least;            // by value
    std::vector<std::uint32_t> columns;  // where some row has its minimum
    std::vector<std::int64_t> kept;      // the entries of kept values, column by column
  };

  static Table least_columns(const CostMatrix& whole) {
    constexpr std::size_t kNowhere = SIZE_MAX;
    Table table{&whole, {}, {}, {}};
    std::vector<std::size_t> place(whole.columns, kNowhere);
    for (std::size_t row = 0; row < whole.rows; ++row) {
      const std::int64_t* const begin = whole.costs.data() + row * whole.columns;
      const std::int64_t* const end = begin + whole.columns;
      const std::int64_t* at = begin + first_zero(begin, whole.columns);  // of a normalised row
      if (at == end) at = std::min_element(begin, end);
      const auto column = static_cast<std::uint32_t>(at - begin);
      if (place[column] == kNowhere) {
        place[column] = table.columns.size();
        table.columns.push_back(column);
      }
      table.least.push_back({*at, place[column]});
    }
    table.kept.resize(table.columns.size() * whole.rows);
    return table;
  }

  const std::vector<std::int64_t>& costs_;
  std::vector<Table> tables_;
  std::vector<std::int64_t> kept_costs_, allowances_;
};

std::vector<std::uint32_t> dominated_values(const std::vector<std::int64_t>& costs, const std::vector<TableRef>& rows,
                                            const std::vector<UsageSegment>& memory) {
  std::vector<std::uint32_t> order(costs.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return costs[a] < costs[b]; });
  LeastColumns least(costs, rows);
  std::vector<std::uint32_t> kept, dominated;
  std::uint64_t work = 0;
  const auto is_dominated = [&](std::uint32_t value) {
    const std::vector<std::int64_t>& allowances = least.allowances(value);
    for (std::size_t at = 0; at < kept.size(); ++at) {
      work += memory.size() + 1;
      if (allowances[at] < 0) continue;
      const std::uint32_t better = kept[at];
      const bool holds_no_more = std::all_of(memory.begin(), memory.end(), [&](const UsageSegment& segment) {
        return (*segment.bytes)[better] <= (*segment.bytes)[value];
      });
      std::int64_t allowance = costs[value] - costs[better];
      if (holds_no_more && std::all_of(rows.begin(), rows.end(), [&](const TableRef& table) {
            return fits(*table, better, value, allowance, work);
          })) {
        return true;
      }
    }
    return false;
  };
  for (const std::uint32_t value : order) {
    if (work < kDominanceWork && is_dominated(value)) {
      dominated.push_back(value);
    } else {
      kept.push_back(value);
      least.keep(value);
    }
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
    if (graph.remembers_much()) {
      known.clear();
      graph.forget_results();
    }
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
    // The neighbours' tables shrink at once, so that two nodes do not both drop values because of each other's.
    if (!dominated->empty()) graph.settle();
    if (graph.is_infeasible()) break;
  }
  return num_removed;
}

}  // namespace shardplan
