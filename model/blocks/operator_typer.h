#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/blocks/block_faults.h"
#include "model/blocks/block_template.h"
#include "model/blocks/block_tensors.h"
#include "model/blocks/file_context.h"

namespace shardplan {

/// Types the operators of one block: finds the operator, reads its attributes, infers its results and checks the shape
/// that the file asserts.
class OperatorTyper {
 public:
  using Value = BlockTemplate::Value;

  /// All must outlive the object; results become values of `result`.
  OperatorTyper(FileContext& file, const BlockSyntax& block, BlockFaults& faults, BlockTensors& tensors,
                BlockTemplate& result)
      : file_(file), block_(block), faults_(faults), tensors_(tensors), result_(result) {}

  /// Nothing after faults.
  std::optional<BlockTemplate::Item> type(const OperatorSyntax& op, const std::vector<Value>& operands);

  /// What is wrong with a line whatever its inputs are: its operator and its attributes.
  void check_line(const OperatorSyntax& op);

  /// The value that `rest` names behind an operator ("" or "mask" of `drop.mask`); nothing after a fault.
  std::optional<Value> result_of(const BlockTemplate::Item& item, const NameSource& source, const SourcePlace& place,
                                 const std::string& where);

 private:
  const OperatorType* find_type(const OperatorSyntax& op, const std::vector<TensorType>& operands);
  /// One that is not the file's own; null, with a fault, if there is none.
  const OperatorType* find_in_catalogue(const OperatorSyntax& op);
  std::optional<Operation> make(const OperatorSyntax& op, const std::vector<TensorType>& operands);
  std::optional<std::vector<std::string>> result_names(const OperatorSyntax& op, const Operation& operation);
  bool check_shape(const OperatorSyntax& op, const Operation& operation);

  FileContext& file_;
  const BlockSyntax& block_;
  BlockFaults& faults_;
  BlockTensors& tensors_;
  BlockTemplate& result_;
};

}  // namespace shardplan
