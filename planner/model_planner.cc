// How a model becomes a plan.
//
// The model's graph, the versions of its tensors and the decisions made beforehand form a StrategyProblem
// (model_problem.cc). The search of the level finds a choice (guided_search.cc, level_search.cc). Lowering writes it
// out as the program that every device runs (program/lower.cc), from which all figures of the plan are taken.
//
// The problem does not count what a redistribution holds while it runs. So a choice whose program holds too much is
// repaired: the problem's limits are lowered at those times (limit_repair.cc) and it is searched again. A problem that
// counts redistributions (running_memory.cc) has twice the nodes, so only small models use it, at level 1.

#include "planner/model_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/integer.h"
#include "costmodel/roofline_costs.h"
#include "graph/batch_factors.h"
#include "model/planned_model.h"
#include "planner/divided_bound.h"
#include "planner/model_mesh.h"
#include "planner/overlap/kind_problems.h"
#include "planner/overlap/overlap_search.h"
#include "planner/placed_plan.h"
#include "planner/plan_notices.h"
#include "planner/problem/decided_strategies.h"
#include "planner/problem/mode_layouts.h"
#include "planner/problem/plan_choice.h"
#include "planner/problem/uniform_layers.h"
#include "planner/search/bound_beside.h"
#include "planner/search/default_limits.h"
#include "planner/search/guided_search.h"
#include "planner/search/level_search.h"
#include "planner/search/limit_repair.h"
#include "planner/search/own_levels.h"
#include "planner/search/search_options.h"
#include "planner/worker_groups.h"
#include "program/startup_broadcasts.h"
#include "program/timeline.h"
#include "solver/searches/search_list.h"
#include "strategies/data_parallel.h"

namespace shardplan {
namespace {

/// For the bound of a plan that was found without one; takes a fraction of a second.
constexpr std::uint64_t kBoundWork = 200'000'000;

/// The gap of the step of the plan with the least memory; its step is of little interest.
constexpr double kGoodEnoughStep = 0.02;

/// How many times a plan whose true memory exceeds a limit is repaired by lowering that limit.
constexpr int kMaxRepairs = 4;
/// An excess of the program's peak over what the search sees is worth another search if it is more than 1 / this of it.
constexpr Bytes kPartsWorthASearch = 2000;

/// True if the peak may well not be the least.
bool is_far_from_bound(const Plan& plan) { return plan.memory.peak - plan.memory.peak / 50 > plan.bound.amount; }

/// The search's status in view of the true memory.
PlanStatus status_of(const Plan& plan) {
  if (!plan.fits()) return PlanStatus::kNoPlanFound;
  const bool is_at_bound = plan.cost.amount <= plan.bound.amount;
  if (plan.status == PlanStatus::kFeasible && is_at_bound) return PlanStatus::kOptimal;
  const bool has_true_peak = plan.cost.level == Level::kMemory;
  if (plan.status == PlanStatus::kOptimal && has_true_peak && !is_at_bound) return PlanStatus::kFeasible;
  return plan.status;
}

}  // namespace

ModelPlanner::ModelPlanner(std::shared_ptr<const Model> model, const Cluster& cluster, PlanOptions options)
    : model_(is_one_micro_batch(*model) ? std::move(model) : std::make_shared<const Model>(one_micro_batch(*model))),
      cluster_(cluster),
      options_(std::move(options)) {
  const Deadline since_begin(0, {});
  if (model_->local && cluster_.num_devices() != 1) {
    throw InputError(model_->parallel.parallel_mode_place,
                     "{} is written per device, so there is nothing to search or to lay out; `plan` computes its cost, "
                     "`validate --against FILE` compares it with a model in the view of all devices",
                     model_->name);
  }
  const WorkerGroups groups = worker_groups(*model_, cluster_);
  workers_ = groups.workers;
  graph_ = std::make_shared<const OperatorGraph>(planned_graph(*model_, groups.group.num_devices()));
  versions_ = tensor_versions(*graph_);
  const DeviceMesh mesh = model_mesh(*model_, groups.group);
  const bool is_free = options_.pieces.empty();
  DecidedStrategies decided = decided_strategies(
      *model_, *graph_, mesh, {is_free ? model_pieces(*model_, mesh, batch_size(*graph_)) : options_.pieces, is_free},
      options_.strategy_file);
  pieces_ = std::move(decided.pieces);
  costs_ = std::make_unique<RooflineCosts>(groups.group, mesh);
  fusion_ = std::make_shared<const KernelFusion>(kernel_fusion(*graph_, costs_->fusion()));
  redistribution_options_.bounded_memory = options_.bounded_redistribution;
  redistribution_options_.pieces = pieces_;
  redistributions_ = std::make_unique<RedistributionPlanner>(mesh, costs_->collectives(), redistribution_options_);
  for (const OperatorId op : graph_->operators().ids()) {
    const GraphOperator& named = graph_->operators()[op];
    // A border has one layout, which is also given by that of its result.
    const bool is_given = !named.strategy->in.empty() || (!named.border_of.empty() && !named.strategy->out.empty());
    is_user_strategy_.push_back(is_given || decided.loaded.is_loaded[op]);
  }
  decided_layouts_ = layouts_by_mode(decided.strategies, decided.is_final, *graph_, versions_, mesh,
                                     model_->parallel.reshard_after_forward);
  for (const VersionId id : decided.loaded.versions.ids()) {
    if (decided.loaded.versions[id]) decided_layouts_[id] = decided.loaded.versions[id];
  }
  decided_ = std::move(decided.strategies);
  const auto is_none = [](const auto& layouts) {
    return std::ranges::none_of(layouts, &RareValue<TensorLayout>::has_value);
  };
  if (is_none(decided_.requested)) decided_.requested = {};
  if (is_none(decided_layouts_)) decided_layouts_ = {};
  is_by_mode_ = std::move(decided.is_final);
  notices_ = std::move(decided.notices);
  for (std::string& text : model_notices(*model_, *graph_)) notices_.push_back(std::move(text));
  if (!groups.notice.empty()) notices_.push_back(groups.notice);
  if (options_.uniform_layers) {
    RepeatClasses classes = repeat_classes(*graph_);
    if (mesh.num_devices() > 1 && has_copies(*graph_, classes)) {
      uniform_ = std::make_shared<const RepeatClasses>(std::move(classes));
    }
  }
  for (std::string& text : separate_levels(*graph_, options_.level)) notices_.push_back(std::move(text));
  options_.time_spent += since_begin.elapsed();
}

Bytes ModelPlanner::usable() const { return options_.capacity.value_or(cluster_.usable_bytes()); }

Plan ModelPlanner::plan(Level level, std::string_view search, std::stop_token stop, const Progress& progress,
                        std::span<const Plan> known) const {
  if (options_.costs == StrategyCosts::kMindSpore) return mindspore_plan(level, search, std::move(stop), progress);
  Plan found = plan_within(unsolved(level, search), restrictions(level), stop, progress, known);
  if (level == Level::kRatio && !is_found(found.status)) {
    found = plan_with_repeated_work(std::move(found), search, stop, progress, known);
  }
  const auto limits = [&](Level own) { return restrictions(own); };
  const auto options = [&](Level own) { return search_options(options_, own, stop, {}); };
  const auto decided_like = [&](const Decisions& decisions, const Plan& like) { return decided(decisions, like); };
  return with_own_levels(std::move(found),
                         {*graph_, versions_, *costs_, *redistributions_, limits, options, decided_like});
}

Plan ModelPlanner::plan_with_repeated_work(Plan none, std::string_view search, std::stop_token stop,
                                           const Progress& progress, std::span<const Plan> known) const {
  Restrictions limits = restrictions(Level::kRatio);
  limits.least_contraction_work = false;
  Plan found = plan_within(unsolved(Level::kRatio, search), limits, std::move(stop), progress, known);
  if (!is_found(found.status)) return none;
  // The search minimises communication, which bounds the ratio only if the computation is the same in all plans.
  found.bound.amount = 0;
  found.free_bound.reset();
  found.status = PlanStatus::kFeasible;
  add_notice(found.notices, "no plan without repeated contractions fits, so contractions may be repeated here");
  return found;
}

Plan ModelPlanner::plan_within(Plan plan, Restrictions restrictions, std::stop_token stop, const Progress& progress,
                               std::span<const Plan> known) const {
  const Level level = plan.options.level;
  const std::string search_name = plan.options.search;
  const SearchEntry* known_search = find_search(search_name);
  if (known_search == nullptr) throw InputError(SourcePlace{}, "no search '{}'", search_name);
  const Deadline since_begin(0, {});
  ModelProblem problem = build_problem(*graph_, versions_, *costs_, *redistributions_, restrictions);
  std::optional<ModelProblem> free;  // beside that of uniform layers, where more is sought in it
  if (restrictions.uniform) {
    ModelProblem tied = with_uniform_layers(problem, *graph_, versions_, *restrictions.uniform);
    if (graph_->operators().size() <= kMostOverlappedOperators) free = std::move(problem);
    problem = std::move(tied);
  }
  // That of a deep model is seldom needed beside the program, and is then made again.
  const bool is_set_aside =
      graph_->operators().size() > kDeep && level != Level::kMemory && known.empty() && workers_ == 1;
  if (level != Level::kMemory && !is_set_aside) restrictions = {};  // the problem contains them
  if (!searches_overlapped(level)) problem.communicated = {};
  plan.candidates_complete = problem.candidates_complete;

  // A search that starts from data parallelism, or from a plan of another level, returns nothing worse.
  std::optional<Choice> start = this->start(problem, level, known);
  const bool is_known = data_parallel_baseline_ || beside_.baseline.valid();
  if (level == Level::kRatio && is_known) data_parallel_.reset();  // its decisions are not needed any more
  const double built = since_begin.elapsed();
  LevelOptions options = search_options(options_, level, stop, progress, built, after_search(built));
  const bool has_own_limit = !uses_default_work(options_, searches_overlapped(level));
  if (searches_overlapped(level)) options.limits = limits_of_first(options_, std::move(options.limits));
  const GuidedSearch search(*graph_, versions_, problem, pieces_, search_name, options, !has_own_limit);
  std::optional<LevelOptions> bound_options;
  if (!known_search->gives_bound) {
    bound_options = options;
    bound_options->start = start;
    bound_options->limits.progress = {};
    if (!has_own_limit) bound_options->limits.work = kBoundWork;
  }
  // For the overlapped step it is computed together with that of uniform layers.
  const bool has_free_bound = free && workers_ == 1 && (level != Level::kSpeed || !options_.overlap) &&
                              graph_->operators().size() <= kMostFreeOperators;
  BoundBeside of_free_layers(
      [&](const Choice& choice, std::stop_token end) { return free_bound(problem, choice, *free, level, end); }, stop);
  // Starting from data parallelism, if that fits, is as good as from a better choice, and needs no waiting.
  const bool begins_at_start = has_free_bound && start && evaluate(problem.problem, *start).feasible;
  if (begins_at_start) of_free_layers.begin(*start);
  const auto begin_bound = [&](const Choice& choice) {
    if (has_free_bound && !begins_at_start) of_free_layers.begin(choice);
  };
  LevelResult found = search.find_with_bound(problem.problem, start, bound_options, begin_bound);
  plan.bound = found.bound;
  plan.statistics = std::move(found.statistics);
  plan.status = found.status;
  if (!found.choice) {
    found.choice = smallest_choice(problem, stop);
    if (!found.choice) return plan;
    if (plan.status == PlanStatus::kInfeasible) plan.bound.amount = 0;
    plan.status = PlanStatus::kFeasible;
  }
  if (plan.status == PlanStatus::kNoPlanFound) plan.status = PlanStatus::kFeasible;
  if (search.is_out_of_time() && plan.status != PlanStatus::kOptimal) {
    note_out_of_time(plan);
  }

  if (start && *found.choice == *start && plan.status != PlanStatus::kOptimal && search_name != kDefaultSearch) {
    add_notice(plan.notices,
               fmt::format("search {} found nothing better than the plan that it starts from", search_name));
  }

  begin_bound(*found.choice);
  const std::vector<Alternative> alternatives = alternatives_of(plan, problem, known);
  Decisions decisions = decisions_of(problem, *found.choice);
  if (is_set_aside) problem = {};
  plan = in_sequence(std::move(decisions), std::move(plan));
  if (is_set_aside && !plan.fits()) {
    problem = searched_problem(*graph_, versions_, *costs_, *redistributions_, restrictions);
  }
  if (is_set_aside) restrictions = {};
  if (workers_ > 1) return placed(std::move(plan), problem, std::move(stop));
  Draft draft{*std::move(found.choice), std::move(plan)};
  if (level == Level::kMemory) {
    draft = with_least_peak(std::move(draft), problem, search, restrictions, search_name, options);
  }
  draft = with_repaired_limits(std::move(draft), problem, search);
  draft = or_smallest(std::move(draft), problem, stop);
  draft = or_known(std::move(draft), problem, known);
  draft.plan.cost = value_at(level, draft.plan.time, draft.plan.memory.peak);
  draft.plan.status = status_of(draft.plan);
  if (!searches_overlapped(level) && !has_free_bound) {  // not needed any more
    problem = {};
    draft.choice = {};
    start.reset();
  }
  const double searched = since_begin.elapsed();
  Plan scheduled = or_faster(overlapped(std::move(draft.plan)), alternatives);
  if (has_free_bound) {
    const LevelValue least = of_free_layers.get();
    if (least.amount > 0) scheduled.free_bound = least;  // else unknown
    // A bound over all plans also holds for those with uniform layers.
    scheduled.bound.amount = std::max(scheduled.bound.amount, least.amount);
    scheduled.status = status_of(scheduled);
  }
  if (!searches_overlapped(level) || !scheduled.fits()) return scheduled;
  if (!free) free = std::move(problem);
  const double spent = since_begin.elapsed();  // what is tried last takes as long to schedule as that plan
  LevelOptions left = search_options(options_, level, std::move(stop), {}, spent, spent - searched);
  return with_overlap_searched(std::move(scheduled), *std::move(free), std::move(left));
}

Plan ModelPlanner::with_overlap_searched(Plan plan, ModelProblem free, LevelOptions options) const {
  OverlapSearch search{*graph_,
                       versions_,
                       *costs_,
                       redistribution_options_,
                       uniform_,
                       uniform_ && graph_->operators().size() <= kMostFreeOperators,
                       !cluster_.tables.empty(),
                       std::move(options),
                       options_.work_limit,
                       {},
                       common_degrees(*graph_, pieces_)};
  if (const Found data_parallel = data_parallel_decisions(); *data_parallel) search.known.push_back(**data_parallel);
  ProgramWriter writer(*graph_, versions_, *costs_, *redistributions_, *fusion_);
  // All of the plan except what is specific to a trial.
  ParallelProgram program = std::exchange(plan.program, {});
  const Plan asked = plan;
  plan.program = std::move(program);
  search.scheduled = [&](const Decisions& decisions, const OrderEffort& effort) {
    Plan trial = overlapped(in_sequence(decisions, asked, &writer), effort);
    trial.cost = value_at(Level::kSpeed, trial.time, trial.memory.peak);
    trial.status = trial.cost.amount <= trial.bound.amount ? PlanStatus::kOptimal : PlanStatus::kFeasible;
    return trial;
  };
  search.step_by_rule = [&](const Decisions& decisions, const Plan& like, bool is_refined) {
    return step_by_rule_of(like, writer.write(decisions), *costs_, is_refined);
  };
  return overlap_searched(std::move(plan), std::move(free), search);
}

Plan ModelPlanner::smallest(std::stop_token stop) const {
  const Deadline since_begin(0, {});
  Plan plan = unsolved(Level::kMemory, kDefaultSearch);
  Restrictions limits = restrictions(Level::kMemory);
  limits.capacity = kUnlimitedBytes;
  const ModelProblem problem = searched_problem(*graph_, versions_, *costs_, *redistributions_, limits);
  const double built = since_begin.elapsed();
  LevelOptions options = search_options(options_, Level::kMemory, std::move(stop), {}, built, after_search(built));
  const std::int64_t slack = std::exchange(options.memory_slack_ppm, 0);
  options.limits.gap = kGoodEnoughStep;
  options.threads = 1;
  bool is_found = false;
  Plan asked = plan;  // without a program
  const auto search_within = [&] {
    const GuidedSearch search(*graph_, versions_, problem, pieces_, kDefaultSearch, options);
    LevelResult found = search.find(problem.problem, std::nullopt);
    if (!is_found) plan.status = asked.status = found.status;
    plan.bound.amount = asked.bound.amount = std::max(plan.bound.amount, found.bound.amount);
    if (!found.choice) return;
    Plan smaller = in_sequence(decisions_of(problem, *found.choice), asked);
    if (workers_ == 1) {
      Draft draft{*std::move(found.choice), std::move(smaller)};
      smaller = with_least_peak(std::move(draft), problem, search, limits, kDefaultSearch, options).plan;
    }
    if (!is_found || smaller.memory.peak < plan.memory.peak) plan = std::move(smaller);
    is_found = true;
  };
  search_within();
  // A search does not count all that a plan holds: a choice that communicates less may hold less in the end.
  if (is_found && workers_ == 1 && options_.time_limit == 0 && is_far_from_bound(plan)) {
    options.memory_slack_ppm = slack;
    search_within();
  }
  plan.cost = {Level::kMemory, plan.memory.peak};
  if (workers_ > 1 && is_found) judge_divided(plan);
  return overlapped(std::move(plan));
}

Plan ModelPlanner::unsolved(Level level, std::string_view search) const {
  Plan plan;
  plan.model = model_;
  plan.graph = graph_;
  plan.cluster = cluster_;
  plan.mesh = mesh();
  plan.options = options_;
  plan.options.level = level;
  plan.options.search = search;
  plan.cost.level = level;
  plan.bound.level = level;
  plan.has_uniform_layers = uniform_ != nullptr;
  plan.usable = usable();
  plan.notices = model_->notices;
  plan.notices.insert(plan.notices.end(), notices_.begin(), notices_.end());
  return plan;
}

Plan ModelPlanner::decided(const Decisions& decisions, Plan like) const {
  return overlapped(in_sequence(decisions, std::move(like)));
}

Plan ModelPlanner::reported(const Decisions& decisions, Plan like) const {
  const bool is_final = like.options.level == Level::kSpeed;
  return overlapped(in_sequence(decisions, std::move(like)), {.is_final = is_final});
}

Plan ModelPlanner::overlapped(Plan plan, const OrderEffort& effort) const {
  return ordered_plan(std::move(plan), *model_, *graph_, *costs_, effort);
}

Plan ModelPlanner::in_sequence(Decisions decisions, Plan like, ProgramWriter* writer) const {
  like.program = {};  // never two at a time
  like.is_user_strategy = is_user_strategy_;
  like.is_by_mode = is_by_mode_;
  like.pieces = pieces_;
  like.program = writer != nullptr ? writer->write(decisions)
                                   : lower(*graph_, versions_, decisions, *costs_, *redistributions_, *fusion_);
  if (model_->parallel.parameter_broadcast) {
    like.program.broadcasts = startup_broadcasts(like.program, *graph_, *costs_->collectives());
  }
  like.strategies = std::move(decisions.strategies);
  like.versions = std::move(decisions.versions);
  if (workers_ > 1) {
    divide(like, *graph_, cluster_, workers_);
    like.peak_in_sequence = like.memory.peak;
    return like;
  }
  like.memory = memory_profile(like.program);
  like.peak_in_sequence = like.memory.peak;
  like.time = time_in_sequence(like.program);
  return like;
}

Plan ModelPlanner::placed(Plan plan, const ModelProblem& problem, std::stop_token stop) const {
  if (!plan.fits()) {
    const std::optional<Choice> least = smallest_choice(problem, std::move(stop));
    if (least) plan = in_sequence(decisions_of(problem, *least), std::move(plan));
  }
  judge_divided(plan, least_divided_step(*graph_, problem, workers_));
  return plan;
}

ModelPlanner::Draft ModelPlanner::with_least_peak(Draft draft, const ModelProblem& problem, const GuidedSearch& search,
                                                  Restrictions restrictions, std::string_view search_name,
                                                  LevelOptions options) const {
  draft = with_lower_peak(std::move(draft), problem, search, LowerPeak::kWhileFound);
  if (!is_far_from_bound(draft.plan)) return draft;
  restrictions.counts_copies = true;
  const Bytes peak = draft.plan.memory.peak;
  draft = or_from_counted(std::move(draft), problem, restrictions, search_name, options);
  const bool is_lower = draft.plan.memory.peak < peak;
  if (!is_lower) draft = with_lower_peak(std::move(draft), problem, search, LowerPeak::kEveryLimit);
  if (graph_->operators().size() > kMostWithRedistributions) return draft;
  restrictions.counts_redistributions = true;
  options.limits.work = std::min(options.limits.work, kWorkWithRedistributions);
  return or_from_counted(std::move(draft), problem, restrictions, search_name, options);
}

ModelPlanner::Draft ModelPlanner::with_lower_peak(Draft draft, const ModelProblem& problem, const GuidedSearch& search,
                                                  LowerPeak limits) const {
  StrategyProblem lowered = problem.problem;
  Draft best = draft;
  Bytes raised = 0;
  Bytes most = evaluate(lowered, draft.choice).peak_bytes;
  const auto is_worth_a_search = [&] {
    return best.plan.memory.peak - most > best.plan.memory.peak / kPartsWorthASearch;
  };
  for (int round = 0; round < kMaxRepairs && is_worth_a_search(); ++round) {
    StrategyProblem trial = lowered;
    trial.memory_limits =
        lowered_limits(lowered, problem.times, draft.choice, draft.plan.program, draft.plan.memory, most);
    for (Bytes& limit : trial.memory_limits) limit = std::min(limit, best.plan.memory.peak - 1);  // or it is no help
    LevelResult found = search.find(trial, draft.choice);
    // A peak far from its bound can probably be lowered, if not as far as that.
    if (!found.choice && (limits == LowerPeak::kWhileFound || !is_far_from_bound(best.plan))) break;
    if (!found.choice) {
      most = raised = most + (best.plan.memory.peak - most) / 2;
      continue;
    }
    lowered = std::move(trial);
    Plan plan = in_sequence(decisions_of(problem, *found.choice), draft.plan);
    const bool is_smaller = plan.memory.peak < best.plan.memory.peak;
    if (!is_smaller && !is_far_from_bound(best.plan)) break;
    draft = {*std::move(found.choice), std::move(plan)};
    most = std::max(raised, evaluate(lowered, draft.choice).peak_bytes);
    if (is_smaller) best = draft;
  }
  const Found found_data_parallel = data_parallel_decisions();
  const std::optional<Decisions>& data_parallel = *found_data_parallel;
  if (!data_parallel || !is_far_from_bound(best.plan)) return best;
  std::optional<Choice> choice = find_choice(versions_, problem, data_parallel->strategies, data_parallel->versions);
  if (!choice || !evaluate(problem.problem, *choice).feasible) return best;
  Plan plan = in_sequence(decisions_of(problem, *choice), best.plan);
  if (plan.memory.peak < best.plan.memory.peak) best = {*std::move(choice), std::move(plan)};
  return best;
}

ModelPlanner::Draft ModelPlanner::or_from_counted(Draft draft, const ModelProblem& problem,
                                                  const Restrictions& restrictions, std::string_view search_name,
                                                  const LevelOptions& options) const {
  // The time limit applied to the first search.
  if (workers_ > 1 || options.limits.seconds > 0 || !is_far_from_bound(draft.plan)) return draft;
  const ModelProblem counted = searched_problem(*graph_, versions_, *costs_, *redistributions_, restrictions);
  const GuidedSearch search(*graph_, versions_, counted, pieces_, search_name, options,
                            options_.work_limit == 0 && !restrictions.counts_redistributions);
  const auto start = find_choice(versions_, counted, draft.plan.strategies, draft.plan.versions);
  LevelResult found = search.find(counted.problem, start);
  if (!found.choice) return draft;
  draft.plan.bound.amount = std::max(draft.plan.bound.amount, found.bound.amount);
  Plan plan = in_sequence(decisions_of(counted, *found.choice), draft.plan);
  plan = with_lower_peak({*std::move(found.choice), std::move(plan)}, counted, search, LowerPeak::kEveryLimit).plan;
  if (plan.memory.peak >= draft.plan.memory.peak) return draft;
  std::optional<Choice> choice = find_choice(versions_, problem, plan.strategies, plan.versions);
  if (choice) draft = {*std::move(choice), std::move(plan)};
  return draft;
}

ModelPlanner::Draft ModelPlanner::with_repaired_limits(Draft draft, const ModelProblem& problem,
                                                       const GuidedSearch& search) const {
  if (draft.plan.fits()) return draft;
  StrategyProblem repaired = problem.problem;
  for (int round = 0; round < 2 * kMaxRepairs && !draft.plan.fits(); ++round) {
    if (round < kMaxRepairs) {
      repaired.memory_limits = lowered_limits(repaired, problem.times, draft.choice, draft.plan.program,
                                              draft.plan.memory, draft.plan.usable);
    } else {
      const Bytes excess = draft.plan.memory.peak - draft.plan.usable;
      for (Bytes& limit : repaired.memory_limits) limit = std::max<Bytes>(0, limit - excess);
    }
    LevelResult found = search.find(repaired, draft.choice, {}, draft.plan.bound.amount);  // limits only fall
    if (!found.choice) break;
    draft.plan = in_sequence(decisions_of(problem, *found.choice), std::move(draft.plan));
    draft.plan.status = PlanStatus::kFeasible;
    draft.choice = *std::move(found.choice);
  }
  return draft;
}

std::optional<Choice> ModelPlanner::smallest_choice(const ModelProblem& problem, std::stop_token stop) const {
  const Plan least = smallest(std::move(stop));
  if (least.strategies.empty() || !least.fits()) return std::nullopt;
  return find_choice(versions_, problem, least.strategies, least.versions);
}

ModelPlanner::Draft ModelPlanner::or_smallest(Draft draft, const ModelProblem& problem, std::stop_token stop) const {
  if (draft.plan.fits()) return draft;
  std::optional<Choice> choice = smallest_choice(problem, std::move(stop));
  if (!choice) return draft;
  draft.plan = in_sequence(decisions_of(problem, *choice), std::move(draft.plan));
  draft.plan.status = PlanStatus::kFeasible;
  draft.choice = *std::move(choice);
  return draft;
}

ModelPlanner::Draft ModelPlanner::or_known(Draft draft, const ModelProblem& problem,
                                           std::span<const Plan> known) const {
  for (const Plan& plan : known) {
    if (!is_better(plan, draft.plan)) continue;
    std::optional<Choice> choice = find_choice(versions_, problem, plan.strategies, plan.versions);
    if (!choice) continue;
    Plan trial = in_sequence(decisions_of(problem, *choice), draft.plan);
    if (!is_better(trial, draft.plan)) continue;
    trial.status = PlanStatus::kFeasible;
    draft = {*std::move(choice), std::move(trial)};
  }
  return draft;
}

LevelValue ModelPlanner::free_bound(const ModelProblem& problem, const Choice& known, const ModelProblem& free,
                                    Level level, std::stop_token stop) const {
  LevelOptions options = search_options(options_, level, std::move(stop), {});
  const Decisions decisions = decisions_of(problem, known);
  options.start = find_choice(versions_, free, decisions.strategies, decisions.versions);
  options.limits.work = std::min(kBoundWork, options.limits.work == 0 ? kBoundWork : options.limits.work);
  return level_bound(free.problem, options);
}

bool ModelPlanner::searches_overlapped(Level level) const {
  return level == Level::kSpeed && options_.overlap && workers_ == 1 &&
         graph_->operators().size() <= kMostOverlappedOperators;
}

Restrictions ModelPlanner::undecided(Level level) const {
  Restrictions result = no_restrictions(*graph_, versions_);
  result.fusion = fusion_;
  result.uniform = uniform_;
  result.least_contraction_work = level == Level::kRatio;
  result.pieces = pieces_;
  result.uneven = uneven_cuts();
  result.capacity = workers_ > 1 ? kUnlimitedBytes : usable();  // a part of what a search counts is on other workers
  return result;
}

Restrictions ModelPlanner::restrictions(Level level) const {
  Restrictions result = undecided(level);
  result.operators = decided_.operators;
  for (const VersionId id : versions_.all.ids()) {
    const TensorVersion& version = versions_.all[id];
    if (!decided_layouts_.empty()) result.versions[id] = decided_layouts_[id];
    if (version.kind == TensorVersion::Kind::kStored) result.versions[id] = decided_.stored[version.tensor];
    const bool is_requested = version.kind == TensorVersion::Kind::kRequested && !decided_.requested.empty();
    if (is_requested) result.versions[id] = decided_.requested[version.tensor];
  }
  return result;
}

std::vector<Strategy> ModelPlanner::alternatives(OperatorId op) const {
  if (!decided_.operators[op].empty()) return decided_.operators[op];
  std::vector<AxisRef> axes;
  for (std::size_t axis = 0; axis < mesh().axes().size(); ++axis) axes.push_back(mesh().whole(axis));
  return enumerate_strategies(graph_->operation(op), mesh(), axes, {}, uneven_cuts()).strategies;
}

UnevenCuts ModelPlanner::uneven_cuts() const {
  return model_->parallel.allows_uneven ? UnevenCuts::kWhereNothingElseFits : UnevenCuts::kNone;
}

Decisions ModelPlanner::decisions_of(const ModelProblem& problem, const Choice& choice) const {
  return shardplan::decisions_of(*graph_, versions_, problem, choice, mesh());
}

std::optional<Choice> ModelPlanner::start(const ModelProblem& problem, Level level, std::span<const Plan> known) const {
  const Found found = data_parallel_decisions();
  const std::optional<Decisions>& data_parallel = *found;
  std::optional<Choice> best;
  if (data_parallel) best = find_choice(versions_, problem, data_parallel->strategies, data_parallel->versions);
  for (const Plan& plan : known) {
    if (plan.strategies.empty()) continue;
    std::optional<Choice> choice = find_choice(versions_, problem, plan.strategies, plan.versions);
    if (!choice) continue;
    const Evaluation evaluation = evaluate(problem.problem, *choice);
    if (!evaluation.feasible) continue;
    if (best) {
      const Evaluation best_evaluation = evaluate(problem.problem, *best);
      if (best_evaluation.feasible && value_at(level, best_evaluation) <= value_at(level, evaluation)) continue;
    }
    best = std::move(choice);
  }
  return best;
}

}  // namespace shardplan
