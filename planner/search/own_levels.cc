#include "planner/search/own_levels.h"

#include <algorithm>
#include <set>

#include "planner/problem/plan_choice.h"
#include "planner/problem/uniform_layers.h"
#include "solver/searches/search_list.h"

namespace shardplan {
namespace {

/// One search of a block inside a plan.
class ScopeSearch {
 public:
  ScopeSearch(const OwnLevelSearch& search, const std::string& scope)
      : search_(search), graph_(search.graph), versions_(search.versions), is_inside_(graph_.operators().size(), 0) {
    for (const OperatorId op : graph_.operators().ids()) is_inside_[op] = belongs(op, scope);
  }

  Plan run(Plan plan, Level level) const {
    Restrictions limits = search_.restrictions(level);
    for (const OperatorId op : graph_.operators().ids()) {
      if (!is_inside_[op] && !graph_.operators()[op].is_copy) limits.operators[op] = {plan.strategies[op]};
    }
    for (const VersionId id : versions_.all.ids()) {
      if (!is_touched(versions_.all[id].tensor)) limits.versions[id] = plan.versions[id];
    }
    const ModelProblem model = searched_problem(graph_, versions_, search_.costs, search_.redistributions, limits);
    LevelOptions options = search_.options(level);
    options.start = find_choice(versions_, model, plan.strategies, plan.versions);
    const LevelResult found = search_level(own_memory(model), *make_search(kDefaultSearch), options);
    if (!found.choice) return plan;
    Plan trial = search_.decided(decisions_of(graph_, versions_, model, *found.choice, search_.costs.mesh()), plan);
    if (plan.fits() && !trial.fits()) return plan;
    return trial;
  }

 private:
  /// An operator of the block: one with the level, a backward operator of one, or the update of a parameter that only
  /// such operators read.
  bool belongs(OperatorId id, const std::string& scope) const {
    const GraphOperator& op = graph_.operators()[id];
    if (op.level_scope == scope) return true;
    if (op.forward) return graph_.operators()[*op.forward].level_scope == scope;
    if (!op.parameter) return false;
    const std::vector<Reader>& readers = graph_.tensor(*op.parameter).readers;
    return std::all_of(readers.begin(), readers.end(), [&](const Reader& reader) {
      const GraphOperator& reads = graph_.operators()[reader.op];
      if (reads.pass == Pass::kUpdate) return true;
      return (reads.forward ? graph_.operators()[*reads.forward] : reads).level_scope == scope;
    });
  }

  bool is_touched(TensorId id) const {
    const GraphTensor& tensor = graph_.tensor(id);
    if (tensor.producer && is_inside_[*tensor.producer]) return true;
    return std::any_of(tensor.readers.begin(), tensor.readers.end(),
                       [&](const Reader& reader) { return is_inside_[reader.op]; });
  }

  /// The problem in which only the block's decisions take memory.
  StrategyProblem own_memory(const ModelProblem& model) const {
    StrategyProblem problem = model.problem;
    for (const OperatorId op : graph_.operators().ids()) {
      if (!is_inside_[op] && !graph_.operators()[op].is_copy) problem.nodes[model.operator_nodes[op]].memory.clear();
    }
    for (const VersionId id : versions_.all.ids()) {
      if (model.version_nodes[id] && !is_touched(versions_.all[id].tensor)) {
        problem.nodes[*model.version_nodes[id]].memory.clear();
      }
    }
    for (const ModelProblem::Copy& copy : model.copies) {
      if (!is_inside_[copy.op]) problem.nodes[copy.node].memory.clear();
    }
    return problem;
  }

  const OwnLevelSearch& search_;
  const OperatorGraph& graph_;
  const TensorVersions& versions_;
  IdVector<OperatorId, char> is_inside_;
};

}  // namespace

Plan with_own_levels(Plan plan, const OwnLevelSearch& search) {
  if (plan.strategies.empty()) return plan;  // none was found
  struct Scope {
    std::string name;
    Level level;
  };
  std::vector<Scope> scopes;
  std::set<std::string> known;
  for (const GraphOperator& op : search.graph.operators()) {
    if (!op.level || op.pass != Pass::kForward || !known.insert(op.level_scope).second) continue;
    const Level level = level_of(*op.level);
    if (level != plan.options.level) scopes.push_back({op.level_scope, level});
  }
  // Names of inner blocks are longer by a part.
  std::stable_sort(scopes.begin(), scopes.end(), [](const Scope& a, const Scope& b) {
    return std::count(a.name.begin(), a.name.end(), '.') < std::count(b.name.begin(), b.name.end(), '.');
  });
  for (const Scope& scope : scopes) plan = ScopeSearch(search, scope.name).run(std::move(plan), scope.level);
  if (scopes.empty()) return plan;
  // Costs are additive, as bounds are.
  StepTime in_sequence = plan.time;
  in_sequence.exposed = in_sequence.communication;
  plan.cost = value_at(plan.options.level, in_sequence, plan.memory.peak);
  if (plan.status == PlanStatus::kOptimal && plan.cost.amount > plan.bound.amount) plan.status = PlanStatus::kFeasible;
  return plan;
}

}  // namespace shardplan
