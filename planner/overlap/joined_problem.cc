#include "planner/overlap/joined_problem.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "planner/overlap/joined_costs.h"

namespace shardplan {
namespace {

class Counting {
 public:
  Counting(ModelProblem& problem, const OperatorGraph& graph, const TensorVersions& versions)
      : result_(problem), graph_(graph), versions_(versions) {}

  IdVector<EdgeId, MatrixId> run(const CountedTimes& times, const IdVector<EdgeId, char>& leads) {
    IdVector<EdgeId, MatrixId> matrices;
    std::map<std::pair<MatrixId, Joining>, MatrixId> known;  // equal edges share a matrix, and may join or not
    for (const EdgeId id : result_.problem.edges.ids()) {
      const MatrixId own = result_.problem.edges[id].matrix;
      const ModelProblem::Communicated& what = result_.communicated[id];
      const Joining joins = leads[id] != 0 ? Joining::kNone : joining(graph_, versions_, what);
      RedistributionPlanner* const planner = times.planners[static_cast<std::size_t>(joins)];
      const auto [found, is_new] = known.try_emplace({own, joins}, own);
      if (is_new && planner != nullptr) found->second = counted_matrix(own, what, *planner, times.is_on_path);
      matrices.push_back(found->second);
    }
    return matrices;
  }

 private:
  MatrixId counted_matrix(MatrixId id, const ModelProblem::Communicated& what, RedistributionPlanner& planner,
                          bool is_on_path) {
    CostMatrix matrix = result_.problem.matrices[id];
    const auto is_paid = [](std::int64_t cost) { return cost > 0 && cost < kForbidden; };
    if (std::none_of(matrix.costs.begin(), matrix.costs.end(), is_paid)) return id;
    const VersionId to = what.version ? *what.version : *versions_.read[what.reader.op][what.reader.operand];
    const TensorVersion& version = versions_.all[to];
    const DeviceMesh& mesh = planner.mesh();
    const std::vector<TensorLayout> from = layouts_of(what.version ? *version.from : to, mesh);
    const std::vector<TensorLayout> into =
        what.version ? layouts_of(version.kind == TensorVersion::Kind::kUpdated ? *version.stored : to, mesh)
                     : operand_layouts(what.reader, mesh);
    const std::int64_t runs = what.version ? runs_of(graph_, version) : graph_.runs(what.reader.op);
    const TensorType& type = graph_.tensor(version.tensor).type;
    const std::vector<Picoseconds> times =
        planner.times(addresses(from), addresses(into), type.shape, element_bytes(type.dtype));
    for (std::size_t i = 0; i < times.size(); ++i) {
      std::int64_t& cost = matrix.costs[i];
      if (!is_paid(cost)) continue;
      if (is_on_path) {
        cost = CountedOnPath::counted(times[i], cost / runs) * runs;
      } else if (times[i] <= cost / runs) {
        cost = times[i] * runs;
      }
    }
    return result_.problem.matrices.push_back(std::move(matrix));
  }

  std::vector<TensorLayout> layouts_of(VersionId id, const DeviceMesh& mesh) const {
    const TensorVersion& version = versions_.all[id];
    std::vector<TensorLayout> layouts;
    if (version.kind == TensorVersion::Kind::kProduced) {
      const GraphTensor& tensor = graph_.tensor(version.tensor);
      for (const Strategy& strategy : *result_.strategies[*tensor.producer]) {
        layouts.push_back(result_layout(graph_.operation(*tensor.producer), strategy, mesh, tensor.result));
      }
    } else {
      for (const ModelProblem::VersionChoice& choice : *result_.choices[id]) layouts.push_back(choice.layout);
    }
    return layouts;
  }

  std::vector<TensorLayout> operand_layouts(const Reader& reader, const DeviceMesh& mesh) const {
    std::vector<TensorLayout> layouts;
    for (const Strategy& strategy : *result_.strategies[reader.op]) {
      layouts.push_back(operand_layout(graph_.operation(reader.op), strategy, mesh, reader.operand));
    }
    return layouts;
  }

  static std::vector<const TensorLayout*> addresses(const std::vector<TensorLayout>& layouts) {
    std::vector<const TensorLayout*> result;
    for (const TensorLayout& layout : layouts) result.push_back(&layout);
    return result;
  }

  ModelProblem& result_;
  const OperatorGraph& graph_;
  const TensorVersions& versions_;
};

}  // namespace

Joining joining(const OperatorGraph& graph, const TensorVersions& versions, const ModelProblem::Communicated& what) {
  const VersionId id = what.version ? *what.version : *versions.read[what.reader.op][what.reader.operand];
  const TensorVersion& version = versions.all[id];
  const GraphTensor& tensor = graph.tensor(version.tensor);
  if (!tensor.producer || version.kind == TensorVersion::Kind::kUpdated) return Joining::kAll;
  // Consistent with the origins of collectives in a program (program/lower.h).
  if (!what.version && graph.operators()[what.reader.op].parameter) return Joining::kReductions;
  const bool is_gradient = std::any_of(tensor.readers.begin(), tensor.readers.end(), [&](const Reader& one) {
    const GraphOperator& op = graph.operators()[one.op];
    return op.pass == Pass::kUpdate || (op.pass == Pass::kBackward && !op.forward);
  });
  return is_gradient ? Joining::kReductions : Joining::kNone;
}

IdVector<EdgeId, char> leading_edges(const ModelProblem& problem, const OperatorGraph& graph,
                                     const TensorVersions& versions) {
  // The update of each parameter, and where the first form of its complete gradient is computed.
  const auto operand_of = [&](OperatorId op, TensorId parameter) -> std::optional<std::size_t> {
    const std::vector<TensorId>& operands = graph.operators()[op].operands;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (graph.tensor(operands[i]).gradient_of == parameter && graph.tensor(operands[i]).producer) return i;
    }
    return std::nullopt;
  };
  std::optional<std::pair<OperatorId, TensorId>> last;  // producer of a gradient; the parameter's new value
  for (const TensorId id : graph.tensors().ids()) {
    const GraphTensor& tensor = graph.tensor(id);
    if (!tensor.updates || !tensor.producer || graph.tensor(*tensor.updates).kind != TensorKind::kParameter) continue;
    OperatorId op = *tensor.producer;
    while (const std::optional<std::size_t> operand = operand_of(op, *tensor.updates)) {
      op = *graph.tensor(graph.operators()[op].operands[*operand]).producer;
    }
    if (op != *tensor.producer && (!last || last->first < op)) last = {op, id};
  }
  IdVector<EdgeId, char> leads(problem.problem.edges.size(), 0);
  if (!last) return leads;
  IdVector<VersionId, char> is_on_way(versions.all.size(), 0);
  std::set<std::pair<OperatorId, std::size_t>> readers;
  for (const VersionId id : versions.all.ids()) {
    const TensorVersion& version = versions.all[id];
    if (version.kind == TensorVersion::Kind::kUpdated && version.tensor == last->second) is_on_way[id] = 1;
  }
  const TensorId parameter = *graph.tensor(last->second).updates;
  OperatorId op = *graph.tensor(last->second).producer;
  while (const std::optional<std::size_t> operand = operand_of(op, parameter)) {
    readers.emplace(op, *operand);
    for (std::optional<VersionId> id = versions.read[op][*operand]; id; id = versions.all[*id].from) is_on_way[*id] = 1;
    op = *graph.tensor(graph.operators()[op].operands[*operand]).producer;
  }
  for (const EdgeId id : problem.problem.edges.ids()) {
    const ModelProblem::Communicated& what = problem.communicated[id];
    leads[id] = what.version ? is_on_way[*what.version] : readers.count({what.reader.op, what.reader.operand}) > 0;
  }
  return leads;
}

IdVector<EdgeId, MatrixId> counted_matrices(ModelProblem& problem, const OperatorGraph& graph,
                                            const TensorVersions& versions, const CountedTimes& times,
                                            const IdVector<EdgeId, char>& leads) {
  return Counting(problem, graph, versions).run(times, leads);
}

}  // namespace shardplan
