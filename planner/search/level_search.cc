// Level 2 is one search. Level 0 is one for a weighted sum and, where the bound on communication is loose, one for
// communication; for small problems they run side by side (`RatioSearch`). Level 1 halves the interval of the least peak, then searches the fastest plan below a
// little more.

#include "planner/search/level_search.h"

#include <algorithm>
#include <utility>

#include "base/integer.h"
#include "base/side_by_side.h"
#include "base/task_beside.h"
#include "solver/limits.h"
#include "solver/minimum_peak.h"
#include "solver/searches/search_list.h"

namespace shardplan {
namespace {

/// The weight of communication relative to computation where it comes first: a picosecond of it is worth 65 ns of
/// computation. Weighted costs are forbidden from kForbidden on, which is 4.4 s of communication, so the weight is
/// smaller for problems whose plans communicate for longer.
constexpr std::int64_t kFirst = 1 << 16;

SearchOptions search_options(const LevelOptions& options, const Objective& objective,
                             const std::optional<Choice>& start) {
  SearchOptions result;
  result.objective = objective;
  result.seed = options.seed;
  result.threads = options.threads;
  result.start = start;
  result.limits = options.limits;
  return result;
}

constexpr double kLeastForLater = 1e-3;  // 0 would be without limit

/// The share of a time limit reserved for the searches after the first one.
SearchOptions later_options(const LevelOptions& options, const Objective& objective, const std::optional<Choice>& start,
                            const Deadline& since_begin) {
  SearchOptions result = search_options(options, objective, start);
  if (options.limits.seconds > 0) {
    result.limits.seconds = std::max(kLeastForLater, options.limits.seconds - since_begin.elapsed());
  }
  return result;
}

void append(std::vector<StageStatistics>& all, const std::vector<StageStatistics>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

LevelResult of(PlanResult found, Level level) {
  LevelResult result;
  result.status = found.status;
  result.choice = std::move(found.choice);
  result.bound = {level, found.lower_bound};
  result.statistics = std::move(found.statistics);
  return result;
}

/// An upper bound on the computation.
Picoseconds most_computation(const StrategyProblem& problem) {
  std::vector<Picoseconds> of_table;
  for (const StrategyTable& table : problem.strategy_tables) {
    Picoseconds most = 0;
    for (const Cost& cost : table.costs) most = std::max(most, cost.computation);
    of_table.push_back(most);
  }
  Picoseconds sum = 0;
  for (const ProblemNode& node : problem.nodes) {
    sum = checked_add(sum, of_table[node.strategies.value()]).value_or(INT64_MAX);
  }
  return sum;
}

/// A bound is worth another search if it is this much below the cost, although the weighted sum is known more
/// exactly; or if the problem is so small, in entries of edges, that the proof takes only a moment.
constexpr double kLooseBound = 1e-3;
constexpr std::size_t kSmallProblem = 4'000'000;

bool is_small(const StrategyProblem& problem) { return num_entries(problem) <= kSmallProblem; }

/// If the bound on the weighted sum is this much tighter than required, the bound on communication derived from it
/// (by subtracting the largest computation) is good enough.
constexpr double kShareOfLooseGap = 7.0 / 8;
/// A gap this much above the one that is required is not worth a second search as long as the first.
constexpr double kNearlyRequired = 9.0 / 8;

/// After this much work, a fraction of a second, the least communication is sought by itself where the weighted sum is
/// not proven; for as long, at most.
constexpr std::uint64_t kSoon = 200'000'000;
/// For problems of at most this many entries: a hundred passes of the bound take that much work.
constexpr std::size_t kSoonSearched = 1'000'000;

/// A choice that so little work finds tells how large the weight may be.
constexpr std::uint64_t kGlance = 1'000'000;

/// Another search of the sum, from a choice that communicates less, is worth its time from this share on, unless that is
/// proven to be the least communication.
constexpr double kCommunicatesLess = 1e-4;

/// Where the least communication is sought beside the sum, the sum gets this part of the work of branch and bound: its
/// own bound matters less.
constexpr std::uint64_t kExactWithBound = 2;

/// One search for the weighted sum. Its bound minus the largest computation is a bound on communication. If that is
/// weak, because communication is short, a second search minimises communication only; so it does for a small
/// problem, unless the first search took long and its bound is nearly as tight as the second's would have to be.
class RatioSearch {
 public:
  RatioSearch(const StrategyProblem& problem, const Search& search, const LevelOptions& options)
      : problem_(problem), search_(search), options_(options) {}

  LevelResult run() {
    if (const std::optional<Choice> known = options_.start ? options_.start : glance()) weight_ = weight_for(*known);
    if (is_soon_proven()) return result();
    begin_least_communication();
    search_sum_from(options_.start);
    if (choice_ ? sum_ >= kForbidden : is_lost_) search_with_less_weight();
    if (!choice_ || !options_.wants_bound) return result();
    if (options_.first_answer) options_.first_answer(*choice_);
    if (is_bound_worth_a_search()) consider(least_communication(), options_.limits.work);
    return result();
  }

 private:
  Objective both() const { return {1, weight_}; }

  SearchOptions options_of(const Objective& objective, const std::optional<Choice>& start) const {
    return later_options(options_, objective, start, since_begin_);
  }
  Picoseconds communication() const { return evaluate(problem_, *choice_).cost.communication; }

  /// Whether the least communication is known well enough after little work, as it often is where the sum stays open. If it is not,
  /// only its bound is kept: searches that start from what little work finds end with worse choices.
  bool is_soon_proven() {
    const bool is_first = options_.limits.give_up_work > 0;  // of several searches of a problem
    if (!options_.wants_bound || !is_first || options_.limits.exact_work <= kSoon) return false;
    if (num_entries(problem_) > kSoonSearched) return false;
    const auto for_a_moment = [](SearchOptions options) {
      options.limits.work = options.limits.work > 0 ? std::min(options.limits.work, kSoon) : kSoon;
      options.limits.exact_work = kSoon;
      options.limits.give_up_work = options.limits.passes = 0;
      return options;
    };
    search_sum(for_a_moment(options_of(both(), options_.start)));
    if (!choice_) return false;
    if (communication() > bound_) {
      const SearchOptions least = for_a_moment(options_of({0, 1}, choice_));
      consider(search_.search(problem_, least), least.limits.work);
    }
    const auto above = static_cast<double>(communication() - bound_);
    return above <= options_.limits.early_gap * static_cast<double>(bound_);
  }

  /// Some choice of a small problem.
  std::optional<Choice> glance() const {
    if (!is_small(problem_)) return std::nullopt;
    SearchOptions options = options_of({0, 1}, std::nullopt);
    options.limits.work = options.limits.work > 0 ? std::min(options.limits.work, kGlance) : kGlance;
    options.limits.exact_work = options.limits.give_up_work = options.limits.passes = 0;
    options.limits.progress = {};
    return search_.search(problem_, options).choice;
  }

  std::int64_t weight_for(const Choice& known) const {
    return search_objective(Level::kRatio, evaluate(problem_, known)).communication_weight;
  }

  /// Searches again with a weight that suits the choice known by now; if there is none, first without weight.
  void search_with_less_weight() {
    if (!choice_) {
      weight_ = 1;
      search_sum_from(options_.start);
    }
    if (!choice_) return;
    weight_ = weight_for(*choice_);
    sum_ = evaluate(problem_, *choice_).value(both());
    search_sum_from(choice_);
  }

  void search_sum_from(const std::optional<Choice>& start) {
    SearchOptions sum = options_of(both(), start);
    sum.limits.loose_gap *= kShareOfLooseGap;
    if (is_bound_sought()) sum.limits.exact_work /= kExactWithBound;
    search_sum(sum);
  }
  void search_sum(const SearchOptions& options) {
    PlanResult found = search_.search(problem_, options);
    append(statistics_, found.statistics);
    bound_of_sum_ = found.lower_bound;
    is_lost_ = !found.choice && found.status != PlanStatus::kInfeasible && !found.stopped_by;
    bound_ = std::max(bound_, std::max<std::int64_t>(0, found.lower_bound - most_computation(problem_)) / weight_);
    if (choice_ && (!found.choice || sum_ < found.cost)) return;  // the search before found more in less work
    status_ = found.status;
    sum_ = found.cost;
    choice_ = std::move(found.choice);
  }

  /// This search is for the bound, which nothing else would find, so it is not given up. Where it may run
  /// beside the sum's it is the same if it runs after that.
  SearchOptions for_least_communication() const {
    SearchOptions options = options_of({0, 1}, is_bound_sought() ? options_.start : choice_);
    options.limits.give_up_work = 0;
    return options;
  }
  /// Whether the least communication is sought in any case, as far as there is time for it while the sum is searched.
  bool is_bound_sought() const { return options_.wants_bound && options_.known_bound == 0 && is_small(problem_); }
  void begin_least_communication() {
    if (!is_bound_sought() || num_processors(2) == 1) return;
    const auto search = [this, options = for_least_communication()](std::stop_token stop) {
      SearchOptions own = options;
      own.limits.stop = std::move(stop);
      own.limits.progress = {};  // is reported from the caller's thread
      return search_.search(problem_, own);
    };
    beside_.emplace(search, options_.limits.stop);
  }
  PlanResult least_communication() {
    return beside_ ? beside_->get() : search_.search(problem_, for_least_communication());
  }

  void consider(const PlanResult& least, std::uint64_t work) {
    append(statistics_, least.statistics);
    bound_ = std::max(bound_, least.lower_bound);
    if (!least.choice) return;
    const Picoseconds less = communication() - evaluate(problem_, *least.choice).cost.communication;
    const bool is_worth_it = least.status == PlanStatus::kOptimal ||
                             static_cast<double>(less) > kCommunicatesLess * static_cast<double>(communication());
    if (less <= 0 || !is_worth_it) return;
    SearchOptions from_least = options_of(both(), least.choice);
    from_least.limits.passes = from_least.limits.exact_work = 0;  // for its choice only
    from_least.limits.work = work;
    PlanResult again = search_.search(problem_, from_least);
    append(statistics_, again.statistics);
    if (!again.choice || again.cost >= sum_) return;
    sum_ = again.cost;
    choice_ = std::move(again.choice);
  }

  bool is_bound_worth_a_search() const {
    const Picoseconds found = communication();
    const auto relative_gap = [](std::int64_t cost, std::int64_t least) {
      return cost > least ? static_cast<double>(cost - least) / static_cast<double>(cost) : 0.0;
    };
    const double gap = relative_gap(found, bound_), gap_of_sum = relative_gap(sum_, bound_of_sum_);
    const bool is_loose = gap > kLooseBound + 2 * gap_of_sum;
    const bool is_near = static_cast<double>(found - bound_) <=
                         kNearlyRequired * options_.limits.loose_gap * static_cast<double>(bound_);
    const bool will_do = is_near && gap_of_sum > options_.limits.early_gap;
    return is_loose || (found > bound_ && is_small(problem_) && !will_do);
  }

  LevelResult result() {
    LevelResult result;
    result.status = status_;
    if (choice_ && options_.wants_bound) {
      result.status = communication() > bound_ ? PlanStatus::kFeasible : PlanStatus::kOptimal;
    }
    result.choice = std::move(choice_);
    result.bound = {Level::kRatio, bound_};
    result.statistics = std::move(statistics_);
    return result;
  }

  const StrategyProblem& problem_;
  const Search& search_;
  const LevelOptions& options_;
  const Deadline since_begin_{0, {}};
  std::optional<Choice> choice_;
  PlanStatus status_ = PlanStatus::kNoPlanFound;
  std::int64_t weight_ = kFirst;              // of communication
  bool is_lost_ = false;                      // the search ended, but what it forbade itself may be feasible
  std::int64_t sum_ = 0, bound_of_sum_ = 0;   // weighted: of the choice, and the last search's bound
  Picoseconds bound_ = options_.known_bound;  // on communication
  std::vector<StageStatistics> statistics_;
  std::optional<TaskBeside<PlanResult>> beside_;  // for the least communication
};

/// The accepted gap between the ends of the bracket of the least peak.
constexpr std::int64_t kBracketPpm = 2'000;

MinimumPeak least_peak(const StrategyProblem& problem, const Search& search, const LevelOptions& options) {
  return minimum_peak(problem, search, search_options(options, {0, 0}, options.start), kBracketPpm);
}

LevelValue memory_bound(const MinimumPeak& least) { return {Level::kMemory, least.infeasible + 1}; }

/// The least peak, then the fastest plan that takes not much more.
LevelResult search_memory(const StrategyProblem& problem, const Search& search, const LevelOptions& options) {
  const Deadline since_begin(0, {});
  MinimumPeak least = least_peak(problem, search, options);
  LevelResult result;
  result.status = least.status;
  result.choice = std::move(least.choice);
  result.bound = memory_bound(least);
  result.statistics = std::move(least.statistics);
  if (!result.choice) return result;
  StrategyProblem within = problem;
  const Bytes peak = least.feasible;
  const Bytes most = peak + multiply_divide(peak, options.memory_slack_ppm, 1'000'000);
  for (Bytes& limit : within.memory_limits) limit = std::min(limit, most);
  SearchOptions fastest = later_options(options, {1, 1}, result.choice, since_begin);
  fastest.memory_binds = true;
  PlanResult second = search.search(within, fastest);
  append(result.statistics, second.statistics);
  if (second.choice) result.choice = std::move(second.choice);
  return result;
}

}  // namespace

LevelResult search_level(const StrategyProblem& problem, const Search& search, const LevelOptions& options) {
  switch (options.level) {
    case Level::kRatio:
      return RatioSearch(problem, search, options).run();
    case Level::kMemory:
      return search_memory(problem, search, options);
    case Level::kSpeed:
      break;
  }
  const Objective objective = search_objective(options.level);
  return of(search.search(problem, search_options(options, objective, options.start)), Level::kSpeed);
}

Objective search_objective(Level level) { return level == Level::kRatio ? Objective{1, kFirst} : Objective{1, 1}; }

Objective search_objective(Level level, const Evaluation& known) {
  Objective result = search_objective(level);
  while (result.communication_weight > 1 && known.value(result) >= kForbidden) result.communication_weight /= 2;
  return result;
}

std::pair<std::int64_t, std::int64_t> value_at(Level level, const Evaluation& evaluation) {
  const auto [computation, communication] = evaluation.cost;
  if (level == Level::kRatio) return {communication, computation};
  return {level == Level::kMemory ? evaluation.peak_bytes : 0, computation + communication};
}

std::size_t num_entries(const StrategyProblem& problem) {
  std::size_t entries = 0;
  for (const ProblemEdge& edge : problem.edges) entries += problem.matrices[edge.matrix].costs.size();
  return entries;
}

LevelValue level_bound(const StrategyProblem& problem, const LevelOptions& options) {
  const std::unique_ptr<Search> search = make_search(kDefaultSearch);
  if (options.level == Level::kMemory) return memory_bound(least_peak(problem, *search, options));
  const Objective objective = options.level == Level::kRatio ? Objective{0, 1} : Objective{1, 1};
  return {options.level, search->search(problem, search_options(options, objective, options.start)).lower_bound};
}

}  // namespace shardplan
