#include "solver/contest/contest_problem.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "base/integer.h"
#include "solver/contest/json_scanner.h"
#include "solver/interned.h"

// A contest file spells out the numbers of every node and edge, although a model's layers are equal: problem A has 93
// MB of text and a few thousand distinct lists. So each list is looked up as soon as it is read and stored once; the
// problem's tables are these lists, and searches find equal layers by comparing ids.
//
// Keys may come in any order, so the file is read as it is (`ContestFile`) and its parts are checked against each other
// at the end. It is read in one pass at some 400 MB/s, limited by the multiplication by ten for each digit; a tree of
// JSON values would take ten times the memory, and longer to build than the search of the smaller problems takes.

namespace shardplan {
namespace {

using NumberLists = NumberedPool<std::vector<std::int64_t>>;

constexpr std::int64_t kNoSecondNode = -1;                // of an edge of one node
constexpr std::size_t kLargeList = std::size_t{1} << 16;  // numbers; not worth copying

/// The least of some costs; 0 if all are forbidden.
std::int64_t least_allowed(const std::vector<std::int64_t>& costs) {
  const std::int64_t least = costs.empty() ? 0 : *std::min_element(costs.begin(), costs.end());
  return least < kForbidden ? least : 0;
}

/// The file as it is, before its parts are checked against each other.
struct ContestFile {
  std::string name;
  std::vector<std::array<std::int64_t, 2>> intervals, edge_nodes;
  std::vector<std::uint32_t> node_costs, node_usages, edge_costs;
  NumberLists node_lists, edge_lists;
  std::optional<std::int64_t> usage_limit;
  SourcePlace nodes, edges;  // where these parts are in the file
};

class ContestReader {
 public:
  explicit ContestReader(CharacterStream& characters) : scan_(characters) {}

  StrategyProblem read() {
    bool has_problem = false;
    scan_.object([&](const std::string& key) {
      if (key != "problem") return scan_.skip_value();
      once(has_problem, key);
      read_problem();
    });
    if (scan_.peek() != 0) fail("{} after the end of the problem", scan_.found());
    if (!has_problem) fail("no \"problem\"");
    return build();
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
    scan_.characters().fail(format, std::forward<Args>(args)...);
  }
  void once(bool& is_set, const std::string& key) {
    if (is_set) fail("a second \"{}\"", key);
    is_set = true;
  }

  void read_problem() {
    std::map<std::string, bool> seen;
    scan_.object([&](const std::string& key) {
      if (key == "name" || key == "nodes" || key == "edges" || key == "usage_limit") once(seen[key], key);
      if (key == "name") {
        file_.name = scan_.string();
      } else if (key == "nodes") {
        file_.nodes = scan_.characters().place();
        scan_.object([&](const std::string& part) {
          if (part == "intervals" || part == "costs" || part == "usages") once(seen["nodes." + part], part);
          if (part == "intervals")
            read_intervals();
          else if (part == "costs")
            read_lists(file_.node_lists, file_.node_costs);
          else if (part == "usages")
            read_lists(file_.node_lists, file_.node_usages);
          else
            scan_.skip_value();
        });
      } else if (key == "edges") {
        file_.edges = scan_.characters().place();
        scan_.object([&](const std::string& part) {
          if (part == "nodes" || part == "costs") once(seen["edges." + part], part);
          if (part == "nodes")
            read_edge_nodes();
          else if (part == "costs")
            read_lists(file_.edge_lists, file_.edge_costs);
          else
            scan_.skip_value();
        });
      } else if (key == "usage_limit") {
        file_.usage_limit = scan_.number();
      } else {
        scan_.skip_value();
      }
    });
    for (const char* key :
         {"nodes", "nodes.intervals", "nodes.costs", "nodes.usages", "edges", "edges.nodes", "edges.costs"}) {
      if (!seen[key]) fail("the problem has no \"{}\"", key);
    }
  }

  void read_intervals() {
    scan_.list([&] {
      scan_.numbers(numbers_);
      if (numbers_.size() != 2) fail("an interval has {} numbers; expected 2", numbers_.size());
      file_.intervals.push_back({numbers_[0], numbers_[1]});
      check_count(file_.intervals.size());
    });
  }
  void read_edge_nodes() {
    scan_.list([&] {
      scan_.numbers(numbers_);
      if (numbers_.empty() || numbers_.size() > 2) {
        fail("an edge of {} nodes; only edges of two nodes, or one, are supported", numbers_.size());
      }
      file_.edge_nodes.push_back({numbers_[0], numbers_.size() == 2 ? numbers_[1] : kNoSecondNode});
      check_count(file_.edge_nodes.size());
    });
  }
  void read_lists(NumberLists& pool, std::vector<std::uint32_t>& lists) {
    scan_.list([&] {
      scan_.numbers(numbers_);
      lists.push_back(numbers_.size() < kLargeList ? pool.number(numbers_) : pool.number(std::move(numbers_)));
      check_count(lists.size());
    });
  }
  void check_count(std::size_t count) {
    if (count > 0x7fffffff) fail("more than 2^31 items");
  }

  StrategyProblem build() {
    StrategyProblem problem;
    problem.name = file_.name;
    build_nodes(problem);
    build_edges(problem);
    check_least_cost();
    return problem;
  }

  void build_nodes(StrategyProblem& problem) {
    const std::size_t count = file_.intervals.size();
    if (file_.node_costs.size() != count || file_.node_usages.size() != count) {
      throw InputError(file_.nodes, "{} intervals, {} lists of costs and {} of usages; expected one of each per node",
                       count, file_.node_costs.size(), file_.node_usages.size());
    }
    std::vector<std::int64_t> times;
    for (const auto& [begin, end] : file_.intervals) {
      if (file_.usage_limit && begin < end) times.insert(times.end(), {begin, end});
    }
    std::sort(times.begin(), times.end());
    times.erase(std::unique(times.begin(), times.end()), times.end());
    const auto renumber = [&](std::int64_t time) {
      return static_cast<std::uint32_t>(std::lower_bound(times.begin(), times.end(), time) - times.begin());
    };
    if (!times.empty()) problem.memory_limits.assign(times.size() - 1, *file_.usage_limit);

    std::vector<std::optional<StrategyTableId>> cost_table(file_.node_lists.size());
    std::vector<std::optional<UsageTableId>> usage_table(file_.node_lists.size());
    problem.nodes.reserve(count);
    for (std::size_t node = 0; node < count; ++node) {
      scan_.characters().check_time();
      const std::uint32_t costs = file_.node_costs[node];
      const std::uint32_t usages = file_.node_usages[node];
      const std::vector<std::int64_t>& cost_list = file_.node_lists[costs];
      if (cost_list.empty()) throw InputError(file_.nodes, "node {} has no strategies", node);
      if (file_.node_lists[usages].size() != cost_list.size()) {
        throw InputError(file_.nodes, "node {} has {} costs and {} usages", node, cost_list.size(),
                         file_.node_lists[usages].size());
      }
      if (!cost_table[costs]) {
        StrategyTable table;
        for (const std::int64_t cost : cost_list)
          table.costs.push_back(cost >= kForbidden ? Cost{0, kForbidden} : Cost{cost, 0});
        cost_table[costs] = problem.strategy_tables.push_back(std::move(table));
      }
      ProblemNode item{*cost_table[costs], {}};
      least_cost_ += least_allowed(cost_list);
      const auto [begin, end] = file_.intervals[node];
      if (file_.usage_limit && begin < end) {
        if (!usage_table[usages]) usage_table[usages] = problem.usage_tables.push_back({file_.node_lists[usages]});
        item.memory.push_back({*usage_table[usages], renumber(begin), renumber(end)});
      }
      problem.nodes.push_back(std::move(item));
    }
  }

  void build_edges(StrategyProblem& problem) {
    if (file_.edge_nodes.size() != file_.edge_costs.size()) {
      throw InputError(file_.edges, "{} edges and {} lists of edge costs; expected as many", file_.edge_nodes.size(),
                       file_.edge_costs.size());
    }
    edge_lists_ = file_.edge_lists.release();
    matrices_.resize(edge_lists_.size());
    problem.edges.reserve(file_.edge_nodes.size());
    for (std::size_t edge = 0; edge < file_.edge_nodes.size(); ++edge) {
      scan_.characters().check_time();
      const auto [from, to] = file_.edge_nodes[edge];
      for (const std::int64_t end : {from, to}) {
        if (end >= static_cast<std::int64_t>(problem.nodes.size())) {
          throw InputError(file_.edges, "edge {} names node {}; there are {}", edge, end, problem.nodes.size());
        }
      }
      const NodeId from_node(static_cast<std::size_t>(from));
      if (to == kNoSecondNode) {
        add_to_node(problem, edge, from_node);
      } else {
        const NodeId to_node(static_cast<std::size_t>(to));
        const MatrixId matrix = matrix_of(problem, edge, from_node, to_node);
        problem.edges.push_back({from_node, to_node, matrix});
        least_cost_ += least_entry_[matrix];
      }
    }
  }

  /// The numbers of an edge's list, wherever they are by now; forbidden ones may have been clamped.
  const std::vector<std::int64_t>& edge_costs(const StrategyProblem& problem, std::uint32_t list) const {
    return matrices_[list].empty() ? edge_lists_[list] : problem.matrices[matrices_[list][0]].costs.items();
  }

  /// One list of numbers may be the matrix of several shapes; the first shape takes it, others copy.
  MatrixId matrix_of(StrategyProblem& problem, std::size_t edge, NodeId from, NodeId to) {
    const std::uint32_t list = file_.edge_costs[edge];
    const std::size_t rows = problem.num_strategies(from);
    const std::size_t columns = problem.num_strategies(to);
    std::vector<MatrixId>& known = matrices_[list];
    const std::size_t entries = edge_costs(problem, list).size();
    if (entries != rows * columns) {
      throw InputError(file_.edges, "edge {} has {} costs; expected {} x {}, one for each pair of strategies", edge,
                       entries, rows, columns);
    }
    const auto same = std::find_if(known.begin(), known.end(), [&](MatrixId id) {
      return problem.matrices[id].rows == rows && problem.matrices[id].columns == columns;
    });
    if (same != known.end()) return *same;
    std::vector<std::int64_t> costs =
        known.empty() ? std::move(edge_lists_[list]) : problem.matrices[known[0]].costs.items();
    for (std::int64_t& cost : costs) cost = std::min(cost, kForbidden);
    least_entry_.push_back(least_allowed(costs));
    known.push_back(problem.matrices.push_back(
        {static_cast<std::uint32_t>(rows), static_cast<std::uint32_t>(columns), std::move(costs)}));
    return known.back();
  }

  /// The costs of an edge of one node become the node's own; equal nodes keep sharing one table.
  void add_to_node(StrategyProblem& problem, std::size_t edge, NodeId node) {
    const std::uint32_t list = file_.edge_costs[edge];
    const std::vector<std::int64_t>& costs = edge_costs(problem, list);
    if (costs.size() != problem.num_strategies(node)) {
      throw InputError(file_.edges, "edge {} has {} costs; expected {}, one for each strategy of its node", edge,
                       costs.size(), problem.num_strategies(node));
    }
    const StrategyTableId before = problem.nodes[node].strategies;
    const auto [at, is_new] = summed_tables_.try_emplace({before, list}, before);
    if (is_new) {
      StrategyTable table = problem.strategy_tables[before];
      for (std::size_t strategy = 0; strategy < costs.size(); ++strategy) {
        std::int64_t& sum = table.costs[strategy].communication;
        sum = std::min(std::min(costs[strategy], kForbidden) + sum, kForbidden);
      }
      at->second = problem.strategy_tables.push_back(std::move(table));
    }
    problem.nodes[node].strategies = at->second;
    least_cost_ += least_allowed(costs);
  }

  void check_least_cost() const {
    constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
    if (least_cost_ <= kLargest) return;
    throw InputError(file_.nodes,
                     "the least costs of all nodes and edges add up to {}; expected at most {}, the largest number of "
                     "64 bits",
                     least_cost_, kLargest);
  }

  JsonScanner scan_;
  ContestFile file_;
  std::vector<std::int64_t> numbers_;
  std::vector<std::vector<std::int64_t>> edge_lists_;                                   // by number of the list
  std::vector<std::vector<MatrixId>> matrices_;                                         // of each list
  IdVector<MatrixId, std::int64_t> least_entry_;                                        // of each matrix
  std::map<std::pair<StrategyTableId, std::uint32_t>, StrategyTableId> summed_tables_;  // of a table and an edge's list
  Int128 least_cost_ = 0;                                                               // no choice costs less
};

}  // namespace

StrategyProblem read_contest_problem(const std::string& path) { return *read_contest_problem(path, Deadline(0, {})); }

std::optional<StrategyProblem> read_contest_problem(const std::string& path, const Deadline& deadline) {
  try {
    CharacterStream characters(path, deadline);
    return ContestReader(characters).read();
  } catch (const OutOfTime&) {
    return std::nullopt;
  }
}

StrategyProblem parse_contest_problem(const std::string& text, const std::string& name) {
  return *parse_contest_problem(text, name, Deadline(0, {}));
}

std::optional<StrategyProblem> parse_contest_problem(const std::string& text, const std::string& name,
                                                     const Deadline& deadline) {
  try {
    CharacterStream characters(text, name, deadline);
    return ContestReader(characters).read();
  } catch (const OutOfTime&) {
    return std::nullopt;
  }
}

}  // namespace shardplan
