#include "graph/int8_weights.h"

#include <algorithm>

#include "graph/inserted_casts.h"

namespace shardplan {

OperatorGraph weights_in_int8(const OperatorGraph& graph, const std::vector<OperatorId>& products) {
  OperatorGraphBuilder builder(graph);
  InsertedCasts casts(graph, builder);
  IdVector<OperatorId, char> is_product(graph.operators().size(), 0);
  for (const OperatorId id : products) is_product[id] = 1;
  const auto is_narrowed = [&](const GraphTensor& tensor) {
    return tensor.kind == TensorKind::kParameter && tensor.type.shape.size() >= 2 && is_floating(tensor.type.dtype) &&
           !tensor.is_output &&
           std::ranges::all_of(tensor.readers, [&](const Reader& reader) { return is_product[reader.op] != 0; });
  };
  for (const OperatorId id : products) {
    const auto& before = graph.operators()[id].operands;
    for (std::size_t i = 0; i < before.size(); ++i) {
      const GraphTensor& weight = graph.tensor(before[i]);
      if (!is_narrowed(weight)) continue;
      builder.tensor(before[i]).type.dtype = DataType::kI8;
      const TensorId wide = casts.cast(before[i], weight.type.dtype, id, casts.layout_of(id, i));
      builder.op(id).operands[i] = wide;
    }
  }
  return builder.build();
}

}  // namespace shardplan
