// How to bound a thousand copies that may all differ by looking at a few of them.
//
// The problem is cut into blocks of a few copies each. A cut edge gives each of its ends a potential; the sum of two
// potentials never exceeds the cost of the pair:
//
//     f(x) + g(y) <= cost(x, y)        for all x and y
//
// So the minima of all blocks, potentials included, add up to at most the minimum of the whole problem (Lagrangian
// decomposition: Guignard, Kim, Mathematical Programming 39, 1987). Equal blocks (equal tables and potentials) are
// searched once and counted.
//
// g may be anything; f(x) = min over y of cost(x, y) - g(y) is then optimal. So the bound holds for any g, and its
// quality depends on g alone. g is read from the messages of a bound (dual_bound.h) on a short problem, which omits all
// copies but the first and last few and joins their neighbours: where copies repeat, the same crosses from one copy to
// the next in the short problem and in the long one.
//
// The alternative, messages for all copies, is what a search of the whole problem does; it takes that search's memory
// and time, some thousand numbers per copy and pass.

#include "solver/block_bound.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/integer.h"
#include "solver/bounds/dual_bound.h"
#include "solver/core/core_problem.h"
#include "solver/interned.h"
#include "solver/presolve/core_builder.h"

namespace shardplan {
namespace {

constexpr std::int32_t kFirstCopies = 3;    // kept at each end
constexpr std::int32_t kCopiesOfBlock = 6;  // they share the loss at a cut
constexpr std::int32_t kFewestBlocks =
    4;  // besides the first and last copies; with fewer the whole problem is searched too
constexpr std::size_t kMostDifferent = 6;  // blocks; with more, copies are not alike
constexpr std::int32_t kVoters = 16;       // copies that decide how the copies of two sets are aligned
constexpr std::size_t kFewestVotes = 8;
constexpr int kMostPasses = 96;
constexpr int kPassesBetweenLooks = 8;
constexpr double kGainsEnough = 1e-5;         // relative gain of the bound from check to check
constexpr double kLargestPotential = 0x1p57;  // sums of a few fit in 64 bits
constexpr std::int32_t kNoCopy = INT32_MIN;   // of a node outside all copies

/// Which copy each node belongs to. The copies of one set are ordered, for backward operators in the reverse order of
/// forward operators; sets are aligned along edges, so that most edges of a copy stay within it.
class Copies {
 public:
  Copies(const StrategyProblem& problem, const IdVector<NodeId, NodeId>& ties) : set_(ties) {
    std::size_t num_sets = 0;
    for (const NodeId set : ties) num_sets = std::max(num_sets, set.value() + 1);
    first_.assign(num_sets + 1, 0);
    for (const NodeId set : ties) ++first_[set.value() + 1];
    for (std::size_t set = 0; set < num_sets; ++set) first_[set + 1] += first_[set];
    members_.resize(ties.size());
    rank_.resize(ties.size());
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    for (const NodeId node : ties.ids()) {
      std::uint32_t& at = next[ties[node].value()];
      rank_[node] = static_cast<std::int32_t>(at - first_[ties[node].value()]);
      members_[at++] = node;
    }
    places_.resize(num_sets);
    std::size_t largest = 0;
    for (std::size_t set = 0; set < num_sets; ++set) {
      if (num_members(set) > num_members(largest)) largest = set;
    }
    count_ = num_members(largest);
    if (count_ > kVoters) align(problem, largest);
  }

  std::int32_t count() const { return count_; }
  std::size_t set(NodeId node) const { return set_[node].value(); }
  std::int32_t copy(NodeId node) const {
    const Place& place = places_[set(node)];
    if (place.direction == 0) return kNoCopy;
    const std::int32_t copy = place.direction * rank_[node] + place.first;
    return copy >= 0 && copy < count_ ? copy : kNoCopy;
  }
  /// The set's node in a copy, if there is one.
  std::optional<NodeId> node(std::size_t set, std::int32_t copy) const {
    const Place& place = places_[set];
    const std::int32_t rank = place.direction * (copy - place.first);
    if (place.direction == 0 || rank < 0 || rank >= num_members(set)) return std::nullopt;
    return members_[first_[set] + static_cast<std::uint32_t>(rank)];
  }

 private:
  struct Place {
    std::int32_t direction = 0;  // 1 or -1; 0: outside all copies
    std::int32_t first = 0;      // the copy of the set's first node
  };

  std::int32_t num_members(std::size_t set) const { return static_cast<std::int32_t>(first_[set + 1] - first_[set]); }
  bool is_voter(NodeId node) const {
    const std::int32_t middle = num_members(set(node)) / 2;
    return rank_[node] >= middle && rank_[node] < middle + kVoters;
  }

  void align(const StrategyProblem& problem, std::size_t largest) {
    std::vector<std::vector<std::pair<NodeId, NodeId>>> edges(places_.size());  // at the set of the first node
    for (const ProblemEdge& edge : problem.edges) {
      if (is_voter(edge.from)) edges[set(edge.from)].emplace_back(edge.from, edge.to);
      if (is_voter(edge.to)) edges[set(edge.to)].emplace_back(edge.to, edge.from);
    }
    places_[largest] = {1, 0};
    std::deque<std::size_t> queue{largest};
    while (!queue.empty()) {
      const std::size_t known = queue.front();
      queue.pop_front();
      std::map<std::tuple<std::size_t, std::int32_t, std::int32_t>, std::size_t> votes;  // by set and place
      for (const auto& [at, other] : edges[known]) {
        if (places_[set(other)].direction != 0 || num_members(set(other)) < count_ / 2) continue;
        const std::int32_t copy = places_[known].direction * rank_[at] + places_[known].first;
        for (const std::int32_t direction : {1, -1}) {
          ++votes[{set(other), direction, copy - direction * rank_[other]}];
        }
      }
      std::map<std::size_t, std::pair<std::size_t, Place>> best;
      for (const auto& [place, count] : votes) {
        const auto& [of, direction, first] = place;
        auto& [most, chosen] = best[of];
        if (count > most) std::tie(most, chosen) = std::pair(count, Place{direction, first});
      }
      for (const auto& [of, found] : best) {
        if (found.first < kFewestVotes) continue;
        places_[of] = found.second;
        queue.push_back(of);
      }
    }
  }

  const IdVector<NodeId, NodeId>& set_;
  std::vector<std::uint32_t> first_;  // by set, with one more at the end: position in `members_`
  std::vector<NodeId> members_;
  IdVector<NodeId, std::int32_t> rank_;  // in its set
  std::vector<Place> places_;            // by set
  std::int32_t count_ = 0;
};

/// A cost is either forbidden or below this, whatever its weight: then a bound on the weighted cost.
std::int64_t weighed(Int128 cost) { return static_cast<std::int64_t>(std::min<Int128>(cost, kForbidden - 1)); }

class BlockBounding {
 public:
  BlockBounding(const StrategyProblem& problem, const IdVector<NodeId, NodeId>& ties, const Search& search,
                const SearchOptions& options)
      : problem_(problem), search_(search), options_(options), copies_(problem, ties) {}

  std::optional<BlockBound> run() {
    const std::int32_t between = copies_.count() - 2 * kFirstCopies;
    num_blocks_ = between / kCopiesOfBlock;
    if (num_blocks_ < kFewestBlocks) return std::nullopt;
    weigh();
    find_potentials();
    return sum_of_blocks();
  }

 private:
  // ---- the problem with one number per cost and one edge per pair of nodes

  struct Edge {
    NodeId from, to;
    std::uint32_t table;  // rows: values of `from`
  };

  void weigh() {
    const auto [computation, communication] = options_.objective;
    for (const StrategyTable& table : problem_.strategy_tables) {
      std::vector<std::int64_t>& costs = costs_.emplace_back();
      for (const Cost& cost : table.costs) {
        const bool is_forbidden = cost.computation >= kForbidden || cost.communication >= kForbidden;
        costs.push_back(is_forbidden ? kForbidden
                                     : weighed(Int128{computation} * cost.computation +
                                               Int128{communication} * cost.communication));
      }
    }
    for (const CostMatrix& matrix : problem_.matrices) {
      CostMatrix& table = tables_.emplace_back(matrix);
      for (std::int64_t& cost : table.costs) {
        cost = cost >= kForbidden ? kForbidden : weighed(Int128{communication} * cost);
      }
    }
    edges_.reserve(problem_.edges.size());
    for (const ProblemEdge& edge : problem_.edges) {
      edges_.push_back({edge.from, edge.to, static_cast<std::uint32_t>(edge.matrix.value())});
    }
    add_parallel_edges();
  }

  void add_parallel_edges() {
    const auto ends = [](const Edge& edge) { return std::minmax(edge.from, edge.to); };
    std::stable_sort(edges_.begin(), edges_.end(), [&](const Edge& a, const Edge& b) { return ends(a) < ends(b); });
    std::map<std::tuple<std::uint32_t, std::uint32_t, bool>, std::uint32_t> sums;
    std::vector<Edge> all;
    for (const Edge& edge : edges_) {
      if (all.empty() || ends(all.back()) != ends(edge)) {
        all.push_back(edge);
        continue;
      }
      const bool is_turned = all.back().from != edge.from;
      const auto [found, is_new] = sums.try_emplace({all.back().table, edge.table, is_turned}, tables_.size());
      if (is_new) {
        CostMatrix sum = tables_[all.back().table];
        const CostMatrix& other = tables_[edge.table];
        for (std::size_t row = 0; row < sum.rows; ++row) {
          for (std::size_t column = 0; column < sum.columns; ++column) {
            std::int64_t& cost = sum.costs[row * sum.columns + column];
            const std::int64_t more = is_turned ? other.at(column, row) : other.at(row, column);
            cost = cost >= kForbidden || more >= kForbidden ? kForbidden : weighed(Int128{cost} + more);
          }
        }
        tables_.push_back(std::move(sum));
      }
      all.back().table = found->second;
    }
    edges_ = std::move(all);
  }

  const std::vector<std::int64_t>& costs(NodeId node) const { return costs_[problem_.nodes[node].strategies.value()]; }

  // ---- potentials

  /// The kind of two nodes and their edge, independent of the copies; the distance between the copies comes last.
  using EdgeKind = std::tuple<std::size_t, std::size_t, std::uint32_t, std::int32_t>;
  struct Potentials {
    std::vector<std::int64_t> from, to;  // by value of the edge's ends
  };

  EdgeKind kind(const Edge& edge) const {
    const std::int32_t from = copies_.copy(edge.from), to = copies_.copy(edge.to);
    return {copies_.set(edge.from), copies_.set(edge.to), edge.table,
            from == kNoCopy || to == kNoCopy ? kNoCopy : to - from};
  }

  /// The best potentials of one end, given those of the other.
  void add_potentials(const Edge& edge, std::vector<std::int64_t> to) {
    const CostMatrix& table = tables_[edge.table];
    const std::vector<std::int64_t>& costs_to = costs(edge.to);
    std::vector<std::int64_t> from(table.rows, kForbidden);
    for (std::size_t row = 0; row < table.rows; ++row) {
      for (std::size_t column = 0; column < table.columns; ++column) {
        if (table.at(row, column) >= kForbidden || costs_to[column] >= kForbidden) continue;
        from[row] = std::min(from[row], table.at(row, column) - to[column]);
      }
    }
    known_.emplace(kind(edge), static_cast<std::uint32_t>(potentials_.size()));
    potentials_.push_back({std::move(from), std::move(to)});
  }

  /// In the short problem: the first copies, then the last ones.
  std::int32_t long_copy(std::int32_t copy) const {
    return copy < kFirstCopies ? copy : copy + copies_.count() - 2 * kFirstCopies;
  }
  bool is_in_short(std::int32_t copy) const {
    return copy == kNoCopy || copy < kFirstCopies || copy >= copies_.count() - kFirstCopies;
  }

  void find_potentials() {
    std::vector<Edge> edges;      // of the short problem
    std::vector<Edge> originals;  // those of `edges` that cross its middle
    std::vector<std::size_t> crossing;
    bool has_common = false;  // some node outside all copies has an edge to each of them
    for (const Edge& edge : edges_) {
      const std::int32_t from = copies_.copy(edge.from), to = copies_.copy(edge.to);
      has_common = has_common || (std::min(from, to) == kNoCopy && std::max(from, to) == kFirstCopies);
      if (from == kNoCopy || to == kNoCopy) {
        if (!is_in_short(from) || !is_in_short(to)) continue;
        edges.push_back(edge);
        if (std::max(from, to) != kFirstCopies - 1) continue;
      } else {
        const auto [first, last] = std::minmax(from, to);
        if (first >= copies_.count() - kFirstCopies) edges.push_back(edge);
        if (first >= kFirstCopies || last >= 2 * kFirstCopies) continue;
        const auto short_from = copies_.node(copies_.set(edge.from), long_copy(from));
        const auto short_to = copies_.node(copies_.set(edge.to), long_copy(to));
        if (!short_from || !short_to) continue;
        edges.push_back({*short_from, *short_to, edge.table});
        if (first != kFirstCopies - 1 || last == first) continue;
      }
      crossing.push_back(edges.size() - 1);
      originals.push_back(edge);
    }
    const auto messages = messages_to(edges, crossing, has_common ? 2.0 * kFirstCopies / copies_.count() : 1);
    for (std::size_t i = 0; i < crossing.size(); ++i) {
      if (!known_.contains(kind(originals[i]))) add_potentials(originals[i], messages[i]);
    }
  }

  /// Messages to the ends `to` of some edges, after the bound on the problem of these edges has converged. Nodes
  /// outside all copies cost `share` of their cost: with few of their edges present, each edge would otherwise get more
  /// than its part.
  std::vector<std::vector<std::int64_t>> messages_to(const std::vector<Edge>& edges,
                                                     const std::vector<std::size_t>& asked, double share) const {
    std::map<NodeId, std::uint32_t> core_nodes;
    for (const Edge& edge : edges) core_nodes[edge.from] = core_nodes[edge.to] = 0;
    double big = 1;
    std::uint32_t next = 0;
    const auto largest = [](const std::vector<std::int64_t>& all) {
      std::int64_t most = 0;
      for (const std::int64_t cost : all) most = std::max(most, cost < kForbidden ? cost : 0);
      return static_cast<double>(most);
    };
    for (auto& [node, number] : core_nodes) {
      number = next++;
      big += largest(costs(node));
    }
    for (const Edge& edge : edges) big += largest(tables_[edge.table].costs);

    CoreProblem core;
    core.big_m = std::min(big, 0x1p60);
    std::vector<std::vector<CoreNeighbour>> neighbours(core_nodes.size());
    auto matrices = std::make_shared<std::vector<CoreMatrix>>();
    std::map<std::pair<std::uint32_t, bool>, std::uint32_t> matrix_of;
    for (const Edge& edge : edges) {
      const bool is_common = copies_.copy(edge.from) == kNoCopy && copies_.copy(edge.to) == kNoCopy;
      const auto [found, is_new] =
          matrix_of.try_emplace({edge.table, is_common}, static_cast<std::uint32_t>(matrices->size()));
      if (is_new) {
        CostMatrix table = tables_[edge.table];
        for (std::int64_t& cost : table.costs) {
          if (is_common && cost < kForbidden) cost = static_cast<std::int64_t>(share * static_cast<double>(cost));
        }
        matrices->push_back(make_core_matrix(table, core.big_m));
      }
      const std::uint32_t from = core_nodes[edge.from], to = core_nodes[edge.to];
      neighbours[from].push_back({to, found->second, true, 0});
      neighbours[to].push_back({from, found->second, false, 0});
    }
    core.first_value = core.first_neighbour = {0};
    core.first_segment.assign(core_nodes.size() + 1, 0);
    for (const auto& [node, number] : core_nodes) {
      const double part = copies_.copy(node) == kNoCopy ? share : 1;
      for (const std::int64_t cost : costs(node)) {
        core.costs.push_back(cost >= kForbidden ? core.big_m : std::floor(part * static_cast<double>(cost)));
      }
      core.first_value.push_back(static_cast<std::uint32_t>(core.costs.size()));
      std::vector<CoreNeighbour>& own = neighbours[number];
      std::sort(own.begin(), own.end(), [](const auto& a, const auto& b) { return a.node < b.node; });
      core.neighbours.insert(core.neighbours.end(), own.begin(), own.end());
      core.first_neighbour.push_back(static_cast<std::uint32_t>(core.neighbours.size()));
    }
    core.matrices = std::move(matrices);
    finish(core);

    DualBound dual(core);
    double bound = 0;
    for (int pass = 1; pass <= kMostPasses; ++pass) {
      dual.pass_ahead();
      if (pass % kPassesBetweenLooks != 0) continue;
      if (dual.best_bound() - bound < kGainsEnough * bound) break;
      bound = dual.best_bound();
    }
    std::vector<std::vector<std::int64_t>> result;
    for (const std::size_t edge : asked) {
      const std::uint32_t from = core_nodes[edges[edge].from], to = core_nodes[edges[edge].to];
      std::uint32_t slot = core.first_neighbour[to];
      while (core.neighbours[slot].node != from) ++slot;
      const double* const message = dual.message(slot);
      std::vector<std::int64_t>& values = result.emplace_back();
      for (std::size_t value = 0; value < core.num_values(to); ++value) {
        values.push_back(std::llround(std::clamp(message[value], -kLargestPotential, kLargestPotential)));
      }
    }
    return result;
  }

  // ---- blocks

  std::uint32_t block(NodeId node) const {
    const std::int32_t copy = copies_.copy(node);
    if (copy == kNoCopy || copy < kFirstCopies) return 0;
    const std::int32_t number = (copy - kFirstCopies) / kCopiesOfBlock;
    return number < num_blocks_ ? static_cast<std::uint32_t>(1 + number) : 0;
  }

  /// The cost of a node in its block: its own strategies' costs plus potentials, minus their minimum.
  using TableKind = std::vector<std::uint32_t>;  // number of the strategy table, then those of the potentials
  struct BlockTable {
    StrategyTable costs;
    Int128 least = 0;
  };

  /// Nothing if no strategy is left.
  std::optional<BlockTable> block_table(const TableKind& kind) const {
    std::vector<Int128> sums;
    for (const std::int64_t cost : costs_[kind[0]]) sums.push_back(cost);
    for (std::size_t i = 1; i < kind.size(); ++i) {
      const Potentials& both = potentials_[kind[i] / 2];
      const std::vector<std::int64_t>& own = kind[i] % 2 == 0 ? both.from : both.to;
      for (std::size_t value = 0; value < sums.size(); ++value) {
        sums[value] = sums[value] >= kForbidden || own[value] >= kForbidden ? kForbidden : sums[value] + own[value];
      }
    }
    BlockTable result;
    result.least = *std::min_element(sums.begin(), sums.end());
    if (result.least >= kForbidden) return std::nullopt;
    for (const Int128 sum : sums) {
      const bool is_forbidden = sum >= kForbidden;
      result.costs.costs.push_back({is_forbidden ? 0 : weighed(sum - result.least), is_forbidden ? kForbidden : 0});
    }
    return result;
  }

  std::optional<BlockBound> sum_of_blocks() {
    const auto count = static_cast<std::size_t>(num_blocks_) + 1;
    struct Block {
      std::vector<NodeId> nodes;
      std::vector<std::uint32_t> edges;
    };
    std::vector<Block> blocks(count);
    for (const NodeId node : problem_.nodes.ids()) blocks[block(node)].nodes.push_back(node);
    std::map<NodeId, TableKind> touched;  // nodes at cut edges
    for (std::uint32_t at = 0; at < edges_.size(); ++at) {
      const Edge& edge = edges_[at];
      if (block(edge.from) == block(edge.to)) {
        blocks[block(edge.from)].edges.push_back(at);
        continue;
      }
      auto known = known_.find(kind(edge));
      if (known == known_.end()) {
        add_potentials(edge, std::vector<std::int64_t>(tables_[edge.table].columns, 0));
        known = known_.find(kind(edge));
      }
      touched[edge.from].push_back(2 * known->second);
      touched[edge.to].push_back(2 * known->second + 1);
    }

    NumberedPool<std::vector<std::uint32_t>> kinds;  // of nodes' tables
    IdVector<NodeId, std::uint32_t> position(problem_.nodes.size(), 0);
    std::map<std::vector<std::uint32_t>, std::size_t> contents;  // of blocks, and how many have these
    for (Block& own : blocks) {
      std::vector<std::tuple<std::size_t, std::int32_t, NodeId>> order;
      for (const NodeId node : own.nodes) order.emplace_back(copies_.set(node), copies_.copy(node), node);
      std::sort(order.begin(), order.end());
      std::vector<std::uint32_t> content{static_cast<std::uint32_t>(order.size())};
      for (const auto& [set, copy, node] : order) {
        position[node] = static_cast<std::uint32_t>(content.size() - 1);
        TableKind kind;
        if (const auto found = touched.find(node); found != touched.end()) kind = found->second;
        std::sort(kind.begin(), kind.end());
        kind.insert(kind.begin(), static_cast<std::uint32_t>(problem_.nodes[node].strategies.value()));
        content.push_back(kinds.number(std::move(kind)));
      }
      std::vector<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> edges;
      for (const std::uint32_t at : own.edges) {
        edges.emplace_back(position[edges_[at].from], position[edges_[at].to], edges_[at].table);
      }
      std::sort(edges.begin(), edges.end());
      for (const auto& [from, to, table] : edges) content.insert(content.end(), {from, to, table});
      ++contents[std::move(content)];
      if (contents.size() > kMostDifferent) return std::nullopt;
      own = {};
    }

    Int128 sum = 0;
    for (const auto& [content, times] : contents) {
      const std::optional<Int128> least = least_cost(content, kinds);
      if (!least) return std::nullopt;
      sum += *least * static_cast<Int128>(times);
    }
    if (sum > INT64_MAX) return std::nullopt;
    return BlockBound{std::max<std::int64_t>(0, static_cast<std::int64_t>(sum)), count, contents.size()};
  }

  /// A bound on the cost of a block; nothing if none was found.
  std::optional<Int128> least_cost(const std::vector<std::uint32_t>& content,
                                   const NumberedPool<std::vector<std::uint32_t>>& kinds) const {
    StrategyProblem block;
    block.name = problem_.name;
    block.memory_limits = {kUnlimitedBytes};
    Int128 sum = 0;
    std::map<std::uint32_t, std::pair<StrategyTableId, Int128>> tables;  // by kind
    std::size_t at = 1;
    for (; at <= content[0]; ++at) {
      const auto [found, is_new] = tables.try_emplace(content[at]);
      if (is_new) {
        std::optional<BlockTable> table = block_table(kinds[content[at]]);
        if (!table) return std::nullopt;
        found->second = {block.strategy_tables.push_back(std::move(table->costs)), table->least};
      }
      block.nodes.push_back({found->second.first, {}});
      sum += found->second.second;
    }
    std::map<std::uint32_t, MatrixId> matrices;
    for (; at < content.size(); at += 3) {
      const std::uint32_t table = content[at + 2];
      const auto [found, is_new] = matrices.try_emplace(table);
      if (is_new) found->second = block.matrices.push_back(tables_[table]);
      block.edges.push_back({NodeId(content[at]), NodeId(content[at + 1]), found->second});
    }
    SearchOptions options = options_;
    options.objective = {1, 1};
    options.start.reset();
    const PlanResult found = search_.search(block, options);
    if (found.status == PlanStatus::kInfeasible) return std::nullopt;
    return sum + found.lower_bound;
  }

  const StrategyProblem& problem_;
  const Search& search_;
  const SearchOptions& options_;
  const Copies copies_;
  std::int32_t num_blocks_ = 0;  // of middle copies; block 0: the first and last copies, and nodes outside all copies
  std::vector<std::vector<std::int64_t>> costs_;  // by strategy table, weighted
  std::vector<CostMatrix> tables_;                // those of edges, weighted
  std::vector<Edge> edges_;
  std::vector<Potentials> potentials_;
  std::map<EdgeKind, std::uint32_t> known_;  // their numbers
};

}  // namespace

std::optional<BlockBound> block_bound(const StrategyProblem& problem, const IdVector<NodeId, NodeId>& ties,
                                      const Search& search, const SearchOptions& options) {
  return BlockBounding(problem, ties, search, options).run();
}

}  // namespace shardplan
