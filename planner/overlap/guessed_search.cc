#include "planner/overlap/guessed_search.h"

#include <algorithm>
#include <utility>

#include "solver/searches/search_list.h"
#include "solver/tied_problem.h"

namespace shardplan {
namespace {

constexpr double kGuessGap = 1e-4;

/// The cheapest choice of the problem that fits.
std::optional<Choice> best_start(std::span<const Choice> choices, const StrategyProblem& problem,
                                 const std::optional<TiedProblem>& tied) {
  std::optional<Choice> best;
  std::int64_t least = kForbidden;
  for (const Choice& choice : choices) {
    Choice start = tied ? tied->tied(choice) : choice;
    const Evaluation value = evaluate(problem, start);
    if (!value.feasible || value.value({}) >= least) continue;
    least = value.value({});
    best = std::move(start);
  }
  return best;
}

}  // namespace

std::optional<Choice> shortest_by(StrategyProblem estimated, const SearchedModel& model, const GuessedSearch& search) {
  for (Bytes& limit : estimated.memory_limits) limit = std::min(limit, search.most_held);
  std::optional<TiedProblem> tied;
  if (model.ties) {
    tied = tied_problem(estimated, *model.ties);
    estimated = {};
  }
  const StrategyProblem& searched = tied ? tied->problem : estimated;
  LevelOptions options = search.options;
  options.start = best_start(search.starts, searched, tied);
  options.wants_bound = false;
  options.limits.work = std::min(search.work, options.limits.work > 0 ? options.limits.work : search.work);
  options.limits.gap = kGuessGap;
  options.limits.progress = {};
  const LevelResult found = search_level(searched, *make_search(kDefaultSearch), options);
  if (!found.choice) return std::nullopt;
  return tied ? tied->expanded(*found.choice) : *found.choice;
}

std::optional<Choice> shortest_by(const Guess& guess, const SearchedModel& model, const GuessedSearch& search) {
  return shortest_by(model.guessed(guess), model, search);
}

}  // namespace shardplan
