#include "solver/presolve/presolve.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"
#include "solver/presolve/reduction_memory.h"

namespace shardplan {
namespace {

constexpr std::uint64_t kDominanceWork = 30'000'000;  // comparisons per distinct node
constexpr std::size_t kAlwaysJoin = 4096;             // entries of a table that degree two may make in any case

/// Whether row `better` is at most row `worse` + `allowance` everywhere; takes what it needs of the allowance. Rows are
/// normalised (each has a zero, none is negative), so that every edge needs at least nothing.
bool fits(const Table& table, std::size_t better, std::size_t worse, std::int64_t& allowance, std::uint64_t& work) {
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

Presolve::Presolve(const StrategyProblem& problem, const Objective& objective, const Deadline& deadline,
                   std::optional<std::int64_t> known_cost, bool reduce_problem, Memory memory)
    : rules_deadline_(deadline.part(0.75)),
      graph_(problem, objective, known_cost, memory == Memory::kKept, deadline),
      known_cost_(known_cost) {
  statistics_.stage = "presolve";
  const auto count = [&](const char* name, std::int64_t value) { statistics_.figures.emplace_back(name, value); };
  count("nodes", static_cast<std::int64_t>(graph_.num_nodes()));
  count("edges", static_cast<std::int64_t>(problem.edges.size()));
  count("times", static_cast<std::int64_t>(problem.memory_limits.size()));
  graph_.settle();
  entry_limit_ = 2 * graph_.num_entries() + (std::int64_t{1} << 24);
  if (reduce_problem) {
    reduce();
  } else {
    settle_memory();
  }
  if (is_infeasible()) return;
  build_core();
  count("merged followers", merged_);
  count("dominated values", dominated_);
  count("folded leaves", folded_);
  count("removed between", removed_between_);
  count("core nodes", static_cast<std::int64_t>(core_.num_nodes()));
  count("core edges", static_cast<std::int64_t>(core_.neighbours.size() / 2));
  count("core values", static_cast<std::int64_t>(core_.costs.size()));
  count("core times", static_cast<std::int64_t>(core_.limits.size()));
  count("core matrices", static_cast<std::int64_t>(core_.matrices->size()));
  count("core sweep entries", static_cast<std::int64_t>(core_.sweep_work));
  count("constant cost", constant_cost());
}

void Presolve::settle_memory() {
  for (;;) {
    simplify_memory(graph_);
    std::size_t values = 0;
    for (std::size_t id = 0; id < graph_.num_nodes(); ++id) values += graph_.num_values(id);
    graph_.settle();
    if (is_infeasible()) return;
    std::size_t left = 0;
    for (std::size_t id = 0; id < graph_.num_nodes(); ++id) left += graph_.num_values(id);
    if (left == values) return;
  }
}

void Presolve::reduce() {
  const std::size_t before = graph_.num_alive();
  graph_.merge_followers(entry_limit_, rules_deadline_);
  merged_ = static_cast<std::int64_t>(before - graph_.num_alive());
  graph_.forget_results();
  for (int round = 0; round < 64 && !is_infeasible() && !rules_deadline_.is_over(); ++round) {
    graph_.remove_singles();
    if (is_infeasible()) return;
    settle_memory();
    if (is_infeasible()) return;
    graph_.remove_singles();
    bool is_reduced = drop_dominated();
    if (is_infeasible()) return;
    is_reduced |= fold_leaves();
    is_reduced |= fix_isolated();
    is_reduced |= remove_between();
    graph_.settle();
    const std::size_t left = graph_.num_alive();
    if (!is_infeasible()) graph_.merge_followers(entry_limit_, rules_deadline_);
    merged_ += static_cast<std::int64_t>(left - graph_.num_alive());
    graph_.forget_results();
    dominance_.clear();
    leaves_.clear();
    joined_.clear();
    if (!is_reduced && left == graph_.num_alive()) break;
  }
  if (is_infeasible()) return;
  graph_.remove_singles();
  settle_memory();
}

bool Presolve::drop_dominated() {
  bool found = false;
  for (std::size_t id = 0; id < graph_.num_nodes(); ++id) {
    ReductionGraph::Node& node = graph_.node(id);
    if (!node.is_alive || !node.is_changed || node.costs.size() < 2) continue;
    if (rules_deadline_.is_over()) break;
    node.is_changed = false;
    graph_.normalise_costs(id);
    const Numbers costs = graph_.numbers.intern(std::vector(node.costs));
    std::vector<TableRef> rows;
    for (const std::uint32_t edge : graph_.edges_of(id)) rows.push_back(graph_.oriented(edge, id));
    Memo<Positions>::Key key(rows.begin(), rows.end());
    key.push_back(costs);
    for (const UsageSegment& segment : node.memory) key.push_back(segment.bytes);
    const Positions& dominated = dominance_.get(
        std::move(key), [&] { return graph_.positions.intern(dominated_values(node.costs, rows, node.memory)); });
    for (const std::uint32_t value : *dominated) graph_.mark_for_removal(id, value);
    dominated_ += static_cast<std::int64_t>(dominated->size());
    found = found || !dominated->empty();
    // Tables of the neighbours shrink at once, so that two nodes do not drop values on the strength of each other's.
    if (!dominated->empty()) graph_.settle();
    if (is_infeasible()) return true;
  }
  return found;
}

bool Presolve::fold_leaves() {
  bool found = false;
  for (std::size_t id = 0; id < graph_.num_nodes() && !is_infeasible(); ++id) {
    ReductionGraph::Node& node = graph_.node(id);
    if (!node.is_alive || graph_.edges_of(id).size() != 1) continue;
    if (rules_deadline_.is_over()) break;
    const std::uint32_t edge = node.edges[0];
    const std::size_t leader = graph_.other_end(edge, id);
    graph_.normalise_costs(id);
    const TableRef table = graph_.oriented(edge, leader);
    Memo<Positions>::Key key{table, graph_.numbers.intern(std::vector(node.costs))};
    for (const UsageSegment& segment : node.memory) key.push_back(segment.bytes);
    const Positions& map = leaves_.get(std::move(key), [&]() -> Positions {
      std::vector<Bytes> total(node.costs.size(), 0);
      for (const UsageSegment& segment : node.memory) {
        for (std::size_t value = 0; value < total.size(); ++value) total[value] += (*segment.bytes)[value] >> 16;
      }
      std::vector<std::uint32_t> best(table->rows, 0);
      for (std::size_t row = 0; row < table->rows; ++row) {
        const auto cost = [&](std::size_t value) {
          return std::pair(node.costs[value] + table->at(row, value), total[value]);
        };
        for (std::uint32_t value = 1; value < table->columns; ++value) {
          if (cost(value) < cost(best[row])) best[row] = value;
        }
        for (const UsageSegment& segment : node.memory) {
          for (std::size_t value = 0; value < table->columns; ++value) {
            if (table->at(row, value) < kForbidden && (*segment.bytes)[value] < (*segment.bytes)[best[row]])
              return nullptr;
          }
        }
      }
      return graph_.positions.intern(std::move(best));
    });
    if (!map) continue;
    graph_.follow(id, leader, map);
    graph_.settle();
    ++folded_;
    found = true;
  }
  if (found) graph_.gather_memory();
  return found;
}

bool Presolve::fix_isolated() {
  bool found = false;
  for (std::size_t id = 0; id < graph_.num_nodes(); ++id) {
    const ReductionGraph::Node& node = graph_.node(id);
    if (!node.is_alive || !graph_.edges_of(id).empty()) continue;
    const std::int64_t least = *std::min_element(node.costs.begin(), node.costs.end());
    for (std::size_t value = 0; value < node.costs.size(); ++value) {
      const bool is_free = std::all_of(node.memory.begin(), node.memory.end(), [&](const UsageSegment& segment) {
        return (*segment.bytes)[value] == *std::min_element(segment.bytes->begin(), segment.bytes->end());
      });
      if (node.costs[value] != least || !is_free) continue;
      graph_.fix(id, value);
      found = true;
      break;
    }
  }
  return found;
}

bool Presolve::remove_between() {
  bool found = false;
  // Rounds over nodes that are not neighbours: a chain of equal nodes is halved each time, and all its pairs are equal.
  for (bool again = true; again && !is_infeasible() && !rules_deadline_.is_over();) {
    again = false;
    std::vector<bool> is_blocked(graph_.num_nodes(), false);
    for (std::size_t id = 0; id < graph_.num_nodes() && !is_infeasible(); ++id) {
      const ReductionGraph::Node& node = graph_.node(id);
      if (!node.is_alive || is_blocked[id] || !node.memory.empty() || graph_.edges_of(id).size() != 2) continue;
      if (rules_deadline_.is_over()) break;
      const std::uint32_t edges[2] = {node.edges[0], node.edges[1]};
      std::size_t ends[2] = {graph_.other_end(edges[0], id), graph_.other_end(edges[1], id)};
      const std::size_t entries = graph_.num_values(ends[0]) * graph_.num_values(ends[1]);
      if (entries > kAlwaysJoin &&
          entries > graph_.num_values(id) * (graph_.num_values(ends[0]) + graph_.num_values(ends[1]))) {
        continue;
      }
      graph_.normalise_costs(id);
      const TableRef before = graph_.oriented(edges[0], ends[0]);
      const TableRef after = graph_.oriented(edges[1], id);
      const Numbers costs = graph_.numbers.intern(std::vector(node.costs));
      const Joined& joined = joined_.get({before, after, costs}, [&] {
        Table table{before->rows, after->columns, std::vector<std::int64_t>(entries, kForbidden)};
        std::vector<std::uint32_t> best(entries, 0);
        for (std::size_t row = 0; row < table.rows; ++row) {
          std::int64_t* const out = table.costs.data() + row * table.columns;
          std::uint32_t* const at = best.data() + row * table.columns;
          for (std::uint32_t middle = 0; middle < before->columns; ++middle) {
            const std::int64_t first = before->at(row, middle);
            if (first >= kForbidden) continue;
            const std::int64_t* const in = after->costs.data() + middle * table.columns;
            const std::int64_t cost = first + (*costs)[middle];
            for (std::size_t column = 0; column < table.columns; ++column) {
              const std::int64_t sum = cost + in[column];
              at[column] = sum < out[column] ? middle : at[column];
              out[column] = sum < out[column] ? sum : out[column];
            }
          }
        }
        return Joined{graph_.tables.intern(std::move(table)), graph_.positions.intern(std::move(best))};
      });
      is_blocked[ends[0]] = is_blocked[ends[1]] = true;
      graph_.remove_between(id, ends[0], ends[1], joined.table, joined.best);
      ++removed_between_;
      found = again = true;
    }
    graph_.settle();
    if (!is_infeasible()) graph_.remove_singles();
  }
  return found;
}

void Presolve::build_core() {
  std::vector<std::uint32_t> core_of(graph_.num_nodes(), 0);
  for (std::uint32_t id = 0; id < graph_.num_nodes(); ++id) {
    if (!graph_.node(id).is_alive) continue;
    graph_.normalise_costs(id);
    core_of[id] = static_cast<std::uint32_t>(core_nodes_.size());
    core_nodes_.push_back(id);
  }
  // One more than the sum of the largest costs, or than the known cost. (Beyond 2^60, pairs that may not be look
  // cheaper than they are, which keeps bounds true.)
  double largest = 1;
  for (const std::uint32_t id : core_nodes_) {
    largest += static_cast<double>(*std::max_element(graph_.node(id).costs.begin(), graph_.node(id).costs.end()));
  }
  std::map<const Table*, double> largest_entry;  // looked up, never walked
  for (std::size_t edge = 0; edge < graph_.num_edges(); ++edge) {
    if (!graph_.edge(edge).is_alive) continue;
    const Table* const table = graph_.edge(edge).table.get();
    const auto [at, is_new] = largest_entry.try_emplace(table, 0);
    for (std::size_t i = 0; is_new && i < table->costs.size(); ++i) {
      if (table->costs[i] < kForbidden) at->second = std::max(at->second, static_cast<double>(table->costs[i]));
    }
    largest += at->second;
  }
  if (known_cost_)
    largest = std::min(largest, static_cast<double>(std::max<std::int64_t>(*known_cost_ - constant_cost(), 0)) + 1);
  core_.big_m = std::min(largest, 0x1p60);
  is_infeasibility_certain_ = core_.big_m >= largest && !known_cost_;
  is_exact_ = core_.big_m < 0x1p53;

  core_.limits = graph_.memory_limits();
  core_.first_value = core_.first_neighbour = core_.first_segment = {0};
  auto matrices = std::make_shared<std::vector<CoreMatrix>>();
  std::map<const Table*, std::uint32_t> matrix_of;  // looked up, never walked
  std::map<const void*, std::uint32_t> bytes_of;    // looked up, never walked
  for (const std::uint32_t id : core_nodes_) {
    const ReductionGraph::Node& node = graph_.node(id);
    for (const std::int64_t cost : node.costs) core_.costs.push_back(std::min(static_cast<double>(cost), core_.big_m));
    core_.first_value.push_back(static_cast<std::uint32_t>(core_.costs.size()));
    std::vector<CoreNeighbour> neighbours;
    for (const std::uint32_t edge : graph_.edges_of(id)) {
      const ReductionGraph::Edge& item = graph_.edge(edge);
      const auto [at, is_new] = matrix_of.try_emplace(item.table.get(), static_cast<std::uint32_t>(matrices->size()));
      if (is_new) matrices->push_back(make_core_matrix(*item.table, core_.big_m));
      neighbours.push_back({core_of[graph_.other_end(edge, id)], at->second, item.nodes[0] == id, 0});
    }
    std::sort(neighbours.begin(), neighbours.end(),
              [](const CoreNeighbour& a, const CoreNeighbour& b) { return a.node < b.node; });
    core_.neighbours.insert(core_.neighbours.end(), neighbours.begin(), neighbours.end());
    core_.first_neighbour.push_back(static_cast<std::uint32_t>(core_.neighbours.size()));
    for (const UsageSegment& segment : node.memory) {
      const auto [at, is_new] =
          bytes_of.try_emplace(segment.bytes.get(), static_cast<std::uint32_t>(core_.bytes.size()));
      if (is_new) core_.bytes.insert(core_.bytes.end(), segment.bytes->begin(), segment.bytes->end());
      core_.segments.push_back({segment.begin, segment.end, at->second});
    }
    core_.first_segment.push_back(static_cast<std::uint32_t>(core_.segments.size()));
  }
  core_.matrices = std::move(matrices);
  finish(core_);
}

Choice Presolve::expand(const CoreChoice& choice) const {
  std::vector<std::uint32_t> values(graph_.num_nodes(), 0);
  for (std::size_t node = 0; node < core_nodes_.size(); ++node) values[core_nodes_[node]] = choice[node];
  return graph_.expand(values);
}

CoreChoice Presolve::project(const Choice& choice) const {
  CoreChoice result(core_nodes_.size(), 0);
  for (std::size_t node = 0; node < core_nodes_.size(); ++node) {
    const ReductionGraph::Node& item = graph_.node(core_nodes_[node]);
    const auto strategy = static_cast<std::uint32_t>(choice.strategy[NodeId(core_nodes_[node])].value());
    const auto at = std::lower_bound(item.values->begin(), item.values->end(), strategy);
    const auto cheapest = std::min_element(item.costs.begin(), item.costs.end());
    result[node] = static_cast<std::uint32_t>(
        at != item.values->end() && *at == strategy ? at - item.values->begin() : cheapest - item.costs.begin());
  }
  return result;
}

}  // namespace shardplan
