#include "graph/recompute.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace shardplan {
namespace {

/// Adds the copy of a forward operator that reads `operands`. `anchor`: the first backward operator that needs it.
OperatorId add_copy(OperatorGraphBuilder& builder, const OperatorGraph& graph, OperatorId of,
                    std::vector<TensorId> operands, OperatorId anchor) {
  GraphOperator copy = graph.operators()[of];
  copy.name = "recompute." + copy.name.str();
  copy.pass = Pass::kBackward;
  copy.forward = of;
  copy.is_copy = true;
  copy.operands = std::move(operands);
  std::vector<std::string> result_names;
  for (const TensorId result : copy.results) result_names.push_back("recompute." + graph.tensor(result).name);
  const OperatorId made = builder.add_operator(std::move(copy), std::move(result_names));
  builder.place_before(made, anchor);
  return made;
}

/// Marked by itself, not within a block.
bool is_marked_alone(const GraphOperator& op) { return op.recompute_scope == op.name; }

/// Of marked blocks.
class BlockRecomputation {
 public:
  explicit BlockRecomputation(const OperatorGraph& graph) : graph_(graph), builder_(graph) {}

  OperatorGraph run() {
    is_kept_.resize(graph_.tensors().size(), 0);
    std::vector<std::string> scopes;  // in backward order: what a copy reads of earlier blocks is kept
    std::map<std::string, std::vector<OperatorId>> backward;
    for (const OperatorId id : graph_.operators().ids()) {
      if (graph_.operators()[id].pass == Pass::kForward) continue;
      const std::string& scope = scope_of(id);
      for (const TensorId operand : graph_.operators()[id].operands) {
        if (scope_of(operand) != scope) is_kept_[operand] = 1;
      }
      if (scope.empty()) continue;
      std::vector<OperatorId>& readers = backward[scope];
      if (readers.empty()) scopes.push_back(scope);
      readers.push_back(id);
    }
    for (const std::string& scope : scopes) copy_needed(scope, backward[scope]);
    return builder_.build();
  }

 private:
  /// The block of an operator; a backward operator belongs to the block of its forward operator.
  const SharedText& scope_of(OperatorId id) const {
    const GraphOperator& op = graph_.operators()[id];
    return scope_of(op.forward ? graph_.operators()[*op.forward] : op);
  }
  static const SharedText& scope_of(const GraphOperator& op) {
    static const SharedText none;
    return is_marked_alone(op) ? none : op.recompute_scope;
  }

  /// The block of the forward operator that produces the tensor; empty for other tensors.
  const SharedText& scope_of(TensorId id) const {
    static const SharedText none;
    const GraphTensor& tensor = graph_.tensor(id);
    const bool is_forward = tensor.producer && graph_.operators()[*tensor.producer].pass == Pass::kForward;
    return is_forward ? scope_of(graph_.operators()[*tensor.producer]) : none;
  }

  bool is_made_again(TensorId id, const std::string& scope) const {
    return scope_of(id) == scope && !is_kept_[id] && !graph_.tensor(id).is_output;
  }

  void copy_needed(const std::string& scope, const std::vector<OperatorId>& backward) {
    std::set<OperatorId> needed;
    std::vector<OperatorId> open;
    const auto need = [&](TensorId tensor) {
      if (!is_made_again(tensor, scope)) {
        is_kept_[tensor] = 1;
      } else if (needed.insert(*graph_.tensor(tensor).producer).second) {
        open.push_back(*graph_.tensor(tensor).producer);
      }
    };
    std::optional<OperatorId> first;
    for (const OperatorId id : backward) {
      for (const TensorId operand : graph_.operators()[id].operands) {
        if (!is_made_again(operand, scope)) continue;
        need(operand);
        if (!first) first = id;
      }
    }
    while (!open.empty()) {
      const OperatorId id = open.back();
      open.pop_back();
      for (const TensorId operand : graph_.operators()[id].operands) need(operand);
    }

    std::map<TensorId, TensorId> again;
    const auto current = [&](TensorId tensor) {
      const auto found = again.find(tensor);
      return found == again.end() ? tensor : found->second;
    };
    for (const OperatorId id : needed) {
      const GraphOperator& original = graph_.operators()[id];
      std::vector<TensorId> operands = original.operands;
      for (TensorId& operand : operands) operand = current(operand);
      const OperatorId made = add_copy(builder_, graph_, id, std::move(operands), *first);
      for (std::size_t i = 0; i < original.results.size(); ++i) {
        if (is_made_again(original.results[i], scope)) again.emplace(original.results[i], builder_.op(made).results[i]);
      }
    }
    for (const OperatorId id : backward) {
      for (TensorId& operand : builder_.op(id).operands) operand = current(operand);
    }
  }

  const OperatorGraph& graph_;
  OperatorGraphBuilder builder_;
  IdVector<TensorId, char> is_kept_;
};

/// Of operators that are marked by themselves: their results are not kept for any backward operator.
class OperatorRecomputation {
 public:
  explicit OperatorRecomputation(const OperatorGraph& graph) : graph_(graph), builder_(graph) {}

  OperatorGraph run() {
    for (const OperatorId id : graph_.operators().ids()) {
      if (graph_.operators()[id].pass == Pass::kForward) continue;
      std::vector<TensorId> operands = graph_.operators()[id].operands;
      for (TensorId& operand : operands) operand = made_again(operand, id);
      builder_.op(id).operands = std::move(operands);
    }
    return builder_.build();
  }

 private:
  /// The tensor that a backward operator reads: a copy's result, or the tensor itself if it is kept. The copies that it needs and
  /// that nothing needed before are added, each after those that it reads.
  TensorId made_again(TensorId tensor, OperatorId reader) {
    std::vector<TensorId> open = {tensor};
    while (!open.empty()) {
      const std::optional<OperatorId> of = dropped_producer(open.back());
      if (!of || again_.contains(open.back())) {
        open.pop_back();
        continue;
      }
      const GraphOperator& original = graph_.operators()[*of];
      const std::size_t num_open = open.size();
      std::vector<TensorId> operands = original.operands;
      for (TensorId& operand : operands) {
        const auto found = again_.find(operand);
        if (found != again_.end()) {
          operand = found->second;
        } else if (dropped_producer(operand)) {
          open.push_back(operand);
        }
      }
      if (open.size() > num_open) continue;
      const OperatorId made = add_copy(builder_, graph_, *of, std::move(operands), reader);
      for (std::size_t i = 0; i < original.results.size(); ++i) {
        if (!graph_.tensor(original.results[i]).is_output) {
          again_.emplace(original.results[i], builder_.op(made).results[i]);
        }
      }
    }
    const auto found = again_.find(tensor);
    return found == again_.end() ? tensor : found->second;
  }

  /// The marked operator that produces the tensor; none if it is kept, as an output is.
  std::optional<OperatorId> dropped_producer(TensorId id) const {
    const GraphTensor& tensor = graph_.tensor(id);
    if (!tensor.producer || tensor.is_output) return std::nullopt;
    const GraphOperator& producer = graph_.operators()[*tensor.producer];
    return producer.pass == Pass::kForward && is_marked_alone(producer) ? tensor.producer : std::nullopt;
  }

  const OperatorGraph& graph_;
  OperatorGraphBuilder builder_;
  std::map<TensorId, TensorId> again_;  // results of copies
};

}  // namespace

OperatorGraph recompute_marked(OperatorGraph training) {
  bool has_blocks = false, has_operators = false;
  for (const GraphOperator& op : training.operators()) {
    has_blocks |= !op.recompute_scope.empty() && !is_marked_alone(op);
    has_operators |= is_marked_alone(op);
  }
  if (has_blocks) training = BlockRecomputation(training).run();
  return has_operators ? OperatorRecomputation(training).run() : std::move(training);
}

}  // namespace shardplan
