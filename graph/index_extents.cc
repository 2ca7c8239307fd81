#include "graph/index_extents.h"

#include <algorithm>

namespace shardplan {
namespace {

/// The number of rows or classes from which the indices in operand `operand` select; 0 if it holds no indices.
std::int64_t extent_at(const Operation& operation, std::size_t operand) {
  const auto extent = operation.type->index_extent;
  return extent == nullptr ? 0 : extent(operation, operand);
}

}  // namespace

void set_index_extents(OperatorGraphBuilder& builder) {
  std::vector<std::int64_t> extents(builder.num_tensors());
  for (std::size_t i = builder.num_operators(); i-- > 0;) {
    const OperatorId id(i);
    const Operation& operation = builder.operation(id);
    const GraphOperator& op = builder.op(id);
    std::int64_t of_results = 0;
    if (operation.type->moves_elements) {
      for (const TensorId result : op.results) {
        const std::int64_t extent = extents[result.value()];
        if (extent > 0) of_results = of_results == 0 ? extent : std::min(of_results, extent);
      }
    }
    for (std::size_t k = 0; k < op.operands.size(); ++k) {
      std::int64_t extent = extent_at(operation, k);
      if (extent == 0) extent = of_results;
      std::int64_t& known = extents[op.operands[k].value()];
      if (extent > 0) known = known == 0 ? extent : std::min(known, extent);
    }
  }
  for (std::size_t t = 0; t < extents.size(); ++t) {
    GraphTensor& tensor = builder.tensor(TensorId(t));
    const bool is_index =
        tensor.kind == TensorKind::kInput && !is_floating(tensor.type.dtype) && tensor.type.dtype != DataType::kBool;
    if (is_index) tensor.index_extent = extents[t];
  }
}

}  // namespace shardplan
