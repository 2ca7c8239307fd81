#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/operator_graph.h"
#include "operators/catalogue.h"
#include "planner/plan.h"

namespace shardplan {

/// Builds small graphs by hand in the test itself.
class HandGraph {
 public:
  explicit HandGraph(const std::string& name) : builder_(name) {}

  TensorId input(const std::string& name, Shape shape, DataType dtype = DataType::kF32) {
    return add(name, std::move(shape), dtype, TensorKind::kInput);
  }
  TensorId parameter(const std::string& name, Shape shape, DataType dtype = DataType::kF32) {
    return add(name, std::move(shape), dtype, TensorKind::kParameter);
  }
  TensorId constant(const std::string& name, Shape shape, Fill fill) {
    const TensorId id = add(name, std::move(shape), DataType::kF32, TensorKind::kConstant);
    builder_.tensor(id).fill = fill;
    return id;
  }
  /// The first result of a new operator.
  TensorId op(const std::string& name, const std::string& type, std::vector<TensorId> operands,
              const Attributes& attributes = {}, const std::string& scope = "", int line = 0) {
    GraphOperator added;
    added.name = name;
    added.scope = scope;
    if (line > 0) added.place = {"configs/hand.yaml", line, 3};
    std::vector<TensorType> types;
    for (const TensorId operand : operands) types.push_back(builder_.tensor(operand).type);
    added.operands = std::move(operands);
    Operation operation = make_operation(*find_operator_type(type), attributes, types);
    std::vector<std::string> names;
    for (std::size_t i = 0; i < operation.results.size(); ++i) {
      names.push_back(operation.results.size() == 1 ? name : name + "." + std::to_string(i));
    }
    last_ = builder_.add_operator(std::move(added), std::move(operation), names);
    return builder_.op(last_).results[0];
  }
  /// The operator added last.
  GraphOperator& last() { return builder_.op(last_); }
  GraphTensor& tensor(TensorId id) { return builder_.tensor(id); }
  /// The graph whose loss is this scalar.
  OperatorGraph build_with_loss(TensorId loss) {
    builder_.set_loss(loss);
    return build(loss);
  }
  OperatorGraph build(TensorId output) {
    builder_.tensor(output).is_output = true;
    return builder_.build();
  }

 private:
  TensorId add(const std::string& name, Shape shape, DataType dtype, TensorKind kind) {
    GraphTensor tensor;
    tensor.name = name;
    tensor.type = {std::move(shape), dtype};
    tensor.kind = kind;
    return builder_.add_tensor(std::move(tensor));
  }

  OperatorGraphBuilder builder_;
  OperatorId last_;
};

/// Axes of factors by operator: {"fc", {{"m", "{pcie}"}, {"n", "{hccs}"}}}; operators not listed are replicated.
using HandStrategies = std::map<std::string, std::map<std::string, std::string>>;

/// The name of the factor that indexes a dimension of an operator's first result.
std::string factor_of_result(const OperatorGraph& graph, const std::string& op, std::size_t dimension);

/// The axes in "{x, y:(1)2}".
std::vector<AxisRef> parse_axes(const std::string& text, const DeviceMesh& mesh);

/// Everything else follows from the given strategies: tensors are stored and delivered in their first reader's layout,
/// unless `stored` gives another one; outputs are completed. A launch costs 20 us, a byte on a link very little: one
/// collective beats two, and reduce_scatter beats all_reduce.
Plan hand_plan(OperatorGraph built, const HandStrategies& strategies,
               const std::map<std::string, std::string>& stored = {});

/// The first block of basic-blocks, with the strategy that the source documents give it.
Plan block_plan();

/// An embedding, two equal layers and a head that reads the table again, trained with momentum; the batch is sharded
/// over pcie in the forward pass, the vocabulary of the embedding over hccs.
Plan tiny_plan();

}  // namespace shardplan
