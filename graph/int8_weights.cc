#include "graph/int8_weights.h"

#include "graph/inserted_casts.h"
#include "graph/weights.h"

namespace shardplan {

OperatorGraph weights_in_int8(const OperatorGraph& graph, const std::vector<OperatorId>& products) {
  OperatorGraphBuilder builder(graph);
  InsertedCasts casts(graph, builder);
  const IdVector<TensorId, char> is_free = weights_only_in(graph, products);
  for (const OperatorId id : products) {
    const auto& before = graph.operators()[id].operands;
    for (std::size_t i = 0; i < before.size(); ++i) {
      const TensorId stored = behind_inserted_cast(graph, before[i]);
      if (is_free[stored] == 0) continue;
      builder.tensor(stored).type.dtype = DataType::kI8;
      if (stored != before[i]) {  // autocast's cast widens it
        casts.retype(*graph.tensor(before[i]).producer);
        continue;
      }
      const TensorId wide = casts.cast(before[i], graph.tensor(before[i]).type.dtype, id, casts.layout_of(id, i));
      builder.op(id).operands[i] = wide;
    }
  }
  return builder.build();
}

}  // namespace shardplan
