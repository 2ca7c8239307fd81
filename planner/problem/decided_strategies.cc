#include "planner/problem/decided_strategies.h"

#include "planner/problem/mode_strategies.h"

namespace shardplan {

DecidedStrategies decided_strategies(const Model& model, const OperatorGraph& graph, const DeviceMesh& mesh,
                                     const std::vector<AxisRef>& pieces) {
  DecidedStrategies decided;
  decided.strategies = resolve_user_strategies(graph, mesh, pieces);
  for (const TensorId id : graph.tensors().ids()) {
    const GraphTensor& tensor = graph.tensor(id);
    std::optional<TensorLayout>& stored = decided.strategies.stored[id];
    if (tensor.kind == TensorKind::kInput && model.parallel.full_batch && !stored) {
      stored = TensorLayout::replicated(tensor.type.shape.size());
    }
  }
  decided.is_final = decide_by_mode(decided.strategies, model, graph, mesh, pieces, decided.notices);
  return decided;
}

}  // namespace shardplan
