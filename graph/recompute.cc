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

class Recomputation {
 public:
  explicit Recomputation(const OperatorGraph& graph) : graph_(graph), builder_(graph) {}

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
    return op.forward ? graph_.operators()[*op.forward].recompute_scope : op.recompute_scope;
  }

  /// The block of the forward operator that produces the tensor; empty for other tensors.
  const SharedText& scope_of(TensorId id) const {
    static const SharedText none;
    const GraphTensor& tensor = graph_.tensor(id);
    const bool is_forward = tensor.producer && graph_.operators()[*tensor.producer].pass == Pass::kForward;
    return is_forward ? graph_.operators()[*tensor.producer].recompute_scope : none;
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
      GraphOperator copy = original;
      copy.name = "recompute." + original.name;
      copy.pass = Pass::kBackward;
      copy.forward = id;
      copy.is_copy = true;
      for (TensorId& operand : copy.operands) operand = current(operand);
      std::vector<std::string> result_names;
      for (const TensorId result : original.results) {
        result_names.push_back("recompute." + graph_.tensor(result).name);
      }
      const OperatorId made = builder_.add_operator(std::move(copy), std::move(result_names));
      builder_.place_before(made, *first);
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

}  // namespace

OperatorGraph recompute_marked(OperatorGraph training) {
  const bool is_marked = std::any_of(training.operators().begin(), training.operators().end(),
                                     [](const GraphOperator& op) { return !op.recompute_scope.empty(); });
  return is_marked ? Recomputation(training).run() : std::move(training);
}

}  // namespace shardplan
