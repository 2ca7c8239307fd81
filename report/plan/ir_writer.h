#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "planner/plan.h"

namespace shardplan {

/// One printed operator, before it is numbered.
struct IrLine {
  std::string name;
  std::string op;
  std::vector<std::string> inputs;
  std::string instance;
  std::string attributes;
  std::string strategy;  // "{in_strategy: ((1, 8), (1, 8))}"; empty for inserted operators
  std::vector<std::string> in_types;
  std::vector<std::string> out_types;
  std::vector<std::string> remarks;  // lines after '#'
};

/// "%para2_conv1.weight".
std::string parameter_name(std::size_t number, const GraphTensor& tensor);

/// The common parts of step_parallel_begin.ir and step_parallel_end.ir: numbering, the header with the parameters, the
/// lines of the model's operators.
class IrWriter {
 public:
  /// The plan must outlive the writer; `mesh` names the devices of the worker whose file is written.
  IrWriter(const Plan& plan, DeviceMesh mesh);

 protected:
  std::string title(std::string_view file) const;
  std::size_t num_parameters() const;
  /// ", mesh dp=2, mp=4"; empty for one device.
  std::string mesh_text() const;
  /// Prints the line under the next number and returns that number.
  std::size_t emit(const IrLine& line);
  std::vector<TensorLayout> operand_layouts(const Operation& operation, const Strategy& strategy) const;
  std::vector<TensorLayout> result_layouts(const Operation& operation, const Strategy& strategy) const;
  /// An operator of the model as in both files: its type, attributes, strategies and place in the source.
  IrLine operator_line(OperatorId id, const Operation& operation, const Strategy& strategy,
                       const std::string& name) const;
  std::string scope_remark(const GraphOperator& op) const;
  static std::string names_text(std::string_view key, const std::vector<std::string>& names);

  const Plan& plan_;
  const OperatorGraph& graph_;
  const DeviceMesh mesh_;
  std::vector<TensorId> head_;  // inputs, parameters, states: %para0, %para1, ...
  std::string text_;
  std::size_t next_ = 0;
};

}  // namespace shardplan
