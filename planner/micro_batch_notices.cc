#include "planner/micro_batch_notices.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "model/model_source.h"

// Which dimensions are the batch is not guessed: the file is read at the whole batch too, and they are those that are
// as many times larger there as there are micro-batches.

namespace shardplan {
namespace {

class BatchUse {
 public:
  BatchUse(const OperatorGraph& part, const OperatorGraph& whole, std::int64_t count)
      : part_(part), whole_(whole), count_(count) {}

  /// The first tensor with the batch in two dimensions, such as the logits [batch, batch] of a contrastive loss.
  std::optional<TensorId> squared() const {
    for (const TensorId id : part_.tensors().ids()) {
      if (part_.tensor(id).kind == TensorKind::kResult && num_batches(id) > 1) return id;
    }
    return std::nullopt;
  }

  /// The first operator between the batch and the loss that reduces the batch to anything but a mean.
  std::optional<OperatorId> other_than_mean() const {
    IdVector<TensorId, char> is_needed(part_.tensors().size(), 0);
    is_needed[*part_.loss()] = 1;
    std::optional<OperatorId> first;
    for (std::size_t i = part_.operators().size(); i-- > 0;) {
      const OperatorId id(i);
      const GraphOperator& op = part_.operators()[id];
      if (std::ranges::none_of(op.results, [&](TensorId result) { return is_needed[result] != 0; })) continue;
      for (const TensorId operand : op.operands) is_needed[operand] = 1;
      if (reduces_batch(op) && !is_mean(part_.operation(id)) && !is_scaled(op)) first = id;
    }
    return first;
  }

 private:
  /// How many times the batch is a factor of the tensor's size.
  int num_batches(TensorId id) const {
    std::int64_t part = num_elements(part_.tensor(id).type.shape);
    const std::int64_t whole = num_elements(whole_.tensor(id).type.shape);
    int times = 0;
    while (part > 0 && part <= whole / count_) {
      part *= count_;
      ++times;
    }
    return times;
  }

  bool reduces_batch(const GraphOperator& op) const {
    const auto has_batch = [&](TensorId id) { return num_batches(id) > 0; };
    const auto is_number = [&](TensorId id) { return is_floating(part_.tensor(id).type.dtype); };
    return std::ranges::any_of(op.operands, has_batch) && std::ranges::none_of(op.results, has_batch) &&
           std::ranges::all_of(op.results, is_number);
  }

  static bool is_mean(const Operation& operation) {
    const auto reduction = operation.attributes.find("reduction");
    return operation.type->name == "ReduceMean" ||
           (reduction != operation.attributes.end() && reduction->second == Attribute(std::string("mean")));
  }

  /// Whether a constant that follows the batch is a factor of the result: sum / B.
  bool is_scaled(const GraphOperator& reducing) const {
    for (TensorId at = reducing.results[0]; at != part_.loss() && !part_.tensor(at).readers.empty();) {
      const OperatorId reader = part_.tensor(at).readers[0].op;
      const std::string& type = part_.operation(reader).type->name;
      for (const TensorId operand : part_.operators()[reader].operands) {
        const bool is_factor = type == "Mul" || type == "RealDiv" || type == "Div";
        if (is_factor && part_.tensor(operand).fill != whole_.tensor(operand).fill) return true;
      }
      at = part_.operators()[reader].results[0];
    }
    return false;
  }

  const OperatorGraph& part_;
  const OperatorGraph& whole_;
  const std::int64_t count_;
};

}  // namespace

std::vector<std::string> micro_batch_notices(const Model& model) {
  const std::int64_t count = model.divided_by;
  if (count < 2 || !model.graph.loss()) return {};
  ModelOverrides overrides = model.overrides;
  const auto padded = model.padded_dims.find(model.batch);
  overrides.dims[model.batch] =
      count * (padded == model.padded_dims.end() ? model.dims.at(model.batch) : padded->second.real);
  const Model whole = model.source->at(overrides);
  if (whole.graph.tensors().size() != model.graph.tensors().size()) return {};
  const BatchUse batch(model.graph, whole.graph, count);
  std::vector<std::string> notices;
  if (const std::optional<OperatorId> op = batch.other_than_mean()) {
    notices.push_back(
        fmt::format("micro_batches changes what is trained: a step takes the mean of the losses of {} micro-batches, "
                    "but the loss is "
                    "not a mean over the batch: {} is a {}; use ReduceMean, or train without micro_batches",
                    count, model.graph.operators()[*op].name, model.graph.operation(*op).type->name));
  }
  if (const std::optional<TensorId> tensor = batch.squared()) {
    notices.push_back(fmt::format(
        "micro_batches changes what is trained: {} {} pairs every sample of the batch with every other, but {} of a "
        "micro-batch pairs only its own samples; to keep all pairs, train without micro_batches",
        model.graph.tensor(*tensor).name, to_string(whole.graph.tensor(*tensor).type.shape),
        to_string(model.graph.tensor(*tensor).type.shape)));
  }
  return notices;
}

}  // namespace shardplan
