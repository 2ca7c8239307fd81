// Operators are treated one by one, in program order. The kind of the factor that walks a padded dimension tells what
// an operator does along it: along pass-through factors it maps each position separately, and nothing needs to be done;
// along all others it combines positions, and the padding must hold neutral values. Zeros in the padding are tracked
// (`zero_`), so that a mask that would replace 0 by 0 is left out. Above all, gradients need no masks, since a loss
// that does not depend on the padding has gradients of 0 there.
//
// If a result must be corrected (a mean over too many positions), a copy of the operator before its place keeps its
// name, and the operator that corrects the copy's result takes its place and with it the result's name.
#include "graph/pad.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "graph/padded_positions.h"
#include "graph/padded_reads.h"
#include "operators/catalogue.h"

namespace shardplan {
namespace {

class Padding {
 public:
  Padding(const OperatorGraph& real, const OperatorGraph& padded)
      : real_(real),
        padded_(padded),
        positions_(find_padded_positions(real, padded)),
        reads_(real, padded, positions_),
        builder_(padded) {}

  OperatorGraph run() {
    for (const TensorId id : padded_.tensors().ids()) describe(id);
    for (const OperatorId id : padded_.operators().ids()) {
      if (is_touched(id)) treat(id);
    }
    if (!faults_.empty()) throw InputError(std::move(faults_));
    return builder_.build();
  }

 private:
  // ---- what is padded -----------------------------------------------------------------------------------------------

  void describe(TensorId id) {
    const GraphTensor& real = real_.tensor(id);
    GraphTensor& tensor = builder_.tensor(id);
    tensor.index_extent = real.index_extent;
    tensor.fill = real.fill;
    const PaddedShape& shape = positions_.tensors[id];
    const std::size_t rank = shape.size();
    zero_.push_back(std::vector<char>(rank, 0));
    if (!has_padding(shape)) return;
    tensor.padding = shape;
    if (tensor.kind != TensorKind::kConstant || tensor.fill.kind == Fill::Kind::kValue) return;
    const std::size_t counted = tensor.fill.kind == Fill::Kind::kIota ? 1 : 2;
    for (std::size_t d = rank - std::min(rank, counted); d < rank; ++d) {
      if (shape[d].size() == 1) continue;
      faults_.push_back({tensor.place,
                         fmt::format("{}: its positions are counted along dimension {}, where padding stands between "
                                     "those that exist",
                                     tensor.name, d),
                         "take `pad` from the dim behind it, or pad another one"});
    }
  }

  bool is_padded(TensorId id, std::size_t d) { return has_padding(padding_of(id)[d]); }
  const PaddedShape& padding_of(TensorId id) {
    const auto& padding = builder_.tensor(id).padding;
    if (padding) return *padding;
    PaddedShape& shape = whole_[id];
    if (shape.empty()) {
      for (const std::int64_t size : builder_.tensor(id).type.shape) shape.push_back({{size, size}});
    }
    return shape;
  }

  bool is_touched(OperatorId id) {
    const GraphOperator& op = padded_.operators()[id];
    const auto touches = [&](TensorId tensor) { return builder_.tensor(tensor).padding.has_value(); };
    return std::any_of(op.operands.begin(), op.operands.end(), touches) ||
           std::any_of(op.results.begin(), op.results.end(), touches) ||
           padded_.operation(id).attributes != real_.operation(id).attributes;
  }

  std::string_view type_of(OperatorId id) const { return padded_.operation(id).type->name; }

  // ---- one operator -------------------------------------------------------------------------------------------------

  void treat(OperatorId id) {
    take_real_numbers(id);
    const std::size_t before = faults_.size();
    reads_.check(id, faults_);
    if (faults_.size() > before) return;
    mask_neutral(id);
    if (type_of(id) == "LayerNorm" || type_of(id) == "RmsNorm") {
      norm(id);
    } else if (type_of(id) == "FlashAttention") {
      attention(id);
    } else if (type_of(id) == "Dropout" || type_of(id) == "DropoutGenMask") {
      dropout(id);
    } else if (type_of(id) == "SparseSoftmaxCrossEntropyWithLogits") {
      loss_of_rows(id);
      return;
    } else {
      mask_sums(id);
    }
    follow_zeros(id);
    if (type_of(id) == "ReduceMean") mean(id);
  }

  /// Attributes take their values at the real sizes, if the shapes stay the same.
  void take_real_numbers(OperatorId id) {
    const Operation& padded = padded_.operation(id);
    const Operation& real = real_.operation(id);
    Attributes attributes = padded.attributes;
    for (const auto& [name, value] : real.attributes) {
      if (attributes.at(name) == value) continue;
      Attributes tried = attributes;
      tried[name] = value;
      try {
        const Operation found = make_operation(*padded.type, tried, padded.operands);
        if (found.results == padded.results && found.rule == padded.rule) attributes = std::move(tried);
      } catch (const InputError&) {
        continue;  // the attribute is a padded size
      }
    }
    if (attributes != padded.attributes) set_operation(id, attributes);
  }

  void set_operation(OperatorId id, const Attributes& attributes) {
    std::vector<TensorType> types;
    for (const TensorId operand : builder_.op(id).operands) types.push_back(builder_.tensor(operand).type);
    const OperationId operation =
        builder_.intern(make_operation(*padded_.operation(id).type, attributes, std::move(types)));
    builder_.op(id).operation = operation;
  }

  // ---- masks --------------------------------------------------------------------------------------------------------

  void mask_neutral(OperatorId id) {
    const Operation& operation = padded_.operation(id);
    for (std::size_t k = 0; k < operation.operands.size(); ++k) {
      const Neutral* neutral = reads_.neutral(id, k);
      std::set<std::size_t> dimensions = reads_.combined(id, k);
      if (neutral == nullptr || dimensions.empty()) continue;
      // Only the last dimension holds classes; `loss_of_rows` treats the rows.
      if (type_of(id) == "SparseSoftmaxCrossEntropyWithLogits") {
        const std::size_t last = operation.operands[0].shape.size() - 1;
        std::erase_if(dimensions, [&](std::size_t d) { return d != last; });
        if (dimensions.empty()) continue;
      }
      if (reads_.has_causal_scores(id)) continue;
      mask_operand(id, k, dimensions, neutral->value, neutral->masks_gradient);
    }
    // A forward cumulative sum needs no mask if the padding comes after all positions that exist.
    if (type_of(id) != "CumSum" || reads_.combined(id, 0).empty()) return;
    const std::size_t axis = *reads_.combined(id, 0).begin();
    const bool is_behind = padding_of(builder_.op(id).operands[0])[axis].size() == 1 && !operation.flag("reverse");
    if (!is_behind) mask_operand(id, 0, {axis}, 0, true);
  }

  bool is_zero(TensorId id, const std::set<std::size_t>& dimensions) const {
    return std::all_of(dimensions.begin(), dimensions.end(), [&](std::size_t d) { return zero_[id][d] != 0; });
  }

  void mask_operand(OperatorId id, std::size_t k, const std::set<std::size_t>& dimensions, double value,
                    bool masks_gradient) {
    const TensorId operand = builder_.op(id).operands[k];
    if (value == 0 && is_zero(operand, dimensions)) return;
    if (mask_before_cast(id, operand, dimensions, value, masks_gradient)) return;
    const TensorId mask = masked(id, operand, dimensions, value, masks_gradient);
    builder_.op(id).operands[k] = mask;
  }

  /// Masks bf16 or f16 logits that a loss reads as f32 before the cast, with half the bytes. True if that was possible:
  /// nothing else reads the result of the cast.
  bool mask_before_cast(OperatorId id, TensorId operand, const std::set<std::size_t>& dimensions, double value,
                        bool masks_gradient) {
    if (operand.value() >= padded_.tensors().size()) return false;  // added by this class
    const GraphTensor& tensor = padded_.tensor(operand);
    if (!tensor.producer || type_of(*tensor.producer) != "Cast") return false;
    const OperatorId cast = *tensor.producer;
    const TensorId narrow = builder_.op(cast).operands[0];
    const bool is_alone = tensor.readers.size() == 1 && !tensor.is_output && builder_.op(cast).results[0] == operand;
    const DataType dtype = builder_.tensor(narrow).type.dtype;
    const bool is_narrow = tensor.type.dtype == DataType::kF32 && (dtype == DataType::kBF16 || dtype == DataType::kF16);
    if (!is_alone || !is_narrow || builder_.op(cast).worker != builder_.op(id).worker) return false;
    builder_.op(cast).operands[0] = masked(cast, narrow, dimensions, value, masks_gradient);
    for (const std::size_t d : dimensions) zero_[operand][d] = value == 0;
    return true;
  }

  using MaskKey = std::tuple<TensorId, std::set<std::size_t>, double, bool, int>;
  MaskKey key_of(OperatorId id, TensorId tensor, const std::set<std::size_t>& dimensions, double value,
                 bool masks_gradient) {
    return {tensor, dimensions, value, masks_gradient, builder_.op(id).worker};
  }

  /// The tensor with `value` in the padding of these dimensions, added for `id`; all of its readers share one mask.
  TensorId masked(OperatorId id, TensorId tensor, const std::set<std::size_t>& dimensions, double value,
                  bool masks_gradient) {
    const MaskKey key = key_of(id, tensor, dimensions, value, masks_gradient);
    if (const auto known = masks_.find(key); known != masks_.end()) return known->second;
    std::vector<std::int64_t> of_part, padded, real;
    const PaddedShape& shape = padding_of(tensor);
    for (const std::size_t d : dimensions) {
      for (const PaddedPart& part : shape[d]) {
        of_part.push_back(static_cast<std::int64_t>(d));
        padded.push_back(part.padded);
        real.push_back(part.real);
      }
    }
    const TensorId mask = add(
        id, builder_.tensor(tensor).name + ".padding", "MaskPadding",
        {{"dims", of_part}, {"padded", padded}, {"real", real}, {"value", value}, {"masks_gradient", masks_gradient}},
        {tensor});
    zero_[mask] = zero_[tensor];
    for (const std::size_t d : dimensions) zero_[mask][d] = value == 0;
    masks_.emplace(key, mask);
    return mask;
  }

  /// Adds an operator before `anchor`, in its block; its only result has the padding of an operand of the same shape.
  TensorId add(OperatorId anchor, std::string name, std::string_view type, const Attributes& attributes,
               const std::vector<TensorId>& operands) {
    while (!names_.insert(name).second) name += "_";
    GraphOperator op = builder_.op(anchor);
    op.name = name;
    op.operands = operands;
    op.strategy = {};
    op.border_of = {};
    return add(anchor, std::move(op), type, attributes, name);
  }

  TensorId add(OperatorId anchor, GraphOperator op, std::string_view type, const Attributes& attributes,
               const std::string& result) {
    const std::vector<TensorId> operands = op.operands;
    op.results.clear();
    std::vector<TensorType> types;
    for (const TensorId operand : operands) types.push_back(builder_.tensor(operand).type);
    const OperatorId id = builder_.add_operator(
        std::move(op), make_operation(*find_operator_type(type), attributes, std::move(types)), {result});
    builder_.place_before(id, anchor);
    const TensorId made = builder_.op(id).results[0];
    GraphTensor& tensor = builder_.tensor(made);
    for (const TensorId operand : operands) {
      const GraphTensor& like = builder_.tensor(operand);
      if (like.padding && like.type.shape == tensor.type.shape) tensor.padding = like.padding;
    }
    zero_.push_back(std::vector<char>(tensor.type.shape.size(), 0));
    return made;
  }

  TensorId constant(OperatorId id, double value) {
    GraphTensor tensor;
    tensor.name = fmt::format("{}.padding_{}", padded_.operators()[id].name, builder_.num_tensors());
    tensor.type = {{}, padded_.tensor(padded_.operators()[id].results[0]).type.dtype};
    tensor.kind = TensorKind::kConstant;
    tensor.fill.value = value;
    tensor.place = padded_.operators()[id].place;
    zero_.push_back({});
    return builder_.add_tensor(std::move(tensor));
  }

  // ---- sums ---------------------------------------------------------------------------------------------------------

  /// In every sum over padded positions, one factor of the summands must be 0 there, or all terms of one factor.
  void mask_sums(OperatorId id) {
    const ShardingRule& rule = padded_.operation(id).rule;
    if (reads_.neutral(id, 0) != nullptr) return;
    for (std::size_t f = 0; f < rule.factors.size(); ++f) {
      if (rule.factors[f].kind != FactorKind::kReduction || !reads_.is_padded(id, f) || reads_.chooses(id, f)) continue;
      const std::vector<std::uint32_t>* cheapest = nullptr;
      std::int64_t least = 0;
      for (const std::vector<std::uint32_t>& group : rule.linear) {
        const std::optional<std::int64_t> price = price_of(id, group, f);
        if (!price || (cheapest != nullptr && *price >= least)) continue;
        cheapest = &group;
        least = *price;
      }
      if (cheapest == nullptr) {
        faults_.push_back(reads_.refusal(id, f, "adds up"));
        continue;
      }
      for (const std::uint32_t k : *cheapest) mask_operand(id, k, reads_.walked(id, k, f), 0, true);
    }
  }

  /// The number of elements read to mask a group along a factor; nothing if masking does not make the summands 0.
  std::optional<std::int64_t> price_of(OperatorId id, const std::vector<std::uint32_t>& group, std::size_t factor) {
    std::int64_t price = 0;
    for (const std::uint32_t k : group) {
      const std::set<std::size_t> dimensions = reads_.walked(id, k, factor);
      if (dimensions.empty()) return std::nullopt;
      const TensorId operand = builder_.op(id).operands[k];
      const bool is_free = is_zero(operand, dimensions) || masks_.contains(key_of(id, operand, dimensions, 0, true));
      if (!is_free) price += num_elements(builder_.tensor(operand).type.shape);
    }
    return price;
  }

  /// Finds where results are 0 in the padding: along factors along which all of a group of linear operands are 0.
  void follow_zeros(OperatorId id) {
    const GraphOperator& op = builder_.op(id);
    const ShardingRule& rule = builder_.operation(id).rule;
    std::vector<std::vector<std::uint32_t>> groups = rule.linear;
    const std::string_view type = type_of(id);
    const bool is_softmax = type == "Softmax";
    if (is_softmax || is_zero_at_zero(type)) groups.push_back({0});
    const auto is_zero_along = [&](std::size_t f) {
      if (is_softmax && rule.factors[f].kind != FactorKind::kPassThrough) return true;
      if (is_softmax) return false;
      if (type == "OneHot" && reads_.chooses(id, f)) return builder_.operation(id).number("off_value") == 0;
      // Along a factor that is not pass-through, a linear operator may still move numbers into the padding.
      if (rule.factors[f].kind != FactorKind::kPassThrough && !is_zero_at_zero(type)) return false;
      return std::any_of(groups.begin(), groups.end(), [&](const std::vector<std::uint32_t>& group) {
        return std::all_of(group.begin(), group.end(), [&](std::uint32_t k) {
          const std::set<std::size_t> dimensions = reads_.walked(id, k, f);
          return !dimensions.empty() && is_zero(op.operands[k], dimensions);
        });
      });
    };
    const std::size_t count = is_zero_at_zero(type) ? 1 : op.results.size();
    for (std::size_t r = 0; r < count; ++r) {
      for (std::size_t d = 0; d < rule.results[r].size(); ++d) {
        const DimensionWalk& walk = rule.results[r][d];
        if (!is_padded(op.results[r], d) || walk.factors.empty()) continue;
        zero_[op.results[r]][d] = std::all_of(walk.factors.begin(), walk.factors.end(), [&](std::uint32_t f) {
          return !reads_.is_padded(id, f) || is_zero_along(f);
        });
      }
    }
  }

  // ---- counts -------------------------------------------------------------------------------------------------------

  /// The factor by which padding enlarges the number of positions of all factors of some kind.
  double excess(OperatorId id, FactorKind kind) const {
    const ShardingRule& rule = padded_.operation(id).rule;
    double padded = 1, real = 1;
    for (std::size_t f = 0; f < rule.factors.size(); ++f) {
      if (rule.factors[f].kind != kind) continue;
      padded *= static_cast<double>(padded_size(positions_.factors[id][f]));
      real *= static_cast<double>(real_size(positions_.factors[id][f]));
    }
    return padded / real;
  }

  /// Adds a copy of the operator before its place and returns the copy's only result.
  TensorId move_ahead(OperatorId id, std::string_view type, const Attributes& attributes) {
    const std::string result = builder_.op(id).name + ".padded";
    return add(id, builder_.op(id), type, attributes, result);
  }

  /// Puts another operator in the operator's place.
  void replace(OperatorId id, std::string_view suffix, std::string_view type, const Attributes& attributes,
               std::vector<TensorId> operands) {
    std::vector<TensorType> types;
    for (const TensorId operand : operands) types.push_back(builder_.tensor(operand).type);
    const OperationId operation =
        builder_.intern(make_operation(*find_operator_type(type), attributes, std::move(types)));
    GraphOperator& op = builder_.op(id);
    op.name += suffix;
    op.operation = operation;
    op.operands = std::move(operands);
    op.strategy = {};
  }

  void mean(OperatorId id) {
    const double scale = excess(id, FactorKind::kReduction);
    if (scale == 1) return;
    const std::vector<char> zero = zero_[builder_.op(id).results[0]];
    const TensorId ahead = move_ahead(id, "ReduceMean", builder_.operation(id).attributes);
    builder_.tensor(ahead).padding = builder_.tensor(builder_.op(id).results[0]).padding;
    zero_[ahead] = zero;
    replace(id, ".scaled", "Mul", {}, {ahead, constant(id, scale)});
  }

  /// If rows are padded: (logits, labels) -> losses of the rows -> 0 in the padding -> their sum -> their mean.
  void loss_of_rows(OperatorId id) {
    const Operation operation = builder_.operation(id);
    const std::string reduction = operation.text("reduction");
    const std::size_t rank = operation.operands[0].shape.size();
    std::set<std::size_t> rows;
    double count = 1;
    for (std::size_t d = 0; d + 1 < rank; ++d) {
      const PaddedDimension& row = padding_of(builder_.op(id).operands[0])[d];
      if (has_padding(row)) rows.insert(d);
      count *= static_cast<double>(real_size(row));
    }
    if (rows.empty() || reduction == "none") return;
    Attributes attributes = operation.attributes;
    attributes["reduction"] = std::string("none");
    const TensorId losses = move_ahead(id, "SparseSoftmaxCrossEntropyWithLogits", attributes);
    const PaddedShape& logits = padding_of(builder_.op(id).operands[0]);
    builder_.tensor(losses).padding = PaddedShape(logits.begin(), logits.end() - 1);
    const TensorId existing = masked(id, losses, rows, 0, true);
    if (reduction == "sum") {
      replace(id, ".sum", "ReduceSum", {}, {existing});
      return;
    }
    const TensorId sum = add(id, builder_.op(id).name + ".sum", "ReduceSum", {}, {existing});
    replace(id, ".mean", "Mul", {}, {sum, constant(id, 1 / count)});
  }

  /// With N real of P positions along the normalised dimensions, and 0 in the padding of the operand, the mean of the
  /// squares is N / P of the correct one. So epsilon is scaled by N / P and gamma by its square root. LayerNorm's mean
  /// is subtracted beforehand, so that the mean that the operator itself computes is 0.
  void norm(OperatorId id) {
    const double scale = excess(id, FactorKind::kNormalised);
    if (scale == 1) return;
    const std::set<std::size_t> dimensions = reads_.combined(id, 0);
    mask_operand(id, 0, dimensions, 0, true);
    const std::string name = padded_.operators()[id].name;
    const Operation operation = builder_.operation(id);
    Attributes attributes = operation.attributes;
    attributes["epsilon"] = operation.number("epsilon") / scale;
    if (type_of(id) == "LayerNorm") {
      const ShardingRule& rule = padded_.operation(id).rule;
      std::vector<std::int64_t> axes;
      for (std::size_t d = 0; d < rule.operands[0].size(); ++d) {
        const std::vector<std::uint32_t>& factors = rule.operands[0][d].factors;
        const bool is_normalised = !factors.empty() && rule.factors[factors[0]].kind == FactorKind::kNormalised;
        if (is_normalised) axes.push_back(static_cast<std::int64_t>(d));
      }
      const TensorId x = builder_.op(id).operands[0];
      const TensorId sum = add(id, name + ".padded_mean", "ReduceMean", {{"axis", axes}, {"keep_dims", true}}, {x});
      const TensorId mean = add(id, name + ".mean", "Mul", {}, {sum, constant(id, scale)});
      const TensorId centred = add(id, name + ".centred", "Sub", {}, {x, mean});
      builder_.op(id).operands[0] = masked(id, centred, dimensions, 0, true);
      describe_kept(x, sum, axes);
      builder_.tensor(mean).padding = builder_.tensor(sum).padding;
    }
    const TensorId gamma = builder_.op(id).operands[1];
    const TensorId scaled = add(id, name + ".gamma", "Mul", {}, {gamma, constant(id, std::sqrt(1 / scale))});
    builder_.op(id).operands[1] = scaled;
    set_operation(id, attributes);
  }

  /// Sets the padding of a statistic over `axes` of x, which have size 1 in it.
  void describe_kept(TensorId x, TensorId statistic, const std::vector<std::int64_t>& axes) {
    PaddedShape shape = padding_of(x);
    for (const std::int64_t axis : axes) shape[static_cast<std::size_t>(axis)] = {{1, 1}};
    if (has_padding(shape)) builder_.tensor(statistic).padding = std::move(shape);
  }

  // ---- operators that count positions ------------------------------------------------------------------------------

  void attention(OperatorId id) {
    const Operation operation = builder_.operation(id);
    Attributes attributes = operation.attributes;
    if (operation.number("keep_prob") < 1) draw_as_without_padding(id, attributes);
    for (std::size_t f = 0; f < operation.rule.factors.size(); ++f) {
      if (!reads_.is_padded(id, f)) continue;
      const std::string& name = operation.rule.factors[f].name;
      const PaddedDimension& positions = positions_.factors[id][f];
      if (name == "t" && !reads_.is_causal(id)) attributes["valid_keys"] = real_size(positions);
      if (name == "d") {
        const std::size_t smaller =
            num_elements(operation.operands[1].shape) < num_elements(operation.operands[0].shape);
        const bool is_zero_in_q = is_zero(builder_.op(id).operands[0], reads_.walked(id, 0, f));
        const bool is_zero_in_k = is_zero(builder_.op(id).operands[1], reads_.walked(id, 1, f));
        const std::size_t k = is_zero_in_q ? 0 : is_zero_in_k ? 1 : smaller;
        mask_operand(id, k, reads_.walked(id, k, f), 0, true);
        const bool is_default = operation.number("scale") == 0;
        if (is_default) attributes["scale"] = 1 / std::sqrt(static_cast<double>(real_size(positions)));
      }
    }
    if (attributes != operation.attributes) set_operation(id, attributes);
  }

  /// Dropout in attention draws by a weight's position in [batch, heads of k, heads of q per head of k, queries, keys].
  /// If padding comes after all positions that exist, positions are counted as without padding.
  void draw_as_without_padding(OperatorId id, Attributes& attributes) {
    const ShardingRule& rule = padded_.operation(id).rule;
    std::vector<std::int64_t> drawn;
    bool is_padded = false;
    for (const char* name : {"b", "g", "r", "s", "t"}) {
      const std::optional<std::uint32_t> f = rule.find(name);
      const PaddedDimension positions = f ? positions_.factors[id][*f] : PaddedDimension{{1, 1}};
      if (positions.size() > 1 && has_padding(positions)) {
        faults_.push_back(reads_.refusal(id, *f, "draws its dropout by"));
      }
      if (*name == 'b') continue;  // outermost: its size changes no position
      is_padded = is_padded || has_padding(positions);
      drawn.push_back(real_size(positions));
    }
    if (is_padded) attributes["drawn_shape"] = drawn;
  }

  void dropout(OperatorId id) {
    const TensorId result = padded_.operators()[id].results[0];
    if (!builder_.tensor(result).padding) return;
    const PaddedShape& shape = padding_of(result);
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (shape[d].size() > 1) faults_.push_back(reads_.refusal(id, result, d, "draws by the positions of"));
    }
    Attributes attributes = builder_.operation(id).attributes;
    attributes["drawn_shape"] = real_shape(shape);
    set_operation(id, attributes);
  }

  const OperatorGraph& real_;
  const OperatorGraph& padded_;
  PaddedPositions positions_;
  PaddedReads reads_;
  OperatorGraphBuilder builder_;
  IdVector<TensorId, std::vector<char>> zero_;  // by dimension: whether its padding holds 0
  std::map<TensorId, PaddedShape> whole_;       // of tensors without padding
  std::map<MaskKey, TensorId> masks_;
  std::set<std::string> names_;
  std::vector<Diagnostic> faults_;
};

}  // namespace

OperatorGraph pad(const OperatorGraph& real, const OperatorGraph& padded) { return Padding(real, padded).run(); }

}  // namespace shardplan
