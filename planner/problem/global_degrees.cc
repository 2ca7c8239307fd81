// Which strategies and layouts belong to plans with global degrees.
//
// Frameworks with one setting for the whole model do not determine how each operator is sharded; they determine it
// for products with weights, for the norms between them, and for stored tensors. So only that is decided here,
// operator by operator, and a search fills in the rest. The cost of such a setting is that of its best plan, and a
// plan that is itself of this kind is among the candidates with all its decisions.

#include "planner/problem/global_degrees.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "graph/stored_updates.h"
#include "graph/weights.h"
#include "layouts/layout_axes.h"

namespace shardplan {
namespace {

/// The number of pieces that two parts of the mesh have in common.
std::int64_t common_pieces(const AxisRef& a, const AxisRef& b) {
  if (a.axis != b.axis) return 1;
  return std::max<std::int64_t>(1, std::min(a.end(), b.end()) / std::max(a.before, b.before));
}

bool is_product_or_lookup(const OperatorGraph& graph, OperatorId op) {
  const OperatorType& type = *graph.operation(op).type;
  return type.work == WorkKind::kContraction || type.role == OperatorRole::kLookup;
}

/// The factor of the second of three or more dimensions: the sequence, for operators between sharded products.
std::optional<std::uint32_t> sequence_factor(const Operation& operation) {
  const auto second = [](const TensorWalk& walk) -> std::optional<std::uint32_t> {
    if (walk.size() < 3 || walk[1].factors.empty()) return std::nullopt;
    return walk[1].factors[0];
  };
  for (const TensorWalk& walk : operation.rule.results) {
    if (const auto factor = second(walk)) return factor;
  }
  for (const TensorWalk& walk : operation.rule.operands) {
    if (const auto factor = second(walk)) return factor;
  }
  return std::nullopt;
}

}  // namespace

std::int64_t common_pieces(const std::vector<AxisRef>& a, const std::vector<AxisRef>& b) {
  std::int64_t pieces = 1;
  for (const AxisRef& axis : a) {
    for (const AxisRef& other : b) pieces *= common_pieces(axis, other);
  }
  return pieces;
}

DegreesKind::DegreesKind(const OperatorGraph& graph, const TensorVersions& versions, const DeviceMesh& mesh,
                         GlobalDegrees degrees)
    : graph_(graph),
      versions_(versions),
      mesh_(mesh),
      degrees_(std::move(degrees)),
      tensor_(num_pieces(degrees_.tensor)),
      context_(num_pieces(degrees_.context)),
      data_(mesh.num_devices() / tensor_ / context_),
      batch_size_(batch_size(graph)),
      batch_(find_batch(graph)),
      is_between_(graph.operators().size(), 0),
      is_cut_weight_(graph.tensors().size(), 0) {
  for (const OperatorId op : graph.operators().ids()) {
    if (!is_demanded(op)) continue;
    for (const TensorId operand : graph.operators()[op].operands) {
      if (weight_of(graph, operand) != nullptr) is_cut_weight_[behind_casts(graph, operand)] = 1;
    }
  }
  find_between();
  if (degrees_.experts.empty()) return;
  experts_ = find_experts(graph);
  expert_ = pieces(degrees_.experts);
}

/// Norms, additions before them without a product in between, and the gradients of all these.
void DegreesKind::find_between() {
  IdVector<TensorId, char> is_between(graph_.tensors().size(), 0);
  for (std::size_t i = graph_.operators().size(); i-- > 0;) {
    const OperatorId id(i);
    const GraphOperator& op = graph_.operators()[id];
    if (op.pass != Pass::kForward || op.results.empty()) continue;
    const OperatorType& type = *graph_.operation(id).type;
    const bool is_norm = type.role == OperatorRole::kTokenNorm;
    const bool is_before =
        is_between[op.results[0]] != 0 && type.work == WorkKind::kElementwise && !is_product_or_lookup(graph_, id);
    if (!is_norm && !is_before) continue;
    is_between_[id] = 1;
    is_between[op.results[0]] = 1;
    const Shape& shape = graph_.tensor(op.results[0]).type.shape;
    for (const TensorId operand : op.operands) {
      const bool has_batch = batch_.has_batch[operand] != 0 || batch_.is_of_one[operand] != 0;
      if (has_batch && graph_.tensor(operand).type.shape == shape) is_between[operand] = 1;
    }
  }
  for (const OperatorId id : graph_.operators().ids()) {
    const GraphOperator& op = graph_.operators()[id];
    if (op.pass != Pass::kBackward || is_product_or_lookup(graph_, id)) continue;
    is_between_[id] = op.forward && is_between_[*op.forward] != 0;
    for (const TensorId result : op.results) {
      const std::optional<TensorId>& of = graph_.tensor(result).gradient_for;
      if (of && is_between[*of] != 0) is_between_[id] = 1;
    }
  }
}

DegreesKind::Pieces DegreesKind::pieces(const std::vector<AxisRef>& axes) const {
  Pieces found;
  for (const AxisRef& axis : axes) {
    const std::int64_t tensor = common_pieces({axis}, degrees_.tensor);
    const std::int64_t context = common_pieces({axis}, degrees_.context);
    found.tensor *= tensor;
    found.context *= context;
    found.data *= axis.size / (tensor * context);
  }
  return found;
}

bool DegreesKind::is_demanded(OperatorId id) const {
  const GraphOperator& op = graph_.operators()[id];
  if (op.pass != Pass::kForward || !is_product_or_lookup(graph_, id)) return false;
  const auto is_of_one = [&](TensorId operand) { return batch_.is_of_one[operand] != 0; };
  if (!batch_.factors[id] && std::none_of(op.operands.begin(), op.operands.end(), is_of_one)) return false;
  return std::any_of(op.operands.begin(), op.operands.end(),
                     [&](TensorId operand) { return weight_of(graph_, operand) != nullptr; });
}

bool DegreesKind::has_expert_weight(const GraphOperator& op) const {
  const auto is_expert_weight = [&](TensorId operand) {
    const std::optional<TensorId> weight = stored_weight(graph_, operand);
    return weight && experts_.dimensions[*weight];
  };
  return op.pass == Pass::kForward && std::ranges::any_of(op.operands, is_expert_weight);
}

/// True for the operator that converts a parameter's two-byte gradient to the type of its sum.
bool DegreesKind::widens_gradient(const GraphOperator& op) const {
  if (op.pass != Pass::kBackward || op.forward || !op.parameter || op.operands.empty()) return false;
  const GraphTensor& gradient = graph_.tensor(op.operands[0]);
  const bool is_sum = gradient.producer && graph_.operation(*gradient.producer).type->accumulates;
  return !is_sum && element_bytes(gradient.type.dtype) < element_bytes(graph_.tensor(op.results[0]).type.dtype);
}

/// A collective before it would reduce in the narrow type.
bool DegreesKind::is_widened_partial(const Strategy& strategy, TensorId parameter) const {
  const bool is_stacked = !degrees_.experts.empty() && experts_.dimensions[parameter];
  const Pieces summed = pieces({strategy.partial.begin(), strategy.partial.end()});
  return summed.data * summed.context == data_ * context_ / (is_stacked ? expert_.data * expert_.context : 1);
}

bool DegreesKind::allows(OperatorId id, const Strategy& strategy) const {
  const GraphOperator& op = graph_.operators()[id];
  const Operation& operation = graph_.operation(id);
  if (operation.type->accumulates) {
    if (!op.parameter) return true;  // the loss
    return is_cut_over_data(result_layout(operation, strategy, mesh_, 0), *op.parameter, degrees_.zero >= 2);
  }
  if (graph_.tensor(op.results[0]).type.shape.empty()) return true;  // the loss
  if (degrees_.reduces_wide && widens_gradient(op) && !is_widened_partial(strategy, *op.parameter)) return false;
  std::vector<Pieces> by_factor;
  Pieces all;
  for (const std::vector<AxisRef>& axes : strategy.factors) {
    by_factor.push_back(pieces(axes));
    all.tensor *= by_factor.back().tensor;
    all.context *= by_factor.back().context;
    all.data *= by_factor.back().data;
  }
  const auto expert = degrees_.experts.empty() ? std::nullopt : experts_.factors[id];
  const Pieces own = expert ? by_factor[*expert] : Pieces();
  if (op.pass == Pass::kUpdate) {
    return degrees_.zero > 0 || !op.parameter || all.data * all.context == own.data * own.context;
  }
  if (own.data != 1 && own.data != expert_.data) return false;
  if (own.context != 1 && own.context != expert_.context) return false;
  const bool is_by_experts = own.data == expert_.data && own.context == expert_.context;
  if (expert && !is_by_experts && has_expert_weight(op) &&
      operation.rule.factors[*expert].size % num_pieces(degrees_.experts) == 0) {
    return false;
  }
  if (const std::optional<std::uint32_t>& batch = batch_.factors[id]) {
    const Factor& factor = operation.rule.factors[*batch];
    const Pieces& cut = by_factor[*batch];
    const std::int64_t wanted = data_ / own.data;
    const bool must = is_demanded(id) || factor.size % wanted == 0;
    if (factor.kind != FactorKind::kNeedReplication && must && cut.data != wanted) return false;
    // Groups of tokens are pieces of sequences.
    const bool has_sequence = factor.size > batch_size_ && factor.size % batch_size_ == 0;
    if (cut.tensor > 1 || (cut.context > 1 && !has_sequence) || all.data != cut.data * own.data) return false;
  }
  if (op.pass == Pass::kForward && is_product_or_lookup(graph_, id)) {
    Pieces weight;
    bool has_weight = false;
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      if (weight_of(graph_, op.operands[i]) == nullptr) continue;
      has_weight = true;
      const Pieces cut = pieces(cutting_axes(operand_layout(operation, strategy, mesh_, i)));
      weight = {std::max(weight.tensor, cut.tensor), std::max(weight.context, cut.context),
                std::max(weight.data, cut.data)};
    }
    if (has_weight && (weight.context > own.context || weight.data > own.data)) return false;
    // A table of positions is not read by tokens and may stay unsharded.
    if (is_demanded(id) && (weight.tensor != tensor_ || all.context != context_)) return false;
  }
  if (!is_between(id) || tensor_ == 1) return true;
  if (!degrees_.sequence) return all.tensor == 1;
  const std::optional<std::uint32_t> sequence = sequence_factor(operation);
  const std::int64_t along = sequence ? by_factor[*sequence].tensor : 1;
  if (operation.type->role == OperatorRole::kTokenNorm && op.pass == Pass::kForward && sequence) {
    return along == tensor_;
  }
  return all.tensor == along;
}

std::string DegreesKind::why_not(OperatorId id, const std::vector<Strategy>& candidates) const {
  const GraphOperator& op = graph_.operators()[id];
  const auto cuts_weight = [&](const Strategy& strategy) {
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      if (weight_of(graph_, op.operands[i]) == nullptr) continue;
      const Pieces weight = pieces(cutting_axes(operand_layout(graph_.operation(id), strategy, mesh_, i)));
      if (weight.tensor == tensor_) return true;
    }
    return false;
  };
  if (std::none_of(candidates.begin(), candidates.end(), cuts_weight)) {
    return fmt::format("no dimension of the weight of {} can be cut in {}", op.name, tensor_);
  }
  return fmt::format("{} cannot cut its batch in {}", op.name, data_);
}

/// Of a parameter, its gradient's sum or a state of its shape.
bool DegreesKind::is_cut_over_data(const TensorLayout& layout, TensorId parameter, bool by_zero) const {
  const Shape& shape = graph_.tensor(parameter).type.shape;
  if (layout.dimensions.size() == shape.size() && !degrees_.experts.empty() && experts_.dimensions[parameter]) {
    return is_cut_by_experts(layout, shape, *experts_.dimensions[parameter], by_zero);
  }
  const Pieces found = pieces(cutting_axes(layout));
  const std::int64_t over = found.data * found.context, most = data_ * context_ / num_pieces(degrees_.replicas);
  if (!by_zero) return over == 1;
  if (common_pieces(cutting_axes(layout), degrees_.replicas) > 1) return false;
  if (over == most) {
    // As one row of pieces: along one dimension, not as tiles.
    return std::any_of(layout.dimensions.begin(), layout.dimensions.end(), [&](const DimensionLayout& dimension) {
      const Pieces along = pieces(axes_along(dimension));
      return along.data * along.context == most;
    });
  }
  for (std::size_t d = 0; d < layout.dimensions.size(); ++d) {
    std::int64_t cut = most;
    cut *= pieces(axes_along(layout.dimensions[d])).tensor;
    if (shape[d] % cut == 0) return false;
  }
  return true;
}

/// The same for weights that are stacked by expert along `dimension`.
bool DegreesKind::is_cut_by_experts(const TensorLayout& layout, const Shape& shape, std::size_t dimension,
                                    bool by_zero) const {
  const Pieces along = pieces(axes_along(layout.dimensions[dimension]));
  const Pieces found = pieces(cutting_axes(layout));
  const bool is_by_experts = along.data % expert_.data == 0 && along.context % expert_.context == 0;
  if (shape[dimension] % num_pieces(degrees_.experts) == 0 && !is_by_experts) return false;
  return by_zero || found.data * found.context == along.data * along.context;
}

/// The result of a norm whose sequence is sharded over the axes of `tensor`.
bool DegreesKind::is_cut_again(const GraphTensor& tensor) const {
  if (!degrees_.gathers_again || !degrees_.sequence || tensor_ == 1 || !tensor.producer) return false;
  const Operation& operation = graph_.operation(*tensor.producer);
  const bool is_norm = operation.type->role == OperatorRole::kTokenNorm && tensor.result == 0;
  return is_norm && is_between(*tensor.producer) && sequence_factor(operation).has_value();
}

bool DegreesKind::is_cut_as_served(const TensorLayout& layout, TensorId cache) const {
  const GraphTensor& tensor = graph_.tensor(cache);
  const Reader& reader = tensor.readers.front();
  const TensorWalk& walk = graph_.operation(reader.op).rule.operands[reader.operand];
  const std::optional<std::uint32_t>& factor = batch_.factors[reader.op];
  const std::optional<std::uint8_t> batch = factor ? led_dimension(walk, *factor) : std::nullopt;
  const std::size_t tokens = token_dimension(graph_, cache);
  for (std::size_t d = 0; d < layout.dimensions.size(); ++d) {
    const Pieces cut = pieces(axes_along(layout.dimensions[d]));
    const bool is_batch = batch && *batch == d;
    if (cut.context > 1 || (cut.data > 1 && !is_batch)) return false;
    if (is_batch && (cut.tensor > 1 || (cut.data != data_ && tensor.type.shape[d] % data_ == 0))) return false;
    if (d == tokens && cut.tensor != degrees_.cache_tokens) return false;
    if (d > tokens && cut.tensor > 1) return false;
  }
  return true;
}

bool DegreesKind::allows(VersionId id, const TensorLayout& layout) const {
  const TensorVersion& version = versions_.all[id];
  const GraphTensor& tensor = graph_.tensor(version.tensor);
  const Shape& shape = tensor.type.shape;
  if (version.kind == TensorVersion::Kind::kKept) {
    const bool is_weight = graph_.tensor(behind_casts(graph_, version.tensor)).kind == TensorKind::kParameter;
    const TensorId stored = behind_casts(graph_, version.tensor);
    if (is_weight && degrees_.zero == 3 && degrees_.must_keep) return is_cut_over_data(layout, stored, false);
    if (is_weight) return degrees_.zero < 3 || degrees_.may_keep || is_cut_over_data(layout, stored, true);
    return !is_cut_again(tensor) || pieces(cutting_axes(layout)).tensor == tensor_;
  }
  if (version.kind != TensorVersion::Kind::kStored) return true;
  if (is_cache(graph_, version.tensor)) return degrees_.cache_tokens == 0 || is_cut_as_served(layout, version.tensor);
  const bool is_parameter = tensor.kind == TensorKind::kParameter;
  if (!is_parameter && (tensor.kind != TensorKind::kState || !tensor.state_of || shape.empty())) return true;
  const TensorId parameter = is_parameter ? version.tensor : *tensor.state_of;
  const bool is_like_weight = graph_.tensor(parameter).type.shape == shape;
  if (is_like_weight && is_cut_weight_[parameter] != 0 && pieces(cutting_axes(layout)).tensor != tensor_) return false;
  return is_cut_over_data(layout, parameter, degrees_.zero >= (is_parameter ? 3 : 1));
}

std::optional<Restrictions> with_degrees(Restrictions restrictions, const GlobalDegrees& degrees,
                                         const ModelProblem& free, const OperatorGraph& graph,
                                         const TensorVersions& versions, const DeviceMesh& mesh, std::string* why) {
  const DegreesKind kind(graph, versions, mesh, degrees);
  for (const OperatorId op : graph.operators().ids()) {
    if (graph.operators()[op].is_copy) continue;  // it has its original's strategy
    const std::vector<Strategy>& all = *free.strategies[op];
    std::vector<Strategy> kept;
    std::copy_if(all.begin(), all.end(), std::back_inserter(kept),
                 [&](const Strategy& strategy) { return kind.allows(op, strategy); });
    if (kept.empty() && kind.is_demanded(op)) {
      *why = kind.why_not(op, all);
      return std::nullopt;
    }
    if (kept.empty() || kept.size() == all.size()) continue;
    if (restrictions.least_contraction_work) keep_least_work(graph.operation(op), kept);
    restrictions.operators[op] = std::move(kept);
  }
  for (const VersionId id : versions.all.ids()) {
    if (!free.version_nodes[id] || restrictions.versions[id]) continue;
    std::vector<TensorLayout> kept;
    bool drops_some = false;
    for (const ModelProblem::VersionChoice& choice : *free.choices[id]) {
      if (!kind.allows(id, choice.layout)) {
        drops_some = true;
      } else if (kept.empty() || kept.back() != choice.layout) {
        kept.push_back(choice.layout);
      }
    }
    if (kept.empty()) {
      *why = fmt::format("{} cannot be stored so", graph.tensor(versions.all[id].tensor).name);
      return std::nullopt;
    }
    if (drops_some) restrictions.among[id] = std::move(kept);
  }
  return restrictions;
}

}  // namespace shardplan
