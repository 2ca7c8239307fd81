#include "planner/model_planner.h"

#include <algorithm>
#include <future>
#include <utility>

#include "base/error.h"
#include "base/integer.h"
#include "costmodel/cluster_mesh.h"
#include "costmodel/roofline_costs.h"
#include "model/planned_model.h"
#include "planner/guided_search.h"
#include "planner/levels.h"
#include "solver/searches/search_list.h"
#include "strategies/data_parallel.h"
#include "strategies/parallel_optimizer.h"

namespace shardplan {
namespace {

/// Where nothing else is asked for a search ends after this much work, a second or two; the answer says how good it is.
/// (On the shipped models five times as much finds the same plans and closes the gap by another 0.2 % at most.)
constexpr std::uint64_t kDefaultWork = 2'000'000'000;
/// Of a bound for a plan that was found without one; a fraction of a second.
constexpr std::uint64_t kBoundWork = 200'000'000;
/// Or as soon as no plan can be better by more than this share.
constexpr double kGoodEnough = 1e-6;
/// Where plans are only compared with each other.
constexpr double kGoodEnoughToCompare = 1e-3;

/// How often a plan whose true memory is above a limit is repaired by lowering that limit.
constexpr int kMaxRepairs = 4;

DeviceMesh mesh_of(const Model& model, const Cluster& cluster) {
  if (model.parallel.mesh.empty()) return make_mesh(cluster);
  std::vector<MeshAxis> axes;
  for (const auto& [name, size] : model.parallel.mesh) axes.push_back({name, size});
  return make_mesh(cluster, axes);
}

/// A user's axes stay whole; the cluster's levels may be cut.
std::vector<AxisRef> pieces_of(const Model& model, const DeviceMesh& mesh) {
  if (model.parallel.mesh.empty()) return search_pieces(mesh);
  std::vector<AxisRef> pieces;
  for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) pieces.push_back(mesh.whole(axis));
  return pieces;
}

/// The schedule time of every instruction: that of the operator that it belongs to or comes before.
std::vector<std::size_t> times_of(const ParallelProgram& program, std::size_t num_operators) {
  std::vector<std::size_t> times(program.instructions.size());
  std::size_t next = num_operators;
  for (std::size_t i = program.instructions.size(); i-- > 0;) {
    if (program.instructions[i].op) next = program.instructions[i].op->value();
    times[i] = next;
  }
  return times;
}

/// What the choice holds at each time, as the search sees it.
std::vector<Bytes> bytes_seen(const StrategyProblem& problem, const Choice& choice) {
  std::vector<Bytes> bytes(problem.memory_limits.size() + 1, 0);  // first differences, then sums
  for (const NodeId id : problem.nodes.ids()) {
    for (const MemoryUse& use : problem.nodes[id].memory) {
      if (use.begin >= use.end) continue;
      bytes[use.begin] += problem.usage_tables[use.usage].bytes[choice.strategy[id].value()];
      bytes[use.end] -= problem.usage_tables[use.usage].bytes[choice.strategy[id].value()];
    }
  }
  for (std::size_t time = 1; time < bytes.size(); ++time) bytes[time] += bytes[time - 1];
  bytes.pop_back();
  return bytes;
}

/// Lowers the limits of the times at which the true memory is above `most`: by the excess below what the choice seems
/// to hold there, so that it is out.
void lower_limits(StrategyProblem& problem, const Choice& choice, const ParallelProgram& program,
                  const MemoryProfile& memory, Bytes most) {
  const std::vector<std::size_t> times = times_of(program, problem.memory_limits.size() - 1);
  std::vector<Bytes> excess(problem.memory_limits.size(), 0);
  for (std::size_t i = 0; i < times.size(); ++i) {
    excess[times[i]] = std::max(excess[times[i]], memory.bytes[i] - most);
  }
  const std::vector<Bytes> seen = bytes_seen(problem, choice);
  for (std::size_t time = 0; time < excess.size(); ++time) {
    if (excess[time] <= 0) continue;
    Bytes& limit = problem.memory_limits[time];
    limit = std::max<Bytes>(0, std::min(limit, seen[time]) - excess[time]);
  }
}

/// Of the contractions' time, what is spent on work that another device does as well.
Picoseconds repeated_time(const ParallelProgram& program) {
  Picoseconds repeated = 0;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.kind != InstructionKind::kOperator) continue;
    const Operation& operation = *instruction.operation;
    if (operation.type->work != WorkKind::kContraction) continue;
    std::int64_t cut = 1;
    for (const std::vector<AxisRef>& axes : instruction.strategy.factors) cut *= num_pieces(axes);
    const std::int64_t devices = program.mesh.num_devices();
    repeated += instruction.runs * (instruction.time - multiply_divide(instruction.time, cut, devices));
  }
  return repeated;
}

}  // namespace

std::string_view level_name(int level) { return level == 0 ? "ratio" : level == 1 ? "memory" : "speed"; }

std::optional<double> Plan::gap() const {
  if (cost <= bound) return 0.0;
  if (bound <= 0) return std::nullopt;
  return static_cast<double>(cost - bound) / static_cast<double>(bound);
}

ModelPlanner::ModelPlanner(std::shared_ptr<const Model> model, const Cluster& cluster, PlanOptions options)
    : model_(std::make_shared<const Model>(one_micro_batch(*model))), cluster_(cluster), options_(std::move(options)) {
  const ParallelMode mode = model_->parallel.parallel_mode;
  if (mode == ParallelMode::kHybridParallel) {
    throw InputError(model_->parallel.place,
                     "parallel_mode hybrid_parallel: models that are one device's view are not planned yet");
  }
  graph_ = std::make_shared<const OperatorGraph>(planned_graph(*model_));
  versions_ = tensor_versions(*graph_);
  const DeviceMesh mesh = mesh_of(*model_, cluster);
  costs_ = std::make_unique<RooflineCosts>(cluster, mesh);
  RedistributionOptions redistribution_options;
  redistribution_options.bounded_memory = options_.bounded_redistribution;
  pieces_ = pieces_of(*model_, mesh);
  redistribution_options.pieces = pieces_;
  redistributions_ = std::make_unique<RedistributionPlanner>(mesh, costs_->collectives(), redistribution_options);
  user_ = resolve_user_strategies(*graph_, mesh, pieces_);

  if (model_->parallel.enable_parallel_optimizer) {
    const auto states = parallel_optimizer_states(*graph_, mesh, pieces_, user_.stored);
    for (const TensorId id : graph_->tensors().ids()) {
      if (states[id]) user_.stored[id] = states[id];
    }
  }

  const auto batch = batch_factors(*graph_);
  for (const OperatorId op : graph_->operators().ids()) {
    if (!user_.operators[op].empty()) continue;
    const Operation& operation = graph_->operation(op);
    if (mode == ParallelMode::kStandAlone) {
      user_.operators[op] = {replicated_strategy(operation)};
    } else if (graph_->operators()[op].pass == Pass::kForward &&
               (graph_->operators()[op].is_data_parallel || mode == ParallelMode::kDataParallel ||
                mode == ParallelMode::kSemiAutoParallel)) {
      user_.operators[op] = {data_parallel_strategy(operation, batch[op], mesh)};
    }
  }
  for (const TensorId id : graph_->tensors().ids()) {
    const GraphTensor& tensor = graph_->tensor(id);
    if (tensor.kind == TensorKind::kInput && model_->parallel.full_batch && !user_.stored[id]) {
      user_.stored[id] = TensorLayout::replicated(tensor.type.shape.size());
    }
  }
}

Bytes ModelPlanner::usable() const { return options_.capacity.value_or(cluster_.usable_bytes()); }

Restrictions ModelPlanner::restrictions(int level) const {
  Restrictions result = no_restrictions(*graph_, versions_);
  result.operators = user_.operators;
  for (const VersionId id : versions_.all.ids()) {
    const TensorVersion& version = versions_.all[id];
    if (version.kind == TensorVersion::Kind::kStored) result.versions[id] = user_.stored[version.tensor];
    if (version.kind == TensorVersion::Kind::kRequested) result.versions[id] = user_.requested[version.tensor];
  }
  result.least_contraction_work = level == 0;
  result.pieces = pieces_;
  result.capacity = usable();
  return result;
}

std::vector<Strategy> ModelPlanner::alternatives(OperatorId op) const {
  if (!user_.operators[op].empty()) return user_.operators[op];
  std::vector<AxisRef> axes;
  for (std::size_t axis = 0; axis < mesh().axes().size(); ++axis) axes.push_back(mesh().whole(axis));
  return enumerate_strategies(graph_->operation(op), mesh(), axes, {}).strategies;
}

Plan ModelPlanner::unsolved(int level, std::string_view search) const {
  Plan plan;
  plan.model = model_;
  plan.graph = graph_;
  plan.cluster = cluster_;
  plan.mesh = mesh();
  plan.options = options_;
  plan.options.level = level;
  plan.options.search = search;
  plan.objective = level_name(level);
  plan.usable = usable();
  plan.notices = model_->notices;
  return plan;
}

Plan ModelPlanner::smallest(std::stop_token stop) const {
  Plan plan = unsolved(1, "auto");
  Restrictions limits = restrictions(1);
  limits.capacity = kUnlimitedBytes;
  ModelProblem problem = build_problem(*graph_, versions_, *costs_, *redistributions_, limits);
  LevelOptions options;
  options.level = 1;
  options.memory_slack_ppm = 0;
  options.seed = options_.seed;
  options.limits.gap = kGoodEnough;
  options.limits.seconds = options_.time_limit;
  options.limits.work = options_.work_limit;
  if (options_.work_limit == 0 && options_.time_limit == 0) options.limits.work = kDefaultWork;
  options.limits.stop = std::move(stop);
  const GuidedSearch searches(*graph_, problem, pieces_, "auto", options);
  LevelResult result = searches.find(std::nullopt);
  plan.bound = result.bound;
  plan.status = result.status;
  if (result.choice) {
    finish(plan, problem, *result.choice);
    lower_peak(plan, problem, searches, *result.choice);
  }
  plan.cost = plan.memory.peak;
  return plan;
}

Plan ModelPlanner::decided(const Decisions& decisions, Plan like) const {
  finish(like, decisions);
  return like;
}

Plan ModelPlanner::plan(int level, std::string_view search_name, std::stop_token stop, const Progress& progress) const {
  Plan plan = unsolved(level, search_name);
  if (!make_search(search_name)) throw InputError(SourcePlace{}, "no search '{}'", search_name);
  ModelProblem problem = build_problem(*graph_, versions_, *costs_, *redistributions_, restrictions(level));
  plan.candidates_complete = problem.candidates_complete;
  LevelOptions options;
  options.level = level;
  options.memory_slack_ppm = static_cast<std::int64_t>(options_.memory_slack * 1e6 + 0.5);
  options.seed = options_.seed;
  options.threads = options_.threads;
  options.limits.seconds = options_.time_limit;
  options.limits.work = options_.work_limit;
  if (options_.work_limit == 0 && options_.time_limit == 0) options.limits.work = kDefaultWork;
  options.limits.gap = kGoodEnough;
  options.limits.stop = stop;
  options.limits.progress = progress;

  // What begins here ends with nothing worse.
  std::optional<Choice> start;
  if (const auto& known = data_parallel_decisions()) {
    start = find_choice(versions_, problem, known->strategies, known->versions);
  }
  const GuidedSearch searches(*graph_, problem, pieces_, search_name, options);
  // Some find plans without knowing how good they are: the bound is then sought beside them.
  std::future<std::int64_t> bound;
  if (search_name == "propagation" || search_name == "local") {
    LevelOptions bound_options = options;
    bound_options.start = start;
    bound_options.limits.progress = {};
    if (options_.work_limit == 0 && options_.time_limit == 0) bound_options.limits.work = kBoundWork;
    bound = std::async(std::launch::async,
                       [&problem, bound_options] { return level_bound(problem.problem, bound_options); });
  }
  LevelResult result = searches.find(start);
  plan.bound = result.bound;
  if (bound.valid() && result.choice) plan.bound = std::max(plan.bound, bound.get());
  plan.statistics = result.statistics;
  plan.status = result.status;
  if (!result.choice) return plan;
  finish(plan, problem, *result.choice);
  if (level == 1) lower_peak(plan, problem, searches, *result.choice);
  repair_limits(plan, problem, searches, *result.choice);
  if (plan.memory.peak > plan.usable) {
    const Plan least = smallest(stop);
    const bool fits = !least.strategies.empty() && least.memory.peak <= plan.usable;
    if (const auto choice = fits ? find_choice(versions_, problem, least.strategies, least.versions) : std::nullopt) {
      finish(plan, problem, *choice);
      plan.status = PlanStatus::kFeasible;
    }
  }
  if (plan.memory.peak > plan.usable) plan.status = PlanStatus::kNoPlanFound;
  plan.cost = level == 0 ? plan.time.communication : level == 1 ? plan.memory.peak : plan.time.step();
  if (plan.status == PlanStatus::kFeasible && plan.cost <= plan.bound) plan.status = PlanStatus::kOptimal;
  if (plan.status == PlanStatus::kOptimal && level == 1 && plan.cost > plan.bound) plan.status = PlanStatus::kFeasible;
  return plan;
}

void ModelPlanner::repair_limits(Plan& plan, ModelProblem& problem, const GuidedSearch& searches,
                                 Choice& choice) const {
  for (int round = 0; round < 2 * kMaxRepairs && plan.memory.peak > plan.usable; ++round) {
    if (round < kMaxRepairs) {
      lower_limits(problem.problem, choice, plan.program, plan.memory, plan.usable);
    } else {
      const Bytes excess = plan.memory.peak - plan.usable;
      for (Bytes& limit : problem.problem.memory_limits) limit = std::max<Bytes>(0, limit - excess);
    }
    const LevelResult repaired = searches.find(choice);
    if (!repaired.choice) break;
    finish(plan, problem, *repaired.choice);
    plan.status = PlanStatus::kFeasible;
    choice = *repaired.choice;
  }
}

void ModelPlanner::lower_peak(Plan& plan, ModelProblem& problem, const GuidedSearch& searches, Choice& choice) const {
  const std::vector<Bytes> limits = problem.problem.memory_limits;
  for (int round = 0; round < kMaxRepairs; ++round) {
    const Bytes seen = evaluate(problem.problem, choice).peak_bytes;
    if (plan.memory.peak <= seen) break;
    lower_limits(problem.problem, choice, plan.program, plan.memory, seen);
    const LevelResult found = searches.find(choice);
    if (!found.choice) break;
    Plan trial = plan;
    finish(trial, problem, *found.choice);
    if (trial.memory.peak >= plan.memory.peak) break;
    plan = std::move(trial);
    choice = *found.choice;
  }
  problem.problem.memory_limits = limits;
}

Decisions ModelPlanner::decisions_of(const ModelProblem& problem, const Choice& choice) const {
  Decisions decisions;
  for (const OperatorId op : graph_->operators().ids()) decisions.strategies.push_back(problem.strategy(op, choice));
  decisions.versions = version_layouts(*graph_, versions_, problem, choice, mesh());
  return decisions;
}

void ModelPlanner::finish(Plan& plan, const ModelProblem& problem, const Choice& choice) const {
  finish(plan, decisions_of(problem, choice));
}

void ModelPlanner::finish(Plan& plan, const Decisions& decisions) const {
  plan.strategies = decisions.strategies;
  plan.is_user_strategy = {};
  for (const GraphOperator& op : graph_->operators()) plan.is_user_strategy.push_back(!op.strategy.in.empty());
  plan.program = lower(*graph_, versions_, decisions, *costs_, *redistributions_);
  plan.versions = decisions.versions;
  plan.memory = memory_profile(plan.program);
  plan.time.computation = plan.program.computation();
  plan.time.communication = plan.program.communication();
  plan.time.repeated = repeated_time(plan.program);
}

std::optional<Decisions> ModelPlanner::best_within(const Restrictions& restrictions) const {
  const ModelProblem problem = build_problem(*graph_, versions_, *costs_, *redistributions_, restrictions);
  SearchOptions options;
  options.seed = options_.seed;
  options.limits.gap = kGoodEnough;
  options.limits.work = kDefaultWork;
  const PlanResult found = make_search("auto")->search(problem.problem, options);
  return found.choice ? std::optional(decisions_of(problem, *found.choice)) : std::nullopt;
}

Baseline ModelPlanner::baseline(std::string name, const std::optional<Decisions>& decisions) const {
  Baseline result;
  result.name = std::move(name);
  if (!decisions) return result;
  Plan plan;
  finish(plan, *decisions);
  result.time = plan.time;
  result.peak = plan.memory.peak;
  result.fits = result.peak <= usable();
  return result;
}

const std::optional<Decisions>& ModelPlanner::data_parallel_decisions() const {
  if (data_parallel_) return *data_parallel_;
  Restrictions limits = no_restrictions(*graph_, versions_);
  const auto batch = batch_factors(*graph_);
  for (const OperatorId op : graph_->operators().ids()) {
    limits.operators[op] = {data_parallel_strategy(graph_->operation(op), batch[op], mesh())};
  }
  for (const VersionId id : versions_.all.ids()) {
    const TensorVersion& version = versions_.all[id];
    const GraphTensor& tensor = graph_->tensor(version.tensor);
    if (version.kind == TensorVersion::Kind::kStored && tensor.kind != TensorKind::kInput) {
      limits.versions[id] = TensorLayout::replicated(tensor.type.shape.size());
    }
  }
  limits.pieces = pieces_;
  limits.capacity = kUnlimitedBytes;
  data_parallel_ = best_within(limits);
  return *data_parallel_;
}

Baseline ModelPlanner::data_parallel() const { return baseline("data_parallel", data_parallel_decisions()); }

Baseline ModelPlanner::stand_alone() const {
  Restrictions limits = no_restrictions(*graph_, versions_);
  for (const OperatorId op : graph_->operators().ids()) {
    limits.operators[op] = {replicated_strategy(graph_->operation(op))};
  }
  for (const VersionId id : versions_.all.ids()) {
    limits.versions[id] = TensorLayout::replicated(graph_->tensor(versions_.all[id].tensor).type.shape.size());
  }
  limits.pieces = pieces_;
  limits.capacity = kUnlimitedBytes;
  return baseline("stand_alone", best_within(limits));
}

std::vector<std::optional<Baseline>> ModelPlanner::forced(int level, OperatorId op,
                                                          const std::vector<Strategy>& strategies,
                                                          std::stop_token stop) const {
  Restrictions limits = restrictions(level);
  // A copy has its original's strategy.
  const GraphOperator& asked = graph_->operators()[op];
  limits.operators[asked.is_copy ? *asked.forward : op] = strategies;
  ModelProblem problem = build_problem(*graph_, versions_, *costs_, *redistributions_, limits);
  ProblemNode& node = problem.problem.nodes[problem.operator_nodes[op]];
  const StrategyTable all = problem.problem.strategy_tables[node.strategies];
  node.strategies = problem.problem.strategy_tables.push_back(all);
  LevelOptions options;
  options.level = level;
  options.seed = options_.seed;
  options.limits.gap = kGoodEnoughToCompare;
  options.limits.work = kDefaultWork / 4;
  options.limits.stop = stop;
  std::vector<std::optional<Baseline>> results;
  for (std::size_t i = 0; i < strategies.size() && !stop.stop_requested(); ++i) {
    StrategyTable& table = problem.problem.strategy_tables[node.strategies];
    table = all;
    for (std::size_t other = 0; other < table.costs.size(); ++other) {
      if (other != i) table.costs[other].communication = kForbidden;
    }
    const LevelResult found = search_level(problem.problem, *make_search("auto"), options);
    results.emplace_back();
    if (!found.choice) continue;
    Plan plan;
    finish(plan, problem, *found.choice);
    results.back() = Baseline{{}, plan.time, plan.memory.peak, plan.memory.peak <= usable()};
  }
  results.resize(strategies.size());
  return results;
}

}  // namespace shardplan
