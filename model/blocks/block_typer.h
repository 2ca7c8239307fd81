#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/blocks/block_template.h"
#include "model/blocks/built_in_blocks.h"
#include "model/blocks/custom_operators.h"
#include "model/syntax/dim_scope.h"
#include "model/syntax/model_keys.h"

namespace shardplan {

/// What all bodies of a file share while they are typed.
struct TemplateLibrary::State {
  struct Key {
    const void* block = nullptr;  // a block's syntax
    std::vector<TensorType> inputs;
    std::vector<std::int64_t> given;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const {
      std::size_t hash = std::hash<const void*>()(key.block);
      const auto combine = [&](std::size_t value) { hash ^= value + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2); };
      for (const TensorType& type : key.inputs) {
        combine(static_cast<std::size_t>(type.dtype));
        for (const std::int64_t extent : type.shape) combine(static_cast<std::size_t>(extent));
      }
      for (const std::int64_t value : key.given) combine(static_cast<std::size_t>(value));
      return hash;
    }
  };

  const ModelSyntax& model;
  std::map<std::string, std::int64_t> dims;
  TemplateOptions options;
  OperatorGraphBuilder& builder;
  std::vector<Diagnostic>& faults;
  CustomOperators custom_operators;
  std::map<std::string, const BlockSyntax*> blocks;
  std::map<const BlockSyntax*, BodyNames> names;
  std::map<std::string, std::unique_ptr<BlockSyntax>> built_in_syntax;         // by text
  std::unordered_map<Key, std::unique_ptr<BlockTemplate>, KeyHash> templates;  // null: faults
  std::set<const BlockSyntax*> reported;  // user's blocks whose faults have been told once
  std::vector<std::string> active;        // blocks being typed, outermost first
  std::int64_t num_typed = 0;             // operators in all templates
};

/// Types one body for given input types; body_typer.cc has dims, tensors and operands, body_operators.cc operators,
/// body_calls.cc the use of other blocks.
class BodyTyper {
 public:
  using State = TemplateLibrary::State;
  using Value = BlockTemplate::Value;

  /// `label` stands before names in faults; faults in a built-in block point at `call_place`.
  BodyTyper(State& state, const BlockSyntax& body, const BodyNames& names, std::string label,
            std::optional<SourcePlace> call_place);

  /// Null after faults. `given` are the values of the dims that the caller gives, in the block's order.
  std::unique_ptr<BlockTemplate> type(const std::vector<TensorType>& inputs, const std::vector<std::int64_t>& given,
                                      std::vector<std::string>& unchecked);

 private:
  struct OperatorState {
    bool is_typed = false;
    bool is_unchecked = false;  // something before it is wrong
    std::size_t item = 0;
  };
  struct Callee {
    const BlockSyntax* syntax = nullptr;
    std::vector<std::int64_t> given;
  };

  void fault(const SourcePlace& place, std::string message, std::string hint = "");
  /// Remembers the operators, wrong themselves, that keep this one from being typed.
  void note_unchecked(std::size_t index, std::vector<std::string>& unchecked);

  void bind_given(const std::vector<std::int64_t>& given);
  void infer_dims(const TensorSyntax& input, const Shape& shape);
  std::optional<std::int64_t> extent(const PlacedExpression& dim, const std::string& where);
  std::optional<double> real(const PlacedExpression& expression, const std::string& where);
  std::optional<Shape> evaluate(const ShapeSyntax& shape, const std::string& where);

  Value add_value(TensorType type);
  bool check_size(const SourcePlace& place, const std::string& name, const TensorType& type);
  /// Of the file: declared. Of a block: what the caller passes, which binds the inferred dims and must fit the rest.
  void read_inputs(const std::vector<TensorType>& passed);
  void check_input(const TensorSyntax& input, const TensorType& passed, const std::string& where);
  void read_stored(const std::vector<TensorSyntax>& tensors, std::vector<BlockTemplate::Stored>& list,
                   std::vector<std::optional<Value>>& values);

  /// The values that an operator reads; nothing if one of them is unknown. Numbers become constants.
  std::optional<std::vector<Value>> operands_of(std::size_t index);
  std::optional<Value> number(const OperatorSyntax& op, std::size_t i, std::optional<DataType> beside);
  std::optional<Value> value_of(const NameSource& source, const SourcePlace& place, const std::string& where);
  std::optional<Value> result_of(const NameSource& source, const SourcePlace& place, const std::string& where);

  bool count_operators(const OperatorSyntax& op, std::int64_t added);
  /// All attributes that stand beside an operator or a built-in block; `shape` is left out unless it is one of `specs`.
  std::optional<Attributes> attributes_of(const OperatorSyntax& op, const std::vector<AttributeSpec>& specs,
                                          const KeySpecs& keys);
  std::vector<TensorType> types_of(const std::vector<Value>& values) const;
  const OperatorType* find_type(const OperatorSyntax& op, const std::vector<TensorType>& operands);
  void type_operator(std::size_t index, const OperatorSyntax& op, const std::vector<Value>& operands);
  /// The attribute that a message speaks of, else the inputs, else the operator.
  static SourcePlace place_for(const OperatorSyntax& op, const std::string& message);
  bool name_results(const OperatorSyntax& op, const Operation& operation, BlockTemplate::Item& item);
  bool check_shape(const OperatorSyntax& op, const Operation& operation);

  std::optional<Callee> find_callee(const OperatorSyntax& op, const std::vector<TensorType>& inputs);
  std::optional<Callee> user_block(const OperatorSyntax& op, const BlockSyntax& block);
  std::optional<Callee> built_in_block(const OperatorSyntax& op, const BuiltInBlock& block,
                                       const std::vector<TensorType>& inputs);
  void wrong_count(const OperatorSyntax& op, std::size_t expected, std::size_t found);
  /// The callee's template for these types, typed now if it is new.
  const BlockTemplate* template_of(const OperatorSyntax& op, const Callee& callee, std::vector<TensorType> inputs);
  void type_call(std::size_t index, const OperatorSyntax& op, const std::vector<Value>& operands);
  std::optional<Value> part_of_call(BlockTemplate::Item& item, std::string rest, const SourcePlace& place,
                                    const std::string& where);

  State& state_;
  const BlockSyntax& body_;
  const BodyNames& names_;
  const std::string label_;
  const std::optional<SourcePlace> call_place_;
  DimScope dims_;
  std::unique_ptr<BlockTemplate> result_;
  bool is_good_ = true;
  std::vector<std::optional<Value>> inputs_;
  std::vector<std::optional<Value>> constants_;
  std::vector<std::optional<Value>> parameters_;
  std::vector<OperatorState> operators_;
};

}  // namespace shardplan
