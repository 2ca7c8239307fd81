#include "graph/index_extents.h"

#include <algorithm>
#include <string_view>

namespace shardplan {
namespace {

/// What operand `operand` chooses among; 0 if it does not choose.
std::int64_t extent_at(const Operation& operation, std::size_t operand) {
  const std::string_view type = operation.type->name;
  if (type == "Gather" && operand == 1) {
    const Shape& table = operation.operands[0].shape;
    std::int64_t axis = operation.integer("axis");
    if (axis < 0) axis += static_cast<std::int64_t>(table.size());
    return table[static_cast<std::size_t>(axis)];
  }
  if (type == "OneHot" && operand == 0) return operation.integer("depth");
  if (type == "UnsortedSegmentSum" && operand == 1) return operation.integer("num_segments");
  if (type == "SparseSoftmaxCrossEntropyWithLogits" && operand == 1) return operation.operands[0].shape.back();
  return 0;
}

/// The result's elements are elements of the operands.
bool moves_elements(std::string_view type) {
  static constexpr std::string_view kTypes[] = {"BroadcastTo", "Cast",         "Concat", "ExpandDims", "Flatten",
                                                "Identity",    "Reshape",      "Slice",  "Split",      "Squeeze",
                                                "Stack",       "StridedSlice", "Tile",   "Transpose"};
  return std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes);
}

}  // namespace

void set_index_extents(OperatorGraphBuilder& builder) {
  std::vector<std::int64_t> extents(builder.num_tensors());
  for (std::size_t i = builder.num_operators(); i-- > 0;) {
    const OperatorId id(i);
    const Operation& operation = builder.operation(id);
    const GraphOperator& op = builder.op(id);
    std::int64_t of_results = 0;
    if (moves_elements(operation.type->name)) {
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
