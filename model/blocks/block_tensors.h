#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/blocks/block_faults.h"
#include "model/blocks/block_names.h"
#include "model/blocks/block_template.h"
#include "model/blocks/file_context.h"
#include "model/syntax/dim_scope.h"

namespace shardplan {

/// The dims of one block and the tensors that it declares: inputs, parameters, constants, and the numbers among its
/// operators' inputs. Each gets a type and becomes a value of the template under construction. Faults are reported, and
/// what is wrong has no value.
class BlockTensors {
 public:
  using Value = BlockTemplate::Value;

  /// All must outlive the object.
  BlockTensors(FileContext& file, const BlockSyntax& block, BlockFaults& faults, BlockTemplate& result);

  /// The types and dims that the caller passes; an input of the file itself has the type that it is declared with.
  void read_inputs(const std::vector<TensorType>& passed, const std::vector<std::int64_t>& given);
  void read_parameters_and_constants();
  /// The value of an input, parameter or constant; nothing for other sources.
  std::optional<Value> find(const NameSource& source) const;
  /// Number `i` among the inputs of an operator: a constant of the type that stands `beside` it, if that fits.
  std::optional<Value> number(const OperatorSyntax& op, std::size_t i, std::optional<DataType> beside);

  /// A size of at least 1, or a fault that begins with `where`.
  std::optional<std::int64_t> extent(const PlacedExpression& dim, const std::string& where);
  /// The same of how often something is repeated.
  std::optional<std::int64_t> count(const PlacedExpression& number, const std::string& where);
  std::optional<Shape> evaluate(const ShapeSyntax& shape, const std::string& where);
  /// A fault for a tensor of more bytes than the project computes with.
  bool check_size(const SourcePlace& place, const std::string& name, const TensorType& type);
  DimScope& dims() { return dims_; }

 private:
  std::optional<std::int64_t> positive(const PlacedExpression& dim, const std::string& where,
                                       std::int64_t (DimScope::*compute)(const Expression&));
  std::optional<double> real(const PlacedExpression& expression, const std::string& where);
  void infer_dims(const TensorSyntax& input, const Shape& shape);
  void declare_input(const TensorSyntax& input);
  void check_input(const TensorSyntax& input, const TensorType& passed, const std::string& where);
  void read_stored(const std::vector<TensorSyntax>& tensors, std::vector<BlockTemplate::Stored>& list,
                   std::vector<std::optional<Value>>& values);

  const FileContext& file_;
  const BlockSyntax& block_;
  BlockFaults& faults_;
  BlockTemplate& result_;
  DimScope dims_;
  std::vector<std::optional<Value>> inputs_;
  std::vector<std::optional<Value>> constants_;
  std::vector<std::optional<Value>> parameters_;
};

}  // namespace shardplan
