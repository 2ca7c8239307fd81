// How copies become one node.
//
// Costs and matrices of tied nodes are added, equal sums once. Memory is harder: the uses of ten thousand layers would
// remain ten thousand uses. Only the times that can be the fullest are kept (periodic_times.h), and what a set of nodes
// holds between two of them is summed into one use.

#include "solver/tied_problem.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "base/error.h"
#include "base/random.h"
#include "solver/interned.h"
#include "solver/periodic_times.h"

namespace shardplan {
namespace {

/// The periods of a schedule are distances between equal uses; this many of the most frequent distances are tried.
constexpr std::size_t kMostPeriods = 12;

std::int64_t plus(std::int64_t a, std::int64_t b) { return std::min(kForbidden, a + b); }
std::int64_t times(std::int64_t cost, std::int64_t count) {
  return cost > kForbidden / count ? kForbidden : cost * count;
}

CostMatrix repeated(const CostMatrix& once, std::int64_t count) {
  std::vector<std::int64_t> costs = once.costs;
  for (std::int64_t& cost : costs) cost = times(cost, count);
  return {once.rows, once.columns, std::move(costs)};
}

template <class Id>
using Counted = std::vector<std::pair<Id, std::int64_t>>;  // how many of each, by ascending id

/// The counts of a list with repetitions.
template <class Id>
Counted<Id> counted(std::vector<Id> items) {
  std::sort(items.begin(), items.end());
  Counted<Id> result;
  for (const Id item : items) {
    if (result.empty() || result.back().first != item) result.emplace_back(item, 0);
    ++result.back().second;
  }
  return result;
}

class Tying {
 public:
  Tying(const StrategyProblem& problem, const IdVector<NodeId, NodeId>& ties) : problem_(problem) {
    SHARDPLAN_CHECK(ties.size() == problem.nodes.size());
    result_.node = ties;
    std::size_t num_sets = 0;
    for (const NodeId set : ties) num_sets = std::max(num_sets, set.value() + 1);
    own_edges_.resize(num_sets);
    result_.problem.nodes.resize(num_sets);
    result_.problem.name = problem.name;
  }

  TiedProblem run() {
    add_edges();
    add_tables();
    number_changes();
    keep_times();
    add_memory();
    return std::move(result_);
  }

 private:
  // ---- costs

  void add_edges() {
    struct Edges {
      ProblemEdge edge;
      std::int64_t count = 0;
    };
    std::vector<Edges> all;
    std::unordered_map<std::uint64_t, std::vector<std::size_t>> known;  // never iterated over
    for (const ProblemEdge& edge : problem_.edges) {
      const NodeId from = result_.node[edge.from], to = result_.node[edge.to];
      if (from == to) {
        own_edges_[from].push_back(edge.matrix);
        continue;
      }
      std::vector<std::size_t>& alike = known[mix(from.value() ^ mix(to.value() ^ mix(edge.matrix.value())))];
      const auto found = std::find_if(alike.begin(), alike.end(), [&](std::size_t i) {
        return all[i].edge.from == from && all[i].edge.to == to && all[i].edge.matrix == edge.matrix;
      });
      if (found != alike.end()) {
        ++all[*found].count;
      } else {
        alike.push_back(all.size());
        all.push_back({{from, to, edge.matrix}, 1});
      }
    }
    std::map<std::pair<MatrixId, std::int64_t>, MatrixId> matrices;
    for (const auto& [edge, count] : all) {
      const auto [found, is_new] = matrices.try_emplace({edge.matrix, count});
      if (is_new) {
        const CostMatrix& once = problem_.matrices[edge.matrix];
        found->second = result_.problem.matrices.push_back(count == 1 ? once : repeated(once, count));
      }
      result_.problem.edges.push_back({edge.from, edge.to, found->second});
    }
  }

  void add_tables() {
    IdVector<NodeId, std::vector<StrategyTableId>> tables(result_.problem.nodes.size());
    for (const NodeId node : problem_.nodes.ids()) {
      tables[result_.node[node]].push_back(problem_.nodes[node].strategies);
    }
    std::map<std::pair<Counted<StrategyTableId>, Counted<MatrixId>>, StrategyTableId> known;
    for (const NodeId set : tables.ids()) {
      SHARDPLAN_CHECK(!tables[set].empty());
      std::pair key(counted(std::move(tables[set])), counted(std::move(own_edges_[set])));
      const auto [found, is_new] = known.try_emplace(std::move(key));
      if (is_new)
        found->second = result_.problem.strategy_tables.push_back(sum(found->first.first, found->first.second));
      result_.problem.nodes[set].strategies = found->second;
    }
  }

  StrategyTable sum(const Counted<StrategyTableId>& tables, const Counted<MatrixId>& own_edges) const {
    StrategyTable result;
    result.costs.resize(problem_.strategy_tables[tables.front().first].costs.size());
    for (const auto& [id, count] : tables) {
      const StrategyTable& table = problem_.strategy_tables[id];
      SHARDPLAN_CHECK(table.costs.size() == result.costs.size());
      for (std::size_t i = 0; i < result.costs.size(); ++i) {
        Cost& cost = result.costs[i];
        cost.computation = plus(cost.computation, times(table.costs[i].computation, count));
        cost.communication = plus(cost.communication, times(table.costs[i].communication, count));
      }
    }
    for (const auto& [id, count] : own_edges) {
      for (std::size_t i = 0; i < result.costs.size(); ++i) {
        Cost& cost = result.costs[i];
        cost.communication = plus(cost.communication, times(problem_.matrices[id].at(i, i), count));
      }
    }
    return result;
  }

  // ---- memory

  using UseId = Index<struct UseTag>;  // an amount of memory that a set holds

  /// One use more or less, from a time on.
  struct Change {
    std::uint32_t time;
    UseId use;
    std::int32_t count;
  };

  UseId use_of(NodeId set, UsageTableId usage) {
    const std::uint64_t key = set.value() << 32 | usage.value();
    const auto [found, is_new] = use_ids_.try_emplace(key, UseId(uses_.size()));
    if (is_new) uses_.push_back({set, usage});
    return found->second;
  }

  /// All beginnings and ends by time, equal ones together.
  void number_changes() {
    std::unordered_map<std::uint64_t, std::uint32_t> last_begin;  // by set and position in the node's uses
    std::map<std::uint32_t, std::size_t> distances;
    std::vector<std::size_t> first(problem_.memory_limits.size() + 2, 0);
    for (const NodeId node : problem_.nodes.ids()) {
      const NodeId set = result_.node[node];
      std::size_t position = 0;
      for (const MemoryUse& use : problem_.nodes[node].memory) {
        if (use.begin >= use.end) continue;
        ++first[use.begin + 1];
        ++first[use.end + 1];
        const auto [last, is_new] = last_begin.try_emplace(set.value() << 32 | position++, use.begin);
        if (!is_new) ++distances[std::max(use.begin, last->second) - std::min(use.begin, last->second)];
        last->second = use.begin;
      }
    }
    for (const auto& [distance, count] : distances) {
      if (distance > 0) periods_.emplace_back(count, distance);
    }
    std::stable_sort(periods_.begin(), periods_.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    if (periods_.size() > kMostPeriods) periods_.resize(kMostPeriods);

    for (std::size_t time = 1; time < first.size(); ++time) first[time] += first[time - 1];
    std::vector<Change> changes(first.back());
    for (const NodeId node : problem_.nodes.ids()) {
      for (const MemoryUse& use : problem_.nodes[node].memory) {
        if (use.begin >= use.end) continue;
        const UseId id = use_of(result_.node[node], use.usage);
        changes[first[use.begin]++] = {use.begin, id, 1};
        changes[first[use.end]++] = {use.end, id, -1};
      }
    }
    for (std::size_t begin = 0, end = 0; begin < changes.size(); begin = end) {
      while (end < changes.size() && changes[end].time == changes[begin].time) ++end;
      const auto at = [&](std::size_t i) { return changes.begin() + static_cast<std::ptrdiff_t>(i); };
      std::sort(at(begin), at(end), [](const Change& a, const Change& b) { return a.use < b.use; });
      for (std::size_t i = begin; i < end; ++i) {
        if (i > begin && changes_.back().time == changes[i].time && changes_.back().use == changes[i].use) {
          changes_.back().count += changes[i].count;
        } else {
          changes_.push_back(changes[i]);
        }
      }
    }
    std::erase_if(changes_, [](const Change& change) { return change.count == 0; });
  }

  /// The limit at each time is part of what repeats.
  void keep_times() {
    NumberedPool<std::vector<std::uint64_t>> contents;
    std::vector<std::uint32_t> numbers;
    std::size_t next = 0;
    for (std::size_t time = 0; time < problem_.memory_limits.size(); ++time) {
      std::vector<std::uint64_t> content{static_cast<std::uint64_t>(problem_.memory_limits[time])};
      for (; next < changes_.size() && changes_[next].time == time; ++next) {
        content.push_back(std::uint64_t{changes_[next].use.value()} << 32 |
                          static_cast<std::uint32_t>(changes_[next].count));
      }
      numbers.push_back(contents.number(std::move(content)));
    }
    std::vector<std::uint32_t> periods;
    for (const auto& [count, distance] : periods_) periods.push_back(distance);
    PeriodicTimes kept = periodic_times(numbers, periods);
    for (const std::uint32_t time : kept.kept) result_.problem.memory_limits.push_back(problem_.memory_limits[time]);
    result_.times = std::move(kept.kept);
    result_.between = std::move(kept.between);
  }

  /// What a set holds between two changes that kept times can distinguish is one use.
  void add_memory() {
    IdVector<NodeId, std::vector<Change>> by_set(result_.problem.nodes.size());
    for (const Change& change : changes_) by_set[uses_[change.use].first].push_back(change);
    changes_ = {};
    std::map<Counted<UsageTableId>, UsageTableId> known;
    for (const NodeId set : by_set.ids()) {
      std::map<UsageTableId, std::int64_t> held;
      std::uint32_t begin = 0;
      const auto hold_until = [&](std::uint32_t end) {
        if (begin < end && !held.empty()) {
          const auto [found, is_new] = known.try_emplace(Counted<UsageTableId>(held.begin(), held.end()));
          if (is_new) found->second = result_.problem.usage_tables.push_back(sum(found->first));
          result_.problem.nodes[set].memory.push_back({found->second, begin, end});
        }
        begin = end;
      };
      for (const Change& change : by_set[set]) {
        const auto seen = std::lower_bound(result_.times.begin(), result_.times.end(), change.time);
        hold_until(static_cast<std::uint32_t>(seen - result_.times.begin()));
        const UsageTableId usage = uses_[change.use].second;
        if ((held[usage] += change.count) == 0) held.erase(usage);
      }
      SHARDPLAN_CHECK(held.empty());
    }
  }

  UsageTable sum(const Counted<UsageTableId>& usages) const {
    UsageTable result;
    result.bytes.resize(problem_.usage_tables[usages.front().first].bytes.size());
    for (const auto& [id, count] : usages) {
      for (std::size_t i = 0; i < result.bytes.size(); ++i) {
        result.bytes[i] += problem_.usage_tables[id].bytes[i] * count;
      }
    }
    return result;
  }

  const StrategyProblem& problem_;
  TiedProblem result_;
  IdVector<NodeId, std::vector<MatrixId>> own_edges_;
  std::unordered_map<std::uint64_t, UseId> use_ids_;  // never iterated over
  IdVector<UseId, std::pair<NodeId, UsageTableId>> uses_;
  std::vector<std::pair<std::size_t, std::uint32_t>> periods_;  // how often, how long
  std::vector<Change> changes_;                                 // by time, then by use
};

}  // namespace

Choice TiedProblem::expanded(const Choice& choice) const {
  Choice result;
  result.strategy.reserve(node.size());
  for (const NodeId set : node) result.strategy.push_back(choice.strategy[set]);
  return result;
}

Choice TiedProblem::tied(const Choice& choice) const {
  Choice result;
  result.strategy.resize(problem.nodes.size());
  for (const NodeId of_original : node.ids()) result.strategy[node[of_original]] = choice.strategy[of_original];
  return result;
}

TiedProblem tied_problem(const StrategyProblem& problem, const IdVector<NodeId, NodeId>& ties) {
  return Tying(problem, ties).run();
}

}  // namespace shardplan
