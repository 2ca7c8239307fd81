#include "operators/phases.h"

#include <algorithm>

#include "base/error.h"
#include "operators/building/rule_builder.h"
#include "operators/catalogue.h"

namespace shardplan {

namespace {

void run_phases(const KernelCall& call, const BetweenPhases& between) {
  const std::vector<std::int64_t> pieces(call.operation.rule.factors.size(), 1);
  const Phases phases = call.operation.type->phases(call.operation, pieces);
  const std::vector<Operation> operations = phase_operations(call.operation, phases);
  std::vector<std::vector<double>> buffers;  // of the values after the operands
  std::vector<OperandView> values(call.operands.begin(), call.operands.end());
  for (std::size_t p = 0; p < operations.size(); ++p) {
    const Operation& phase = operations[p];
    std::vector<Box> boxes;
    for (const Factor& factor : phase.rule.factors) {
      const std::optional<std::uint32_t> at = call.operation.rule.find(factor.name);
      boxes.push_back(at ? call.boxes[*at] : Box{0, factor.size, factor.size});
    }
    std::vector<OperandView> operands;
    for (const std::size_t input : phases.phases[p].inputs) operands.push_back(values[input]);
    std::vector<ResultView> results;
    for (const TensorWalk& walk : phase.rule.results) {
      Shape shape;
      Shape begin;
      for (std::size_t d = 0; d < walk.size(); ++d) {
        std::int64_t size = walk[d].factors.empty() ? phase.results[results.size()].shape[d] : 1;
        for (const std::uint32_t factor : walk[d].factors) size *= boxes[factor].size();
        shape.push_back(size);
        begin.push_back(walk[d].factors.size() == 1 ? boxes[walk[d].factors[0]].begin : 0);
      }
      buffers.emplace_back(static_cast<std::size_t>(num_elements(shape)), 0.0);
      results.push_back({buffers.back().data(), shape});
      values.push_back({buffers.back().data(), shape, begin});
    }
    phase.type->kernel({phase, boxes, operands, results, call.seed});
    for (std::size_t r = 0; between && p + 1 < operations.size() && r < results.size(); ++r) {
      const std::size_t value = values.size() - results.size() + r;
      between(phase, value, phase.results[r].dtype,
              {results[r].data, static_cast<std::size_t>(num_elements(results[r].shape))});
    }
  }
  for (std::size_t r = 0; r < phases.results.size(); ++r) {
    const OperandView& value = values[phases.results[r]];
    std::copy_n(value.data, num_elements(value.shape), call.results[r].data);
  }
}

}  // namespace

std::vector<Operation> phase_operations(const Operation& operation, const Phases& phases) {
  std::vector<TensorType> values = operation.operands;
  std::vector<Operation> operations;
  for (const Phase& phase : phases.phases) {
    const OperatorType* type = find_operator_type(phase.type);
    SHARDPLAN_CHECK(type != nullptr);
    std::vector<TensorType> operands;
    for (const std::size_t input : phase.inputs) operands.push_back(values[input]);
    operations.push_back(make_operation(*type, phase.attributes, std::move(operands)));
    values.insert(values.end(), operations.back().results.begin(), operations.back().results.end());
  }
  return operations;
}

void run_operation(const KernelCall& call, const BetweenPhases& between) {
  const OperatorType& type = *call.operation.type;
  if (type.kernel != nullptr) {
    type.kernel(call);
  } else {
    SHARDPLAN_CHECK(type.phases != nullptr);
    run_phases(call, between);
  }
}

}  // namespace shardplan
