#include "planner/search/guided_search.h"

#include <algorithm>
#include <future>
#include <map>
#include <tuple>
#include <utility>

#include "base/integer.h"
#include "base/side_by_side.h"
#include "graph/batch_factors.h"
#include "layouts/layout_axes.h"
#include "planner/problem/uniform_layers.h"
#include "solver/block_bound.h"
#include "solver/searches/search_list.h"
#include "solver/tied_problem.h"
#include "strategies/data_parallel.h"

// A search in stages, each of which starts from the best choice so far and ends early once the gap is small: the
// uniform choice of large problems; the full problem with limited work; restrictions that people would try (the batch
// sharded over the same axes everywhere, no repeated work, every group of the outermost level doing the same); and the
// full problem again from the best of these. Bounds are only taken from searches of the full problem.

namespace shardplan {
namespace {

/// With a gap above this, restricted problems are tried.
constexpr double kLooseGap = 0.01;
/// Work for each restricted problem; a fraction of a second.
constexpr std::uint64_t kPartWork = 400'000'000;
constexpr double kGoodEnoughForPart = 1e-3;
/// The share of the remaining time that all restricted problems together may take.
constexpr double kTimeOfParts = 0.3;
/// The default work allows only a handful of passes for large problems. As long as the gap is large, this many passes
/// are worth waiting for: tens of seconds for a million values.
constexpr std::uint64_t kWorthwhilePasses = 100;
constexpr double kTightGap = kLooseGap / 2;
/// If branch and bound pays off, this much work takes some seconds and ends with a small gap, so that restricted
/// problems are not needed.
constexpr std::uint64_t kExactWork = 8'000'000'000;
/// Otherwise a first search with a large gap after this much work ends there, since restricted problems are worth
/// trying.
constexpr std::uint64_t kFirstWork = 500'000'000;
/// After this much work, this gap is good enough: small problems are proven to the end, and for larger ones 0.03 % is
/// far below the accuracy of any cost model.
constexpr std::uint64_t kEarlyWork = 200'000'000;
constexpr double kEarlyGap = 3e-4;
/// The gap that may be left for a block of layers.
constexpr double kGoodEnoughForBlock = 1e-5;
/// Problems with this many nodes are searched starting from the best choice with uniform layers.
constexpr std::size_t kManyNodes = 8'000;

/// If the matrices of all edges have more entries, a good choice is sought before the full problem is searched: with
/// one known, presolve and reduced costs remove most of the values that make a pass expensive. It is that of uniform
/// layers, or else of the first restricted problem; each of the others takes as long as many passes of the full
/// problem, which find more.
constexpr std::size_t kManyEntries = 50'000'000;

bool is_loose(std::int64_t value, std::int64_t bound) {
  return static_cast<double>(value - bound) > kLooseGap * static_cast<double>(bound);
}

/// Forbids strategies of nodes. Nodes that share table and candidates share the narrowed table; a node of which nothing
/// would be left stays as it is.
class Narrowing {
 public:
  explicit Narrowing(StrategyProblem& problem) : problem_(problem) {}

  /// `kind` tells different conditions on the same candidates apart.
  void leave_out(NodeId id, const auto& candidates, std::uint32_t kind, auto is_left_out) {
    ProblemNode& node = problem_.nodes[id];
    const auto [known, is_new] = known_.try_emplace({node.strategies, &candidates, kind}, node.strategies);
    if (is_new) {
      StrategyTable table = problem_.strategy_tables[node.strategies];
      bool is_any_left = false;
      for (std::size_t i = 0; i < candidates.size(); ++i) {
        if (is_left_out(candidates[i])) table.costs[i].communication = kForbidden;
        is_any_left = is_any_left || table.costs[i].communication < kForbidden;
      }
      if (is_any_left) known->second = problem_.strategy_tables.push_back(std::move(table));
    }
    node.strategies = known->second;
  }

 private:
  StrategyProblem& problem_;
  std::map<std::tuple<StrategyTableId, const void*, std::uint32_t>, StrategyTableId> known_;  // never iterated over
};

}  // namespace

GuidedSearch::GuidedSearch(const OperatorGraph& graph, const TensorVersions& versions, const ModelProblem& model,
                           const std::vector<AxisRef>& pieces, std::string_view search, LevelOptions options,
                           bool takes_longer)
    : graph_(graph),
      versions_(versions),
      model_(model),
      pieces_(pieces),
      batch_(find_batch(graph).factors),
      name_(search),
      options_(std::move(options)),
      takes_longer_(takes_longer),
      deadline_(options_.limits.seconds, options_.limits.stop) {
  if (!takes_longer_) return;
  options_.limits.early_work = kEarlyWork;
  options_.limits.early_gap = kEarlyGap;
  if (options_.level == Level::kMemory) return;  // many searches, each for less
  options_.limits.exact_work = kExactWork;
  options_.limits.loose_gap = kTightGap;
}

LevelResult GuidedSearch::search(const StrategyProblem& problem, std::string_view name, LevelOptions options) const {
  if (options.limits.seconds > 0) options.limits.seconds = std::max(1e-3, options.limits.seconds - deadline_.elapsed());
  return search_level(problem, *make_search(name), options);
}

LevelResult GuidedSearch::find(const StrategyProblem& problem, const std::optional<Choice>& start,
                               std::function<void(const Choice&)> first_answer, std::int64_t known_bound) const {
  LevelOptions options = options_;
  options.start = start;
  options.known_bound = known_bound;
  options.first_answer = std::move(first_answer);
  const bool is_guided = find_search(name_)->takes_guidance;
  const bool parts_first = is_guided && options_.level != Level::kMemory && num_entries(problem) > kManyEntries;
  bool knows_uniform = false;
  if (is_guided && (parts_first || problem.nodes.size() > kManyNodes)) {
    std::optional<Choice> uniform = best_uniform(problem, options_.level);
    knows_uniform = uniform.has_value();
    const auto value = [&](const Choice& choice) { return value_at(options_.level, evaluate(problem, choice)); };
    const bool start_is_better =
        uniform && start && evaluate(problem, *start).feasible && value(*start) <= value(*uniform);
    if (uniform && !start_is_better) options.start = std::move(uniform);
    if (knows_uniform) {
      if (std::optional<LevelResult> proven = proven_by_blocks(problem, *options.start)) return *std::move(proven);
    }
  }
  if (parts_first) {
    if (!knows_uniform) {
      std::optional<Choice> better = best_of_parts(problem, options.start, Parts::kFirst);
      if (better) options.start = std::move(better);
    }
    if (takes_longer_) options.limits.passes = kWorthwhilePasses;
  }
  if (is_guided && !parts_first && takes_longer_ && options_.level != Level::kMemory) {
    options.limits.give_up_work = kFirstWork;
    options.limits.give_up_gap = kLooseGap;
  }
  LevelResult found = search(problem, name_, options);
  if (found.status == PlanStatus::kInfeasible) return found;
  if (options_.level == Level::kMemory) {
    return found.choice && is_guided ? from_uniform(problem, std::move(found)) : found;
  }
  if (!found.choice) found = from_least_memory(problem, std::move(found));
  if (found.choice && is_guided && !parts_first) found = from_parts(problem, std::move(found));
  return found;
}

LevelResult GuidedSearch::find_with_bound(const StrategyProblem& problem, const std::optional<Choice>& start,
                                          const std::optional<LevelOptions>& bound_options,
                                          std::function<void(const Choice&)> first_answer) const {
  if (!bound_options) return find(problem, start, std::move(first_answer));
  std::future<LevelValue> bound = begin_beside([&] { return level_bound(problem, *bound_options); });
  LevelResult found = find(problem, start, std::move(first_answer));
  if (found.choice) found.bound.amount = std::max(found.bound.amount, bound.get().amount);
  return found;
}

// If memory is tight a search may find nothing although a feasible choice exists: it then starts again from the
// choice with the least memory.
LevelResult GuidedSearch::from_least_memory(const StrategyProblem& problem, LevelResult found) const {
  LevelOptions options = options_;
  options.level = Level::kMemory;
  options.limits.exact_work = 0;
  options.memory_slack_ppm = 0;
  LevelResult smallest = search(problem, kDefaultSearch, options);
  if (!smallest.choice) {
    if (smallest.status == PlanStatus::kInfeasible) found.status = smallest.status;  // which the search did not prove
    return found;
  }
  options = options_;
  options.start = smallest.choice;
  LevelResult again = search(problem, name_, options);
  again.bound.amount = std::max(again.bound.amount, found.bound.amount);
  if (!again.choice) {
    again.choice = std::move(smallest.choice);
    again.status = PlanStatus::kFeasible;
  }
  return again;
}

// Plans that people make treat all layers alike, shard the batch in the same way in all operators and divide the
// remaining devices between the other dimensions. With uniform layers a model is as large as one layer. With the
// batch decided, few strategies are left, so restricted problems are solved quickly. Few are left, too, if no
// contraction repeats work, and the plan with the least communication among them is seldom far from the fastest.
// Propagation needs no search at all.
LevelResult GuidedSearch::from_parts(const StrategyProblem& problem, LevelResult found) const {
  const Evaluation known = evaluate(problem, *found.choice);
  const auto [first, second] = value_at(options_.level, known);
  if (!is_loose(options_.level == Level::kRatio ? first : second, found.bound.amount)) return found;
  const std::optional<Choice> better = best_of_parts(problem, *found.choice, Parts::kAll);
  if (!better && !takes_longer_) return found;
  LevelOptions options = options_;
  options.start = better ? better : found.choice;
  if (takes_longer_) options.limits.passes = kWorthwhilePasses;
  LevelResult again = search(problem, name_, options);
  again.bound.amount = std::max(again.bound.amount, found.bound.amount);
  return again;
}

// A search makes little progress on the least peak of many layers: a limit below the present peak requires many
// changes at a time.
LevelResult GuidedSearch::from_uniform(const StrategyProblem& problem, LevelResult found) const {
  const auto value = [&](const Choice& choice) { return value_at(Level::kMemory, evaluate(problem, choice)); };
  const std::int64_t peak = value(*found.choice).first;
  if (!is_loose(peak, found.bound.amount + multiply_divide(peak, options_.memory_slack_ppm, 1'000'000))) return found;
  std::optional<Choice> uniform = best_uniform(problem, Level::kMemory);
  if (!uniform || !evaluate(problem, *uniform).feasible || value(*uniform) >= value(*found.choice)) return found;
  LevelOptions options = options_;
  options.start = std::move(uniform);
  LevelResult again = search(problem, name_, options);
  if (!again.choice) again.choice = options.start;
  again.bound.amount = std::max(again.bound.amount, found.bound.amount);
  if (again.status == PlanStatus::kNoPlanFound) again.status = PlanStatus::kFeasible;
  return again;
}

std::optional<Choice> GuidedSearch::best_uniform(const StrategyProblem& problem, Level level) const {
  if (!model_.times.empty()) return std::nullopt;  // they are uniform already
  if (!ties_) ties_ = uniform_ties(model_, graph_, versions_, repeat_classes(graph_));
  // Sets of tied nodes are numbered from 0: as many sets as nodes are no ties.
  const bool has_ties = std::ranges::none_of(*ties_, [&](NodeId set) { return set.value() + 1 == ties_->size(); });
  if (!has_ties) return std::nullopt;
  const TiedProblem tied = tied_problem(problem, *ties_);
  LevelOptions options = options_;
  options.level = level;
  options.start.reset();
  options.limits.gap = kGoodEnoughForPart;
  options.limits.exact_work = 0;
  options.limits.progress = {};
  const LevelResult found = search(tied.problem, name_, options);
  return found.choice ? std::optional(tied.expanded(*found.choice)) : std::nullopt;
}

std::optional<LevelResult> GuidedSearch::proven_by_blocks(const StrategyProblem& problem, const Choice& choice) const {
  const Level level = options_.level;
  const Evaluation evaluation = evaluate(problem, choice);
  if (level == Level::kMemory || !evaluation.feasible) return std::nullopt;
  const auto search = make_search(kDefaultSearch);
  LevelResult result;
  result.choice = choice;
  result.bound.level = level;
  std::vector<Objective> objectives{search_objective(level, evaluation)};
  if (level == Level::kRatio) objectives.push_back({0, 1});  // what it minimises first, of which the bound is
  for (const Objective& objective : objectives) {
    SearchOptions options;
    options.objective = objective;
    options.seed = options_.seed;
    options.threads = options_.threads;
    options.limits = options_.limits;
    options.limits.gap = kGoodEnoughForBlock;
    options.limits.progress = {};
    if (deadline_.is_over()) return std::nullopt;
    if (options.limits.seconds > 0) {
      options.limits.seconds = std::max(1e-3, options.limits.seconds - deadline_.elapsed());
    }
    const std::optional<BlockBound> blocks = block_bound(problem, *ties_, *search, options);
    const double good_enough = std::max(options_.limits.gap, options_.limits.early_gap);
    const std::int64_t value = evaluation.value(objective);
    if (value >= kForbidden) return std::nullopt;  // costs above that are not represented
    if (!blocks || static_cast<double>(value - blocks->bound) > good_enough * static_cast<double>(blocks->bound)) {
      return std::nullopt;
    }
    result.bound.amount = blocks->bound;
    result.status = value > blocks->bound ? PlanStatus::kFeasible : PlanStatus::kOptimal;
    result.statistics.push_back({"blocks of layers",
                                 {{"blocks", static_cast<std::int64_t>(blocks->blocks)},
                                  {"different ones", static_cast<std::int64_t>(blocks->different)}}});
  }
  return result;
}

std::optional<Choice> GuidedSearch::best_of_parts(const StrategyProblem& problem, const std::optional<Choice>& known,
                                                  Parts which) const {
  std::optional<Choice> best;
  std::pair<std::int64_t, std::int64_t> least{INT64_MAX, INT64_MAX};
  std::int64_t least_value = INT64_MAX;  // of the objective that parts are searched for
  const auto keep_better = [&](std::optional<Choice> choice) {
    if (!choice) return;
    const Evaluation evaluation = evaluate(problem, *choice);
    const auto cost = value_at(options_.level, evaluation);
    if (!evaluation.feasible || cost >= least) return;
    least = cost;
    least_value = evaluation.value(search_objective(options_.level));
    best = std::move(choice);
  };
  keep_better(known);
  const bool knows = best.has_value();
  const SearchLimits& all = options_.limits;
  const double begin = deadline_.elapsed();
  const double end = all.seconds > 0 ? begin + kTimeOfParts * std::max(all.seconds - begin, 0.0) : 0;
  const auto consider = [&](const StrategyProblem& part, std::string_view name, Level level) {
    if (deadline_.is_over() || (end > 0 && deadline_.elapsed() >= end)) return;
    LevelOptions options = options_;
    options.level = level;
    options.start.reset();
    options.wants_bound = false;
    options.limits.seconds = end;
    options.limits.work = all.work > 0 ? std::min(kPartWork, all.work) : kPartWork;
    options.limits.passes = options.limits.exact_work = 0;
    options.limits.gap = kGoodEnoughForPart;
    options.limits.progress = {};
    // A restricted problem whose bound is above the best known cost contains nothing better: its search ends and its
    // result is dropped, so that the moment of its end does not matter.
    std::stop_source stop;
    const std::stop_callback forward(options_.limits.stop, [&] { stop.request_stop(); });
    bool is_hopeless = false;
    if (best && level == options_.level && level != Level::kMemory) {
      options.limits.stop = stop.get_token();
      options.limits.progress = [&](const SearchProgress& progress) {
        if (progress.lower_bound < least_value) return;
        is_hopeless = true;
        stop.request_stop();
      };
    }
    std::optional<Choice> found = search(part, name, options).choice;
    if (!is_hopeless) keep_better(std::move(found));
  };
  if (which == Parts::kAll && problem.nodes.size() <= kManyNodes) keep_better(best_uniform(problem, options_.level));
  StrategyProblem part = problem;
  const auto whole = [&] {
    part.strategy_tables = problem.strategy_tables;
    part.nodes = problem.nodes;
  };
  // The batch over all devices comes first: if that fits it is seldom far from the best, and many of the others are
  // soon ruled out by comparison.
  for (std::size_t pieces = pieces_.size() + 1; pieces-- > 0;) {
    whole();
    cut_batch(part, pieces);
    consider(part, name_, options_.level);
    if (which == Parts::kFirst) break;
  }
  // Across slow links it can be fastest to communicate nothing.
  for (std::size_t inner = 1; inner < pieces_.size(); ++inner) {
    if (pieces_[inner].axis == pieces_[inner - 1].axis) continue;
    whole();
    leave_out(part, inner);
    consider(part, name_, options_.level);
  }
  if (which == Parts::kFirst) return knows && best == known ? std::nullopt : best;
  whole();
  if (options_.level == Level::kSpeed) {
    keep_least_work(part);
    consider(part, name_, Level::kSpeed);
    consider(part, name_, Level::kRatio);
  } else {
    consider(part, name_, Level::kSpeed);
  }
  consider(problem, "propagation", options_.level);
  return knows && best == known ? std::nullopt : best;
}

void GuidedSearch::keep_least_work(StrategyProblem& problem) const {
  std::vector<char> is_narrowed(problem.strategy_tables.size(), 0);
  for (const OperatorId op : graph_.operators().ids()) {
    if (graph_.operation(op).type->work != WorkKind::kContraction) continue;
    const StrategyTableId id = problem.nodes[model_.operator_nodes[op]].strategies;
    if (std::exchange(is_narrowed[id.value()], 1)) continue;
    std::vector<Cost>& costs = problem.strategy_tables[id].costs;
    Picoseconds least = kForbidden;
    for (const Cost& cost : costs) {
      if (cost.communication < kForbidden) least = std::min(least, cost.computation);
    }
    for (Cost& cost : costs) {
      if (cost.computation > least) cost.communication = kForbidden;
    }
  }
}

void GuidedSearch::leave_out(StrategyProblem& problem, std::size_t num_pieces) const {
  const auto uses = [&](const auto& axes) {
    return std::any_of(axes.begin(), axes.end(), [&](const AxisRef& axis) {
      return std::any_of(pieces_.begin(), pieces_.begin() + static_cast<std::ptrdiff_t>(num_pieces),
                         [&](const AxisRef& piece) { return overlaps(axis, piece); });
    });
  };
  Narrowing narrowing(problem);
  IdVector<NodeId, char> is_done(problem.nodes.size(), 0);  // a node may stand for the operators of several copies
  for (const OperatorId op : graph_.operators().ids()) {
    const NodeId node = model_.operator_nodes[op];
    if (graph_.operators()[op].is_copy || std::exchange(is_done[node], 1)) continue;
    narrowing.leave_out(node, *model_.strategies[op], 0, [&](const Strategy& strategy) {
      return uses(strategy.partial) || std::any_of(strategy.factors.begin(), strategy.factors.end(), uses);
    });
  }
  for (const VersionId id : versions_.all.ids()) {
    if (!model_.version_nodes[id] || std::exchange(is_done[*model_.version_nodes[id]], 1)) continue;
    narrowing.leave_out(*model_.version_nodes[id], *model_.choices[id], 0,
                        [&](const ModelProblem::VersionChoice& choice) {
                          return uses(choice.layout.partial) || uses(cutting_axes(choice.layout));
                        });
  }
}

void GuidedSearch::cut_batch(StrategyProblem& problem, std::size_t num_pieces) const {
  const std::vector<AxisRef> cut(pieces_.begin(), pieces_.begin() + static_cast<std::ptrdiff_t>(num_pieces));
  Narrowing narrowing(problem);
  IdVector<NodeId, char> is_done(problem.nodes.size(), 0);  // a node may stand for the operators of several copies
  for (const OperatorId op : graph_.operators().ids()) {
    const NodeId node = model_.operator_nodes[op];
    if (!batch_[op] || graph_.operators()[op].is_copy || std::exchange(is_done[node], 1)) continue;
    narrowing.leave_out(node, *model_.strategies[op], *batch_[op],
                        [&](const Strategy& strategy) { return strategy.factors[*batch_[op]] != cut; });
  }
}

}  // namespace shardplan
