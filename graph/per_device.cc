// Only operators that treat the rows of a batch alike, and weights as a whole, can be written with the devices as one more
// dimension: a product becomes a batched one, an elementwise operator broadcasts along one dimension more. That covers dense
// layers. Convolutions, norms and lookups would need operators with a list of weights; they are refused.
#include "graph/per_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "operators/catalogue.h"

namespace shardplan {
namespace {

constexpr std::array<std::string_view, 6> kElementwise = {"BiasAdd", "Add", "Sub", "Mul", "Div", "RealDiv"};

class PerDeviceParts {
 public:
  PerDeviceParts(const OperatorGraph& graph, std::int64_t num_devices, bool local_batch_norm)
      : graph_(graph), builder_(graph), num_devices_(num_devices), local_batch_norm_(local_batch_norm) {}

  OperatorGraph run() {
    for (const TensorId id : graph_.tensors().ids()) {
      if (graph_.tensor(id).layerwise_parallel) give_each_its_own(id);
    }
    for (const OperatorId id : graph_.operators().ids()) {
      const std::vector<TensorId>& operands = graph_.operators()[id].operands;
      const auto is_own = [&](TensorId operand) { return graph_.tensor(operand).layerwise_parallel; };
      if (std::any_of(operands.begin(), operands.end(), is_own)) {
        rewrite(id);
      } else if (local_batch_norm_ && graph_.operation(id).type->name == "BatchNorm" &&
                 graph_.operation(id).flag("is_training")) {
        rewrite_batch_norm(id);
      }
    }
    if (!faults_.empty()) throw InputError(std::move(faults_));
    return builder_.build();
  }

 private:
  void fault(const SourcePlace& place, std::string message, std::string hint = "") {
    faults_.push_back({place, std::move(message), std::move(hint)});
  }

  void give_each_its_own(TensorId id) {
    Shape& shape = builder_.tensor(id).type.shape;
    shape.insert(shape.begin(), num_devices_);
    builder_.tensor(id).layerwise_parallel = true;
  }

  /// Whether the rows of an operator's batch are those of whole devices.
  bool can_be_parted(OperatorId id, TensorId batch, std::string_view why) {
    const GraphOperator& op = graph_.operators()[id];
    const Shape& shape = graph_.tensor(batch).type.shape;
    if (shape.empty() || shape[0] % num_devices_ != 0) {
      fault(op.place, fmt::format("{}: {}; {} devices do not divide dimension 0 of {}, which is {}", op.name, why,
                                  num_devices_, graph_.tensor(batch).name, shape.empty() ? 1 : shape[0]));
      return false;
    }
    return true;
  }

  void rewrite(OperatorId id) {
    const GraphOperator& op = graph_.operators()[id];
    const Operation& operation = graph_.operation(id);
    const std::string& type = operation.type->name;
    const auto is_own = [&](std::size_t i) { return graph_.tensor(op.operands[i]).layerwise_parallel; };
    const bool is_product = type == "MatMul" && op.operands.size() == 2 && is_own(1) && !is_own(0) &&
                            operation.operands[1].shape.size() == 2 && !operation.flag("transpose_a");
    const bool is_elementwise =
        std::find(kElementwise.begin(), kElementwise.end(), type) != kElementwise.end() && is_own(0) != is_own(1);
    const std::size_t own = is_own(0) ? 0 : 1;
    const Shape whole = is_product || is_elementwise ? operation.operands[1 - own].shape : Shape();
    const Shape& shape = operation.operands[is_product || is_elementwise ? own : 0].shape;
    const bool covers = shape.size() < whole.size() || (shape.size() == whole.size() && shape[0] == 1);
    if (!is_product && !(is_elementwise && operation.results[0].shape == whole && covers)) {
      const auto first = std::find_if(op.operands.begin(), op.operands.end(),
                                      [&](TensorId operand) { return graph_.tensor(operand).layerwise_parallel; });
      fault(graph_.tensor(*first).place,
            fmt::format("{}: layerwise_parallel: {} ({}) reads it", graph_.tensor(*first).name, op.name, type),
            fmt::format("expected a MatMul's second operand [k, n], or one of {} beside a batch",
                        fmt::join(kElementwise, ", ")));
      return;
    }
    if (!can_be_parted(id, op.operands[1 - own], graph_.tensor(op.operands[own]).name + " is layerwise_parallel")) {
      return;
    }
    const std::int64_t rows = num_elements(whole) / (is_product ? whole.back() : 1) / num_devices_;
    Shape parted = {num_devices_};
    if (is_product) {
      parted.insert(parted.end(), {rows, whole.back()});
    } else {
      parted.push_back(whole[0] / num_devices_);
      parted.insert(parted.end(), whole.begin() + 1, whole.end());
    }
    std::vector<TensorId> operands(2, op.operands[own]);
    operands[1 - own] = add(id, ".parted", "Reshape", {{"shape", parted}}, {op.operands[1 - own]});
    std::string new_type = type;
    Attributes attributes = operation.attributes;
    if (is_product) {
      new_type = "BatchMatMul";
    } else {
      // Broadcast along the rows of a device; channels of NCHW stand in dimension 1.
      const bool is_nchw = type == "BiasAdd" && operation.text("data_format") == "NCHW";
      Shape beside(whole.size() + 1, 1);
      beside[0] = num_devices_;
      const std::size_t begin = is_nchw ? 2 : beside.size() - shape.size();
      std::copy(shape.begin(), shape.end(), beside.begin() + static_cast<std::ptrdiff_t>(begin));
      operands[own] = add(id, ".own", "Reshape", {{"shape", beside}}, {op.operands[own]});
      if (type == "BiasAdd") {
        new_type = "Add";
        attributes.clear();
      }
    }
    // The operator itself only joins the parts from here on, and the new one takes its name.
    const TensorId result = add(id, "", new_type, attributes, operands);
    GraphOperator& joined = builder_.op(id);
    joined.name += ".joined";
    joined.repeat_class += ".joined";
    joined.operands = {result};
    joined.operation = builder_.intern(make_operation(
        *find_operator_type("Reshape"), {{"shape", operation.results[0].shape}}, {builder_.tensor(result).type}));
  }

  void rewrite_batch_norm(OperatorId id) {
    const GraphOperator& op = graph_.operators()[id];
    const Operation& operation = graph_.operation(id);
    if (!can_be_parted(id, op.operands[0], "batch_norm is local")) return;
    for (std::size_t r = 1; r < op.results.size(); ++r) {
      const GraphTensor& result = graph_.tensor(op.results[r]);
      if (result.readers.empty() && !result.is_output) continue;
      fault(op.place, fmt::format("{}: batch_norm is local, so that {} is another one on every device, but it is read",
                                  op.name, result.name));
      return;
    }
    for (const std::size_t moving : {std::size_t{3}, std::size_t{4}}) {
      const GraphTensor& tensor = graph_.tensor(op.operands[moving]);
      if (tensor.kind == TensorKind::kParameter && tensor.readers.size() == 1) {
        give_each_its_own(op.operands[moving]);
        continue;
      }
      fault(op.place, fmt::format("{}: batch_norm is local, but {} is no parameter of its own", op.name, tensor.name));
      return;
    }
    Attributes attributes = operation.attributes;
    attributes["parts"] = num_devices_;
    std::vector<TensorType> types;
    for (const TensorId operand : op.operands) types.push_back(builder_.tensor(operand).type);
    const OperationId parted = builder_.intern(make_operation(*operation.type, attributes, std::move(types)));
    builder_.op(id).operation = parted;
    for (std::size_t r = 1; r < op.results.size(); ++r) {
      builder_.tensor(op.results[r]).type = builder_.operation(parted).results[r];
    }
  }

  /// A new operator beside `anchor`, in its block; its only result.
  TensorId add(OperatorId anchor, std::string_view suffix, std::string_view type, const Attributes& attributes,
               const std::vector<TensorId>& operands) {
    GraphOperator op = graph_.operators()[anchor];
    op.name += suffix;
    op.repeat_class += suffix;
    op.operands = operands;
    op.results.clear();
    std::vector<TensorType> types;
    for (const TensorId operand : operands) types.push_back(builder_.tensor(operand).type);
    const std::string result = graph_.operators()[anchor].name + (suffix.empty() ? ".parts" : std::string(suffix));
    const OperatorId id = builder_.add_operator(
        std::move(op), make_operation(*find_operator_type(type), attributes, std::move(types)), {result});
    builder_.place_before(id, anchor);
    return builder_.op(id).results[0];
  }

  const OperatorGraph& graph_;
  OperatorGraphBuilder builder_;
  std::int64_t num_devices_;
  bool local_batch_norm_;
  std::vector<Diagnostic> faults_;
};

}  // namespace

OperatorGraph with_per_device_parts(const OperatorGraph& forward, std::int64_t num_devices, bool local_batch_norm) {
  if (num_devices > 1) return PerDeviceParts(forward, num_devices, local_batch_norm).run();
  OperatorGraphBuilder builder(forward);
  for (const TensorId id : forward.tensors().ids()) builder.tensor(id).layerwise_parallel = false;
  return builder.build();
}

}  // namespace shardplan
