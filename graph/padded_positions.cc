// Dimensions and factors are nodes; nodes that must be equal are joined into classes. What remains are products: the
// dimension [B*S] of a flattened tensor and its factors B and S. Classes without padding are known from the start, and
// products propagate known classes from a dimension to its factors and back. When nothing more follows, the smallest
// unknown classes are assumed to exist at their first positions, since a dimension that is split is larger than its
// factors: 12 of 16 heads are decided before 3 * 16 * 64 columns.
#include "graph/padded_positions.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

namespace shardplan {
namespace {

/// A dimension that is a product of factors; both are nodes.
struct Product {
  OperatorId op;
  std::size_t dimension = 0;
  std::vector<std::size_t> factors;
};

/// Splits a dimension into factors of these padded sizes; nothing if it is not their product.
std::optional<PaddedShape> split(PaddedDimension whole, const std::vector<std::int64_t>& sizes) {
  PaddedShape factors(sizes.size());
  for (std::size_t f = sizes.size(); f-- > 0;) {
    PaddedDimension& factor = factors[f];
    for (std::int64_t missing = sizes[f]; missing > 1;) {
      if (whole.empty()) return std::nullopt;
      PaddedPart& last = whole.back();
      if (missing % last.padded == 0) {
        missing /= last.padded;
        factor.insert(factor.begin(), last);
        whole.pop_back();
      } else if (last.padded % missing == 0 && last.real % missing == 0) {
        factor.insert(factor.begin(), {missing, missing});
        last.padded /= missing;
        last.real /= missing;
        missing = 1;
      } else {
        return std::nullopt;
      }
    }
    factor = joined(factor);
  }
  return factors;
}

PaddedDimension product_of(const PaddedShape& factors) {
  PaddedDimension parts;
  for (const PaddedDimension& factor : factors) parts.insert(parts.end(), factor.begin(), factor.end());
  return joined(parts);
}

class Positions {
 public:
  Positions(const OperatorGraph& real, const OperatorGraph& padded) : real_(real), padded_(padded) {}

  PaddedPositions find() {
    number_nodes();
    for (const OperatorId op : padded_.operators().ids()) add_operator(op);
    if (!faults_.empty()) throw InputError(std::move(faults_));
    known_.resize(parent_.size());
    for (std::size_t node = 0; node < parent_.size(); ++node) {
      if (sizes_[node].real == sizes_[node].padded) known_[root(node)] = PaddedDimension{sizes_[node]};
    }
    for (bool is_open = true; is_open;) {
      carry_on();
      is_open = decide_smallest();
    }
    if (!faults_.empty()) throw InputError(std::move(faults_));
    PaddedPositions found;
    for (const TensorId id : padded_.tensors().ids()) {
      found.tensors.push_back(of_nodes(tensor_nodes_[id], padded_.tensor(id).type.shape.size()));
    }
    for (const OperatorId id : padded_.operators().ids()) {
      found.factors.push_back(of_nodes(factor_nodes_[id], padded_.operation(id).rule.factors.size()));
    }
    return found;
  }

 private:
  void number_nodes() {
    for (const TensorId id : padded_.tensors().ids()) {
      const GraphTensor& tensor = padded_.tensor(id);
      const Shape& real = real_.tensor(id).type.shape;
      tensor_nodes_.push_back(sizes_.size());
      if (real.size() != tensor.type.shape.size()) {
        faults_.push_back({tensor.place, fmt::format("{}: with padding it has other dimensions", tensor.name), {}});
        continue;
      }
      for (std::size_t d = 0; d < real.size(); ++d) {
        sizes_.push_back({tensor.type.shape[d], real[d]});
        const bool broadcasts = real[d] == 1 && tensor.type.shape[d] > 1;
        if (real[d] <= tensor.type.shape[d] && !broadcasts) continue;
        faults_.push_back({tensor.place,
                           fmt::format("{}: dimension {} is {} without padding and {} with it", tensor.name, d, real[d],
                                       tensor.type.shape[d]),
                           broadcasts
                               ? "a padded dimension needs at least 2 positions, since one of size 1 is broadcast"
                               : "its size must grow with the padded dim"});
      }
    }
    if (!faults_.empty()) throw InputError(std::move(faults_));
    for (const OperatorId id : padded_.operators().ids()) {
      const std::vector<Factor>& factors = padded_.operation(id).rule.factors;
      const std::vector<Factor>& real = real_.operation(id).rule.factors;
      factor_nodes_.push_back(sizes_.size());
      const bool is_same =
          factors.size() == real.size() && padded_.operation(id).type->name == real_.operation(id).type->name;
      for (std::size_t f = 0; f < factors.size(); ++f) {
        sizes_.push_back({factors[f].size, is_same ? real[f].size : factors[f].size});
      }
      if (!is_same) fault(id, "with padding its dimensions follow from each other in another way");
    }
    if (!faults_.empty()) throw InputError(std::move(faults_));
    parent_.resize(sizes_.size());
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }

  void fault(OperatorId id, const std::string& what) {
    const GraphOperator& op = padded_.operators()[id];
    faults_.push_back({op.place, fmt::format("{} ({}): {}", op.name, padded_.operation(id).type->name, what),
                       "take `pad` from the dim behind it, or pad another one"});
  }

  std::size_t root(std::size_t node) {
    while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
    return node;
  }

  void add_operator(OperatorId id) {
    const GraphOperator& op = padded_.operators()[id];
    const ShardingRule& rule = padded_.operation(id).rule;
    const ShardingRule& real = real_.operation(id).rule;
    const auto add = [&](const TensorWalk& walk, const TensorWalk& real_walk, TensorId tensor) {
      for (std::size_t d = 0; d < walk.size(); ++d) {
        if (walk[d].window) continue;
        if (walk[d].factors != real_walk[d].factors) {
          fault(id, "with padding its dimensions follow from each other in another way");
          return;
        }
        const std::size_t node = tensor_nodes_[tensor] + d;
        std::vector<std::size_t> factors;
        for (const std::uint32_t f : walk[d].factors) factors.push_back(factor_nodes_[id] + f);
        if (factors.size() == 1) parent_[root(node)] = root(factors[0]);
        if (factors.size() > 1) products_.push_back({id, node, std::move(factors)});
      }
    };
    for (std::size_t k = 0; k < op.operands.size(); ++k) add(rule.operands[k], real.operands[k], op.operands[k]);
    for (std::size_t k = 0; k < op.results.size(); ++k) add(rule.results[k], real.results[k], op.results[k]);
  }

  /// Propagates through all products until nothing changes.
  void carry_on() {
    for (bool changed = true; changed && faults_.empty();) {
      changed = false;
      for (const Product& product : products_) changed = carry(product) || changed;
    }
  }

  bool carry(const Product& product) {
    std::optional<PaddedDimension>& whole = known_[root(product.dimension)];
    std::vector<std::int64_t> sizes;
    PaddedShape factors;
    for (const std::size_t f : product.factors) {
      sizes.push_back(sizes_[f].padded);
      if (const auto& known = known_[root(f)]) factors.push_back(*known);
    }
    if (factors.size() == sizes.size()) {
      const PaddedDimension found = product_of(factors);
      if (whole && *whole != found) disagree(product);
      return !std::exchange(whole, found).has_value();
    }
    if (!whole) return false;
    const std::optional<PaddedShape> found = split(*whole, sizes);
    if (!found) {
      disagree(product);
      return false;
    }
    for (std::size_t i = 0; i < product.factors.size(); ++i) {
      std::optional<PaddedDimension>& factor = known_[root(product.factors[i])];
      if (factor && *factor != (*found)[i]) disagree(product);
      factor = (*found)[i];
    }
    return true;
  }

  void disagree(const Product& product) {
    const PaddedPart& size = sizes_[product.dimension];
    fault(product.op,
          fmt::format("a dimension of which {} of {} positions are no padding cannot be split or joined in this way",
                      size.real, size.padded));
  }

  /// Decides the smallest unknown classes; false if none is unknown.
  bool decide_smallest() {
    std::int64_t least = 0;
    for (std::size_t node = 0; node < parent_.size(); ++node) {
      if (!known_[root(node)] && (least == 0 || sizes_[node].padded < least)) least = sizes_[node].padded;
    }
    if (least == 0 || !faults_.empty()) return false;
    for (std::size_t node = 0; node < parent_.size(); ++node) {
      if (!known_[root(node)] && sizes_[node].padded == least) known_[root(node)] = PaddedDimension{sizes_[node]};
    }
    return true;
  }

  PaddedShape of_nodes(std::size_t first, std::size_t count) {
    PaddedShape shape;
    for (std::size_t i = 0; i < count; ++i) shape.push_back(*known_[root(first + i)]);
    return shape;
  }

  const OperatorGraph& real_;
  const OperatorGraph& padded_;
  IdVector<TensorId, std::size_t> tensor_nodes_;    // each tensor's first node
  IdVector<OperatorId, std::size_t> factor_nodes_;  // each operator's first node
  std::vector<PaddedPart> sizes_;                   // by node
  std::vector<std::size_t> parent_;
  std::vector<Product> products_;
  std::vector<std::optional<PaddedDimension>> known_;  // by root
  std::vector<Diagnostic> faults_;
};

PaddedShape without_padding(const Shape& shape) {
  PaddedShape result;
  for (const std::int64_t size : shape) result.push_back({{size, size}});
  return result;
}

}  // namespace

PaddedPositions find_padded_positions(const OperatorGraph& real, const OperatorGraph& padded) {
  return Positions(real, padded).find();
}

OperatorGraph with_padding_of_results(const OperatorGraph& graph) {
  OperatorGraphBuilder builder(graph);
  const auto set_like = [&](TensorId id, TensorId other) {
    GraphTensor& tensor = builder.tensor(id);
    const GraphTensor& like = builder.tensor(other);
    if (!tensor.padding && like.padding && tensor.type.shape == like.type.shape) tensor.padding = like.padding;
  };
  for (const TensorId id : graph.tensors().ids()) {
    if (graph.tensor(id).state_of) set_like(id, *graph.tensor(id).state_of);
  }
  for (const OperatorId id : graph.operators().ids()) {
    const GraphOperator& op = graph.operators()[id];
    const ShardingRule& rule = graph.operation(id).rule;
    PaddedShape factors(rule.factors.size());
    for (std::size_t k = 0; k < op.operands.size(); ++k) {
      const auto& padding = builder.tensor(op.operands[k]).padding;
      for (std::size_t d = 0; padding && d < padding->size(); ++d) {
        std::vector<std::int64_t> sizes;
        for (const std::uint32_t f : rule.operands[k][d].factors) sizes.push_back(rule.factors[f].size);
        const std::optional<PaddedShape> found = split((*padding)[d], sizes);
        for (std::size_t i = 0; found && i < sizes.size(); ++i) factors[rule.operands[k][d].factors[i]] = (*found)[i];
      }
    }
    for (std::size_t k = 0; k < op.results.size(); ++k) {
      const GraphTensor& tensor = graph.tensor(op.results[k]);
      if (tensor.updates) set_like(op.results[k], *tensor.updates);
      if (tensor.gradient_for) set_like(op.results[k], *tensor.gradient_for);
      if (builder.tensor(op.results[k]).padding) continue;
      PaddedShape shape = without_padding(tensor.type.shape);
      for (std::size_t d = 0; d < shape.size(); ++d) {
        PaddedShape walked;
        for (const std::uint32_t f : rule.results[k][d].factors) {
          const std::int64_t size = rule.factors[f].size;
          walked.push_back(factors[f].empty() ? PaddedDimension{{size, size}} : factors[f]);
        }
        if (!walked.empty()) shape[d] = product_of(walked);
      }
      if (has_padding(shape)) {
        builder.tensor(op.results[k]).padding = std::move(shape);
      }
    }
  }
  return builder.build();
}

}  // namespace shardplan
