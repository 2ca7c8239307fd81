#include "planner/decided_strategies.h"

#include "strategies/data_parallel.h"
#include "strategies/parallel_optimizer.h"

namespace shardplan {
namespace {

bool is_data_parallel(const GraphOperator& op, ParallelMode mode) {
  if (op.pass != Pass::kForward) return false;
  return op.is_data_parallel || mode == ParallelMode::kDataParallel || mode == ParallelMode::kSemiAutoParallel;
}

void decide_operators(UserStrategies& decided, const OperatorGraph& graph, ParallelMode mode, const DeviceMesh& mesh) {
  const auto batch = batch_factors(graph);
  for (const OperatorId op : graph.operators().ids()) {
    if (!decided.operators[op].empty()) continue;
    const Operation& operation = graph.operation(op);
    if (mode == ParallelMode::kStandAlone) {
      decided.operators[op] = {replicated_strategy(operation)};
    } else if (is_data_parallel(graph.operators()[op], mode)) {
      decided.operators[op] = {data_parallel_strategy(operation, batch[op], mesh)};
    }
  }
}

}  // namespace

UserStrategies decided_strategies(const Model& model, const OperatorGraph& graph, const DeviceMesh& mesh,
                                  const std::vector<AxisRef>& pieces) {
  UserStrategies decided = resolve_user_strategies(graph, mesh, pieces);
  if (model.parallel.enable_parallel_optimizer) {
    const auto states = parallel_optimizer_states(graph, mesh, pieces, decided.stored);
    for (const TensorId id : graph.tensors().ids()) {
      if (states[id]) decided.stored[id] = states[id];
    }
  }
  decide_operators(decided, graph, model.parallel.parallel_mode, mesh);
  for (const TensorId id : graph.tensors().ids()) {
    const GraphTensor& tensor = graph.tensor(id);
    if (tensor.kind == TensorKind::kInput && model.parallel.full_batch && !decided.stored[id]) {
      decided.stored[id] = TensorLayout::replicated(tensor.type.shape.size());
    }
  }
  return decided;
}

}  // namespace shardplan
