// In this order: rounds of weights and choices (weight_rounds.h), with estimated choices after the first one
// (guessed_search.h); the best plans with one setting for the whole model (kind_search.h); a finer bound (step_proof.h);
// choices by the windows of known plans (hiding_windows.h); local searches, of one node each from several plans
// (near_descent.h), then of parts (part_descent.h); a plan that needs less memory; the final order of the best plan.
#include "planner/overlap/overlap_search.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "base/side_by_side.h"
#include "planner/overlap/blended_problem.h"
#include "planner/overlap/bound_matrices.h"
#include "planner/overlap/guessed_search.h"
#include "planner/overlap/heaviest_sum.h"
#include "planner/overlap/hiding_windows.h"
#include "planner/overlap/incumbent_plan.h"
#include "planner/overlap/kind_search.h"
#include "planner/overlap/link_levels.h"
#include "planner/overlap/near_descent.h"
#include "planner/overlap/near_search.h"
#include "planner/overlap/part_descent.h"
#include "planner/overlap/searched_model.h"
#include "planner/overlap/step_bound.h"
#include "planner/overlap/step_proof.h"
#include "planner/overlap/weight_rounds.h"
#include "planner/plan_notices.h"
#include "planner/problem/uniform_layers.h"
#include "solver/limits.h"
#include "solver/tied_problem.h"

namespace shardplan {
namespace {

/// Layers are tied if that makes the problem this many times smaller.
constexpr std::size_t kMuchSmaller = 3;
constexpr Guess kTwiceAtTheEnd{100, 200}, kHalfOfActivations{25, 100, 50},
    kQuarterOfWeights{25, 50, 100, kStartUpInBucket};
constexpr std::uint64_t kGuessWork = 100'000'000;
/// Large problems have one guess, which is searched for longer.
constexpr std::uint64_t kLargeGuessWork = 3'000'000'000;
/// A step this near to its bound is not worth a guess.
constexpr double kWorthAGuess = 0.025;
/// Estimates by windows. Each round also sees the windows of the plans that the one before found.
constexpr Hiding kHidings[] = {{15, 50}, {30, 100}};
constexpr int kWindowRounds = 2;
/// Estimates tell little of how busy links are in another plan, bounds nothing of what is in the way of hiding: so some
/// estimates are blended with these percentages of the best bound.
constexpr std::int64_t kPercentOfBound[] = {0, 75, 50};
/// Problems of more matrix entries than this have the first estimate and its first blend only: more took as long again
/// and shortened no step by more than a thousandth.
constexpr std::size_t kEntriesOfAllHidings = 5'000'000;
/// Programs with more instructions than this are long: scheduling what is tried takes most of the search.
constexpr std::size_t kMostToSchedule = 3'000;
/// If the step is further from its bound than this, windows of other choices are used as well, but not for long
/// programs: of at most so many that are scheduled, those of the two shortest.
constexpr double kWorthOtherWindows = 0.01;
constexpr std::size_t kMostOthersOrdered = 4, kMostOthers = 2;
/// A step this near to its bound is good enough.
constexpr double kWorthGoingOn = 0.05;
/// Near choices of programs with fewer instructions take hardly any time, so their steps must be nearer.
constexpr double kWorthGoingOnIfShort = 0.005;
constexpr std::size_t kShortToGoNear = 1'000;
/// At most this many rounds of the finer bound, fewer for larger problems.
constexpr int kProofRounds = 20;
constexpr std::size_t kEntriesOfProof = 160'000'000;
/// A bound this far below the step is worth computing again, more exactly.
constexpr double kWorthAProof = 0.05;
/// Of the choices found by those rounds at most this many are scheduled, those with the least bounds whose estimates
/// exceed the plan's by at most this.
constexpr std::size_t kMostFoundOrdered = 4;
constexpr std::int64_t kPercentLongerFound = 15;
/// Two choices whose bounds and estimates differ by less than 1 / this are alike: the first is scheduled.
constexpr Picoseconds kPartsThatDiffer = 1000;
/// Number of plans of kinds that are scheduled.
constexpr std::size_t kMostKindsOrdered = 2;
/// Estimates of steps are off by some per cent.
constexpr std::int64_t kPercentOff = 5;
/// Parts of a step this near to its bound are not worth another search.
constexpr double kWorthParts = 0.02;
/// Looks around plans in a row that find nothing; fewer for longer programs and near the bound.
constexpr int kPartTurns = 5, kFewPartTurns = 3;
/// Another start differs from the plan in at least 1 / this of the nodes.
constexpr std::size_t kPartsDifferent = 4;
/// So many other plans are starts of a local search. A long program has one: a second one shortened
/// none of seven.
constexpr int kStarts = 3, kLongStarts = 1;
/// A long program this near to its bound is worth neither another start nor a search of parts.
constexpr double kWorthStartsIfLong = 0.08;
/// If the plan holds more than half of the memory, choices are sought that hold at most these percentages of it.
constexpr Bytes kLeanPercent[] = {75, 50, 25};
/// Start-ups of collectives count in the finer bound if they are at least 1 / this of the step.
constexpr Picoseconds kPartsOfStart = 200;
constexpr std::size_t kSearchedAtOnce = 4;  // threads
/// Units of a work limit for each instruction of a plan that is scheduled, or whose step is estimated: as long as units
/// of a search.
constexpr std::uint64_t kWorkOfSchedule = 20'000, kWorkOfEstimate = 2'000;

/// Small collectives take much longer alone than in a bucket, which may never be filled: each guess is tried for both.
std::vector<Guess> in_and_out_of_buckets(std::vector<Guess> guesses) {
  for (std::size_t i = 0, alone = guesses.size(); i < alone; ++i) {
    guesses.push_back(guesses[i]);
    guesses.back().start_ups = kStartUpInBucket;
  }
  return guesses;
}

class ShortestStep {
 public:
  ShortestStep(Plan plan, const SearchedModel& model, const StepBound& bound, const OverlapSearch& search)
      : search_(search),
        model_(model),
        bound_(bound),
        deadline_(search.options.limits.seconds, search.options.limits.stop),
        incumbent_(std::move(plan), search_.scheduled, deadline_),
        rounds_({model_, bound_, deadline_, incumbent_, search_.options, search_.uniform != nullptr, search_.known}),
        near_({model_, search_.step_by_rule, [this](const Choice& choice) { return weigh(choice); }, deadline_}),
        descent_near_({model_, incumbent_, near_, [this] { return known_choices(); }, [this] { return is_over(); }}) {}

  /// Finds choices and schedules them; false if the plan is not a choice of the problem.
  bool run() {
    const std::optional<Choice> planned = this->planned();
    if (!planned) return false;
    least_ = rounds_.begin(*planned);
    try_guesses();
    least_ = rounds_.go_on(is_over());
    try_kinds();
    incumbent_.finish();
    heaviest_ = HeaviestSum(rounds_.weights());
    return true;
  }

  /// Whether a finer bound is worth its time.
  bool is_loose() const { return !is_over() && proof_rounds() > 1 && !is_within(kWorthAProof); }

  /// Computes the bound again, which was refined meanwhile, and schedules the most promising choices found on the way.
  void prove() {
    proven_ = prove_step(proof(model_.ties, least_, proof_rounds()), rounds_.choices());
    if (!proven_.tried.empty()) heaviest_ = HeaviestSum(proven_.tried);
    if (!model_.ties || search_.uniform) least_ = std::max(least_, proven_.bound);
    is_one_block_ahead_ = std::ranges::any_of(model_.graph.operators(), &GraphOperator::is_copy);
    bound_free(proven_.weights);
    try_found(proven_.shorter);
  }
  void bound_free() { bound_free(rounds_.best()); }

  /// Goes on from the plan to choices near it.
  void try_near() {
    descent_near_.from(plan(), [this] { return is_over() || is_within(worth_going_near()); });
  }

  /// Schedules the choices that are the shortest if what the windows of known plans could hide is hidden. The best of
  /// them is kept aside: the local search often gets further from the plan that it would replace.
  void try_windows() {
    if (rounds_.is_large()) return;
    HidingWindows windows(model_);
    windows.add(plan().program);
    // For long programs this takes a third of all planning, and none of 15 plans that were so near got shorter.
    const double worth = is_long() ? kWorthGoingOn : kWorthAGuess;
    for (int round = 0; round < kWindowRounds && !is_over(); ++round) {
      const Picoseconds shortest = aside_ ? std::min(aside_->step, incumbent_.step()) : incumbent_.step();
      if (is_near(shortest, least_, worth) || !may_be_near(try_by(windows))) return;
    }
  }

  /// The same with the windows of other choices of the rounds, each by itself: those whose steps are the nearest.
  void try_windows_of_others() {
    if (rounds_.is_large() || is_over() || is_within(kWorthOtherWindows)) return;
    if (is_long()) return;
    const std::optional<Choice> planned = this->planned();
    if (!planned) return;
    std::vector<std::pair<Picoseconds, std::size_t>> in_turn;
    const std::vector<Choice>& known = rounds_.choices();
    for (std::size_t i = 0; i < known.size(); ++i) {
      if (known[i] == *planned || !may_be_near(weigh(known[i]))) continue;
      in_turn.emplace_back(about(known[i]), i);
    }
    std::sort(in_turn.begin(), in_turn.end());
    if (in_turn.size() > kMostOthersOrdered) in_turn.resize(kMostOthersOrdered);
    std::vector<Decisions> decisions;
    for (const auto& [estimate, i] : in_turn) decisions.push_back(model_.decisions_of(known[i]));
    std::vector<Plan> others = incumbent_.look_at(decisions, incumbent_.step());
    std::erase_if(others, [&](const Plan& other) { return !may_be_near(other.time.step()); });
    std::stable_sort(others.begin(), others.end(),
                     [](const Plan& a, const Plan& b) { return a.time.step() < b.time.step(); });
    if (others.size() > kMostOthers) others.resize(kMostOthers);
    for (const Plan& other : others) {
      HidingWindows windows(model_);
      windows.add(other.program);
      try_by(windows);
    }
  }

  /// Goes on from what was kept aside, if that is shorter than the plan by now.
  void try_near_aside() {
    if (!aside_ || aside_->step >= incumbent_.step()) return;
    incumbent_.try_all({aside_->decisions}, std::nullopt);
    try_near();
  }

  /// The same from other known plans, of those that differ much from all before the shortest first.
  void try_near_others() {
    const auto is_done = [this] { return is_over() || is_within(worth_other_starts()); };
    std::vector<Choice> begun;
    if (const std::optional<Choice> planned = this->planned()) begun.push_back(*planned);
    for (int i = is_long() ? kLongStarts : kStarts; i > 0 && !rounds_.is_large() && !is_done(); --i) {
      const std::optional<Decisions> other = different_from(begun);
      if (!other) return;
      begun.push_back(*model_.choice_of(*other));
      for (Plan& start : incumbent_.look_at({*other}, std::nullopt)) descent_near_.from(std::move(start), is_done);
    }
  }

  /// Goes on from the plan, and from a known one that is quite different, to plans that differ from these in parts.
  void try_parts() {
    const auto is_done = [this] { return is_over() || is_within(is_long() ? kWorthStartsIfLong : kWorthParts); };
    if (rounds_.is_large() || is_done()) return;
    const bool is_short = plan().program.instructions.size() < kShortToGoNear;
    std::optional<Decisions> other;
    if (const std::optional<Choice> planned = this->planned(); planned && is_short) other = different_from({*planned});
    descent_.emplace(
        PartDescent::Input{model_, incumbent_, near_, bound_.weighted(best_weights()), search_.options, is_done});
    descent_->from(plan(), is_short && !is_within(kWorthGoingOn) ? kPartTurns : kFewPartTurns);
    if (!other || is_done() || is_within(kWorthGoingOn)) return;
    for (Plan& start : incumbent_.look_at({*other}, std::nullopt)) descent_->from(std::move(start), kPartTurns);
  }

  /// Looks for a plan that holds much less memory and takes hardly longer.
  void try_lean() {
    const std::optional<Choice> planned = this->planned();
    const std::vector<Bytes>& limits = model_.problem.problem.memory_limits;
    if (!planned || limits.empty() || rounds_.is_large() || is_over()) return;
    const Bytes held = evaluate(model_.problem.problem, *planned).peak_bytes;
    if (held < *std::max_element(limits.begin(), limits.end()) / 2) return;
    std::vector<std::optional<Choice>> found(std::size(kLeanPercent));
    side_by_side(num_processors(kSearchedAtOnce), found.size(), [&](std::size_t, std::size_t i) {
      found[i] = shortest_by(kMostlyHidden, held / 100 * kLeanPercent[i]);
    });
    const Picoseconds too_long = about(*planned) / 100 * (100 + kPercentOff);
    std::vector<Decisions> decisions;
    for (const std::optional<Choice>& choice : found) {
      if (choice && about(*choice) < too_long) decisions.push_back(model_.decisions_of(*choice));
    }
    incumbent_.try_leaner(decisions);
  }

  void refine_order() { incumbent_.refine_order(); }

  /// The best plan with its bounds.
  Plan result() {
    const Picoseconds step = incumbent_.step();
    Plan plan = incumbent_.release();
    plan.overlapped_bound = std::min(least_, step);
    plan.is_bound_one_block_ahead = is_one_block_ahead_;
    if (deadline_.reached() == Limit::kTime && step > plan.overlapped_bound) {
      note_out_of_time(plan);
    }
    if (free_bound_) plan.free_bound = {Level::kSpeed, std::min(*free_bound_, step)};
    plan.statistics.push_back({"overlapped step",
                               {{"rounds", rounds_.count()},
                                {"rounds of the bound", proven_.rounds},
                                {"guesses", guesses_},
                                {"kinds searched", kinds_},
                                {"choices by windows", windows_},
                                {"near choices", near_.tried()},
                                {"looks around plans", looks()},
                                {"choices ordered", incumbent_.ordered()},
                                {"taken", incumbent_.taken()}}});
    return plan;
  }

  const Plan& plan() const { return incumbent_.plan(); }
  std::optional<Choice> planned() const { return model_.choice_of(plan()); }

 private:
  const OverlapWeights& best_weights() const { return proven_.tried.empty() ? rounds_.best() : proven_.weights; }
  /// The shortest known plan that differs from all these in many nodes.
  std::optional<Decisions> different_from(const std::vector<Choice>& others) const {
    std::optional<Decisions> result;
    Picoseconds shortest = kForbidden;
    for (const auto& [step, decisions] : incumbent_.known()) {
      if (step >= shortest) continue;
      const std::optional<Choice> choice = model_.choice_of(decisions);
      const auto is_like = [&](const Choice& other) {
        return num_different(*choice, other) < other.strategy.size() / kPartsDifferent;
      };
      if (!choice || std::ranges::any_of(others, is_like)) continue;
      shortest = step;
      result = decisions;
    }
    return result;
  }
  static std::size_t num_different(const Choice& a, const Choice& b) {
    std::size_t count = 0;
    for (const NodeId node : a.strategy.ids()) count += a.strategy[node] != b.strategy[node] ? 1 : 0;
    return count;
  }
  /// Whether the time is over, or the work: both are looked at between batches only, so that equal limits of work give
  /// equal plans.
  bool is_over() const { return deadline_.is_over() || (search_.work_limit > 0 && work() >= search_.work_limit); }
  std::int64_t looks() const { return descent_ ? descent_->looks() : 0; }
  /// Searches count for what they may do.
  std::uint64_t work() const {
    const auto searches = static_cast<std::uint64_t>(rounds_.count() + guesses_ + windows_ + looks());
    const auto schedules = static_cast<std::uint64_t>(incumbent_.ordered());
    const auto estimates = static_cast<std::uint64_t>(near_.tried());
    return plan().program.instructions.size() * (schedules * kWorkOfSchedule + estimates * kWorkOfEstimate) +
           searches * std::min(search_.work_limit, kGuessWork);
  }

  bool is_long() const { return plan().program.instructions.size() > kMostToSchedule; }
  double worth_other_starts() const { return is_long() ? kWorthStartsIfLong : kWorthGoingOn; }
  double worth_going_near() const {
    return plan().program.instructions.size() < kShortToGoNear ? kWorthGoingOnIfShort : kWorthGoingOn;
  }
  bool is_within(double share) const { return is_near(incumbent_.step(), least_, share); }

  int proof_rounds() const { return rounds_.affordable(kEntriesOfProof, kProofRounds); }
  StepProof proof(const std::optional<IdVector<NodeId, NodeId>>& ties, Picoseconds known, int most_rounds) const {
    return {bound_, ties, rounds_.options(ties.has_value()), incumbent_.step(), known, most_rounds};
  }

  /// Bounds plans whose layers differ, if that is asked for, with weights that suit uniform ones.
  void bound_free(const OverlapWeights& weights) {
    if (!model_.ties || (search_.uniform && !search_.wants_free_bound)) return;
    const std::optional<LevelResult> found = least_sum(proof(std::nullopt, 0, 1), weights, std::nullopt);
    if (!found) return;
    least_ = std::max(least_, found->bound.amount);
    if (search_.uniform && found->bound.amount > 0) free_bound_ = found->bound.amount;
  }

  void try_found(const std::vector<Choice>& found) {
    const std::optional<Choice> planned = this->planned();
    if (!planned) return;
    const Picoseconds too_long = about(*planned) / 100 * (100 + kPercentLongerFound);
    struct Estimated {
      Picoseconds least, about;
      std::size_t number;
      auto operator<=>(const Estimated&) const = default;
    };
    std::vector<Estimated> in_turn;
    const auto is_like = [](Picoseconds a, Picoseconds b) { return std::abs(a - b) < a / kPartsThatDiffer; };
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (rounds_.is_known(found[i])) continue;
      const Estimated one{bound_.least_step(bound_.times_of(found[i])), about(found[i]), i};
      const bool is_new = std::none_of(in_turn.begin(), in_turn.end(), [&](const Estimated& other) {
        return is_like(one.least, other.least) && is_like(one.about, other.about);
      });
      if (one.about < too_long && is_new) in_turn.push_back(one);
    }
    std::sort(in_turn.begin(), in_turn.end());
    if (in_turn.size() > kMostFoundOrdered) in_turn.resize(kMostFoundOrdered);
    std::vector<Decisions> decisions;
    for (const Estimated& one : in_turn) decisions.push_back(model_.decisions_of(found[one.number]));
    incumbent_.try_all(decisions, std::nullopt);
  }

  /// First the guesses that suit most models; if the step is far from its bound then, one that suits few.
  void try_guesses() {
    incumbent_.finish();
    std::vector<Guess> guesses = in_and_out_of_buckets({kTwiceAtTheEnd, kMostlyHidden});
    if (rounds_.is_large()) guesses = {kQuarterOfWeights};
    if (!is_within(kWorthAGuess)) try_guesses(guesses);
    // If no layers repeat, little is known of activations, so their guesses mislead.
    if (model_.ties && !is_within(kWorthGoingOn)) try_guesses({kHalfOfActivations});
  }

  /// Schedules the choices that are the shortest by these guesses. The rounds do not start from them.
  void try_guesses(const std::vector<Guess>& guesses) {
    if (is_over()) return;
    std::vector<std::optional<Choice>> found(guesses.size());
    side_by_side(num_processors(kSearchedAtOnce), guesses.size(),
                 [&](std::size_t, std::size_t i) { found[i] = shortest_by(guesses[i]); });
    guesses_ += std::ssize(guesses);
    std::vector<Decisions> decisions;
    for (const std::optional<Choice>& choice : found) {
      if (!choice || rounds_.is_known(*choice) || !rounds_.may_be_faster(*choice)) continue;
      decisions.push_back(model_.decisions_of(*choice));
      rounds_.add_scheduled(*choice);
    }
    incumbent_.try_all(decisions, incumbent_.step());
  }
  std::optional<Choice> shortest_by(const Guess& guess, Bytes most_held = kUnlimitedBytes) const {
    const std::uint64_t work = rounds_.is_large() ? kLargeGuessWork : kGuessWork;
    return shardplan::shortest_by(guess, model_, {rounds_.choices(), search_.options, work, most_held});
  }

  /// Schedules the choices that are the shortest by these windows, and adds theirs. Returns the shortest step;
  /// kForbidden if no choice is new.
  Picoseconds try_by(HidingWindows& windows) {
    const std::optional<Choice> planned = this->planned();
    if (!planned) return kForbidden;
    const Choice starts[] = {*planned};
    const bool takes_all = rounds_.affordable(kEntriesOfAllHidings, 1) > 0;
    const std::size_t hidings = takes_all ? std::size(kHidings) : 1, parts = takes_all ? std::size(kPercentOfBound) : 2;
    std::vector<std::optional<Choice>> found(hidings * parts);
    const StrategyProblem of_bound = bound_.weighted(best_weights());
    side_by_side(num_processors(kSearchedAtOnce), found.size(), [&](std::size_t, std::size_t i) {
      StrategyProblem estimated = windows.estimated(kHidings[i % hidings]);
      const std::int64_t percent = kPercentOfBound[i / hidings];
      if (percent > 0) estimated = blended(std::move(estimated), of_bound, percent);
      found[i] = shardplan::shortest_by(std::move(estimated), model_, {starts, search_.options, kGuessWork});
    });
    windows_ += std::ssize(found);
    std::vector<Decisions> decisions;
    for (const std::optional<Choice>& choice : found) {
      if (!choice || rounds_.is_known(*choice) || weigh(*choice) >= incumbent_.step()) continue;
      decisions.push_back(model_.decisions_of(*choice));
      rounds_.add_scheduled(*choice);
    }
    Picoseconds least = kForbidden;
    for (const Plan& plan : incumbent_.look_at(decisions, incumbent_.step())) {
      windows.add(plan.program);
      const Picoseconds step = plan.time.step();
      least = std::min(least, step);
      if (plan.fits() && step < (aside_ ? aside_->step : incumbent_.step())) {
        aside_ = Aside{{plan.strategies, plan.versions}, step};
      }
    }
    return least;
  }
  /// Whether what is near a choice with such a step may be shorter than the plan.
  bool may_be_near(Picoseconds step) const { return step < incumbent_.step() / 100 * (100 + kPercentOff); }

  /// Schedules the best plans of kinds, by estimates of their steps.
  void try_kinds() {
    // Where little repeats, a kind takes about as long as the whole search, and helps less.
    if (!model_.ties || is_over() || is_near(incumbent_.finished().time.step(), least_, kTightBound)) return;
    const TiedProblem tied = tied_problem(model_.guessed(kMostlyHidden), *model_.ties);
    const Picoseconds too_long = incumbent_.step() / 100 * (100 + kPercentOff);
    const FoundKinds found = search_kinds(search_.kinds, {model_, tied, too_long, search_.options, deadline_});
    kinds_ += found.searched;
    std::vector<Decisions> shortest;
    for (const Choice& choice : found.choices) {
      if (rounds_.adds(choice) && shortest.size() < kMostKindsOrdered) shortest.push_back(model_.decisions_of(choice));
    }
    incumbent_.try_all(shortest, incumbent_.step());
  }

  std::vector<Choice> known_choices() const {
    std::vector<Choice> known = rounds_.choices();
    for (const auto* some : {&rounds_.scheduled(), &proven_.shorter, &proven_.longer}) {
      known.insert(known.end(), some->begin(), some->end());
    }
    return known;
  }
  /// The largest sum that any known weights give a choice: a lower bound on its step.
  Picoseconds weigh(const Choice& choice) const { return heaviest_.of(bound_.times_of(choice)); }

  Picoseconds about(const Choice& choice) const { return model_.guessed_step(kMostlyHidden, choice); }

  const OverlapSearch& search_;
  const SearchedModel& model_;
  const StepBound& bound_;
  Deadline deadline_;
  IncumbentPlan incumbent_;
  WeightRounds rounds_;
  NearSearch near_;
  NearDescent descent_near_;
  Picoseconds least_ = 0;
  std::optional<Picoseconds> free_bound_;
  ProvenStep proven_;
  HeaviestSum heaviest_;  // of the weights that prove the bound, or of the rounds'
  bool is_one_block_ahead_ = false;
  struct Aside {
    Decisions decisions;
    Picoseconds step = 0;
  };
  std::optional<Aside> aside_;
  std::int64_t guesses_ = 0, kinds_ = 0, windows_ = 0;
  std::optional<PartDescent> descent_;  // once begun
};

}  // namespace

Plan overlap_searched(Plan plan, ModelProblem free, const OverlapSearch& search) {
  const std::vector<int> levels = used_levels(search.costs);
  if (levels.empty() || search.graph.operators().size() > kMostOverlappedOperators) return plan;
  const std::vector<SpeedsTogether> speeds = speeds_of(levels, search.costs);
  const auto counted = [&](const Plan& of) {
    return CountedLevels{search.costs, search.redistribution_options, search.is_measured,
                         levels.size() > 1 ? std::optional(busiest_level(levels, of)) : std::nullopt};
  };
  const std::shared_ptr<const RepeatClasses> classes =
      search.uniform ? search.uniform : std::make_shared<const RepeatClasses>(repeat_classes(search.graph));
  const IdVector<NodeId, NodeId> ties = uniform_ties(free, search.graph, search.versions, *classes);
  const std::size_t sets = std::set<NodeId>(ties.begin(), ties.end()).size();
  const bool is_tied = search.uniform || kMuchSmaller * sets <= free.problem.nodes.size();
  const std::size_t num_matrices = free.problem.matrices.size();
  StepBound bound(search.graph, search.versions, free,
                  coarse_matrices(free, search.graph, search.versions, counted(plan)), ties, speeds,
                  search.costs.has_collective_matmul());
  const SearchedModel model{
      search.graph,   search.versions, free, search.costs.mesh(), is_tied ? std::optional(ties) : std::nullopt,
      &bound.on_all()};
  ShortestStep shortest(std::move(plan), model, bound, search);
  if (!shortest.run()) return shortest.plan();
  if (shortest.is_loose()) {
    free.problem.matrices.resize(num_matrices);
    bound.refine(fine_matrices(free, search.graph, search.versions, counted(shortest.plan()),
                               {*shortest.planned(), shortest.plan().time.step() / kPartsOfStart}));
    shortest.prove();
  } else {
    shortest.bound_free();
  }
  shortest.try_windows();
  shortest.try_windows_of_others();
  shortest.try_near();
  shortest.try_near_aside();
  shortest.try_near_others();
  shortest.try_parts();
  shortest.try_lean();
  shortest.refine_order();
  Plan result = shortest.result();
  note_other_shapes(result);
  return result;
}

}  // namespace shardplan
