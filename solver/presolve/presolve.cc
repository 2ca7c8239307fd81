#include "solver/presolve/presolve.h"

#include <algorithm>

#include "solver/presolve/core_builder.h"
#include "solver/presolve/degree_two.h"
#include "solver/presolve/dominance.h"
#include "solver/presolve/follower_merging.h"
#include "solver/presolve/isolated_nodes.h"
#include "solver/presolve/leaf_folding.h"
#include "solver/presolve/reduction_memory.h"

namespace shardplan {
namespace {

constexpr int kMostRounds = 64;
constexpr std::int64_t kEntriesInAnyCase = std::int64_t{1} << 24;  // that followers may always add to the tables

}  // namespace

Presolve::Presolve(const StrategyProblem& problem, const Objective& objective, const Deadline& deadline,
                   std::optional<std::int64_t> known_cost, bool reduce_problem, Memory memory)
    : graph_(problem, objective, known_cost, memory == Memory::kKept, deadline) {
  statistics_.stage = "presolve";
  const auto count = [&](const char* name, auto value) {
    statistics_.figures.emplace_back(name, static_cast<std::int64_t>(value));
  };
  count("nodes", graph_.num_nodes());
  count("edges", problem.edges.size());
  count("times", problem.memory_limits.size());
  graph_.settle();
  if (reduce_problem) {
    reduce(deadline.part(0.5));
  } else {
    settle_memory(deadline);
  }
  if (is_infeasible()) return;
  BuiltCore built = build_core(graph_, known_cost);
  if (is_infeasible()) return;
  core_ = std::move(built.core);
  core_nodes_ = std::move(built.nodes);
  is_infeasibility_certain_ = built.is_infeasibility_certain;
  count("merged followers", merged_);
  count("dominated values", dominated_);
  count("folded leaves", folded_);
  count("joined degree two", joined_);
  count("core nodes", core_.num_nodes());
  count("core edges", core_.neighbours.size() / 2);
  count("core values", core_.costs.size());
  count("core times", core_.limits.size());
  count("core matrices", core_.matrices->size());
  count("core sweep entries", core_.sweep_work);
  count("constant cost", constant_cost());
  graph_.forget_problem();  // now, not at the end, when the time for it would be over
}

void Presolve::reduce(const Deadline& deadline) {
  const std::int64_t entry_limit = 2 * graph_.num_entries() + kEntriesInAnyCase;
  merged_ = merge_followers(graph_, entry_limit, deadline);
  graph_.forget_results();
  for (int round = 0; round < kMostRounds && !is_infeasible() && !deadline.is_over(); ++round) {
    graph_.remove_singles();
    if (is_infeasible()) return;
    settle_memory(deadline);
    if (is_infeasible()) return;
    graph_.remove_singles();
    const std::size_t dominated = remove_dominated_values(graph_, deadline);
    dominated_ += dominated;
    if (is_infeasible()) return;
    const std::size_t folded = fold_leaves(graph_, deadline);
    const std::size_t fixed = fix_isolated_nodes(graph_);
    const std::size_t joined = join_degree_two(graph_, deadline);
    graph_.settle();
    const std::size_t merged = is_infeasible() ? 0 : merge_followers(graph_, entry_limit, deadline);
    graph_.forget_results();
    folded_ += folded;
    joined_ += joined;
    merged_ += merged;
    if (dominated + folded + fixed + joined + merged == 0) break;
  }
  if (is_infeasible()) return;
  graph_.remove_singles();
  settle_memory(deadline);
}

void Presolve::settle_memory(const Deadline& deadline) {
  const auto num_values = [&] {
    std::size_t count = 0;
    for (std::size_t id = 0; id < graph_.num_nodes(); ++id) count += graph_.num_values(id);
    return count;
  };
  for (;;) {
    simplify_memory(graph_);
    const std::size_t before = num_values();
    graph_.settle();
    if (is_infeasible() || num_values() == before) return;
    if (deadline.is_over()) return tidy_memory(graph_);  // what no longer fits stays
  }
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
