#include "solver/presolve/reduction_graph.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/integer.h"
#include "solver/core/vector_kernels.h"

// A problem is reduced by operations that never change its minimum: values that no best choice takes are removed, the
// part of an edge's table that depends on one end alone moves to that end, a node that depends on others becomes a
// record. Each rule is then a few lines on this graph, and each operation is exact on its own.
//
// Three things keep it linear in the problem and nearly independent of the number of equal layers. Changes are queued:
// an edge is normalised again only if its table changed (`settle`). Tables are interned and the result of an operation
// is remembered by its operands, so the edges of equal layers are transposed, added and normalised once. And memory
// moves from followers to leaders in one pass over the records, not once per merge.
//
// The alternative, rewriting the StrategyProblem from rule to rule, would copy matrices that did not change and could
// only recognise equal ones by comparing them each time. A limitation of the graph: a removed node is expanded from
// records, in order, so the memory of 17,000 merges stays until the end.

namespace shardplan {
namespace {

constexpr std::int64_t kLargestConstantCost = std::int64_t{1} << 61;

std::int64_t saturating_sum(std::int64_t a, std::int64_t b, std::int64_t largest) {
  return std::min(a, largest - b) + b;
}

/// The value of a cost in the objective; values above `most` are forbidden.
struct Weighing {
  Objective objective;
  std::int64_t most = 0;
  bool is_cut = false;  // something became forbidden that was allowed

  /// The same for costs of communication alone. Where they stay what they are, the result shares their memory.
  SharedVector<std::int64_t> communication(const SharedVector<std::int64_t>& costs) {
    const std::int64_t weight = objective.communication_weight;
    const std::int64_t largest = weight > 0 ? std::min(kForbidden - 1, most / weight) : kForbidden - 1;
    const bool is_above = largest_below(costs.data(), kForbidden, costs.size()) > largest;
    is_cut = is_cut || is_above;
    if (weight == 1 && !is_above) return costs;
    std::vector<std::int64_t> weighted(costs.size());
    multiply(costs.data(), weight, largest, kForbidden, costs.size(), weighted.data());
    return weighted;
  }
  std::int64_t operator()(const Cost& cost) {
    if (cost.computation >= kForbidden || cost.communication >= kForbidden) return kForbidden;
    const Int128 sum = static_cast<Int128>(objective.computation_weight) * cost.computation +
                       static_cast<Int128>(objective.communication_weight) * cost.communication;
    is_cut = is_cut || sum > most;
    return sum > most ? kForbidden : static_cast<std::int64_t>(sum);
  }
};

/// The largest of the costs that are not forbidden; 0 if all are.
std::int64_t largest_allowed(const std::vector<std::int64_t>& costs) {
  return largest_below(costs.data(), kForbidden, costs.size());
}

std::size_t position_of(const std::vector<std::uint32_t>& values, std::uint32_t strategy) {
  return static_cast<std::size_t>(std::lower_bound(values.begin(), values.end(), strategy) - values.begin());
}

std::vector<std::int64_t> pick(const std::vector<std::int64_t>& items, const std::vector<std::uint32_t>& at) {
  std::vector<std::int64_t> result(at.size());
  for (std::size_t i = 0; i < at.size(); ++i) result[i] = items[at[i]];
  return result;
}

}  // namespace

ReductionGraph::ReductionGraph(const StrategyProblem& problem, const Objective& objective,
                               std::optional<std::int64_t> known_cost, bool with_memory, const Deadline& deadline)
    : deadline_(deadline),
      limits_(with_memory ? problem.memory_limits : std::vector<Bytes>()),
      num_alive_(problem.nodes.size()) {
  // Equal strategy tables, usages and matrices are converted once.
  Weighing weigh{objective, known_cost ? std::min(*known_cost, kForbidden - 1) : kForbidden - 1};
  Int128 total = 0;
  std::vector<Numbers> usages;
  for (const UsageTable& usage : problem.usage_tables) {
    usages.push_back(shared_.numbers.intern(std::vector(usage.bytes)));
  }
  std::vector<std::vector<std::int64_t>> costs;
  std::vector<std::int64_t> largest_cost;
  for (const StrategyTable& table : problem.strategy_tables) {
    std::vector<std::int64_t>& list = costs.emplace_back();
    for (const Cost& cost : table.costs) list.push_back(weigh(cost));
    largest_cost.push_back(largest_allowed(list));
  }
  std::map<std::size_t, Positions> all_values;
  nodes_.resize(problem.nodes.size());
  for (const NodeId id : problem.nodes.ids()) {
    const ProblemNode& from = problem.nodes[id];
    Node& node = nodes_[id.value()];
    node.costs = costs[from.strategies.value()];
    total += largest_cost[from.strategies.value()];
    Positions& values = all_values[node.costs.size()];
    if (!values) {
      std::vector<std::uint32_t> list(node.costs.size());
      std::iota(list.begin(), list.end(), 0u);
      values = shared_.positions.intern(std::move(list));
    }
    node.values = values;
    for (const MemoryUse& use : from.memory) {
      if (with_memory && use.begin < use.end) node.memory.push_back({use.begin, use.end, usages[use.usage.value()]});
    }
    for (std::size_t value = 0; value < node.costs.size(); ++value) {
      if (node.costs[value] < kForbidden) continue;
      node.costs[value] = 0;
      mark_for_removal(id.value(), value);
    }
  }
  std::vector<TableRef> matrices;
  std::vector<std::int64_t> largest_entry;
  for (const CostMatrix& matrix : problem.matrices) {
    if (gives_up()) return;
    SharedVector<std::int64_t> weighted = weigh.communication(matrix.costs);
    largest_entry.push_back(largest_allowed(weighted));
    matrices.push_back(shared_.tables.intern(CostMatrix{matrix.rows, matrix.columns, std::move(weighted)}));
  }
  for (const ProblemEdge& edge : problem.edges) {
    if (gives_up()) return;
    const std::size_t from = edge.from.value();
    const std::size_t to = edge.to.value();
    const TableRef& table = matrices[edge.matrix.value()];
    total += largest_entry[edge.matrix.value()];
    if (from != to) {
      add_table(from, to, table);
      continue;
    }
    for (std::size_t value = 0; value < num_values(from); ++value) {
      add_cost(from, value, table->at(value, value));
    }
  }
  is_infeasibility_certain_ = !weigh.is_cut && total < kForbidden;
}

bool ReductionGraph::gives_up() {
  if (!deadline_.is_over()) return false;
  infeasible_ = true;
  is_infeasibility_certain_ = false;
  return true;
}

void ReductionGraph::add_cost(std::size_t id, std::size_t value, std::int64_t cost) {
  std::int64_t& sum = nodes_[id].costs[value];
  sum = saturating_sum(sum, cost, kForbidden);
  if (sum >= kForbidden) mark_for_removal(id, value);
}

const std::vector<std::uint32_t>& ReductionGraph::edges_of(std::size_t id) {
  std::vector<std::uint32_t>& edges = nodes_[id].edges;
  std::erase_if(edges, [&](std::uint32_t edge) { return !edges_[edge].is_alive; });
  return edges;
}

std::optional<std::size_t> ReductionGraph::find_edge(std::size_t first, std::size_t second) {
  const std::size_t at = nodes_[first].edges.size() < nodes_[second].edges.size() ? first : second;
  for (const std::uint32_t edge : nodes_[at].edges) {
    if (edges_[edge].is_alive && other_end(edge, at) == first + second - at) return edge;
  }
  return std::nullopt;
}

void ReductionGraph::queue(std::size_t edge) {
  edges_[edge].maps[0] = edges_[edge].maps[1] = nullptr;
  nodes_[edges_[edge].nodes[0]].is_changed = nodes_[edges_[edge].nodes[1]].is_changed = true;
  if (edges_[edge].is_queued) return;
  edges_[edge].is_queued = true;
  edge_queue_.push_back(static_cast<std::uint32_t>(edge));
}

void ReductionGraph::remove_edge(std::size_t edge) {
  num_entries_ -= static_cast<std::int64_t>(edges_[edge].table->costs.size());
  edges_[edge].is_alive = false;
  nodes_[edges_[edge].nodes[0]].is_changed = nodes_[edges_[edge].nodes[1]].is_changed = true;
  edges_[edge].table.reset();
  edges_[edge].maps[0] = edges_[edge].maps[1] = nullptr;
}

void ReductionGraph::add_table(std::size_t first, std::size_t second, TableRef table) {
  if (const auto known = find_edge(first, second)) {
    Edge& edge = edges_[*known];
    if (edge.nodes[0] != first) table = transpose(table);
    edge.table = sums_.get({edge.table, table}, [&] {
      std::vector<std::int64_t> sum = edge.table->costs;
      const std::vector<std::int64_t>& more = table->costs;
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = saturating_sum(sum[i], more[i], kForbidden);
      return remember({table->rows, table->columns, std::move(sum)});
    });
    queue(*known);
    return;
  }
  num_entries_ += static_cast<std::int64_t>(table->costs.size());
  const auto id = static_cast<std::uint32_t>(edges_.size());
  Edge edge;
  edge.nodes[0] = static_cast<std::uint32_t>(first);
  edge.nodes[1] = static_cast<std::uint32_t>(second);
  edge.table = std::move(table);
  edges_.push_back(std::move(edge));
  nodes_[first].edges.push_back(id);
  nodes_[second].edges.push_back(id);
  queue(id);
}

void ReductionGraph::normalise_costs(std::size_t id) {
  const std::int64_t least = *std::min_element(nodes_[id].costs.begin(), nodes_[id].costs.end());
  for (std::int64_t& cost : nodes_[id].costs) cost -= least;
  constant_cost_ = saturating_sum(constant_cost_, least, kLargestConstantCost);
}

TableRef ReductionGraph::transpose(const TableRef& table) {
  return transposed_.get({table}, [&] {
    std::vector<std::int64_t> costs(table->costs.size());
    shardplan::transpose(table->costs.data(), table->rows, table->columns, costs.data());
    return remember({table->columns, table->rows, std::move(costs)});
  });
}

TableRef ReductionGraph::select(const TableRef& table, const Positions& rows, const Positions& columns) {
  return selected_.get({table, rows, columns}, [&] {
    const std::uint32_t num_rows = rows ? static_cast<std::uint32_t>(rows->size()) : table->rows;
    const std::uint32_t num_columns = columns ? static_cast<std::uint32_t>(columns->size()) : table->columns;
    std::vector<std::int64_t> costs;
    costs.reserve(std::size_t{num_rows} * num_columns);
    for (std::size_t i = 0; i < num_rows; ++i) {
      const std::int64_t* const row = table->costs.data() + (rows ? (*rows)[i] : i) * table->columns;
      if (!columns) {
        costs.insert(costs.end(), row, row + table->columns);
      } else {
        for (const std::uint32_t column : *columns) costs.push_back(row[column]);
      }
    }
    return remember({num_rows, num_columns, std::move(costs)});
  });
}

void ReductionGraph::mark_for_removal(std::size_t id, std::size_t value) {
  Node& node = nodes_[id];
  if (node.marked.empty()) {
    node.marked.assign(node.costs.size(), false);
    shrink_queue_.push_back(static_cast<std::uint32_t>(id));
  }
  node.marked[value] = true;
}

void ReductionGraph::shrink(std::size_t id) {
  Node& node = nodes_[id];
  std::vector<std::uint32_t> kept, values;
  for (std::size_t value = 0; value < node.costs.size(); ++value) {
    if (node.marked[value]) continue;
    kept.push_back(static_cast<std::uint32_t>(value));
    values.push_back((*node.values)[value]);
  }
  node.marked.clear();
  if (kept.empty()) {
    infeasible_ = true;
    return;
  }
  if (kept.size() == node.costs.size()) return;
  const Positions keep = shared_.positions.intern(std::move(kept));
  node.values = shared_.positions.intern(std::move(values));
  node.costs = pick(node.costs, *keep);
  for (UsageSegment& segment : node.memory) segment.bytes = shared_.numbers.intern(pick(*segment.bytes, *keep));
  node.is_tidy = false;
  for (const std::uint32_t edge : edges_of(id)) {
    Edge& item = edges_[edge];
    num_entries_ -= static_cast<std::int64_t>(item.table->costs.size());
    item.table = item.nodes[0] == id ? select(item.table, keep, nullptr) : select(item.table, nullptr, keep);
    num_entries_ += static_cast<std::int64_t>(item.table->costs.size());
    queue(edge);
  }
}

void ReductionGraph::normalise(std::size_t id) {
  Edge& edge = edges_[id];
  const EdgeNormalForm& result = normal_forms_.get({edge.table}, [&] {
    num_remembered_ += edge.table->costs.size();
    return normal_form(edge.table, shared_);
  });
  const std::size_t first = edge.nodes[0];
  const std::size_t second = edge.nodes[1];
  for (std::size_t value = 0; value < num_values(first); ++value) add_cost(first, value, (*result.row_shift)[value]);
  for (std::size_t value = 0; value < num_values(second); ++value)
    add_cost(second, value, (*result.column_shift)[value]);
  for (const std::uint32_t value : *result.dead_rows) mark_for_removal(first, value);
  for (const std::uint32_t value : *result.dead_columns) mark_for_removal(second, value);
  if (!result.table) {
    remove_edge(id);
    return;
  }
  edge.table = result.table;
  edge.maps[0] = result.row_map;
  edge.maps[1] = result.column_map;
  if (edge.maps[0] || edge.maps[1]) functional_edges_.push_back(static_cast<std::uint32_t>(id));
}

void ReductionGraph::settle() {
  for (std::size_t step = 1; !infeasible_ && !(shrink_queue_.empty() && edge_queue_.empty()); ++step) {
    if (step % 64 == 0 && gives_up()) return;
    if (!shrink_queue_.empty()) {
      const std::uint32_t id = shrink_queue_.back();
      shrink_queue_.pop_back();
      if (nodes_[id].is_alive && !nodes_[id].marked.empty()) shrink(id);
      continue;
    }
    const std::uint32_t edge = edge_queue_.front();
    edge_queue_.pop_front();
    edges_[edge].is_queued = false;
    if (edges_[edge].is_alive) normalise(edge);
  }
}

std::optional<std::size_t> ReductionGraph::take_functional_edge() {
  while (!functional_edges_.empty()) {
    const std::uint32_t id = functional_edges_.front();
    functional_edges_.pop_front();
    const Edge& edge = edges_[id];
    if (edge.is_alive && !edge.is_queued && (edge.maps[0] || edge.maps[1])) return id;
  }
  return std::nullopt;
}

void ReductionGraph::remove_node(std::size_t id) {
  nodes_[id].is_alive = false;
  nodes_[id].edges = {};
  --num_alive_;
}

void ReductionGraph::fix(std::size_t id, std::size_t value) {
  Node& node = nodes_[id];
  SHARDPLAN_CHECK(edges_of(id).empty());
  constant_cost_ = saturating_sum(constant_cost_, node.costs[value], kLargestConstantCost);
  for (const UsageSegment& segment : node.memory) {
    fixed_memory_.push_back({segment.begin, segment.end, shared_.numbers.intern({(*segment.bytes)[value]})});
  }
  node.memory.clear();
  const auto at = static_cast<std::uint32_t>(id);
  records_.push_back({Rule::kFixed, at, at, at, node.values, nullptr, nullptr,
                      shared_.positions.intern({static_cast<std::uint32_t>(value)})});
  remove_node(id);
}

void ReductionGraph::remove_singles() {
  settle();
  if (infeasible_) return;
  for (std::size_t id = 0; id < nodes_.size(); ++id) {
    if (nodes_[id].is_alive && num_values(id) == 1) fix(id, 0);  // tables of one row or column have become zero
  }
}

void ReductionGraph::follow(std::size_t follower, std::size_t leader, Positions map) {
  const std::vector<std::uint32_t> edges = edges_of(follower);
  for (std::size_t value = 0; value < num_values(leader); ++value) {
    add_cost(leader, value, nodes_[follower].costs[(*map)[value]]);
  }
  for (const std::uint32_t edge : edges) {
    const Edge item = edges_[edge];
    const std::size_t other = other_end(edge, follower);
    remove_edge(edge);
    if (other == leader) {
      for (std::size_t value = 0; value < num_values(leader); ++value) {
        add_cost(leader, value,
                 item.nodes[0] == leader ? item.table->at(value, (*map)[value]) : item.table->at((*map)[value], value));
      }
    } else if (item.nodes[0] == follower) {
      add_table(leader, other, select(item.table, map, nullptr));
    } else {
      add_table(other, leader, select(item.table, nullptr, map));
    }
  }
  records_.push_back({Rule::kFollows, static_cast<std::uint32_t>(follower), static_cast<std::uint32_t>(leader), 0,
                      nodes_[follower].values, nodes_[leader].values, nullptr, std::move(map)});
  remove_node(follower);
}

void ReductionGraph::replace_by_edge(std::size_t id, std::size_t first, std::size_t second, const TableRef& table,
                                     Between between) {
  SHARDPLAN_CHECK(nodes_[id].memory.empty());
  records_.push_back({Rule::kBetween, static_cast<std::uint32_t>(id), static_cast<std::uint32_t>(first),
                      static_cast<std::uint32_t>(second), nodes_[id].values, nodes_[first].values,
                      nodes_[second].values, nullptr, std::move(between)});
  for (const std::uint32_t edge : std::vector(edges_of(id))) remove_edge(edge);
  remove_node(id);
  add_table(first, second, table);
}

std::uint32_t ReductionGraph::Between::best(std::size_t first_value, std::size_t second_value) const {
  std::uint32_t best = 0;
  std::int64_t least = kForbidden;
  for (std::uint32_t middle = 0; middle < before->columns; ++middle) {
    const std::int64_t first = before->at(first_value, middle);
    if (first >= kForbidden) continue;
    const std::int64_t sum = first + (*costs)[middle] + after->at(middle, second_value);
    if (sum >= least) continue;
    least = sum;
    best = middle;
  }
  return best;
}

void ReductionGraph::gather_memory() {
  // The strategies of each recorded node, by the value of the node that it now depends on (if none: one strategy).
  constexpr std::uint32_t kNone = 0xffffffff;
  struct Image {
    std::uint32_t root = kNone;
    std::vector<std::uint32_t> strategies;
  };
  std::map<std::uint32_t, Image> images;
  for (std::size_t at = records_.size(); at > gathered_; --at) {
    const Record& record = records_[at - 1];
    if (record.rule == Rule::kBetween) continue;  // it held no memory, and nor did its followers
    Image& image = images[record.node];
    if (record.rule == Rule::kFixed) {
      image.strategies = {(*record.node_values)[(*record.map)[0]]};
      continue;
    }
    const auto known = images.find(record.first);
    const bool is_root = known == images.end();
    image.root = is_root ? record.first : known->second.root;
    const std::vector<std::uint32_t>& leader = is_root ? *nodes_[record.first].values : known->second.strategies;
    std::vector<std::uint32_t> at_value;  // positions in node_values
    for (const std::uint32_t strategy : leader) {
      const std::uint32_t value = (*record.map)[position_of(*record.first_values, strategy)];
      at_value.push_back(value);
      image.strategies.push_back((*record.node_values)[value]);
    }
    for (const UsageSegment& segment : nodes_[record.node].memory) {
      UsageSegment moved{segment.begin, segment.end, shared_.numbers.intern(pick(*segment.bytes, at_value))};
      (image.root == kNone ? fixed_memory_ : nodes_[image.root].memory).push_back(std::move(moved));
      if (image.root == kNone) continue;
      nodes_[image.root].is_changed = true;
      nodes_[image.root].is_tidy = false;
    }
    nodes_[record.node].memory = {};
  }
  gathered_ = records_.size();
}

Choice ReductionGraph::expand(const std::vector<std::uint32_t>& values) const {
  std::vector<std::uint32_t> strategy(nodes_.size(), 0);
  for (std::size_t id = 0; id < nodes_.size(); ++id) {
    if (nodes_[id].is_alive) strategy[id] = (*nodes_[id].values)[values[id]];
  }
  for (auto record = records_.rbegin(); record != records_.rend(); ++record) {
    std::size_t at = 0;
    if (record->rule != Rule::kFixed) at = position_of(*record->first_values, strategy[record->first]);
    const std::size_t value =
        record->rule == Rule::kBetween
            ? record->between.best(at, position_of(*record->second_values, strategy[record->second]))
            : (*record->map)[at];
    strategy[record->node] = (*record->node_values)[value];
  }
  Choice choice;
  choice.strategy.reserve(strategy.size());
  for (const std::uint32_t item : strategy) choice.strategy.push_back(StrategyId(item));
  return choice;
}

void ReductionGraph::forget_results() {
  num_remembered_ = 0;
  normal_forms_.clear();
  selected_.clear();
  sums_.clear();
  transposed_.clear();
}

void ReductionGraph::forget_edges() {
  forget_results();
  for (Node& node : nodes_) node.edges = {};
  edges_ = {};
  edge_queue_ = {};
  functional_edges_ = {};
}

void ReductionGraph::forget_problem() {
  forget_edges();
  for (Node& node : nodes_) {
    node.memory = {};
    node.marked = {};
  }
  limits_ = {};
  fixed_memory_ = {};
  shrink_queue_ = {};
  shared_ = {};
}

}  // namespace shardplan
