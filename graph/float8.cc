#include "graph/float8.h"

#include <map>
#include <optional>
#include <set>
#include <string>

#include "graph/inserted_casts.h"
#include "graph/weights.h"
#include "operators/catalogue.h"

namespace shardplan {
namespace {

/// The same operation on operands of f8e4m3.
Operation in_float8(const Operation& old) {
  Attributes attributes = old.attributes;
  attributes["dtype"] = std::string(to_string(old.results[0].dtype));
  std::vector<TensorType> operands = old.operands;
  for (TensorType& operand : operands) operand.dtype = DataType::kF8E4M3;
  return make_operation(*old.type, attributes, operands);
}

/// The layout in which a parameter is stored, if the user gives one.
std::optional<StrategyEntry> stored_layout(const GraphTensor& tensor) {
  const bool is_given =
      tensor.kind == TensorKind::kParameter && tensor.layout && tensor.layout->kind != StrategyEntry::Kind::kFollow;
  return is_given ? std::optional(*tensor.layout) : std::nullopt;
}

}  // namespace

OperatorGraph products_in_float8(const OperatorGraph& graph, const std::vector<OperatorId>& products,
                                 StoredWeights weights) {
  OperatorGraphBuilder builder(graph);
  InsertedCasts casts(graph, builder);
  const IdVector<TensorId, char> is_free = weights_only_in(graph, products);
  std::map<OperationId, OperationId> operations;
  std::set<std::string> unread;  // autocast's casts of weights that are stored in f8
  for (const OperatorId id : products) {
    std::vector<TensorId> operands;
    for (const TensorId operand : graph.operators()[id].operands) {
      const GraphTensor& tensor = graph.tensor(operand);
      const TensorId stored = behind_inserted_cast(graph, operand);
      if (weights == StoredWeights::kInFloat8 && is_free[stored] != 0) {
        builder.tensor(stored).type.dtype = DataType::kF8E4M3;
        if (stored != operand) unread.insert(std::string(graph.operators()[*tensor.producer].name));
        operands.push_back(stored);
      } else {
        const bool is_short = tensor.type.dtype == DataType::kF8E4M3;
        operands.push_back(is_short ? operand : casts.cast(operand, DataType::kF8E4M3, id, stored_layout(tensor)));
      }
    }
    const OperationId before = graph.operators()[id].operation;
    auto known = operations.find(before);
    if (known == operations.end()) {
      known = operations.emplace(before, builder.intern(in_float8(graph.operations()[before]))).first;
    }
    builder.op(id).operands = operands;
    builder.op(id).operation = known->second;
  }
  OperatorGraph result = builder.build();
  if (unread.empty()) return result;
  IdVector<OperatorId, char> is_removed(result.operators().size(), 0);
  for (const OperatorId id : result.operators().ids()) {
    is_removed[id] = unread.contains(std::string(result.operators()[id].name)) ? 1 : 0;
  }
  OperatorGraphBuilder without(result);
  without.remove(is_removed);
  return without.build();
}

}  // namespace shardplan
