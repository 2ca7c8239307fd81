#include "graph/autocast.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "graph/inserted_casts.h"

namespace shardplan {
namespace {

/// PyTorch's "CUDA Ops that can autocast to float32" (torch.amp), by the names that they have here. RmsNorm is not among
/// them, but models that write it out compute it so.
constexpr std::string_view kInF32[] = {
    "CumSum",
    "Exp",
    "Expm1",
    "GroupNorm",
    "LayerNorm",
    "Log",
    "Log1p",
    "LogSoftmax",
    "L2Normalize",
    "Pow",
    "Reciprocal",
    "ReduceSum",
    "RmsNorm",
    "Rsqrt",
    "SigmoidCrossEntropyWithLogits",
    "SmoothL1Loss",
    "Softmax",
    "Softplus",
    "SoftmaxCrossEntropyWithLogits",
    "SparseSoftmaxCrossEntropyWithLogits",
    "Square",
    "SquareSum",
    "TopKRouter",
};

class Autocast {
 public:
  Autocast(const OperatorGraph& graph, DataType narrow)
      : graph_(graph), narrow_(narrow), builder_(graph), casts_(graph, builder_) {}

  OperatorGraph run() {
    for (const OperatorId id : graph_.operators().ids()) retype(id);
    return builder_.build();
  }

 private:
  void retype(OperatorId id) {
    const OperatorType& type = *graph_.operation(id).type;
    std::vector<TensorId> operands(graph_.operators()[id].operands.begin(), graph_.operators()[id].operands.end());
    if (type.work == WorkKind::kContraction) {
      cast_all(operands, narrow_, id);
    } else if (std::ranges::find(kInF32, type.name) != std::end(kInF32)) {
      cast_all(operands, DataType::kF32, id);
    } else if (type.name == "BiasAdd" || type.name == "PReLU" || type.in_place != InPlace::kNo) {
      cast_all(operands, type_of(operands[0]), id);
    }
    OperationId operation = graph_.operators()[id].operation;
    if (types_of(operands) != graph_.operation(id).operands) operation = retyped(id, operands);
    GraphOperator& op = builder_.op(id);
    op.operands = operands;
    op.operation = operation;
    const Operation& made = builder_.operation(operation);
    for (std::size_t i = 0; i < op.results.size(); ++i) builder_.tensor(op.results[i]).type = made.results[i];
  }

  /// The operator's operation on these operands. If it takes no operands of several types, they are cast to the widest.
  OperationId retyped(OperatorId id, std::vector<TensorId>& operands) {
    const OperationId before = graph_.operators()[id].operation;
    const Operation& old = graph_.operations()[before];
    std::pair<OperationId, std::vector<DataType>> key{before, {}};
    for (const TensorId operand : operands) key.second.push_back(type_of(operand));
    auto known = retyped_.find(key);
    if (known == retyped_.end()) known = retyped_.emplace(std::move(key), made_of(old, operands, nullptr)).first;
    if (known->second) return *known->second;
    cast_all(operands, widest(operands), id);
    return *made_of(old, operands, &graph_.operators()[id]);
  }

  /// Nothing if that is impossible; an error if it is this operator's.
  std::optional<OperationId> made_of(const Operation& old, const std::vector<TensorId>& operands,
                                     const GraphOperator* op) {
    try {
      return builder_.intern(make_operation(*old.type, old.attributes, types_of(operands)));
    } catch (const InputError& error) {
      if (op == nullptr) return std::nullopt;
      throw InputError(op->place, "{}: with autocast: {}", op->name, error.diagnostics()[0].message);
    }
  }

  DataType widest(const std::vector<TensorId>& operands) {
    const bool has_f64 = std::ranges::any_of(operands, [&](TensorId id) { return type_of(id) == DataType::kF64; });
    return has_f64 ? DataType::kF64 : DataType::kF32;
  }

  DataType type_of(TensorId tensor) { return builder_.tensor(tensor).type.dtype; }

  std::vector<TensorType> types_of(const std::vector<TensorId>& tensors) {
    std::vector<TensorType> types;
    for (const TensorId tensor : tensors) types.push_back(builder_.tensor(tensor).type);
    return types;
  }

  static bool is_cast(DataType type) {
    return type == DataType::kF32 || type == DataType::kF16 || type == DataType::kBF16;
  }

  void cast_all(std::vector<TensorId>& operands, DataType to, OperatorId reader) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const DataType from = type_of(operands[i]);
      if (from != to && is_cast(from) && is_floating(to))
        operands[i] = casts_.cast(operands[i], to, reader, casts_.layout_of(reader, i));
    }
  }

  const OperatorGraph& graph_;
  DataType narrow_;
  OperatorGraphBuilder builder_;
  InsertedCasts casts_;
  /// By operation and types of operands: the same operation on them; nothing if it does not take them.
  std::map<std::pair<OperationId, std::vector<DataType>>, std::optional<OperationId>> retyped_;
};

}  // namespace

OperatorGraph autocast(const OperatorGraph& graph, DataType narrow) { return Autocast(graph, narrow).run(); }

}  // namespace shardplan
