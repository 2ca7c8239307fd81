#include "planner/problem/decided_strategies.h"

#include "planner/problem/mode_strategies.h"
#include "planner/problem/strategy_file.h"

namespace shardplan {

DecidedStrategies decided_strategies(const Model& model, const OperatorGraph& graph, const DeviceMesh& mesh,
                                     const std::vector<AxisRef>& pieces, const std::string& strategy_file) {
  DecidedStrategies decided;
  decided.strategies = resolve_user_strategies(graph, mesh, pieces);
  decided.is_loaded.resize(graph.operators().size(), 0);
  if (!strategy_file.empty()) {
    load_strategy_file(strategy_file, graph, mesh, decided.strategies, decided.is_loaded);
  }
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
