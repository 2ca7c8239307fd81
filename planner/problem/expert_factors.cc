#include "planner/problem/expert_factors.h"

#include <algorithm>

#include "graph/batch_factors.h"
#include "graph/weights.h"

namespace shardplan {
namespace {

/// Groups of tensors that one numbering runs through.
class NumberedGroups {
 public:
  explicit NumberedGroups(std::size_t count) : parents_(count) {
    for (std::size_t i = 0; i < count; ++i) parents_[TensorId(i)] = TensorId(i);
  }
  TensorId group_of(TensorId id) {
    while (parents_[id] != id) id = parents_[id] = parents_[parents_[id]];
    return id;
  }
  void join(TensorId a, TensorId b) { parents_[group_of(a)] = group_of(b); }

 private:
  IdVector<TensorId, TensorId> parents_;
};

/// Whether an operator with this factor computes attention for each of its values: it numbers heads then.
bool is_by_head(const Operation& operation, std::uint32_t factor) {
  if (operation.type->role == OperatorRole::kAttention) return true;
  return operation.type->name == "Softmax" && operation.rule.factors[factor].kind == FactorKind::kPassThrough;
}

/// Takes weights of attention heads from the experts: those of one numbering with operators that attend by head.
void remove_heads(const OperatorGraph& graph, ExpertFactors& found) {
  NumberedGroups groups(graph.tensors().size());
  const auto for_each_numbered = [&](OperatorId id, const auto& visit) {
    const GraphOperator& op = graph.operators()[id];
    for (const TensorId tensor : op.operands) {
      if (found.dimensions[tensor]) visit(tensor);
    }
    for (const TensorId tensor : op.results) {
      if (found.dimensions[tensor]) visit(tensor);
    }
  };
  for (const OperatorId id : graph.operators().ids()) {
    std::optional<TensorId> first;
    if (!found.factors[id]) continue;
    for_each_numbered(id, [&](TensorId tensor) {
      if (first) groups.join(*first, tensor);
      first = tensor;
    });
  }
  IdVector<TensorId, char> is_of_heads(graph.tensors().size());
  for (const OperatorId id : graph.operators().ids()) {
    const std::optional<std::uint32_t>& factor = found.factors[id];
    if (!factor || !is_by_head(graph.operation(id), *factor)) continue;
    for_each_numbered(id, [&](TensorId tensor) { is_of_heads[groups.group_of(tensor)] = 1; });
  }
  for (const OperatorId id : graph.operators().ids()) {
    bool is_removed = false;
    for_each_numbered(id, [&](TensorId tensor) { is_removed |= is_of_heads[groups.group_of(tensor)] != 0; });
    if (is_removed) found.factors[id].reset();
  }
  for (const TensorId id : graph.tensors().ids()) {
    if (is_of_heads[groups.group_of(id)]) found.dimensions[id].reset();
  }
}

}  // namespace

std::optional<std::uint32_t> stacked_factor(const ShardingRule& rule, std::size_t weight) {
  if (rule.operands.size() < 2) return std::nullopt;
  for (std::uint32_t factor = 0; factor < rule.factors.size(); ++factor) {
    if (rule.factors[factor].size == 1 || !led_dimension(rule.operands[weight], factor)) continue;
    const auto has_it = [&](const TensorWalk& walk) { return walks(walk, factor); };
    if (std::all_of(rule.operands.begin(), rule.operands.end(), has_it) && has_it(rule.results[0])) return factor;
  }
  return std::nullopt;
}

ExpertFactors find_experts(const OperatorGraph& graph) {
  ExpertFactors found;
  found.factors.resize(graph.operators().size());
  found.dimensions.resize(graph.tensors().size());
  // From products whose operands all have the factor back to those whose input is the same for all experts.
  IdVector<TensorId, std::optional<std::uint8_t>> is_by_expert(graph.tensors().size());
  for (std::size_t i = graph.operators().size(); i-- > 0;) {
    const OperatorId id(i);
    const GraphOperator& op = graph.operators()[id];
    const Operation& operation = graph.operation(id);
    if (op.pass != Pass::kForward || op.results.empty()) continue;
    const bool is_product = operation.type->work == WorkKind::kContraction;
    std::optional<std::uint32_t> factor;
    if (const auto& known = is_by_expert[op.results[0]]) factor = leading_factor(operation.rule.results[0], *known);
    for (std::size_t k = 0; k < op.operands.size() && is_product && !factor; ++k) {
      if (stored_weight(graph, op.operands[k])) factor = stacked_factor(operation.rule, k);
    }
    for (std::size_t k = 0; k < op.operands.size() && factor; ++k) {
      const std::optional<std::uint8_t> dimension = led_dimension(operation.rule.operands[k], *factor);
      const std::optional<TensorId> weight = stored_weight(graph, op.operands[k]);
      if (!weight) is_by_expert[op.operands[k]] = dimension;
      if (weight && is_product) found.dimensions[*weight] = dimension;
    }
  }
  for (const OperatorId id : graph.operators().ids()) {
    const GraphOperator& op = graph.operators()[id];
    const ShardingRule& rule = graph.operation(id).rule;
    std::optional<std::uint32_t>& factor = found.factors[id];
    for (std::size_t i = 0; i < op.operands.size() && !factor; ++i) {
      const auto& dimension = found.dimensions[op.operands[i]];
      if (dimension) factor = leading_factor(rule.operands[i], *dimension);
    }
    if (!factor) continue;
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      found.dimensions[op.results[i]] = led_dimension(rule.results[i], *factor);
    }
  }
  remove_heads(graph, found);
  return found;
}

}  // namespace shardplan
