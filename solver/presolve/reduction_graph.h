#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "solver/limits.h"
#include "solver/presolve/edge_normal_form.h"
#include "solver/presolve/shared_tables.h"
#include "solver/strategy_problem.h"

namespace shardplan {

/// Bytes by value over the half-open life [begin, end).
struct UsageSegment {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  Numbers bytes;
};

/// The problem while it is being reduced: every operation removes values, edges or nodes and leaves the least cost as it
/// was, and every removed node leaves a record from which its strategy follows once those of the remaining nodes are
/// known. The rules that decide what is removed are files of their own beside this one (`Presolve` lists them).
///
/// A node's *values* are the strategies that it may still take: a sorted list of original strategies; costs, usages and
/// tables are indexed by the position in that list. Costs are values of the objective (weighted picoseconds); those that
/// reach kForbidden are forbidden. At most one edge joins two nodes, and none joins a node with itself.
class ReductionGraph {
 public:
  struct Node {
    bool is_alive = true;
    Positions values;
    std::vector<std::int64_t> costs;
    std::vector<std::uint32_t> edges;  // alive ones and some that are not
    std::vector<UsageSegment> memory;
    std::vector<bool> marked;  // values to be removed by the next `settle`; empty if none
    bool is_changed = true;    // costs, tables or memory since a rule last cleared this
    bool is_tidy = false;      // its memory is in the form that `tidy_memory` gives it
  };
  struct Edge {
    bool is_alive = true;
    bool is_queued = false;
    std::uint32_t nodes[2] = {0, 0};  // rows are the values of nodes[0]
    Positions maps[2];  // [0]: the value of nodes[1] as a function of that of nodes[0], if it is one; [1]: the reverse
    TableRef table;
  };

  /// Requires check_problem(problem). `known_cost`: what a known feasible choice costs; pairs and strategies that alone
  /// cost more are forbidden, and so are sums that reach kForbidden: see `is_infeasibility_certain`.
  /// Once `deadline` is over the graph gives up: it looks infeasible, and not certainly so.
  ReductionGraph(const StrategyProblem& problem, const Objective& objective, std::optional<std::int64_t> known_cost,
                 bool with_memory, const Deadline& deadline);

  std::size_t num_nodes() const { return nodes_.size(); }
  Node& node(std::size_t id) { return nodes_[id]; }
  const Node& node(std::size_t id) const { return nodes_[id]; }
  const Edge& edge(std::size_t id) const { return edges_[id]; }
  std::size_t num_edges() const { return edges_.size(); }
  std::size_t num_values(std::size_t id) const { return nodes_[id].costs.size(); }
  bool is_infeasible() const { return infeasible_; }
  /// Whether "infeasible" is proven: false if costs are so large that some feasible choice may cost kForbidden or more,
  /// or more than the known cost.
  bool is_infeasibility_certain() const { return is_infeasibility_certain_; }
  void set_infeasible() { infeasible_ = true; }
  /// Whether it had to give up; looks at the clock.
  bool gives_up();
  /// What all choices cost besides what the remaining nodes and edges do.
  std::int64_t constant_cost() const { return constant_cost_; }
  std::vector<Bytes>& memory_limits() { return limits_; }
  std::vector<UsageSegment>& fixed_memory() { return fixed_memory_; }
  std::size_t num_alive() const { return num_alive_; }
  std::int64_t num_entries() const { return num_entries_; }
  SharedTables& shared() { return shared_; }

  /// Moves the least cost of a node to the constant, so that equal nodes look equal.
  void normalise_costs(std::size_t id);
  /// The table of an edge with the values of `node` as rows.
  TableRef oriented(std::size_t edge, std::size_t node) {
    return edges_[edge].nodes[0] == node ? edges_[edge].table : transpose(edges_[edge].table);
  }
  /// Alive edges of a node, in order; tidies the list.
  const std::vector<std::uint32_t>& edges_of(std::size_t id);
  std::size_t other_end(std::size_t edge, std::size_t node) const {
    return edges_[edge].nodes[0] == node ? edges_[edge].nodes[1] : edges_[edge].nodes[0];
  }

  /// Marks a value for removal. `settle` removes all marked values, brings each changed edge into its normal form (what
  /// depends on one end alone moves there, tables of zeros go) and removes values without a partner, until nothing
  /// changes. Nodes with one value stay until `remove_singles`.
  void mark_for_removal(std::size_t id, std::size_t value);
  void settle();
  /// Adds the edges of nodes with one value to their neighbours and removes such nodes and their memory from the
  /// limits.
  void remove_singles();
  /// An edge at which one end's value is a function of the other's (`Edge::maps`), each once until it changes again;
  /// nothing if none is left.
  std::optional<std::size_t> take_functional_edge();

  /// Removes `follower`, whose value is `map[value of leader]`. Its costs and edges move to the leader (sums of parallel
  /// ones), its memory stays where it is until `gather_memory`.
  void follow(std::size_t follower, std::size_t leader, Positions map);
  /// A node of degree two without memory, between its neighbours: the tables of its edges (rows of `before`: values of the
  /// first neighbour; columns of `after`: of the second) and its costs.
  struct Between {
    TableRef before;
    TableRef after;
    Numbers costs;

    /// The value that costs least with these of the neighbours; the first of several.
    std::uint32_t best(std::size_t first_value, std::size_t second_value) const;
  };
  /// Removes such a node: `table`, the least costs of all pairs of its neighbours' values, is added between these.
  void replace_by_edge(std::size_t id, std::size_t first, std::size_t second, const TableRef& table, Between between);
  /// Removes a node without edges, which takes the value.
  void fix(std::size_t id, std::size_t value);

  /// Moves the memory of all followers to their leaders, in one pass over the records since the last call. (One move
  /// per merge would cost the square of a chain's length.) What fixed nodes hold goes to `fixed_memory`.
  void gather_memory();

  /// The strategies of all nodes, given the values of the nodes that are left (others ignored).
  Choice expand(const std::vector<std::uint32_t>& values) const;

  /// Lets go of remembered results and of the tables that only they held.
  void forget_results();
  /// Whether so many entries of tables were remembered that it is time to: what equal layers would reuse takes less.
  bool remembers_much() const { return num_remembered_ > kMuch; }
  /// Lets go of edges and remembered results, and of the tables that only they held.
  void forget_edges();
  /// Lets go of all but what `expand` needs and the costs of nodes: of edges, memory, limits and shared tables.
  void forget_problem();

 private:
  enum class Rule { kFixed, kFollows, kBetween };
  struct Record {
    Rule rule;
    std::uint32_t node, first, second;
    Positions node_values, first_values, second_values;
    Positions map;         // positions in node_values, by position in first_values
    Between between = {};  // of kBetween, which has no map
  };

  void add_cost(std::size_t id, std::size_t value, std::int64_t cost);
  void normalise(std::size_t edge);
  void shrink(std::size_t id);
  void queue(std::size_t edge);
  void remove_edge(std::size_t edge);
  /// Adds a table between two nodes (rows: values of `first`), summing with an edge already there.
  void add_table(std::size_t first, std::size_t second, TableRef table);
  std::optional<std::size_t> find_edge(std::size_t first, std::size_t second);
  TableRef transpose(const TableRef& table);
  /// Rows and columns in a given order, perhaps repeated; null means all as they are.
  TableRef select(const TableRef& table, const Positions& rows, const Positions& columns);
  void remove_node(std::size_t id);

  Deadline deadline_;
  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
  std::vector<Bytes> limits_;
  std::vector<Record> records_;
  std::size_t gathered_ = 0;  // records before this have had their memory moved
  std::deque<std::uint32_t> edge_queue_, functional_edges_;
  std::int64_t num_entries_ = 0;  // in all alive edges, equal tables counted each time
  std::vector<UsageSegment>
      fixed_memory_;  // what removed nodes hold, one value each; not yet subtracted from the limits
  std::vector<std::uint32_t> shrink_queue_;
  std::int64_t constant_cost_ = 0;
  std::size_t num_alive_ = 0;
  bool infeasible_ = false;
  bool is_infeasibility_certain_ = true;
  SharedTables shared_;
  static constexpr std::size_t kMuch = std::size_t{1} << 23;  // 64 MiB

  TableRef remember(CostMatrix table) {
    num_remembered_ += table.costs.size();
    return shared_.tables.intern(std::move(table));
  }

  std::size_t num_remembered_ = 0;     // entries of the tables in these:
  Memo<EdgeNormalForm> normal_forms_;  // each table's
  Memo<TableRef> selected_;            // table, rows or null, columns or null
  Memo<TableRef> sums_;                // two tables
  Memo<TableRef> transposed_;          // one table
};

}  // namespace shardplan
