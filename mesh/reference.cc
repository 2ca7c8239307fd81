#include "mesh/reference.h"

#include <algorithm>
#include <cmath>

namespace shardplan {

ReferenceStep run_reference(const OperatorGraph& graph, const StoredValues& stored, std::uint64_t seed,
                            std::uint64_t step, Precision precision) {
  ReferenceStep run;
  run.tensors.resize(graph.tensors().size());
  for (const TensorId id : graph.tensors().ids()) {
    const GraphTensor& tensor = graph.tensor(id);
    if (tensor.kind == TensorKind::kResult) continue;
    run.tensors[id] = tensor.kind == TensorKind::kConstant ? draw_tensor(graph, id, seed, step) : stored(id);
    round_to(precision, tensor.type.dtype, run.tensors[id]);
  }
  for (const OperatorId id : graph.operators().ids()) {
    const GraphOperator& op = graph.operators()[id];
    const Operation& operation = graph.operation(id);
    std::vector<Box> boxes;
    for (const Factor& factor : operation.rule.factors) boxes.push_back({0, factor.size, factor.size});
    std::vector<OperandView> operands;
    for (const TensorId operand : op.operands) {
      const Shape& shape = graph.tensor(operand).type.shape;
      operands.push_back({run.tensors[operand].data(), shape, Shape(shape.size(), 0)});
    }
    std::vector<ResultView> results;
    for (const TensorId result : op.results) {
      const Shape& shape = graph.tensor(result).type.shape;
      std::size_t size = 1;
      for (const std::int64_t extent : shape) size *= static_cast<std::size_t>(extent);
      run.tensors[result].assign(size, 0.0);
      results.push_back({run.tensors[result].data(), shape});
    }
    operation.type->kernel({operation, boxes, operands, results, operator_seed(graph, id, seed, step)});
    for (const TensorId result : op.results) round_to(precision, graph.tensor(result).type.dtype, run.tensors[result]);
  }
  return run;
}

ReferencePair run_reference_pair(const OperatorGraph& graph, const StoredValues& stored, std::uint64_t seed,
                                 std::uint64_t step) {
  ReferencePair pair;
  pair.exact = run_reference(graph, stored, seed, step, Precision::kFloat64);
  pair.rounded = run_reference(graph, stored, seed, step, Precision::kFloat32);
  pair.rounding.resize(graph.tensors().size());
  for (const TensorId id : graph.tensors().ids()) {
    double& rounding = pair.rounding[id];
    const TensorValues& exact = pair.exact.tensors[id];
    const TensorValues& rounded = pair.rounded.tensors[id];
    for (std::size_t i = 0; i < exact.size(); ++i) {
      if (std::abs(exact[i]) < kStandsForInfinity) rounding = std::max(rounding, std::abs(exact[i] - rounded[i]));
    }
  }
  return pair;
}

std::vector<std::string> operators_without_kernel(const OperatorGraph& graph) {
  std::vector<std::string> names;
  for (const OperatorId id : graph.operators().ids()) {
    if (graph.operation(id).type->kernel == nullptr) names.push_back(graph.operators()[id].name);
  }
  return names;
}

}  // namespace shardplan
