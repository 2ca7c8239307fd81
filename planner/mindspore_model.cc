#include "planner/mindspore_model.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "operators/operator_type.h"

namespace shardplan {
namespace {

std::int64_t parts_of(double weighted_bytes) {
  const double parts = weighted_bytes * static_cast<double>(kPartsOfWeightedByte);
  return parts >= static_cast<double>(kForbidden) ? kForbidden : std::llround(std::max(parts, 0.0));
}

/// Passes its operand on in the same memory, or marks the border of a block with a strategy.
bool is_transparent(const OperatorGraph& graph, OperatorId op) {
  const OperatorType& type = *graph.operation(op).type;
  return type.work == WorkKind::kView || type.name == "Identity";
}

bool same_place(const MindSporeTensorLayout& a, const MindSporeTensorLayout& b) {
  const auto unified = unify(a, b);
  return unified && unified->from == unified->to;
}

/// The batch sharded over all devices if they divide it.
TensorLayout data_parallel_layout(const Shape& shape, const DeviceMesh& mesh) {
  TensorLayout layout = TensorLayout::replicated(shape.size());
  if (shape.empty() || shape[0] % mesh.num_devices() != 0) return layout;
  for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
    if (mesh.axes()[axis].size > 1) layout.dimensions[0].parts[0].axes.push_back(mesh.whole(axis));
  }
  return layout;
}

/// What a table or a matrix depends on; equal ones are created once.
using LayoutKey = std::tuple<std::vector<std::int64_t>, std::vector<std::vector<std::int64_t>>, Shape>;
LayoutKey key_of(const MindSporeTensorLayout& layout) {
  return {layout.layout.device_matrix, layout.layout.tensor_map, layout.shape};
}

}  // namespace

MindSporeModel::MindSporeModel(const OperatorGraph& graph, const DeviceMesh& mesh, const UserStrategies& decided,
                               MindSporeDataset dataset)
    : graph_(graph), mesh_(mesh), dataset_(dataset) {
  for (const TensorId id : graph.tensors().ids()) {
    const GraphTensor& tensor = graph.tensor(id);
    if (tensor.kind != TensorKind::kInput) continue;
    const TensorLayout layout = decided.stored[id].value_or(data_parallel_layout(tensor.type.shape, mesh));
    dataset_layouts_.emplace(id, mindspore_layout(layout, mesh, tensor.type.shape));
  }
  add_nodes(decided);
  find_links();
  add_edges();
}

void MindSporeModel::add_nodes(const UserStrategies& decided) {
  nodes_.resize(graph_.operators().size());
  candidates_.resize(graph_.operators().size());
  std::map<std::pair<OperationId, std::vector<char>>, std::pair<OperatorId, StrategyTableId>> free;  // already made
  for (const OperatorId id : graph_.operators().ids()) {
    const GraphOperator& op = graph_.operators()[id];
    if (op.pass != Pass::kForward || op.is_copy || is_transparent(graph_, id)) continue;
    const Operation& operation = graph_.operation(id);
    const bool is_free = decided.operators[id].empty();
    std::vector<char> is_parameter;
    for (const TensorId operand : op.operands) {
      is_parameter.push_back(graph_.tensor(operand).kind == TensorKind::kParameter);
    }
    const auto known = is_free ? free.find({op.operation, is_parameter}) : free.end();
    if (known != free.end()) {
      candidates_[id] = candidates_[known->second.first];
      nodes_[id] = problem_.nodes.push_back({known->second.second, {}});
      continue;
    }
    candidates_[id] = is_free ? mindspore_candidates(operation, mesh_) : decided.operators[id].items();
    for (const Strategy& strategy : decided.operators[id]) {
      const std::string why = check_mindspore_strategy(operation, strategy);
      if (!why.empty()) throw InputError(op.strategy->in_place, "{}: no strategy of MindSpore: {}", op.name, why);
    }
    if (candidates_[id].empty()) throw InputError(op.place, "{}: MindSpore has no strategy for it here", op.name);
    StrategyTable table;
    for (const Strategy& strategy : candidates_[id]) table.costs.push_back(operator_cost(id, strategy));
    const StrategyTableId made = problem_.strategy_tables.push_back(std::move(table));
    nodes_[id] = problem_.nodes.push_back({made, {}});
    if (is_free) free.emplace(std::pair(op.operation, is_parameter), std::pair(id, made));
  }
}

void MindSporeModel::find_links() {
  std::map<TensorId, Reader> first_readers;  // of parameters
  for (const OperatorId id : graph_.operators().ids()) {
    if (!nodes_[id]) continue;
    const GraphOperator& op = graph_.operators()[id];
    for (std::size_t operand = 0; operand < op.operands.size(); ++operand) {
      TensorId tensor = op.operands[operand];
      while (graph_.tensor(tensor).producer && is_transparent(graph_, *graph_.tensor(tensor).producer)) {
        tensor = graph_.operators()[*graph_.tensor(tensor).producer].operands[0];
      }
      const GraphTensor& made = graph_.tensor(tensor);
      const Reader reader{id, operand};
      if (made.kind == TensorKind::kResult) {
        links_.push_back({made.producer, made.result, tensor, reader});
      } else if (made.kind == TensorKind::kInput && dataset_ == MindSporeDataset::kAsDecided) {
        links_.push_back({std::nullopt, 0, tensor, reader});
      } else if (made.kind == TensorKind::kParameter && tensor == op.operands[operand]) {
        const auto [first, is_first] = first_readers.try_emplace(tensor, reader);
        if (!is_first) ties_.emplace_back(first->second, reader);
      }
    }
  }
}

MindSporeTensorLayout MindSporeModel::result_layout(OperatorId op, const Strategy& strategy, std::size_t result) const {
  const Operation& operation = graph_.operation(op);
  return mindspore_layout(operation.rule.results[result], operation.results[result].shape, operation.rule.factors,
                          device_digits(strategy.factors, mesh_));
}

MindSporeTensorLayout MindSporeModel::operand_layout(const Reader& reader, const Strategy& strategy) const {
  const Operation& operation = graph_.operation(reader.op);
  return mindspore_layout(operation.rule.operands[reader.operand], operation.operands[reader.operand].shape,
                          operation.rule.factors, device_digits(strategy.factors, mesh_));
}

Cost MindSporeModel::operator_cost(OperatorId op, const Strategy& strategy) const {
  std::vector<char> is_parameter;
  for (const TensorId operand : graph_.operators()[op].operands) {
    is_parameter.push_back(graph_.tensor(operand).kind == TensorKind::kParameter);
  }
  const MindSporeWeights weights;
  const MindSporeCost cost = mindspore_operator_cost(mindspore_operator(graph_.operation(op), strategy, is_parameter),
                                                     mesh_.num_devices(), weights);
  return {parts_of(weights.alpha * cost.computation),
          parts_of(weights.beta * cost.communication_with_partial_parameter)};
}

std::int64_t MindSporeModel::edge_cost(const MindSporeTensorLayout& from, const MindSporeTensorLayout& to,
                                       DataType dtype) const {
  const MindSporeWeights weights;
  const auto cost = mindspore_edge_cost(from, to, element_bytes(dtype), dtype == DataType::kBool, weights);
  return cost ? parts_of(cost->objective(weights)) : kForbidden;
}

void MindSporeModel::add_edges() {
  std::map<std::tuple<LayoutKey, LayoutKey, DataType>, std::int64_t> known;
  const auto cost_of = [&](const MindSporeTensorLayout& from, const MindSporeTensorLayout& to, DataType dtype) {
    const auto [found, is_new] = known.try_emplace({key_of(from), key_of(to), dtype});
    if (is_new) found->second = edge_cost(from, to, dtype);
    return found->second;
  };
  // Equal ends with equal candidates share their matrix.
  std::map<std::tuple<StrategyTableId, std::size_t, StrategyTableId, std::size_t>, MatrixId> matrices;
  for (const Link& link : links_) {
    const NodeId to = *nodes_[link.to.op];
    const DataType dtype = graph_.tensor(link.tensor).type.dtype;
    if (!link.from) {
      // The data set has one layout: what its edge costs is a node's cost.
      StrategyTable table = problem_.strategy_tables[problem_.nodes[to].strategies];
      for (std::size_t i = 0; i < table.costs.size(); ++i) {
        std::int64_t& cost = table.costs[i].communication;
        cost = std::min(kForbidden, cost + cost_of(dataset_layout(link.tensor),
                                                   operand_layout(link.to, candidates_[link.to.op][i]), dtype));
      }
      problem_.nodes[to].strategies = problem_.strategy_tables.push_back(std::move(table));
      continue;
    }
    const NodeId from = *nodes_[*link.from];
    const auto key =
        std::tuple(problem_.nodes[from].strategies, link.result, problem_.nodes[to].strategies, link.to.operand);
    auto made = matrices.find(key);
    if (made == matrices.end()) {
      CostMatrix matrix;
      matrix.rows = static_cast<std::uint32_t>(candidates_[*link.from].size());
      matrix.columns = static_cast<std::uint32_t>(candidates_[link.to.op].size());
      std::vector<MindSporeTensorLayout> taken;
      for (const Strategy& strategy : candidates_[link.to.op]) taken.push_back(operand_layout(link.to, strategy));
      for (const Strategy& strategy : candidates_[*link.from]) {
        const MindSporeTensorLayout given = result_layout(*link.from, strategy, link.result);
        for (const MindSporeTensorLayout& layout : taken) matrix.costs.push_back(cost_of(given, layout, dtype));
      }
      made = matrices.emplace(key, problem_.matrices.push_back(std::move(matrix))).first;
    }
    problem_.edges.push_back({from, to, made->second});
  }
  for (const auto& [first, second] : ties_) {
    CostMatrix matrix;
    matrix.rows = static_cast<std::uint32_t>(candidates_[first.op].size());
    matrix.columns = static_cast<std::uint32_t>(candidates_[second.op].size());
    for (const Strategy& a : candidates_[first.op]) {
      const MindSporeTensorLayout stored = operand_layout(first, a);
      for (const Strategy& b : candidates_[second.op]) {
        matrix.costs.push_back(same_place(stored, operand_layout(second, b)) ? 0 : kForbidden);
      }
    }
    problem_.edges.push_back({*nodes_[first.op], *nodes_[second.op], problem_.matrices.push_back(std::move(matrix))});
  }
}

IdVector<OperatorId, std::optional<Strategy>> MindSporeModel::strategies(const Choice& choice) const {
  IdVector<OperatorId, std::optional<Strategy>> result(graph_.operators().size());
  for (const OperatorId id : graph_.operators().ids()) {
    if (nodes_[id]) result[id] = candidates_[id][choice.strategy[*nodes_[id]].value()];
  }
  return result;
}

std::optional<MindSporeValue> MindSporeModel::value(const IdVector<OperatorId, Strategy>& strategies,
                                                    std::string* why) const {
  const auto refuse = [&](std::string reason) {
    if (why != nullptr) *why = std::move(reason);
    return std::nullopt;
  };
  MindSporeValue sum;
  for (const OperatorId id : graph_.operators().ids()) {
    if (!nodes_[id]) continue;
    const std::string fault = check_mindspore_strategy(graph_.operation(id), strategies[id]);
    if (!fault.empty()) return refuse(fmt::format("{}: {}", graph_.operators()[id].name, fault));
    const Cost cost = operator_cost(id, strategies[id]);
    sum.parts += cost.computation + cost.communication;
  }
  for (const Link& link : links_) {
    const MindSporeTensorLayout from =
        link.from ? result_layout(*link.from, strategies[*link.from], link.result) : dataset_layout(link.tensor);
    const std::int64_t cost =
        edge_cost(from, operand_layout(link.to, strategies[link.to.op]), graph_.tensor(link.tensor).type.dtype);
    if (cost >= kForbidden) {
      return refuse(fmt::format("{}: {} would have to be communicated", graph_.operators()[link.to.op].name,
                                graph_.tensor(link.tensor).name));
    }
    sum.parts += cost;
  }
  for (const auto& [first, second] : ties_) {
    if (same_place(operand_layout(first, strategies[first.op]), operand_layout(second, strategies[second.op])))
      continue;
    const TensorId shared = graph_.operators()[first.op].operands[first.operand];
    return refuse(fmt::format("{} cuts {} otherwise than {}", graph_.operators()[second.op].name,
                              graph_.tensor(shared).name, graph_.operators()[first.op].name));
  }
  return sum;
}

}  // namespace shardplan
