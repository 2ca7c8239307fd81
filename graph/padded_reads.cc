#include "graph/padded_reads.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace shardplan {
namespace {

/// Further from 0 than any number in a model's computation.
constexpr double kFar = 1e30;

constexpr std::array<Neutral, 11> kNeutral = {{{"Softmax", 0, -kFar},
                                               {"LogSoftmax", 0, -kFar},
                                               {"SoftmaxCrossEntropyWithLogits", 0, -kFar},
                                               {"SoftmaxCrossEntropyWithLogits", 1, 0, true},
                                               {"SparseSoftmaxCrossEntropyWithLogits", 0, -kFar},
                                               {"ReduceMax", 0, -kFar},
                                               {"ReduceMin", 0, kFar},
                                               {"TopK", 0, -kFar},
                                               {"TopKRouter", 0, -kFar},
                                               {"L2Normalize", 0, 0, true},
                                               {"SquareSum", 0, 0, true}}};

constexpr std::array<std::string_view, 15> kZeroAtZero = {"ReLU",   "GeLU", "SiLU",      "Tanh",    "HardSwish",
                                                          "Mish",   "ELU",  "LeakyReLU", "Abs",     "Erf",
                                                          "Square", "Sqrt", "Dropout",   "RmsNorm", "L2Normalize"};

/// Operators that need all positions along a factor and are corrected in another way than by a neutral value.
constexpr std::array<std::string_view, 4> kPutRight = {"LayerNorm", "RmsNorm", "FlashAttention", "CumSum"};

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool walks(const DimensionWalk& walk, std::size_t factor) {
  return std::find(walk.factors.begin(), walk.factors.end(), factor) != walk.factors.end();
}

std::int64_t extent_of(const Operation& operation, std::string_view factor) {
  const auto at = operation.rule.find(factor);
  return at ? operation.rule.factors[*at].size : 1;
}

}  // namespace

std::set<std::size_t> PaddedReads::walked(OperatorId op, std::size_t operand, std::size_t factor) const {
  const TensorWalk& walk = padded_.operation(op).rule.operands[operand];
  std::set<std::size_t> dimensions;
  for (std::size_t d = 0; d < walk.size(); ++d) {
    if (walks(walk[d], factor)) dimensions.insert(d);
  }
  return dimensions;
}

std::set<std::size_t> PaddedReads::combined(OperatorId op, std::size_t operand) const {
  const ShardingRule& rule = padded_.operation(op).rule;
  const PaddedShape& shape = positions_.tensors[padded_.operators()[op].operands[operand]];
  std::set<std::size_t> dimensions;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::vector<std::uint32_t>& factors = rule.operands[operand][d].factors;
    const bool is_combined = factors.empty() || std::any_of(factors.begin(), factors.end(), [&](std::uint32_t f) {
                               return is_padded(op, f) && rule.factors[f].kind != FactorKind::kPassThrough;
                             });
    if (has_padding(shape[d]) && is_combined) dimensions.insert(d);
  }
  return dimensions;
}

const Neutral* PaddedReads::neutral(OperatorId op, std::size_t operand) const {
  const auto* found = std::find_if(kNeutral.begin(), kNeutral.end(), [&](const Neutral& neutral) {
    return neutral.type == type_of(op) && neutral.operand == operand;
  });
  return found == kNeutral.end() ? nullptr : found;
}

bool PaddedReads::chooses(OperatorId op, std::size_t factor) const {
  const Operation& padded = padded_.operation(op);
  const Operation& real = real_.operation(op);
  if (padded.type->index_extent == nullptr) return false;
  for (std::size_t k = 0; k < padded.operands.size(); ++k) {
    const bool is_extent = padded.type->index_extent(padded, k) == padded.rule.factors[factor].size &&
                           real.type->index_extent(real, k) == real.rule.factors[factor].size;
    if (is_extent && walked(op, k, factor).empty()) return true;  // else the factor is a dimension of the indices
  }
  return false;
}

bool PaddedReads::has_causal_scores(OperatorId softmax) const {
  const TensorId scores = padded_.operators()[softmax].operands[0];
  const GraphTensor& tensor = padded_.tensor(scores);
  const std::size_t rank = tensor.type.shape.size();
  if (type_of(softmax) != "Softmax" || !tensor.producer || type_of(*tensor.producer) != "Add" || rank < 2) return false;
  if (combined(softmax, 0) != std::set<std::size_t>{rank - 1}) return false;
  const PaddedShape& positions = positions_.tensors[scores];
  const std::vector<TensorId>& terms = padded_.operators()[*tensor.producer].operands;
  return positions[rank - 2] == positions[rank - 1] && std::any_of(terms.begin(), terms.end(), [&](TensorId term) {
           const GraphTensor& mask = padded_.tensor(term);
           const Shape& shape = mask.type.shape;
           return mask.kind == TensorKind::kConstant && mask.fill.kind == Fill::Kind::kCausal && shape.size() >= 2 &&
                  std::equal(shape.end() - 2, shape.end(), tensor.type.shape.end() - 2);
         });
}

bool PaddedReads::is_causal(OperatorId attention) const {
  const Operation& padded = padded_.operation(attention);
  const Operation& real = real_.operation(attention);
  return padded.flag("causal") && padded.operands.size() == 3 && extent_of(padded, "s") == extent_of(padded, "t") &&
         extent_of(real, "s") == extent_of(real, "t");
}

void PaddedReads::check(OperatorId id, std::vector<Diagnostic>& faults) const {
  const GraphOperator& op = padded_.operators()[id];
  const ShardingRule& rule = padded_.operation(id).rule;
  const auto check_walk = [&](TensorId tensor, const TensorWalk& walk, std::string_view whole) {
    for (std::size_t d = 0; d < walk.size(); ++d) {
      if (!has_padding(positions_.tensors[tensor][d])) continue;
      if (walk[d].window) {
        faults.push_back(refusal(id, tensor, d, "slides a window over"));
      } else if (walk[d].factors.empty() && !whole.empty()) {
        faults.push_back(refusal(id, tensor, d, whole));
      } else if (walk[d].factors.empty() && positions_.tensors[tensor][d].size() > 1) {
        faults.push_back(refusal(id, tensor, d, "counts the positions of"));
      }
    }
  };
  for (std::size_t k = 0; k < op.operands.size(); ++k) {
    check_walk(op.operands[k], rule.operands[k], neutral(id, k) != nullptr ? "" : "needs the whole of");
  }
  for (std::size_t k = 0; k < op.results.size(); ++k) check_walk(op.results[k], rule.results[k], "makes");
  for (std::size_t f = 0; f < rule.factors.size(); ++f) {
    if (!is_padded(id, f)) continue;
    const FactorKind kind = rule.factors[f].kind;
    const bool has_order =
        chooses(id, f) || type_of(id) == "Range" ||
        (type_of(id) == "FlashAttention" && (rule.factors[f].name == "s" || rule.factors[f].name == "t"));
    if (has_order && positions_.factors[id][f].size() > 1) faults.push_back(refusal(id, f, "counts the positions of"));
    if (kind == FactorKind::kPassThrough || kind == FactorKind::kReduction) continue;
    if (neutral(id, 0) == nullptr && !contains(kPutRight, type_of(id))) {
      faults.push_back(refusal(id, f, "needs the whole of"));
    }
  }
}

Diagnostic PaddedReads::refusal(OperatorId id, TensorId tensor, std::size_t dimension, std::string_view what) const {
  const GraphOperator& op = padded_.operators()[id];
  return {op.place,
          fmt::format("{} ({}) {} dimension {} of {}, {}; no mask makes that exact", op.name, type_of(id), what,
                      dimension, padded_.tensor(tensor).name, to_string(positions_.tensors[tensor][dimension])),
          "take `pad` from the dim behind it, or pad another one; sizes need not be divisible without it (parallel: "
          "{uneven: true})"};
}

Diagnostic PaddedReads::refusal(OperatorId id, std::size_t factor, std::string_view what) const {
  const GraphOperator& op = padded_.operators()[id];
  const ShardingRule& rule = padded_.operation(id).rule;
  for (std::size_t k = 0; k < op.operands.size(); ++k) {
    const std::set<std::size_t> dimensions = walked(id, k, factor);
    if (!dimensions.empty()) return refusal(id, op.operands[k], *dimensions.begin(), what);
  }
  for (std::size_t k = 0; k < op.results.size(); ++k) {
    for (std::size_t d = 0; d < rule.results[k].size(); ++d) {
      if (walks(rule.results[k][d], factor)) return refusal(id, op.results[k], d, what);
    }
  }
  return {op.place, fmt::format("{} ({}): {} cannot be padded", op.name, type_of(id), rule.factors[factor].name), {}};
}

bool is_zero_at_zero(std::string_view type) { return contains(kZeroAtZero, type); }

}  // namespace shardplan
