// A matrix of counted times is made from a planner whose costs order paths by time first and by the counted times then
// (`CountedOnPath`), for all pairs of layouts at once. Of several paths that take equally long it counts the one that
// counts least, and so too little; where an edge has few redistributions, the path that programs take is looked up.
// Leading edges are those of one choice, found from the paths that it takes; they are leading edges for all choices.
#include "planner/overlap/joined_problem.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace shardplan {
namespace {

/// Of edges with at most this many redistributions the paths are looked up, which takes longer than their times.
constexpr std::ptrdiff_t kFewRedistributions = 16;

/// What the redistributions of an edge begin and end with.
struct Ends {
  std::vector<TensorLayout> from, into;  // by row and by column of its matrix
  TensorType type;
  std::int64_t runs = 1;

  Bytes element() const { return element_bytes(type.dtype); }
};

class EdgeEnds {
 public:
  EdgeEnds(const ModelProblem& problem, const OperatorGraph& graph, const TensorVersions& versions,
           const DeviceMesh& mesh)
      : problem_(problem), graph_(graph), versions_(versions), mesh_(mesh) {}

  Ends of(EdgeId id) const {
    const ModelProblem::Communicated& what = problem_.communicated[id];
    const VersionId to = what.version ? *what.version : *versions_.read[what.reader.op][what.reader.operand];
    const TensorVersion& version = versions_.all[to];
    Ends ends;
    ends.type = graph_.tensor(version.tensor).type;
    ends.from = layouts_of(what.version ? *version.from : to);
    if (what.version) {
      ends.into = layouts_of(version.kind == TensorVersion::Kind::kUpdated ? *version.stored : to);
      ends.runs = runs_of(graph_, version);
    } else {
      ends.into = operand_layouts(what.reader);
      ends.runs = graph_.runs(what.reader.op);
    }
    return ends;
  }

 private:
  std::vector<TensorLayout> layouts_of(VersionId id) const {
    const TensorVersion& version = versions_.all[id];
    std::vector<TensorLayout> layouts;
    if (version.kind == TensorVersion::Kind::kProduced) {
      const GraphTensor& tensor = graph_.tensor(version.tensor);
      for (const Strategy& strategy : *problem_.strategies[*tensor.producer]) {
        layouts.push_back(result_layout(graph_.operation(*tensor.producer), strategy, mesh_, tensor.result));
      }
    } else {
      for (const ModelProblem::VersionChoice& choice : *problem_.choices[id]) layouts.push_back(choice.layout);
    }
    return layouts;
  }

  std::vector<TensorLayout> operand_layouts(const Reader& reader) const {
    std::vector<TensorLayout> layouts;
    for (const Strategy& strategy : *problem_.strategies[reader.op]) {
      layouts.push_back(operand_layout(graph_.operation(reader.op), strategy, mesh_, reader.operand));
    }
    return layouts;
  }

  const ModelProblem& problem_;
  const OperatorGraph& graph_;
  const TensorVersions& versions_;
  const DeviceMesh& mesh_;
};

BucketClass class_of(const CollectiveStep& step) {
  std::vector<AxisRef> axes = step.axes;
  std::sort(axes.begin(), axes.end());
  return {step.kind, joined(axes)};
}

std::vector<const TensorLayout*> addresses(const std::vector<TensorLayout>& layouts) {
  std::vector<const TensorLayout*> result;
  for (const TensorLayout& layout : layouts) result.push_back(&layout);
  return result;
}

class Counting {
 public:
  Counting(const ModelProblem& problem, const OperatorGraph& graph, const TensorVersions& versions,
           const CountedTimes& times, const LeadingEdges& leads)
      : problem_(problem),
        graph_(graph),
        versions_(versions),
        times_(times),
        leads_(leads),
        ends_(problem, graph, versions, times.own.costs.mesh()),
        own_costs_(times.own.costs.collectives()),
        own_(times.own.costs.mesh(), own_costs_, times.own.options) {}

  CountedMatrices run() {
    result_.num_known = problem_.problem.matrices.size();
    std::map<std::tuple<MatrixId, Joining, std::uint32_t>, MatrixId> known;  // equal edges share a matrix
    for (const EdgeId id : problem_.problem.edges.ids()) {
      const MatrixId own = problem_.problem.edges[id].matrix;
      const Joining joins = joining(graph_, versions_, problem_.communicated[id]);
      const std::uint32_t alone = joins == Joining::kNone ? 0 : leads_.alone[id];
      const auto [found, is_new] = known.try_emplace({own, joins, alone}, own);
      if (is_new) found->second = counted_matrix(id, joins, alone);
      result_.of_edges.push_back(found->second);
    }
    return std::move(result_);
  }

 private:
  /// Counted times, and a planner of paths by them.
  struct Counter {
    std::shared_ptr<const CollectiveCosts> costs;  // null: the edge's own times
    std::unique_ptr<RedistributionPlanner> planner;
  };
  const Counter& counter(Joining joins, std::uint32_t alone) {
    const auto [found, is_new] = counters_.try_emplace({joins, alone});
    Counter& counter = found->second;
    if (!is_new) return counter;
    counter.costs = times_.of(joins, leads_.classes[alone]);
    if (!counter.costs) return counter;
    counter.planner = std::make_unique<RedistributionPlanner>(
        times_.own.costs.mesh(),
        times_.is_on_path ? std::make_shared<const CountedOnPath>(own_costs_, counter.costs) : counter.costs,
        times_.own.options);
    return counter;
  }

  MatrixId counted_matrix(EdgeId id, Joining joins, std::uint32_t alone) {
    const MatrixId own = problem_.problem.edges[id].matrix;
    const Counter& counting = counter(joins, alone);
    if (!counting.costs) return own;
    const CostMatrix& known = problem_.problem.matrices[own];
    std::vector<std::int64_t> costs = known.costs;
    const std::ptrdiff_t count = std::count_if(costs.begin(), costs.end(), is_paid);
    if (count == 0) return own;
    const Ends ends = ends_.of(id);
    const std::vector<Picoseconds> times =
        counting.planner->times(addresses(ends.from), addresses(ends.into), ends.type.shape, ends.element());
    for (std::size_t i = 0; i < times.size(); ++i) {
      std::int64_t& cost = costs[i];
      if (!is_paid(cost)) continue;
      if (times_.is_on_path) {
        Picoseconds counted = CountedOnPath::counted(times[i], cost / ends.runs);
        if (count <= kFewRedistributions) {
          const TensorLayout& from = ends.from[i / ends.into.size()];
          counted = std::max(counted, counted_on_path(from, ends.into[i % ends.into.size()], ends, *counting.costs));
        }
        cost = counted * ends.runs;
      } else if (times[i] <= cost / ends.runs) {
        cost = times[i] * ends.runs;
      }
    }
    result_.added.push_back({known.rows, known.columns, std::move(costs)});
    return MatrixId(result_.num_known + result_.added.size() - 1);
  }

  /// The counted times of the path that programs take. Of several paths that take equally long the planner of counted
  /// times finds the one with the least of them.
  Picoseconds counted_on_path(const TensorLayout& from, const TensorLayout& into, const Ends& ends,
                              const CollectiveCosts& counted) {
    const Bytes bytes = tensor_bytes(ends);
    Picoseconds sum = 0;
    for (CollectiveStep step : own_.plan(from, into, ends.type.shape, ends.element()).steps) {
      const Picoseconds time = step.time;
      set_cost(step, bytes, *own_costs_);
      if (step.time != time) return 0;  // shards of unequal size are costed otherwise
      set_cost(step, bytes, counted);
      sum += step.time;
    }
    return sum;
  }
  static Bytes tensor_bytes(const Ends& ends) {
    Bytes bytes = ends.element();
    for (const std::int64_t size : ends.type.shape) bytes *= size;
    return bytes;
  }

  const ModelProblem& problem_;
  CountedMatrices result_;
  const OperatorGraph& graph_;
  const TensorVersions& versions_;
  const CountedTimes& times_;
  const LeadingEdges& leads_;
  EdgeEnds ends_;
  std::shared_ptr<const CollectiveCosts> own_costs_;
  RedistributionPlanner own_;
  std::map<std::pair<Joining, std::uint32_t>, Counter> counters_;
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

namespace {

/// Which of the user's buckets a collective belongs to: none shares a bucket with those of another id.
struct FusionId {
  bool is_known = true;   // false: it may belong to any parameter
  std::optional<int> id;  // `GraphTensor::comm_fusion`
};

bool may_be_equal(const FusionId& a, const FusionId& b) { return !a.is_known || !b.is_known || a.id == b.id; }

/// As the program's collective has it (`parameter_of`, program/buckets.h).
FusionId fusion_id(const OperatorGraph& graph, const TensorVersions& versions, const ModelProblem::Communicated& what) {
  const auto of = [&](TensorId parameter) { return FusionId{true, graph.tensor(parameter).comm_fusion}; };
  if (!what.version && graph.operators()[what.reader.op].parameter) {
    return of(*graph.operators()[what.reader.op].parameter);
  }
  const VersionId id = what.version ? *what.version : *versions.read[what.reader.op][what.reader.operand];
  const GraphTensor& tensor = graph.tensor(versions.all[id].tensor);
  const TensorId stored = tensor.updates.value_or(versions.all[id].tensor);
  const TensorKind kind = graph.tensor(stored).kind;
  if (kind == TensorKind::kParameter || kind == TensorKind::kState) {
    return of(graph.tensor(stored).state_of.value_or(stored));
  }
  for (const Reader& reader : tensor.readers) {
    if (graph.operators()[reader.op].parameter) return of(*graph.operators()[reader.op].parameter);
  }
  return {false, {}};
}

IdVector<EdgeId, FusionId> fusion_ids(const ModelProblem& problem, const OperatorGraph& graph,
                                      const TensorVersions& versions) {
  IdVector<EdgeId, FusionId> ids(problem.problem.edges.size(), {});
  const auto has_id = [](const GraphTensor& tensor) { return tensor.comm_fusion.has_value(); };
  if (std::ranges::none_of(graph.tensors(), has_id)) return ids;
  for (const EdgeId edge : ids.ids()) {
    const ModelProblem::Communicated& what = problem.communicated[edge];
    if (joining(graph, versions, what) != Joining::kNone) ids[edge] = fusion_id(graph, versions, what);
  }
  return ids;
}

/// By edge whether it is on the leading path.
IdVector<EdgeId, char> leading_path(const ModelProblem& problem, const OperatorGraph& graph,
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

/// By edge the classes of buckets in which a choice may have a collective of it.
std::vector<std::pair<EdgeId, std::set<BucketClass>>> bucket_classes(const ModelProblem& problem,
                                                                     const OperatorGraph& graph,
                                                                     const TensorVersions& versions,
                                                                     const RedistributionCosts& costs,
                                                                     const Choice& choice) {
  const EdgeEnds all_ends(problem, graph, versions, costs.costs.mesh());
  RedistributionPlanner planner(costs.costs.mesh(), costs.costs.collectives(), costs.options);
  std::vector<std::pair<EdgeId, std::set<BucketClass>>> result;
  for (const EdgeId id : problem.problem.edges.ids()) {
    const Joining joins = joining(graph, versions, problem.communicated[id]);
    if (joins == Joining::kNone) continue;
    const ProblemEdge& edge = problem.problem.edges[id];
    const std::size_t from = choice.strategy[edge.from].value(), into = choice.strategy[edge.to].value();
    if (!is_paid(problem.problem.matrices[edge.matrix].at(from, into))) continue;
    const Ends ends = all_ends.of(id);
    const auto kinds = joins == Joining::kAll ? JoinedCosts::Kinds::kGathersToo : JoinedCosts::Kinds::kReductions;
    std::set<BucketClass> classes;
    for (const CollectiveStep& step :
         planner.plan(ends.from[from], ends.into[into], ends.type.shape, ends.element()).steps) {
      if (JoinedCosts::may_join(kinds, step.kind)) classes.insert(class_of(step));
    }
    result.emplace_back(id, std::move(classes));
  }
  return result;
}

}  // namespace

LeadingEdges leading_edges(const ModelProblem& problem, const OperatorGraph& graph, const TensorVersions& versions,
                           const RedistributionCosts& costs, const LeadingChoice* leading) {
  LeadingEdges leads(problem);
  leads.on_path = leading_path(problem, graph, versions);
  const IdVector<EdgeId, FusionId> ids = fusion_ids(problem, graph, versions);
  FusionId of_path;  // not known if that of one edge is not
  for (const EdgeId edge : ids.ids()) {
    if (leads.on_path[edge] == 0 || joining(graph, versions, problem.communicated[edge]) == Joining::kNone) continue;
    if (of_path.is_known) of_path = ids[edge];
  }
  using Led = std::pair<std::optional<int>, BucketClass>;
  std::map<Led, EdgeId> leader;
  if (leading != nullptr) {
    const auto of_edges = bucket_classes(problem, graph, versions, costs, leading->choice);
    std::set<BucketClass> on_path;
    for (const auto& [edge, classes] : of_edges) {
      if (leads.on_path[edge] != 0) on_path.insert(classes.begin(), classes.end());
    }
    for (const auto& [edge, classes] : of_edges) {
      const FusionId& own = ids[edge];
      if (!own.is_known || own.id == 0) continue;
      for (const BucketClass& one : classes) {
        if (may_be_equal(own, of_path) && on_path.contains(one)) continue;
        const Picoseconds start = costs.costs.collectives()->time(one.kind, one.axes, 1);
        if (start >= leading->least_start) leader[{own.id, one}] = edge;
      }
    }
  }
  AloneClasses& on_path = leads.classes.emplace_back();
  on_path.are_all_others = true;
  for (const auto& [led, edge] : leader) {
    if (may_be_equal({true, led.first}, of_path)) on_path.classes.insert(led.second);
  }
  leads.classes.emplace_back().are_all_others = true;  // of what is never joined
  for (const EdgeId edge : problem.problem.edges.ids()) {
    if (leads.on_path[edge] != 0) {
      leads.alone[edge] = 1;
    } else if (ids[edge].is_known && ids[edge].id == 0) {
      leads.alone[edge] = 2;
    }
  }
  for (const auto& [led, edge] : leader) {
    if (leads.alone[edge] == 0) {
      leads.alone[edge] = static_cast<std::uint32_t>(leads.classes.size());
      leads.classes.emplace_back();
    }
    leads.classes[leads.alone[edge]].classes.insert(led.second);
  }
  return leads;
}

CountedMatrices counted_matrices(const ModelProblem& problem, const OperatorGraph& graph,
                                 const TensorVersions& versions, const CountedTimes& times, const LeadingEdges& leads) {
  return Counting(problem, graph, versions, times, leads).run();
}

IdVector<EdgeId, MatrixId> add_matrices(ModelProblem& problem, CountedMatrices counted) {
  const std::size_t first = problem.problem.matrices.size();
  for (CostMatrix& matrix : counted.added) problem.problem.matrices.push_back(std::move(matrix));
  for (MatrixId& id : counted.of_edges) {
    if (id.value() >= counted.num_known) id = MatrixId(first + id.value() - counted.num_known);
  }
  return std::move(counted.of_edges);
}

}  // namespace shardplan
