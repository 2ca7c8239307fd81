// One operator stands for those of all devices (operators/per_device.h): it computes with the devices as the first
// dimension of operands and results. So an operator that computes each row of the batch separately may read per-device
// values; after it the rows are joined again.
#include "graph/per_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "graph/batch_factors.h"
#include "operators/catalogue.h"
#include "operators/per_device.h"

namespace shardplan {
namespace {

class PerDeviceParts {
 public:
  PerDeviceParts(const OperatorGraph& graph, std::int64_t num_devices, bool local_batch_norm)
      : graph_(graph),
        builder_(graph),
        num_devices_(num_devices),
        local_batch_norm_(local_batch_norm),
        has_batch_(find_batch(graph).has_batch),
        is_own_(graph.tensors().size(), 0),
        is_data_(graph.tensors().size(), 0) {}

  OperatorGraph run() {
    for (const TensorId id : graph_.tensors().ids()) {
      if (graph_.tensor(id).layerwise_parallel) give_each_its_own(id);
      is_data_[id] = graph_.tensor(id).kind == TensorKind::kInput;
    }
    for (const OperatorId id : graph_.operators().ids()) {
      const GraphOperator& op = graph_.operators()[id];
      const auto any_of = [&](const IdVector<TensorId, char>& is_it) {
        return std::any_of(op.operands.begin(), op.operands.end(), [&](TensorId operand) { return is_it[operand]; });
      };
      for (const TensorId result : op.results) is_data_[result] = any_of(is_data_);
      const bool is_local_norm = local_batch_norm_ && graph_.operation(id).type->name == "BatchNorm" &&
                                 graph_.operation(id).flag("is_training");
      if (any_of(is_own_)) {
        rewrite(id, is_local_norm);
      } else if (is_local_norm) {
        rewrite_batch_norm(id);
      }
      if (!faults_.empty()) break;  // later operators would read tensors that were not rewritten
    }
    for (const TensorId id : graph_.tensors().ids()) {
      const GraphTensor& tensor = graph_.tensor(id);
      if (!is_own_[id] || tensor.kind == TensorKind::kParameter || !faults_.empty()) continue;
      if (!tensor.is_output && graph_.loss() != id) continue;
      fault(graph_.operators()[*tensor.producer].place,
            fmt::format("{}: every device has another one, since only what is layerwise_parallel is read for it; an "
                        "output is one tensor",
                        tensor.name));
    }
    if (!faults_.empty()) throw InputError(std::move(faults_));
    return builder_.build();
  }

 private:
  void fault(const SourcePlace& place, std::string message, std::string hint = "") {
    faults_.push_back({place, std::move(message), std::move(hint)});
  }

  void give_each_its_own(TensorId id) {
    SharedShape& shape = builder_.tensor(id).type.shape;
    shape.insert(shape.begin(), num_devices_);
    builder_.tensor(id).layerwise_parallel = true;
    is_own_[id] = 1;
  }

  /// Whether an operator's batch can be divided into whole rows for each device.
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

  const GraphTensor& first_own(const GraphOperator& op) const {
    return graph_.tensor(
        *std::find_if(op.operands.begin(), op.operands.end(), [&](TensorId operand) { return is_own_[operand]; }));
  }

  /// "w: layerwise_parallel: c (Conv2D) reads it, ...", at the parameter, or at `op` if a value made of it is read.
  void refuse(const GraphOperator& op, const std::string& why, std::string hint = "") {
    const GraphTensor& own = first_own(op);
    const SourcePlace& place = own.kind == TensorKind::kParameter ? own.place : op.place;
    fault(place,
          fmt::format("{}: layerwise_parallel: {} ({}) reads it{}", own.name, op.name,
                      graph_.operations()[op.operation].type->name, why),
          std::move(hint));
  }

  /// The role of an operand in an operator that reads per-device values.
  enum class Part { kOwn, kRows, kShared };

  /// The roles of the operands; nothing, after `refuse`, if the operator cannot treat each device's rows separately.
  std::optional<std::vector<Part>> parts_of(const GraphOperator& op, bool may_mix_rows) {
    const ShardingRule& rule = graph_.operations()[op.operation].rule;
    const std::optional<std::uint32_t> rows = leading_factor(rule.results[0]);
    std::vector<Part> parts;
    bool has_rows = false;
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const GraphTensor& operand = graph_.tensor(op.operands[i]);
      const bool walks_rows = rows && std::any_of(rule.operands[i].begin(), rule.operands[i].end(), [&](const auto& d) {
                                return std::find(d.factors.begin(), d.factors.end(), *rows) != d.factors.end();
                              });
      if (is_own_[op.operands[i]]) {
        parts.push_back(Part::kOwn);
      } else if (has_batch_[op.operands[i]] && leading_factor(rule.operands[i]) == rows) {
        parts.push_back(Part::kRows);
        has_rows = true;
      } else if (is_data_[op.operands[i]] && walks_rows) {
        fault(
            first_own(op).place,
            fmt::format("{}: every device has its own (layerwise_parallel), but dimension 0 of what {} reads beside it "
                        "is not the batch",
                        first_own(op).name, op.name));
        return std::nullopt;
      } else if (is_data_[op.operands[i]]) {
        refuse(op, fmt::format(", and {}, which is not by rows of the batch", operand.name));
        return std::nullopt;
      } else {
        parts.push_back(Part::kShared);
      }
    }
    if (has_rows && !may_mix_rows && rule.factors[*rows].kind != FactorKind::kPassThrough) {
      const bool is_norm = graph_.operations()[op.operation].type->name == "BatchNorm";
      refuse(op, ", and computes with all rows of the batch together",
             is_norm ? "batch_norm: local normalises by each device's own rows" : "");
      return std::nullopt;
    }
    return parts;
  }

  void rewrite(OperatorId id, bool is_local_norm) {
    const GraphOperator& op = graph_.operators()[id];
    const Operation& operation = graph_.operation(id);
    if (find_operator_type(operation.type->name) != operation.type || !is_executable(*operation.type)) {
      return refuse(op, ", which is not an operator of the catalogue that has a kernel");
    }
    if (is_local_norm && !give_own_statistics(id)) return;
    const std::optional<std::vector<Part>> parts = parts_of(op, is_local_norm);
    if (!parts) return;
    std::vector<TensorId> operands = op.operands;
    std::vector<std::int64_t> shared;
    bool has_rows = false;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if ((*parts)[i] == Part::kShared) shared.push_back(static_cast<std::int64_t>(i));
      if ((*parts)[i] != Part::kRows) continue;
      if (!can_be_parted(id, operands[i], first_own(op).name + " is layerwise_parallel")) return;
      Shape parted = operation.operands[i].shape;
      parted[0] /= num_devices_;
      parted.insert(parted.begin(), num_devices_);
      const std::string suffix = has_rows ? fmt::format(".parted{}", i) : ".parted";
      operands[i] = add(id, id, suffix, "Reshape", {{"shape", parted}}, {operands[i]});
      has_rows = true;
    }
    Attributes attributes = operation.attributes;
    attributes["shared"] = std::move(shared);
    try {
      if (has_rows) {
        join(id, attributes, operands);
      } else {
        make_own(id, attributes);
      }
    } catch (const InputError& error) {  // thrown by make_operation
      refuse(op, fmt::format(", but not with {} of the rows: {}", num_devices_ > 1 ? "a part" : "all",
                             error.diagnostics().front().message));
    }
  }

  /// Replaces an operator that reads no rows by its per-device form; its results are per-device values, too.
  void make_own(OperatorId id, const Attributes& attributes) {
    GraphOperator& op = builder_.op(id);
    op.operation = builder_.intern(make_operation(*per_device_type(id), attributes, types_of(op.operands)));
    for (std::size_t r = 0; r < op.results.size(); ++r) {
      builder_.tensor(op.results[r]).type = builder_.operation(op.operation).results[r];
      is_own_[op.results[r]] = 1;
    }
  }

  /// Replaces `id` by its per-device form, followed by a view that joins the rows of its first result. Further results
  /// become per-device values, which no operator may read.
  void join(OperatorId id, const Attributes& attributes, const std::vector<TensorId>& operands) {
    const GraphOperator& op = graph_.operators()[id];
    const Shape& whole = graph_.operation(id).results[0].shape;
    Operation parts = make_operation(*per_device_type(id), attributes, types_of(operands));
    Shape parted = whole;
    parted[0] /= num_devices_;
    parted.insert(parted.begin(), num_devices_);
    if (parts.results[0].shape != parted) {
      return refuse(op, fmt::format(", and makes {} of a device's rows; expected {}", to_string(parts.results[0].shape),
                                    to_string(parted)));
    }
    for (std::size_t r = 1; r < op.results.size(); ++r) {
      const GraphTensor& result = graph_.tensor(op.results[r]);
      if (result.readers.empty() && !result.is_output) continue;
      return refuse(op, fmt::format(", and its result {} is read as well", result.name));
    }
    builder_.op(id).operands = operands;
    builder_.op(id).operation = builder_.intern(std::move(parts));
    for (std::size_t r = 0; r < op.results.size(); ++r) {
      builder_.tensor(op.results[r]).type = builder_.operation(id).results[r];
    }
    // The view is added with its own result; then both swap results, since readers have the first operator's.
    const TensorId first = op.results[0];
    const TensorId added = add(OperatorId(id.value() + 1), id, ".joined", "Reshape", {{"shape", whole}}, {first});
    const OperatorId view = *builder_.tensor(added).producer;
    std::swap(builder_.tensor(first).type, builder_.tensor(added).type);
    std::swap(builder_.tensor(first).producer, builder_.tensor(added).producer);
    builder_.tensor(added).name = op.name + ".parts";
    builder_.op(id).results[0] = added;
    builder_.op(view).operands = {added};
    builder_.op(view).results = {first};
  }

  /// Gives a batch normalisation over each device's rows per-device moving statistics.
  bool give_own_statistics(OperatorId id) {
    const GraphOperator& op = graph_.operators()[id];
    for (std::size_t r = 1; r < op.results.size(); ++r) {
      const GraphTensor& result = graph_.tensor(op.results[r]);
      if (result.readers.empty() && !result.is_output) continue;
      fault(op.place, fmt::format("{}: batch_norm is local, so that {} is another one on every device, but it is read",
                                  op.name, result.name));
      return false;
    }
    for (const std::size_t moving : {std::size_t{3}, std::size_t{4}}) {
      const GraphTensor& tensor = graph_.tensor(op.operands[moving]);
      if (is_own_[op.operands[moving]]) continue;
      if (tensor.kind == TensorKind::kParameter && tensor.readers.size() == 1) {
        give_each_its_own(op.operands[moving]);
        continue;
      }
      fault(op.place,
            fmt::format("{}: batch_norm is local, but {} is not a parameter of its own", op.name, tensor.name));
      return false;
    }
    return true;
  }

  void rewrite_batch_norm(OperatorId id) {
    const GraphOperator& op = graph_.operators()[id];
    const Operation& operation = graph_.operation(id);
    if (!can_be_parted(id, op.operands[0], "batch_norm is local")) return;
    if (!give_own_statistics(id)) return;
    Attributes attributes = operation.attributes;
    attributes["parts"] = num_devices_;
    const OperationId parted = builder_.intern(make_operation(*operation.type, attributes, types_of(op.operands)));
    builder_.op(id).operation = parted;
    for (std::size_t r = 1; r < op.results.size(); ++r) {
      builder_.tensor(op.results[r]).type = builder_.operation(parted).results[r];
    }
  }

  const OperatorType* per_device_type(OperatorId id) const {
    return find_graph_operator_type(std::string(kPerDevice) + graph_.operation(id).type->name);
  }

  std::vector<TensorType> types_of(const std::vector<TensorId>& tensors) {
    std::vector<TensorType> types;
    for (const TensorId tensor : tensors) types.push_back(builder_.tensor(tensor).type);
    return types;
  }

  /// Adds an operator before `anchor`, in the block of `origin` and named after it plus the suffix; returns its result.
  TensorId add(OperatorId anchor, OperatorId origin, std::string_view suffix, std::string_view type,
               const Attributes& attributes, const std::vector<TensorId>& operands) {
    GraphOperator op = graph_.operators()[origin];
    op.name += suffix;
    op.operands = operands;
    Operation operation = make_operation(*find_operator_type(type), attributes, types_of(operands));
    const OperatorId id = builder_.add_operator(std::move(op), std::move(operation));
    builder_.place_before(id, anchor);
    return builder_.op(id).results[0];
  }

  const OperatorGraph& graph_;
  OperatorGraphBuilder builder_;
  std::int64_t num_devices_;
  bool local_batch_norm_;
  IdVector<TensorId, char> has_batch_;  // of the tensors of `graph_`
  IdVector<TensorId, char> is_own_;     // per-device values: parameters, and values computed from them alone
  IdVector<TensorId, char> is_data_;    // depends on an input
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
