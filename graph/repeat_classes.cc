#include "graph/repeat_classes.h"

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/random.h"
#include "graph/folded_names.h"

namespace shardplan {
namespace {

using Words = std::vector<std::uint64_t>;

struct WordsHash {
  std::size_t operator()(const Words& words) const {
    std::uint64_t hash = words.size();
    for (const std::uint64_t word : words) hash = mix(hash ^ word);
    return hash;
  }
};

/// The first word of a key: the rule by which the class was formed.
enum Rule : std::uint64_t { kPlace, kAlone, kGradient, kCopy, kOfParameter, kByOperands, kResultOf, kReadBy };

class Classes {
 public:
  explicit Classes(const OperatorGraph& graph)
      : graph_(graph),
        of_operator_(graph.operators().size(), 0),
        of_parameter_(graph.tensors().size(), 0),
        next_of_operator_(graph.operators().size(), 0),
        next_of_parameter_(graph.tensors().size(), 0),
        tensors_(graph.tensors().size()) {}

  RepeatClasses run() {
    for (const GraphOperator& op : graph_.operators()) {
      if (op.forward && !op.is_copy) ++of_operator_[*op.forward];
      if (!op.forward && op.parameter) ++of_parameter_[*op.parameter];
    }
    operators_.reserve(graph_.operators().size());
    for (const OperatorId id : graph_.operators().ids()) add(id);
    RepeatClasses result;
    result.tensors.reserve(graph_.tensors().size());
    result.operators = std::move(operators_);
    for (const TensorId id : graph_.tensors().ids()) result.tensors.push_back(class_of(id));
    result.count = known_.size();
    return result;
  }

 private:
  RepeatClassId number(Words key) {
    return known_.try_emplace(std::move(key), RepeatClassId(known_.size())).first->second;
  }

  void add(OperatorId id) {
    const GraphOperator& op = graph_.operators()[id];
    const RepeatClassId own = number(key(op));
    operators_.push_back(own);
    for (std::size_t i = 0; i < op.results.size(); ++i) tensors_[op.results[i]] = number({kResultOf, own.value(), i});
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const GraphTensor& tensor = graph_.tensor(op.operands[i]);
      const bool is_stored = tensor.kind == TensorKind::kParameter || tensor.kind == TensorKind::kState;
      if (is_stored && !tensors_[op.operands[i]]) tensors_[op.operands[i]] = number({kReadBy, own.value(), i});
    }
  }

  Words key(const GraphOperator& op) {
    const std::uint64_t operation = op.operation.value();
    if (op.is_copy) return {kCopy, operators_[*op.forward].value(), operation};
    if (op.forward) {
      const std::uint64_t rank = next_of_operator_[*op.forward]++;
      return {kGradient, operators_[*op.forward].value(), rank, of_operator_[*op.forward], operation};
    }
    if (op.parameter) {
      const std::uint64_t rank = next_of_parameter_[*op.parameter]++;
      return {kOfParameter, class_of(*op.parameter).value(), rank, of_parameter_[*op.parameter], operation};
    }
    if (op.pass == Pass::kForward) {
      return {kPlace, places_.try_emplace(folded_name(op.name), places_.size()).first->second, operation};
    }
    Words key{kByOperands, operation};
    for (const TensorId operand : op.operands) {
      key.push_back(graph_.tensor(operand).kind == TensorKind::kConstant ? UINT64_MAX : class_of(operand).value());
    }
    return key;
  }

  /// A tensor that no earlier operator gave a class gets its own.
  RepeatClassId class_of(TensorId id) {
    if (!tensors_[id]) tensors_[id] = number({kAlone, 1, id.value()});
    return *tensors_[id];
  }

  const OperatorGraph& graph_;
  IdVector<OperatorId, std::uint32_t> of_operator_;  // number of gradient operators
  IdVector<TensorId, std::uint32_t> of_parameter_;
  IdVector<OperatorId, std::uint32_t> next_of_operator_;
  IdVector<TensorId, std::uint32_t> next_of_parameter_;
  IdVector<OperatorId, RepeatClassId> operators_;
  IdVector<TensorId, std::optional<RepeatClassId>> tensors_;
  std::unordered_map<Words, RepeatClassId, WordsHash> known_;  // looked up, never iterated
  std::unordered_map<std::string, std::uint64_t> places_;      // by folded name; looked up, never iterated
};

}  // namespace

RepeatClasses repeat_classes(const OperatorGraph& graph) { return Classes(graph).run(); }

bool has_copies(const OperatorGraph& graph, const RepeatClasses& classes) {
  std::vector<char> is_known(classes.count, 0);
  for (const OperatorId op : graph.operators().ids()) {
    if (graph.operators()[op].pass != Pass::kForward) continue;
    if (std::exchange(is_known[classes.operators[op].value()], 1) != 0) return true;
  }
  return false;
}

}  // namespace shardplan
