#include "simulator/local/rank_graphs.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "model/planned_model.h"
#include "operators/families/communication.h"
#include "simulator/execute/reference.h"

namespace shardplan {
namespace {

/// The parameter that a state belongs to, or the tensor itself.
const GraphTensor& owner_of(const OperatorGraph& graph, const GraphTensor& tensor) {
  return tensor.state_of ? graph.tensor(*tensor.state_of) : tensor;
}

bool is_exchanged(const Model& model, const std::string& parameter) {
  return model.parallel.parallel_mode == ParallelMode::kHybridParallel && !model.not_exchanged.contains(parameter);
}

RankPiece piece_on(const Model& model, const OperatorGraph& graph, const GraphTensor& tensor, std::int64_t rank) {
  const Shape& shape = tensor.type.shape;
  const std::string& owner = owner_of(graph, tensor).name;
  const auto begin = model.begins.find(owner);
  if (begin != model.begins.end() && begin->second.size() == shape.size()) {
    RankPiece piece{shape, begin->second, shape, false};
    for (std::size_t d = 0; d < shape.size(); ++d) piece.whole[d] += piece.begin[d];
    return piece;
  }
  if (tensor.kind == TensorKind::kInput || is_exchanged(model, owner)) {
    return {shape, Shape(shape.size(), 0), shape, false};
  }
  RankPiece own{shape, Shape(shape.size(), 0), shape, true};
  own.whole.insert(own.whole.begin(), rank + 1);
  own.begin.insert(own.begin.begin(), rank);
  own.shape.insert(own.shape.begin(), 1);
  return own;
}

}  // namespace

void check_runs(const OperatorGraph& graph, const std::string& name) {
  for (const GraphOperator& op : graph.operators()) {
    const OperatorType& type = *graph.operations()[op.operation].type;
    if (is_executable(type) || is_communication(type)) continue;
    throw InputError(op.place, "{}: {} of {} has no kernel, so that it cannot be run", op.name, type.name, name);
  }
}

std::unique_ptr<const RankGraphs> rank_graphs(const std::vector<std::shared_ptr<const Model>>& ranks) {
  auto run = std::make_unique<RankGraphs>();
  for (const auto& model : ranks) run->graphs.push_back(planned_graph(*model));
  std::vector<const OperatorGraph*> graphs;
  for (const OperatorGraph& graph : run->graphs) {
    check_runs(graph, ranks[0]->name);
    graphs.push_back(&graph);
  }
  run->program = local_program(std::move(graphs));
  return run;
}

PieceRuns runs_of(const RankPiece& piece) {
  PieceRuns runs;
  for (std::size_t d = 0; d < piece.shape.size(); ++d) runs.dimensions.push_back({{piece.begin[d], piece.shape[d]}});
  return runs;
}

std::vector<std::map<TensorId, RankPiece>> rank_pieces(const std::vector<std::shared_ptr<const Model>>& ranks,
                                                       const std::vector<OperatorGraph>& graphs) {
  std::vector<std::map<TensorId, RankPiece>> pieces(graphs.size());
  std::map<std::string, Shape> wholes;
  for (std::size_t rank = 0; rank < graphs.size(); ++rank) {
    for (const TensorId id : graphs[rank].tensors().ids()) {
      const GraphTensor& tensor = graphs[rank].tensor(id);
      if (tensor.kind == TensorKind::kConstant || tensor.kind == TensorKind::kResult) continue;
      RankPiece piece = piece_on(*ranks[rank], graphs[rank], tensor, static_cast<std::int64_t>(rank));
      Shape& whole = wholes[tensor.name];
      whole.resize(std::max(whole.size(), piece.whole.size()), 0);
      for (std::size_t d = 0; d < piece.whole.size(); ++d) whole[d] = std::max(whole[d], piece.whole[d]);
      if (piece.is_own) whole[0] = static_cast<std::int64_t>(graphs.size());
      pieces[rank].emplace(id, std::move(piece));
    }
  }
  for (std::size_t rank = 0; rank < graphs.size(); ++rank) {
    for (auto& [id, piece] : pieces[rank]) {
      const Shape& whole = wholes[graphs[rank].tensor(id).name];
      // Inputs that ranks load in different shapes are not pieces of one tensor.
      const bool is_input = graphs[rank].tensor(id).kind == TensorKind::kInput;
      const bool has_begin = ranks[rank]->begins.contains(graphs[rank].tensor(id).name);
      if (whole.size() == piece.whole.size() && (has_begin || !is_input)) piece.whole = whole;
    }
  }
  return pieces;
}

}  // namespace shardplan
