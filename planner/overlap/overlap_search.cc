// Weights and choices play a game: weights maximise the weighted sum of the choice, which minimises it. Its value is the
// best bound that weights can give. It is solved by cutting planes: the best mean of the known weights against the
// known choices (fictitious play), then the best choice against it (a search), which adds weights. As cutting planes
// jump, each round only goes half of the way from the best weights so far.
#include "planner/overlap/overlap_search.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "base/integer.h"
#include "base/side_by_side.h"
#include "planner/overlap/best_mixture.h"
#include "planner/overlap/bound_matrices.h"
#include "planner/overlap/guessed_problem.h"
#include "planner/overlap/kind_search.h"
#include "planner/overlap/link_levels.h"
#include "planner/overlap/near_search.h"
#include "planner/overlap/step_bound.h"
#include "planner/overlap/step_proof.h"
#include "planner/problem/plan_choice.h"
#include "planner/problem/uniform_layers.h"
#include "solver/limits.h"
#include "solver/searches/search_list.h"
#include "solver/tied_problem.h"

namespace shardplan {
namespace {

constexpr double kLeastOfRound = 1e-3;  // seconds
/// Rounds on the problem of uniform layers where it is so much smaller, and on the problem itself where there are none.
constexpr int kUniformRounds = 8;
constexpr std::size_t kMuchSmaller = 3;
constexpr int kFreeRounds = 3;
/// Choices are also looked for where one part in so many of all communication counts beside the kernels.
constexpr std::int64_t kHiddenParts[] = {16, 4};
/// At most this many matrix entries in all rounds, which takes less time than the search before them; of larger
/// problems one round.
constexpr std::size_t kEntriesOfRounds = 30'000'000;
constexpr Guess kTwiceAtTheEnd{100, 200}, kHalfOfActivations{25, 100, 50}, kHalfOfWeights{50, 100};
constexpr std::uint64_t kGuessWork = 100'000'000;
/// Larger problems have one guess, which is searched for longer.
constexpr std::uint64_t kLargeGuessWork = 3'000'000'000;
constexpr double kGuessGap = 1e-4;
/// A step this near to its bound is not worth a guess.
constexpr double kWorthAGuess = 0.025;
/// At most this many rounds of the finer bound, fewer of larger problems.
constexpr int kProofRounds = 12, kFewProofRounds = 2;
constexpr std::size_t kEntriesOfProof = 20'000'000, kEntriesOfShortProof = 60'000'000;
/// Of the choices found there at most this many are ordered, those with the least bounds whose estimates exceed the
/// plan's by at most this.
constexpr std::size_t kMostFoundOrdered = 4;
constexpr std::int64_t kPercentLongerFound = 15;
/// Of two that differ by less, one part in so many of what is thought and of what the bound says, the first is ordered.
constexpr Picoseconds kPartsThatDiffer = 1000;
/// Threads that search guesses, and that order choices.
constexpr std::size_t kSearchedAtOnce = 4, kOrderedAtOnce = 2;
/// At most so many choices of guesses and rounds are ordered.
constexpr std::int64_t kMostOrdered = 5;
/// Of plans of kinds that may be shorter so many are ordered, those that seem the shortest.
constexpr std::size_t kMostKindsOrdered = 2;
/// What their steps are thought to take is off by some per cent.
constexpr std::int64_t kPercentOff = 5;
/// A step this near to its bound is left where it is.
constexpr double kWorthGoingOn = 0.05;
/// So often the best choice near the plan is where it goes on from.
constexpr int kNearTurns = 12;
/// The search goes on only from what gains more than this; what gains less must not hold more memory than the plan.
constexpr Picoseconds kThousandthsToGain = 5;
/// If the plan holds more than half of the memory, choices are sought that hold at most these percentages of it. One
/// of at most `kLeanerPercent` that takes at most `kThousandthsToGain` longer replaces it.
constexpr Bytes kLeanPercent[] = {75, 50, 25};
constexpr Bytes kLeanerPercent = 90;
/// Limits of each round's search.
constexpr std::uint64_t kRoundWork = 100'000'000;
constexpr double kRoundGap = 3e-3;
constexpr std::uint64_t kUniformWork = 20'000'000;
constexpr double kUniformGap = 1e-2;
/// A bound this near to what other weights could reach at most will do.
constexpr double kNothingToGain = 2e-3;
/// One this far below is sought again, more exactly; where few rounds of that are affordable, one this much further.
constexpr double kWorthAProof = 0.05, kWorthAShortProof = 0.1;
/// Start-ups of collectives count in the finer bound if they are at least one part in so many of the step.
constexpr Picoseconds kPartsOfStart = 200;

/// How many rounds on a problem do not take long beside the search that came before, but at most so many.
int affordable_rounds(const StrategyProblem& problem, std::size_t entries_of_all, int most) {
  std::size_t entries = 1;
  for (const ProblemEdge& edge : problem.edges) entries += problem.matrices[edge.matrix].costs.size();
  return static_cast<int>(std::min<std::size_t>(entries_of_all / entries, static_cast<std::size_t>(most)));
}

/// Of each round's search.
LevelOptions round_options(const OverlapSearch& search, bool is_for_weights_alone) {
  LevelOptions options = search.options;
  const std::uint64_t work = is_for_weights_alone ? kUniformWork : kRoundWork;
  options.limits.work = std::min(work, options.limits.work > 0 ? options.limits.work : work);
  options.limits.gap = is_for_weights_alone ? kUniformGap : kRoundGap;
  options.limits.progress = {};
  return options;
}

class Rounds {
 public:
  Rounds(Plan plan, const ModelProblem& problem, const StepBound& bound, std::optional<IdVector<NodeId, NodeId>> ties,
         const OverlapSearch& search)
      : search_(search),
        deadline_(search.options.limits.seconds, search.options.limits.stop),
        plan_(std::move(plan)),
        problem_(problem),
        bound_(bound),
        ties_(std::move(ties)),
        near_({search_.graph, search_.versions, problem_, search_.costs.mesh(), ties_, search_.step_by_rule,
               [this](const Choice& choice) { return weigh(choice); }, deadline_}) {}

  /// Finds choices and orders them; false where the plan is not a choice of the problem.
  bool run() {
    const std::optional<Choice> planned = this->planned();
    if (!planned) return false;
    most_rounds_ = std::max(1, rounds_affordable(kEntriesOfRounds, kUniformRounds + kFreeRounds));
    weights_.push_back(bound_.weights_of_slowdown());
    add(*planned);
    for (const Decisions& decisions : search_.known) {
      const std::optional<Choice> choice =
          find_choice(search_.versions, problem_, decisions.strategies, decisions.versions);
      if (choice && evaluate(problem_.problem, *choice).forbidden_count == 0) add(*choice);
    }
    best_ = weights_.front();
    least_ = round(best_, ties_.has_value()).value_or(0);
    try_guesses();
    least_ = rounds(ties_.has_value(), ties_ ? kUniformRounds : kFreeRounds, least_);
    // Weights that suit the choices of uniform layers nearly suit all.
    if (ties_ && !search_.uniform) least_ = round(best_, false).value_or(0);
    for (const std::int64_t parts : kHiddenParts) {
      if (rounds_ >= most_rounds_ || deadline_.is_over() || is_near(plan_.time.step(), least_, kTightBound)) break;
      OverlapWeights weights = weights_.front();
      for (std::int64_t& weight : weights.items) weight = OverlapWeights::kWhole / parts;
      const Searched found = search(weights, ties_.has_value());
      if (is_near(finished().time.step(), least_, kTightBound)) break;
      accept(found);  // no bound: for its choice alone
    }
    try_kinds();
    finish();
    return true;
  }

  /// Whether a finer bound is worth its time.
  bool is_loose() const {
    const int rounds = proof_rounds_affordable();
    const double worth = rounds > kFewProofRounds ? kWorthAProof : kWorthAShortProof;
    return !deadline_.is_over() && rounds > 1 && !is_near(plan_.time.step(), least_, worth);
  }

  /// Says more of the step, once the bound is finer than it was in the rounds, and orders the choices that were found on
  /// the way and seem the shortest.
  void prove() {
    const StepProof proof{
        bound_, ties_, options_of(ties_.has_value()), plan_.time.step(), least_, proof_rounds_affordable()};
    proven_ = prove_step(proof, choices_);
    if (!ties_ || search_.uniform) least_ = std::max(least_, proven_.bound);
    is_one_block_ahead_ = std::ranges::any_of(search_.graph.operators(), &GraphOperator::is_copy);
    bound_free(proven_.weights);
    order_shortest(proven_.shorter);
  }
  void bound_free() { bound_free(best_); }

  /// Goes on from the plan to choices near it.
  void try_near() {
    for (int turn = 0; turn < kNearTurns; ++turn) {
      if (deadline_.is_over() || is_near(plan_.time.step(), least_, kWorthGoingOn) || !go_near()) return;
    }
  }

  /// Looks for a plan that holds much less and takes hardly longer.
  void try_lean() {
    const std::optional<Choice> planned = this->planned();
    const std::vector<Bytes>& limits = problem_.problem.memory_limits;
    if (!planned || limits.empty() || is_large() || deadline_.is_over()) return;
    const Bytes held = evaluate(problem_.problem, *planned).peak_bytes;
    if (held < *std::max_element(limits.begin(), limits.end()) / 2) return;
    std::vector<std::optional<Choice>> found(std::size(kLeanPercent));
    side_by_side(num_processors(kSearchedAtOnce), found.size(), [&](std::size_t, std::size_t i) {
      found[i] = shortest_by(kMostlyHidden, held / 100 * kLeanPercent[i]);
    });
    const Picoseconds too_long = about(*planned) / 100 * (100 + kPercentOff);
    std::vector<Decisions> decisions;
    for (const std::optional<Choice>& choice : found) {
      if (choice && about(*choice) < too_long) decisions.push_back(decisions_of(*choice));
    }
    const Picoseconds longest = plan_.time.step() / 1000 * (1000 + kThousandthsToGain);
    for (std::optional<Plan>& trial : ordered(decisions, longest)) {
      if (!trial || trial->time.step() > longest) continue;
      if (trial->memory.peak > plan_.memory.peak / 100 * kLeanerPercent) continue;
      plan_ = *std::move(trial);
      before_.reset();
      ++taken_;
    }
  }

  /// Refines the order of the best plan, and of the plan before it if that took hardly longer.
  void refine_order() {
    std::vector<Decisions> decisions = {{plan_.strategies, plan_.versions}};
    if (before_) decisions.push_back(*std::move(before_));
    for (std::optional<Plan>& trial : scheduled(decisions, {.is_final = true})) {
      if (trial) take(*std::move(trial));
    }
  }

  /// The best plan with what was found out.
  Plan result() {
    const Picoseconds step = plan_.time.step();
    plan_.overlapped_bound = std::min(least_, step);
    plan_.is_bound_one_block_ahead = is_one_block_ahead_;
    if (free_bound_) plan_.free_bound = {Level::kSpeed, std::min(*free_bound_, step)};
    plan_.statistics.push_back({"overlapped step",
                                {{"rounds", rounds_},
                                 {"rounds of the bound", proven_.rounds},
                                 {"guesses", guesses_},
                                 {"kinds searched", kinds_},
                                 {"near choices", near_.tried()},
                                 {"choices ordered", ordered_},
                                 {"taken", taken_}}});
    return std::move(plan_);
  }

  const Plan& plan() const { return plan_; }
  std::optional<Choice> planned() const {
    return find_choice(search_.versions, problem_, plan_.strategies, plan_.versions);
  }

 private:
  /// Looks for the best weights, half of the way from the best so far, which give the bound `least`, to those that are best
  /// against all choices so far. The bound that they give.
  Picoseconds rounds(bool is_uniform, int count, Picoseconds least) {
    for (int i = 1;
         i < count && rounds_ < most_rounds_ && !deadline_.is_over() && !is_near(plan_.time.step(), least, kTightBound);
         ++i) {
      std::vector<std::vector<Picoseconds>> sums;
      for (const OverlapWeights& weights : weights_) {
        std::vector<Picoseconds>& row = sums.emplace_back();
        for (const StepBound::Times& times : times_) row.push_back(StepBound::sum(weights, times));
      }
      const OverlapWeights against_all = mean(weights_, rough_mixture(sums));
      Picoseconds most = kForbidden;  // the plan's is among them
      for (const StepBound::Times& times : times_) most = std::min(most, StepBound::sum(against_all, times));
      if (is_near(most, least, kNothingToGain)) break;
      OverlapWeights between = mean({best_, against_all}, {1, 1});
      const Searched searched = search(between, is_uniform);
      if (is_near(finished().time.step(), least, kTightBound)) break;
      const std::optional<Picoseconds> found = accept(searched);
      if (!found) break;
      if (*found <= least) continue;
      least = *found;
      best_ = std::move(between);
    }
    return least;
  }

  /// What holds for choices whose layers differ, where that is asked for, by weights that suit uniform ones.
  void bound_free(const OverlapWeights& weights) {
    if (!ties_ || (search_.uniform && !search_.wants_free_bound)) return;
    const StepProof proof{bound_, std::nullopt, options_of(false), plan_.time.step(), 0, 1};
    const std::optional<LevelResult> found = least_sum(proof, weights, std::nullopt);
    const Picoseconds free = found ? found->bound.amount : 0;
    least_ = std::max(least_, free);
    if (search_.uniform) free_bound_ = free;
  }

  int proof_rounds_affordable() const {
    return std::max(rounds_affordable(kEntriesOfProof, kProofRounds),
                    rounds_affordable(kEntriesOfShortProof, kFewProofRounds));
  }
  int rounds_affordable(std::size_t entries, int most) const {
    return affordable_rounds(ties_ ? tied_problem(problem_.problem, *ties_).problem : problem_.problem, entries, most);
  }

  LevelOptions options_of(bool is_uniform) const {
    LevelOptions options = round_options(search_, is_uniform && !search_.uniform);
    if (options.limits.seconds > 0) {
      options.limits.seconds = std::max(kLeastOfRound, options.limits.seconds - deadline_.elapsed());
    }
    return options;
  }

  void order_shortest(const std::vector<Choice>& found) {
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
      if (is_known(found[i])) continue;
      const Estimated one{bound_.least_step(bound_.times_of(found[i])), about(found[i]), i};
      const bool is_new = std::none_of(in_turn.begin(), in_turn.end(), [&](const Estimated& other) {
        return is_like(one.least, other.least) && is_like(one.about, other.about);
      });
      if (one.about < too_long && is_new) in_turn.push_back(one);
    }
    std::sort(in_turn.begin(), in_turn.end());
    if (in_turn.size() > kMostFoundOrdered) in_turn.resize(kMostFoundOrdered);
    std::vector<Decisions> decisions;
    for (const Estimated& one : in_turn) decisions.push_back(decisions_of(found[one.number]));
    order_all(decisions, std::nullopt);
  }

  /// Orders a choice beside what is done next, up to `finish`.
  void order(Decisions decisions) {
    finish();
    ++ordered_;
    ordering_ = begin_beside([this, decisions = std::move(decisions), step_to_beat = plan_.time.step()] {
      return search_.scheduled(decisions, {step_to_beat});
    });
  }
  /// Takes what is ordered beside, if it is better.
  void finish() {
    if (ordering_.valid()) take(ordering_.get());
  }
  const Plan& finished() {
    finish();
    return plan_;
  }

  /// Orders several choices side by side, without comparing their steps on the way.
  std::vector<std::optional<Plan>> scheduled(const std::vector<Decisions>& decisions, const OrderEffort& effort) {
    std::vector<std::optional<Plan>> trials(decisions.size());
    side_by_side(num_processors(kOrderedAtOnce), decisions.size(), [&](std::size_t, std::size_t i) {
      if (!deadline_.is_over()) trials[i] = search_.scheduled(decisions[i], effort);
    });
    return trials;
  }
  /// The same of candidates, which are counted.
  std::vector<std::optional<Plan>> ordered(const std::vector<Decisions>& decisions,
                                           std::optional<Picoseconds> step_to_beat) {
    finish();
    std::vector<std::optional<Plan>> trials = scheduled(decisions, {step_to_beat});
    ordered_ += std::ranges::count_if(trials, [](const auto& trial) { return trial.has_value(); });
    return trials;
  }
  void order_all(const std::vector<Decisions>& decisions, std::optional<Picoseconds> step_to_beat) {
    for (std::optional<Plan>& trial : ordered(decisions, step_to_beat)) {
      if (trial) take(*std::move(trial));
    }
  }

  void take(Plan trial) {
    const bool holds_more = trial.memory.peak > plan_.memory.peak;
    if (!is_better(trial, plan_) || (holds_more && !is_shorter(trial, plan_.time.step()))) return;
    before_.reset();
    if (!is_shorter(trial, plan_.time.step())) before_ = Decisions{plan_.strategies, plan_.versions};
    plan_ = std::move(trial);
    ++taken_;
  }

  /// Guesses that suit most models first, and where the step is far from its bound then, one that suits few.
  void try_guesses() {
    finish();
    std::vector<Guess> guesses{kTwiceAtTheEnd, kMostlyHidden};
    if (is_large()) guesses = {kHalfOfWeights};
    if (!is_near(plan_.time.step(), least_, kWorthAGuess)) try_guesses(guesses);
    // Little is known of activations where no layers repeat, so that their guesses lead astray.
    if (ties_ && !is_near(plan_.time.step(), least_, kWorthGoingOn)) try_guesses({kHalfOfActivations});
  }

  bool is_large() const { return !ties_ && most_rounds_ == 1; }

  /// Orders the choices that take the least time by guesses. They are none of the game's, which would begin elsewhere.
  void try_guesses(const std::vector<Guess>& guesses) {
    if (deadline_.is_over()) return;
    std::vector<std::optional<Choice>> found(guesses.size());
    side_by_side(num_processors(kSearchedAtOnce), guesses.size(),
                 [&](std::size_t, std::size_t i) { found[i] = shortest_by(guesses[i]); });
    guesses_ += std::ssize(guesses);
    std::vector<Decisions> decisions;
    for (const std::optional<Choice>& choice : found) {
      if (!choice || is_known(*choice) || !may_be_faster(bound_.times_of(*choice))) continue;
      decisions.push_back(decisions_of(*choice));
      guessed_.push_back(*choice);
    }
    order_all(decisions, plan_.time.step());
  }

  /// The choice that takes the least time by a guess, of those that hold at most this.
  std::optional<Choice> shortest_by(const Guess& guess, Bytes most_held = kUnlimitedBytes) const {
    StrategyProblem guessed = guessed_problem(guess);
    for (Bytes& limit : guessed.memory_limits) limit = std::min(limit, most_held);
    std::optional<TiedProblem> tied;
    if (ties_) tied = tied_problem(guessed, *ties_);
    const StrategyProblem& searched = tied ? tied->problem : guessed;
    LevelOptions options = search_.options;
    options.start = best_start(searched, tied);
    options.wants_bound = false;
    const std::uint64_t work = is_large() ? kLargeGuessWork : kGuessWork;
    options.limits.work = std::min(work, options.limits.work > 0 ? options.limits.work : work);
    options.limits.gap = kGuessGap;
    options.limits.progress = {};
    const LevelResult found = search_level(searched, *make_search(kDefaultSearch), options);
    if (!found.choice) return std::nullopt;
    return tied ? tied->expanded(*found.choice) : *found.choice;
  }

  /// Orders choices near the plan's, then choices between it and others, until one is shorter; whether one is.
  bool go_near() { return go_to(near_.near(plan_)) || go_to(near_.crossed(plan_, known_choices())); }
  bool go_to(const NearSearch::Found& found) {
    const Picoseconds step = plan_.time.step();
    for (std::size_t i = 0; i < found.choices.size() && !deadline_.is_over() && !is_shorter(plan_, step);) {
      const std::size_t together = found.is_compared ? 1 : found.choices.size();
      std::vector<Decisions> decisions;
      for (; decisions.size() < together; ++i) decisions.push_back(decisions_of(found.choices[i]));
      order_all(decisions, std::nullopt);
    }
    return is_shorter(plan_, step);
  }
  std::vector<Choice> known_choices() const {
    std::vector<Choice> known = choices_;
    for (const auto* some : {&guessed_, &proven_.shorter, &proven_.longer}) {
      known.insert(known.end(), some->begin(), some->end());
    }
    return known;
  }
  /// The largest sum that any known weights give a choice: a lower bound on its step.
  Picoseconds weigh(const Choice& choice) const {
    const StepBound::Times times = bound_.times_of(choice);
    Picoseconds most = 0;
    for (const OverlapWeights& weights : proven_.tried.empty() ? weights_ : proven_.tried) {
      most = std::max(most, StepBound::sum(weights, times));
    }
    return most;
  }
  static bool is_shorter(const Plan& plan, Picoseconds than) {
    return plan.time.step() < than / 1000 * (1000 - kThousandthsToGain);
  }

  /// Of the choices so far the best one of a problem.
  std::optional<Choice> best_start(const StrategyProblem& problem, const std::optional<TiedProblem>& tied) const {
    std::optional<Choice> best;
    Picoseconds least = kForbidden;
    for (const Choice& choice : choices_) {
      Choice start = tied ? tied->tied(choice) : choice;
      const Evaluation value = evaluate(problem, start);
      if (!value.feasible || value.value({}) >= least) continue;
      least = value.value({});
      best = std::move(start);
    }
    return best;
  }

  /// The best plans of kinds, by about what their steps take.
  void try_kinds() {
    // Where little repeats, a kind takes about as long as the whole, and has less to say.
    if (!ties_ || deadline_.is_over() || is_near(finished().time.step(), least_, kTightBound)) return;
    const TiedProblem tied = tied_problem(guessed_problem(kMostlyHidden), *ties_);
    const Picoseconds too_long = plan_.time.step() / 100 * (100 + kPercentOff);
    const FoundKinds found = search_kinds(
        search_.kinds,
        {problem_, search_.graph, search_.versions, search_.costs.mesh(), tied, too_long, search_.options, deadline_});
    kinds_ += found.searched;
    std::vector<Decisions> shortest;
    for (const Choice& choice : found.choices) {
      if (adds(choice) && shortest.size() < kMostKindsOrdered) shortest.push_back(decisions_of(choice));
    }
    order_all(shortest, plan_.time.step());
  }

  StrategyProblem guessed_problem(const Guess& guess) const {
    return shardplan::guessed_problem(problem_, search_.graph, search_.versions, guess);
  }
  Picoseconds about(const Choice& choice) const {
    return guessed_step(problem_, search_.graph, search_.versions, kMostlyHidden, choice);
  }

  Decisions decisions_of(const Choice& choice) const {
    return shardplan::decisions_of(search_.graph, search_.versions, problem_, choice, search_.costs.mesh());
  }

  void add(const Choice& choice) {
    choices_.push_back(choice);
    times_.push_back(bound_.times_of(choice));
    for (OverlapWeights& weights : bound_.weights_at(times_.back())) weights_.push_back(std::move(weights));
  }

  /// Adds a new choice; whether it may be faster in some order.
  bool adds(const Choice& choice) {
    if (std::find(choices_.begin(), choices_.end(), choice) != choices_.end()) return false;
    add(choice);
    return may_be_faster(times_.back()) && !is_guessed(choice);
  }
  bool may_be_faster(const StepBound::Times& times) {
    const Picoseconds step = finished().time.step();
    return std::all_of(weights_.begin(), weights_.end(),
                       [&](const OverlapWeights& weights) { return StepBound::sum(weights, times) < step; });
  }
  bool is_known(const Choice& choice) const {
    return is_guessed(choice) || std::find(choices_.begin(), choices_.end(), choice) != choices_.end();
  }
  bool is_guessed(const Choice& choice) const {
    return std::find(guessed_.begin(), guessed_.end(), choice) != guessed_.end();
  }

  /// Adds a choice and orders it, unless it cannot be much faster in any order.
  void consider(const Choice& choice) {
    if (!adds(choice) || ordered_ >= kMostOrdered || is_near(plan_.time.step(), least_, kWorthAGuess)) return;
    order(decisions_of(choice));
  }

  /// What no choice has a smaller weighted sum than, of those with uniform layers or of all; nothing where none fits.
  struct Searched {
    LevelResult found;
    std::optional<Choice> choice;  // where it is one of those asked for
  };
  Searched search(const OverlapWeights& weights, bool is_uniform) const {
    const StrategyProblem searched = bound_.weighted(weights);
    std::optional<TiedProblem> tied;
    if (is_uniform) tied = tied_problem(searched, *ties_);
    const LevelOptions options = options_of(is_uniform);
    Searched result{search_level(tied ? tied->problem : searched, *make_search(kDefaultSearch), options), {}};
    const bool is_asked_for = is_uniform || !search_.uniform;  // else its layers differ
    if (!result.found.choice || !is_asked_for) return result;
    result.choice = tied ? tied->expanded(*result.found.choice) : *result.found.choice;
    return result;
  }
  /// Its bound; the choice is ordered.
  std::optional<Picoseconds> accept(const Searched& searched) {
    ++rounds_;
    if (searched.found.status == PlanStatus::kInfeasible) return std::nullopt;
    if (searched.choice) consider(*searched.choice);
    return searched.found.bound.amount;
  }
  std::optional<Picoseconds> round(const OverlapWeights& weights, bool is_uniform) {
    return accept(search(weights, is_uniform));
  }

  const OverlapSearch& search_;
  Deadline deadline_;
  Plan plan_;
  std::optional<Decisions> before_;  // of the plan before that one, if its step is hardly longer
  const ModelProblem& problem_;
  const StepBound& bound_;
  std::optional<IdVector<NodeId, NodeId>> ties_;
  NearSearch near_;
  OverlapWeights best_;  // those of the greatest bound so far
  std::vector<OverlapWeights> weights_;
  std::vector<Choice> choices_;  // that were found so far
  std::vector<StepBound::Times> times_;
  std::vector<Choice> guessed_;  // of guesses; none of the game's until it comes to them
  Picoseconds least_ = 0;
  std::optional<Picoseconds> free_bound_;
  ProvenStep proven_;
  bool is_one_block_ahead_ = false;
  std::int64_t most_rounds_ = 1, rounds_ = 0, guesses_ = 0, kinds_ = 0, ordered_ = 0, taken_ = 0;
  std::future<Plan> ordering_;  // of what is ordered beside; the last member, so that it ends first
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
  Rounds rounds(std::move(plan), free, bound, is_tied ? std::optional(ties) : std::nullopt, search);
  if (!rounds.run()) return rounds.plan();
  if (rounds.is_loose()) {
    free.problem.matrices.resize(num_matrices);
    const Plan& shortest = rounds.plan();
    bound.refine(fine_matrices(free, search.graph, search.versions, counted(shortest),
                               {*rounds.planned(), shortest.time.step() / kPartsOfStart}));
    rounds.prove();
  } else {
    rounds.bound_free();
  }
  rounds.try_near();
  rounds.try_lean();
  rounds.refine_order();
  return rounds.result();
}

}  // namespace shardplan
