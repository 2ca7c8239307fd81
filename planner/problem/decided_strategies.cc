#include "planner/problem/decided_strategies.h"

#include "planner/problem/mode_strategies.h"
#include "planner/problem/strategy_file.h"

namespace shardplan {

DecidedStrategies decided_strategies(const Model& model, const OperatorGraph& graph, const DeviceMesh& mesh,
                                     const std::vector<AxisRef>& pieces, const std::string& strategy_file) {
  DecidedStrategies decided;
  decided.strategies = resolve_user_strategies(
      graph, mesh, pieces, model.parallel.allows_uneven ? UnevenCuts::kWhereNothingElseFits : UnevenCuts::kNone);
  decided.is_loaded.resize(graph.operators().size(), 0);
  if (!strategy_file.empty()) {
    load_strategy_file(strategy_file, graph, mesh, decided.strategies, decided.is_loaded);
  }
  for (const OperatorId op : graph.operators().ids()) {
    if (model.parallel.allows_uneven || decided.is_loaded[op] == 0) continue;
    for (const Strategy& strategy : decided.strategies.operators[op]) {
      if (!is_uneven(graph.operation(op), strategy)) continue;
      throw InputError({}, "{}: the strategy of {} cuts it in unequal pieces, but all are to be equal", strategy_file,
                       graph.operators()[op].name);
    }
  }
  for (const TensorId id : graph.tensors().ids()) {
    const GraphTensor& tensor = graph.tensor(id);
    RareValue<TensorLayout>& stored = decided.strategies.stored[id];
    if (tensor.kind == TensorKind::kInput && model.parallel.full_batch && !stored) {
      stored = TensorLayout::replicated(tensor.type.shape.size());
    }
  }
  decided.is_final = decide_by_mode(decided.strategies, model, graph, mesh, pieces, decided.notices);
  return decided;
}

}  // namespace shardplan
