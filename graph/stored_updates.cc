#include "graph/stored_updates.h"

#include <algorithm>

#include "base/error.h"
#include "operators/building/rule_builder.h"
#include "operators/per_device.h"

namespace shardplan {
namespace {

bool writes_in_place(const Operation& operation) { return operation.type->in_place != InPlace::kNo; }

}  // namespace

void mark_stored_updates(const OperatorGraph& forward, OperatorGraphBuilder& builder, bool in_training) {
  for (const GraphOperator& op : forward.operators()) {
    const OperatorType& type = *forward.operations()[op.operation].type;
    const bool is_in_place = type.in_place != InPlace::kNo;
    if (!in_training && !is_in_place) continue;
    if (find_graph_operator_type(type.name) != &type) continue;  // names in custom operators have no such meaning
    for (std::size_t i = 0; i < std::min(op.results.size(), type.signature.results.size()); ++i) {
      for (std::size_t k = 0; k < std::min(op.operands.size(), type.signature.operands.size()); ++k) {
        if (type.signature.results[i] != type.signature.operands[k]) continue;
        const GraphTensor& stored = forward.tensor(op.operands[k]);
        if (stored.kind != TensorKind::kParameter) {
          if (!is_in_place) continue;
          throw InputError(op.place,
                           "{}: overwrites {}; expected a parameter with requires_grad: false, whose values "
                           "are kept from step to step",
                           op.name, stored.name);
        }
        if (stored.readers.size() > 1) {
          throw InputError(op.place, "{}: updates {}, but {} operators read it; expected one", op.name, stored.name,
                           stored.readers.size());
        }
        builder.tensor(op.results[i]).updates = op.operands[k];
      }
    }
  }
}

OperatorGraph with_stored_updates(OperatorGraph forward) {
  if (std::ranges::none_of(forward.operations(), writes_in_place)) return forward;
  OperatorGraphBuilder builder(forward);
  mark_stored_updates(forward, builder, false);
  return builder.build();
}

bool is_cache(const OperatorGraph& graph, TensorId tensor) {
  const GraphTensor& stored = graph.tensor(tensor);
  if (stored.kind != TensorKind::kParameter || stored.readers.empty()) return false;
  const auto is_read_as_cache = [&](const Reader& reader) {
    const OperatorType& type = *graph.operation(reader.op).type;
    return type.name == "FlashAttention" && (reader.operand == 1 || reader.operand == 2);
  };
  const Reader& first = stored.readers.front();
  if (stored.readers.size() == 1 && first.operand == 0 && writes_in_place(graph.operation(first.op))) return true;
  return !stored.requires_grad && std::ranges::all_of(stored.readers, is_read_as_cache);
}

std::size_t token_dimension(const OperatorGraph& graph, TensorId cache) {
  const GraphTensor& tensor = graph.tensor(cache);
  const std::size_t rank = tensor.type.shape.size();
  const Operation& reader = graph.operation(tensor.readers.front().op);
  if (reader.type->name == "KVCacheScatterUpdate") return normal_axis(reader, reader.integer("axis"), rank);
  return rank - std::min<std::size_t>(rank, 2);  // keys and values of attention: ..., tokens, features
}

}  // namespace shardplan
