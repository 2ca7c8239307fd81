// The plans with which a plan is compared: data parallelism, one device, one worker, plans of global degrees,
// alternatives for one operator, and the plan of MindSpore's cost model; and what it is replaced by if that is faster.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/side_by_side.h"
#include "base/units.h"
#include "graph/batch_factors.h"
#include "graph/stored_updates.h"
#include "model/planned_model.h"
#include "planner/mindspore_model.h"
#include "planner/model_mesh.h"
#include "planner/model_planner.h"
#include "planner/overlap/near_choices.h"
#include "planner/problem/global_degrees.h"
#include "planner/problem/plan_choice.h"
#include "planner/problem/uniform_layers.h"
#include "planner/search/default_limits.h"
#include "planner/search/forced_choices.h"
#include "planner/search/level_search.h"
#include "planner/search/search_options.h"
#include "program/timeline.h"
#include "solver/searches/search_list.h"
#include "strategies/data_parallel.h"

namespace shardplan {

namespace {

/// Whether the plan's mode sums gradients of two bytes as f32 (planner/problem/mode_strategies.h). Then data parallelism
/// does so too, or the two would differ in more than their layouts.
bool sums_gradients_wide(const ParallelOptions& parallel) {
  const bool is_decided = parallel.parallel_mode == ParallelMode::kDataParallel ||
                          parallel.parallel_mode == ParallelMode::kSemiAutoParallel;
  return is_decided && (!parallel.gradient_fp32_sync || parallel.gradient_fp32_sync->value);
}

bool widens(const Operation& operation) {
  return !operation.operands.empty() &&
         element_bytes(operation.results[0].dtype) > element_bytes(operation.operands[0].dtype);
}

}  // namespace

std::optional<Decisions> ModelPlanner::best_within(Restrictions restrictions,
                                                   RedistributionPlanner& redistributions) const {
  const ModelProblem problem = searched_problem(*graph_, versions_, *costs_, redistributions, restrictions);
  restrictions = {};  // the problem contains them
  SearchOptions options;
  options.seed = options_.seed;
  options.limits.gap = kGoodEnough;
  options.limits.work = kDefaultWork;
  const PlanResult found = make_search(kDefaultSearch)->search(problem.problem, options);
  return found.choice ? std::optional(decisions_of(problem, *found.choice)) : std::nullopt;
}

Baseline ModelPlanner::baseline(std::string name, const std::optional<Decisions>& decisions,
                                RedistributionPlanner& redistributions, std::optional<Level> level) const {
  Baseline result;
  result.name = std::move(name);
  if (!decisions) return result;
  Plan like;
  like.options = options_;
  like.options.level = level.value_or(options_.level);
  like.usable = usable();
  ProgramWriter writer(*graph_, versions_, *costs_, redistributions, *fusion_);
  const Plan plan = overlapped(in_sequence(*decisions, std::move(like), &writer), {.prefers_lean = true});
  result.strategies = decisions->strategies;
  result.time = plan.time;
  result.peak = plan.memory.peak;
  result.fits = result.peak <= usable();
  return result;
}

bool ModelPlanner::data_parallel_may_be_faster(const Plan& plan) const {
  if (plan.options.level != options_.level) return true;  // it would be scheduled differently
  const Baseline& known = data_parallel();
  const bool is_faster = known.time.step() < plan.time.step() || known.time.additive() < plan.time.additive();
  return known.fits && is_faster;
}

std::vector<ModelPlanner::Alternative> ModelPlanner::alternatives_of(const Plan& plan, const ModelProblem& problem,
                                                                     std::span<const Plan> known) const {
  if (plan.options.level != Level::kSpeed || !plan.options.overlap) return {};
  std::vector<Alternative> alternatives;
  const auto add = [&](const Plan* of, const IdVector<OperatorId, Strategy>& strategies,
                       const VersionLayouts& layouts) {
    const std::optional<Choice> choice = find_choice(versions_, problem, strategies, layouts);
    if (!choice || evaluate(problem.problem, *choice).forbidden_count > 0) return;
    alternatives.push_back({of, std::make_shared<const std::optional<Decisions>>(decisions_of(problem, *choice))});
  };
  for (const Plan& other : known) {
    if (other.is_overlapped) add(&other, other.strategies, other.versions);
  }
  // Communication of gradients can be hidden well, which the sum of all times does not show.
  const Found found = data_parallel_decisions();
  if (!*found) return alternatives;
  const Decisions& data_parallel = **found;
  add(nullptr, data_parallel.strategies, data_parallel.versions);
  if (alternatives.empty() || alternatives.back().plan != nullptr) return alternatives;
  const Decisions& own = **alternatives.back().decisions;
  const bool is_same = own.strategies == data_parallel.strategies && own.versions == data_parallel.versions;
  if (is_same) alternatives.back().decisions = found;  // of a million operators, one copy is enough
  return alternatives;
}

Plan ModelPlanner::or_faster(Plan plan, const std::vector<Alternative>& alternatives) const {
  for (const Alternative& other : alternatives) {
    const bool may_be_faster = other.plan != nullptr ? is_better(*other.plan, plan)
                                                     : plan.time.exposed > 0 && data_parallel_may_be_faster(plan);
    if (!may_be_faster) continue;
    Plan trial = overlapped(in_sequence(**other.decisions, plan));
    if (!is_better(trial, plan)) continue;
    trial.cost = value_at(Level::kSpeed, trial.time, trial.memory.peak);
    trial.status = trial.cost.amount <= trial.bound.amount ? PlanStatus::kOptimal : PlanStatus::kFeasible;
    plan = std::move(trial);
  }
  return plan;
}

ModelPlanner::Found ModelPlanner::find_data_parallel(RedistributionPlanner& redistributions) const {
  Restrictions limits = no_restrictions(*graph_, versions_);
  const auto batch = find_batch(*graph_).factors;
  const std::vector<AxisRef> pieces = batch_pieces(pieces_, batch_size(*graph_), uneven_cuts() != UnevenCuts::kNone);
  const bool sums_wide = sums_gradients_wide(model_->parallel);
  IdVector<TensorId, std::vector<AxisRef>> partial(graph_->tensors().size());  // gradients of weights, and the loss
  // All copies of a layer have the same ones.
  struct Known {
    SharedVector<Strategy> strategies;
    std::vector<std::vector<AxisRef>> partial;  // by result
  };
  std::map<std::tuple<OperationId, std::optional<std::uint32_t>, std::vector<AxisRef>>, Known> known;
  for (const OperatorId id : graph_->operators().ids()) {
    const GraphOperator& op = graph_->operators()[id];
    const Operation& operation = graph_->operation(id);
    std::vector<AxisRef> passed;
    if (!batch[id] && op.pass != Pass::kForward && !op.operands.empty()) passed = partial[op.operands[0]];
    const auto is_like_first = [&](TensorId operand) { return partial[operand] == passed; };
    if (!std::all_of(op.operands.begin(), op.operands.end(), is_like_first)) passed.clear();
    const auto [found, is_new] = known.try_emplace({op.operation, batch[id], passed});
    Known& of_all = found->second;
    if (is_new) {
      Strategy strategy = data_parallel_strategy(operation, batch[id], mesh(), pieces, uneven_cuts());
      std::vector<Strategy> strategies{strategy};
      strategy.partial = passed;
      // Of several micro-batches the sum can be reduced instead of each gradient, and f32 instead of what it comes from.
      std::vector<std::uint32_t> all(op.operands.size());
      std::iota(all.begin(), all.end(), 0u);
      const auto& linear = operation.rule.linear;
      const bool is_linear = !linear.empty() && linear[0] == all;
      if (!passed.empty() && is_linear && check_strategy(operation, strategy, mesh()).empty()) {
        if (sums_wide && widens(operation)) strategies.clear();
        strategies.push_back(std::move(strategy));
      }
      for (std::size_t i = 0; i < op.results.size(); ++i) {
        const TensorLayout result = result_layout(operation, strategies.back(), mesh(), i);
        std::vector<AxisRef>& of_result = of_all.partial.emplace_back();
        if (result.reduction == Reduction::kSum) of_result = result.partial;
      }
      of_all.strategies = std::move(strategies);
    }
    limits.operators[id] = of_all.strategies;
    for (std::size_t i = 0; i < op.results.size(); ++i) partial[op.results[i]] = of_all.partial[i];
  }
  std::map<std::size_t, RareValue<TensorLayout>> replicated;  // by rank
  for (const VersionId id : versions_.all.ids()) {
    const TensorVersion& version = versions_.all[id];
    const GraphTensor& tensor = graph_->tensor(version.tensor);
    if (version.kind != TensorVersion::Kind::kStored || tensor.kind == TensorKind::kInput) continue;
    // Values that are separate on each device are laid out so here, too.
    const bool is_own =
        tensor.layerwise_parallel || (tensor.state_of && graph_->tensor(*tensor.state_of).layerwise_parallel);
    if (is_own) {
      limits.versions[id] = decided_.stored[version.tensor];
      continue;
    }
    if (is_cache(*graph_, version.tensor)) {
      const Reader& reader = tensor.readers.front();
      limits.versions[id] = operand_layout(graph_->operation(reader.op),
                                           std::as_const(limits).operators[reader.op].front(), mesh(), reader.operand);
      continue;
    }
    const auto [layout, is_new] = replicated.try_emplace(tensor.type.shape.size());
    if (is_new) layout->second = TensorLayout::replicated(layout->first);
    limits.versions[id] = layout->second;
  }
  limits.fusion = fusion_;
  limits.uniform = uniform_;
  // All layers of data parallelism are alike anyway, and the problem is then as large as one layer's.
  const bool is_deep = graph_->operators().size() > kDeep;
  if (is_deep && !limits.uniform) limits.uniform = std::make_shared<const RepeatClasses>(repeat_classes(*graph_));
  limits.pieces = pieces_;
  limits.capacity = kUnlimitedBytes;
  return std::make_shared<const std::optional<Decisions>>(best_within(std::move(limits), redistributions));
}

ModelPlanner::Found ModelPlanner::data_parallel_decisions() const {
  if (!data_parallel_) {
    data_parallel_ = beside_.decisions.valid() ? beside_.decisions.get() : find_data_parallel(*redistributions_);
    beside_.decisions = {};
  }
  return data_parallel_;
}

void ModelPlanner::begin_data_parallel() const {
  if (data_parallel_ || beside_.redistributions || workers_ > 1) return;
  if (graph_->operators().size() > kDeep) {
    data_parallel();
    return;
  }
  beside_.redistributions = redistributions_->another();
  beside_.decisions = begin_beside([this] { return find_data_parallel(*beside_.redistributions); }).share();
  beside_.baseline = begin_beside([this, decisions = beside_.decisions]() mutable {
    const Found found = std::exchange(decisions, {}).get();
    return baseline("data_parallel", *found, *beside_.redistributions);
  });
}

Baseline ModelPlanner::one_worker(const Plan& plan) const {
  const Decisions decisions{plan.strategies, plan.versions};
  const ParallelProgram program = lower(*graph_, versions_, decisions, *costs_, *redistributions_, *fusion_);
  const Bytes peak = memory_profile(program).peak;
  return {"one_worker", time_in_sequence(program), peak, peak <= usable(), plan.strategies};
}

const Baseline& ModelPlanner::data_parallel() const {
  if (!data_parallel_baseline_) {
    data_parallel_baseline_ = beside_.baseline.valid()
                                  ? beside_.baseline.get()
                                  : baseline("data_parallel", *data_parallel_decisions(), *redistributions_);
  }
  return *data_parallel_baseline_;
}

Baseline ModelPlanner::data_parallel(Level level) const {
  return baseline("data_parallel", *data_parallel_decisions(), *redistributions_, level);
}

Baseline ModelPlanner::stand_alone() const {
  Restrictions limits = no_restrictions(*graph_, versions_);
  for (const OperatorId op : graph_->operators().ids()) {
    limits.operators[op] = {replicated_strategy(graph_->operation(op))};
  }
  for (const VersionId id : versions_.all.ids()) {
    limits.versions[id] = TensorLayout::replicated(graph_->tensor(versions_.all[id].tensor).type.shape.size());
  }
  limits.fusion = fusion_;
  limits.pieces = pieces_;
  limits.capacity = kUnlimitedBytes;
  return baseline("stand_alone", best_within(std::move(limits), *redistributions_), *redistributions_);
}

std::optional<Plan> ModelPlanner::plan_of_degrees(const Plan& plan, const GlobalDegrees& degrees, std::string* why,
                                                  std::stop_token stop) const {
  const Level level = plan.options.level;
  std::optional<Restrictions> limits;
  {
    Restrictions free = undecided(level);
    free.least_contraction_work = false;
    const ModelProblem problem = build_problem(*graph_, versions_, *costs_, *redistributions_, free);
    limits = with_degrees(undecided(level), degrees, problem, *graph_, versions_, mesh(), why);
  }
  if (!limits) return std::nullopt;
  Plan found = plan_within(unsolved(level, plan.options.search), *limits, stop, {}, std::span(&plan, 1));
  if (!found.strategies.empty() && found.fits()) return found;
  limits->capacity = kUnlimitedBytes;
  const Plan least = plan_within(unsolved(Level::kMemory, plan.options.search), *limits, stop, {}, {});
  *why = least.strategies.empty() ? "none was found in time"
                                  : fmt::format("it does not fit: the smallest takes {} of {}",
                                                format_bytes(least.memory.peak), format_bytes(usable()));
  return std::nullopt;
}

std::vector<std::optional<Baseline>> ModelPlanner::forced(const Plan& plan, OperatorId op,
                                                          const std::vector<Strategy>& strategies,
                                                          std::stop_token stop) const {
  Restrictions limits = restrictions(plan.options.level);
  // A copy has its original's strategy, and with uniform layers all copies of a layer's operator have one.
  const GraphOperator& asked = graph_->operators()[op];
  std::vector<OperatorId> asked_ones;
  // The plan's own strategy is a candidate too, so that weights may stay stored as it reads them.
  std::vector<Strategy> candidates = strategies;
  candidates.push_back(plan.strategies[op]);
  const OperatorId forced = asked.is_copy ? *asked.forward : op;
  for (const OperatorId other : graph_->operators().ids()) {
    const bool is_tied = uniform_ && uniform_->operators[other] == uniform_->operators[forced];
    if (other == forced || (is_tied && decided_.operators[other].empty())) {
      limits.operators[other] = candidates;
      asked_ones.push_back(other);
    }
  }
  const ModelProblem problem = searched_problem(*graph_, versions_, *costs_, *redistributions_, limits);
  LevelOptions options;
  options.level = plan.options.level;
  options.seed = options_.seed;
  options.limits.gap = kGoodEnoughToCompare;
  options.limits.work = kDefaultWork / 4;
  options.limits.stop = stop;
  options.wants_bound = false;
  // The rest as it is, with what is near adapted or not: so no alternative looks worse than it is because its search
  // ended early, or because what has the least sum is not the shortest once communication overlaps.
  std::vector<std::optional<Choice>> starts;
  for (const Strategy& strategy : strategies) {
    IdVector<OperatorId, Strategy> with = plan.strategies;
    for (const OperatorId other : asked_ones) with[other] = strategy;
    starts.push_back(find_choice(versions_, problem, with, plan.versions));
  }
  const std::vector<std::optional<Choice>> found =
      forced_choices(problem.problem, problem.operator_nodes[op], starts, options);
  const auto scheduled = [&](const Choice& choice) {
    Plan like;
    like.options = plan.options;
    like.usable = usable();
    const Plan decided = this->decided(decisions_of(problem, choice), std::move(like));
    return Baseline{{}, decided.time, decided.memory.peak, decided.memory.peak <= usable()};
  };
  std::vector<std::optional<Baseline>> results;
  for (std::size_t i = 0; i < found.size(); ++i) {
    results.emplace_back();
    if (!found[i]) continue;
    results.back() = scheduled(*found[i]);
    if (options.level != Level::kSpeed || !starts[i]) continue;
    const std::optional<Choice> adapted = adapted_around(problem.problem, *starts[i], problem.operator_nodes[op]);
    for (const std::optional<Choice>& other : {starts[i], adapted == starts[i] ? std::nullopt : adapted}) {
      if (!other || other == found[i]) continue;
      const Baseline near = scheduled(*other);
      const auto key = [](const Baseline& one) { return std::tuple(!one.fits, one.time.step(), one.peak); };
      if (key(near) < key(*results.back())) results.back() = near;
    }
  }
  return results;
}

Plan ModelPlanner::mindspore_plan(Level level, std::string_view search, std::stop_token stop,
                                  const Progress& progress) const {
  const MindSporeModel model(*graph_, mesh(), decided_);
  SearchOptions options;
  options.seed = options_.seed;
  options.limits = search_options(options_, level, stop, {}).limits;
  options.limits.gap = 0;
  const PlanResult found = make_search(kDefaultSearch)->search(model.problem(), options);
  if (!found.choice) {
    throw InputError(SourcePlace{},
                     "MindSpore's cost model has no plan: the operators that share a parameter have no "
                     "strategies that shard it in the same way");
  }
  Restrictions limits = restrictions(level);
  const auto strategies = model.strategies(*found.choice);
  for (const OperatorId op : strategies.ids()) {
    if (strategies[op]) limits.operators[op] = {*strategies[op]};
  }
  Plan plan = unsolved(level, search);
  plan.options.costs = StrategyCosts::kMindSpore;
  plan.mindspore = {MindSporeValue{found.cost}, MindSporeValue{found.lower_bound}};
  return plan_within(std::move(plan), limits, std::move(stop), progress);
}

std::optional<MindSporeValue> ModelPlanner::mindspore_value(const IdVector<OperatorId, Strategy>& strategies,
                                                            std::string* why) const {
  return MindSporeModel(*graph_, mesh(), decided_).value(strategies, why);
}

}  // namespace shardplan
