#include "graph/block_template.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "base/integer.h"
#include "graph/built_in_blocks.h"
#include "graph/custom_operators.h"
#include "graph/model_keys.h"

namespace shardplan {
namespace {

constexpr std::size_t kMaxBlockDepth = 32;
constexpr Bytes kMaxTensorBytes = Bytes{1} << 50;

std::string shape_text(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::string type_text(const TensorType& type) {
  return fmt::format("{} {}", to_string(type.dtype), shape_text(type.shape));
}

/// Bytes of a tensor, or nothing beyond what the project computes with.
std::optional<Bytes> checked_bytes(const TensorType& type) {
  std::optional<Bytes> bytes = element_bytes(type.dtype);
  for (const std::int64_t extent : type.shape) {
    if (bytes) bytes = checked_multiply(*bytes, extent);
  }
  return bytes && *bytes <= kMaxTensorBytes ? bytes : std::nullopt;
}

std::string message_of(const InputError& error) { return error.diagnostics()[0].message; }
std::string hint_of(const InputError& error) { return error.diagnostics()[0].hint; }

}  // namespace

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

/// Types one body.
class BodyTyper {
 public:
  using State = TemplateLibrary::State;
  using Value = BlockTemplate::Value;

  /// `label` stands before names in faults; faults in a built-in block point at `call_place`.
  BodyTyper(State& state, const BlockSyntax& body, const BodyNames& names, std::string label,
            std::optional<SourcePlace> call_place)
      : state_(state), body_(body), names_(names), label_(std::move(label)), call_place_(std::move(call_place)) {}

  std::unique_ptr<BlockTemplate> type(const std::vector<TensorType>& inputs, const std::vector<std::int64_t>& given,
                                      std::vector<std::string>& unchecked) {
    result_ = std::make_unique<BlockTemplate>();
    result_->syntax = &body_;
    bind_dims(given);
    read_inputs(inputs);
    read_stored(body_.parameters, result_->parameters, parameters_);
    read_stored(body_.constants, result_->constants, constants_);
    operators_.resize(body_.operators.size());
    for (const std::size_t index : names_.order) {
      const OperatorSyntax& op = body_.operators[index];
      const std::optional<std::vector<Value>> operands = operands_of(index);
      if (!operands) {
        note_unchecked(index, unchecked);
      } else if (op.is_block) {
        type_call(index, op, *operands);
      } else {
        type_operator(index, op, *operands);
      }
    }
    const auto value_of_result = [&](const NameSource& source, const SourcePlace& place) {
      return source.kind == NameSource::Kind::kOperator ? value_of(source, place, label_ + "outputs") : std::nullopt;
    };
    for (std::size_t i = 0; i < names_.outputs.size(); ++i) {
      const std::optional<Value> value = value_of_result(names_.outputs[i], names_.output_places[i]);
      if (value) {
        result_->outputs.push_back(*value);
        result_->output_names.push_back(names_.output_names[i]);
      }
    }
    if (names_.loss) result_->loss = value_of_result(*names_.loss, state_.model.loss->place);
    return is_good_ && names_.is_good ? std::move(result_) : nullptr;
  }

 private:
  struct OperatorState {
    bool is_typed = false;
    bool is_unchecked = false;  // something before it is wrong
    std::size_t item = 0;
  };

  void fault(const SourcePlace& place, std::string message, std::string hint = "") {
    is_good_ = false;
    state_.faults.push_back({call_place_ ? *call_place_ : place, std::move(message), std::move(hint)});
  }

  /// Remembers the operators, wrong themselves, that keep this one from being typed.
  void note_unchecked(std::size_t index, std::vector<std::string>& unchecked) {
    operators_[index].is_unchecked = true;
    for (const NameSource& source : names_.operands[index]) {
      if (source.kind != NameSource::Kind::kOperator) continue;
      const OperatorState& before = operators_[source.index];
      const std::string name = label_ + body_.operators[source.index].name.text;
      const bool is_known = std::find(unchecked.begin(), unchecked.end(), name) != unchecked.end();
      if (!before.is_typed && !before.is_unchecked && !is_known) unchecked.push_back(name);
    }
  }

  // ---- dims -------------------------------------------------------------------------------------------------------

  void bind_dims(const std::vector<std::int64_t>& given) {
    std::size_t next_given = 0;
    if (body_.name.text.empty()) return;  // the file's own are evaluated
    for (const BlockDim& dim : body_.dims) {
      own_dims_.emplace(dim.name.text, &dim);
      if (dim.kind == BlockDim::Kind::kGiven) bound_[dim.name.text] = given[next_given++];
    }
  }

  /// Throws InputError; may be asked for dims that are bound later.
  std::int64_t lookup(std::string_view name_view) {
    const std::string name(name_view);
    if (const auto found = bound_.find(name); found != bound_.end()) return found->second;
    const auto own = own_dims_.find(name);
    if (own == own_dims_.end()) {
      const auto found = state_.dims.find(name);
      if (found != state_.dims.end()) return found->second;
      std::vector<std::string> known;
      for (const auto& [other, value] : state_.dims) known.push_back(other);
      for (const auto& [other, dim] : own_dims_) known.push_back(other);
      const std::string nearest = nearest_name(name, known);
      throw InputError({}, "no dim '{}' here{}", name,
                       nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest));
    }
    if (own->second->kind == BlockDim::Kind::kInferred) {
      throw InputError({}, "dim {} cannot be inferred: no input has it as a dimension of its own", name);
    }
    if (!open_dims_.insert(name).second) throw InputError({}, "dim {} depends on itself", name);
    const std::int64_t value = own->second->expression.evaluate([&](std::string_view other) { return lookup(other); });
    open_dims_.erase(name);
    if (value < 1) throw InputError({}, "dim {} is {}; expected at least 1", name, value);
    bound_[name] = value;
    return value;
  }

  std::optional<std::int64_t> extent(const PlacedExpression& dim, const std::string& where) {
    try {
      const std::int64_t value = dim.expression.evaluate([&](std::string_view name) { return lookup(name); });
      if (value >= 1) return value;
      fault(dim.place, fmt::format("{}: a size of {}{}; expected at least 1", where, value,
                                   dim.expression.literal() ? "" : fmt::format(" ({})", dim.expression.text())));
    } catch (const InputError& error) {
      open_dims_.clear();
      fault(dim.place, fmt::format("{}: {}", where, message_of(error)), hint_of(error));
    }
    return std::nullopt;
  }

  std::optional<Shape> evaluate(const ShapeSyntax& shape, const std::string& where) {
    Shape result;
    for (const PlacedExpression& dim : shape.dims) {
      const std::optional<std::int64_t> value = extent(dim, where);
      if (!value) return std::nullopt;
      result.push_back(*value);
    }
    return result;
  }

  /// The shape as written where that means something outside this body, else numbers.
  std::vector<std::string> text_of(const ShapeSyntax& shape, const Shape& values) const {
    std::vector<std::string> text;
    const std::size_t prefix = values.size() - shape.dims.size();
    for (std::size_t i = 0; i < values.size(); ++i) {
      bool is_known = i >= prefix;
      if (is_known) {
        for (const std::string& name : shape.dims[i - prefix].expression.names()) {
          is_known = is_known && !own_dims_.contains(name);
        }
      }
      text.push_back(is_known ? shape.dims[i - prefix].expression.text() : std::to_string(values[i]));
    }
    return text;
  }

  // ---- tensors ----------------------------------------------------------------------------------------------------

  Value add_value(TensorType type) {
    result_->types.push_back(std::move(type));
    return static_cast<Value>(result_->types.size() - 1);
  }

  bool check_size(const SourcePlace& place, const std::string& name, const TensorType& type) {
    if (checked_bytes(type)) return true;
    fault(place, fmt::format("{} of {} is too large: a tensor may have at most 1 PiB", name, type_text(type)));
    return false;
  }

  /// Of the file: declared. Of a block: what the caller passes, which binds the inferred dims and must fit the rest.
  void read_inputs(const std::vector<TensorType>& passed) {
    const bool is_file = body_.name.text.empty();
    if (!is_file) {
      for (std::size_t i = 0; i < body_.inputs.size(); ++i) infer_dims(body_.inputs[i], passed[i].shape);
    }
    for (std::size_t i = 0; i < body_.inputs.size(); ++i) {
      const TensorSyntax& input = body_.inputs[i];
      const std::string where = label_ + input.name.text;
      if (!is_file) {
        inputs_.push_back(add_value(passed[i]));
        result_->input_shape_text.emplace_back();
        if (input.shape) check_input(input, passed[i], where);
        continue;
      }
      inputs_.push_back(std::nullopt);
      result_->input_shape_text.emplace_back();
      const std::optional<Shape> shape = input.shape ? evaluate(*input.shape, where) : std::nullopt;
      if (!shape) {
        is_good_ = false;
        continue;
      }
      const TensorType type{*shape, input.dtype.value_or(state_.options.dtype)};
      if (!check_size(input.name.place, where, type)) continue;
      inputs_.back() = add_value(type);
      result_->input_shape_text.back() = text_of(*input.shape, *shape);
    }
    result_->num_inputs = result_->types.size();
  }

  void infer_dims(const TensorSyntax& input, const Shape& shape) {
    if (!input.shape) return;
    const std::size_t rank = input.shape->dims.size();
    if (shape.size() < rank || (shape.size() > rank && !input.shape->has_prefix)) return;
    for (std::size_t d = 0; d < rank; ++d) {
      const std::optional<std::string> name = input.shape->dims[d].expression.single_name();
      if (!name) continue;
      const auto own = own_dims_.find(*name);
      if (own == own_dims_.end() || own->second->kind != BlockDim::Kind::kInferred) continue;
      bound_.emplace(*name, shape[shape.size() - rank + d]);
    }
  }

  void check_input(const TensorSyntax& input, const TensorType& passed, const std::string& where) {
    std::vector<std::string> written;
    if (input.shape->has_prefix) written.push_back("...");
    for (const PlacedExpression& dim : input.shape->dims) written.push_back(dim.expression.text());
    const std::size_t rank = input.shape->dims.size();
    const std::size_t found = passed.shape.size();
    if (found < rank || (found > rank && !input.shape->has_prefix)) {
      fault(input.shape->place,
            fmt::format("{} is {}; expected [{}]", where, shape_text(passed.shape), fmt::join(written, ", ")));
      return;
    }
    const std::optional<Shape> expected = evaluate(*input.shape, where);
    if (!expected) return;
    if (!std::equal(expected->begin(), expected->end(), passed.shape.end() - static_cast<std::ptrdiff_t>(rank))) {
      fault(input.shape->place, fmt::format("{} is {}; expected [{}] = {}", where, shape_text(passed.shape),
                                            fmt::join(written, ", "), shape_text(*expected)));
    }
    if (input.dtype && *input.dtype != passed.dtype) {
      fault(input.name.place,
            fmt::format("{} is {}; expected {}", where, to_string(passed.dtype), to_string(*input.dtype)));
    }
  }

  void read_stored(const std::vector<TensorSyntax>& tensors, std::vector<BlockTemplate::Stored>& list,
                   std::vector<std::optional<Value>>& values) {
    for (const TensorSyntax& tensor : tensors) {
      values.push_back(std::nullopt);
      const std::string where = label_ + tensor.name.text;
      BlockTemplate::Stored stored;
      stored.name = tensor.name.text;
      stored.syntax = &tensor;
      stored.fill.kind = tensor.fill;
      TensorType type{{}, tensor.dtype.value_or(state_.options.dtype)};
      if (tensor.shape) {
        const std::optional<Shape> shape = evaluate(*tensor.shape, where);
        if (!shape) continue;
        type.shape = *shape;
        stored.shape_text = text_of(*tensor.shape, *shape);
      } else if (!tensor.value) {
        is_good_ = false;  // a fault of its form, told before
        continue;
      }
      if (tensor.fill == Fill::Kind::kCausal && (type.shape.size() < 2 || !is_floating(type.dtype))) {
        fault(tensor.name.place, fmt::format("{} is {}; fill: causal needs a floating type and at least 2 dimensions",
                                             where, type_text(type)));
        continue;
      }
      if (tensor.fill == Fill::Kind::kIota && type.shape.empty()) {
        fault(tensor.name.place, fmt::format("{} is a scalar; fill: iota needs a dimension", where));
        continue;
      }
      if (tensor.value) {
        const std::optional<double> value = real(*tensor.value, where);
        if (!value) continue;
        stored.fill.value = *value;
      }
      if (!check_size(tensor.name.place, where, type)) continue;
      stored.value = add_value(type);
      values.back() = stored.value;
      list.push_back(std::move(stored));
    }
  }

  std::optional<double> real(const PlacedExpression& expression, const std::string& where) {
    try {
      return expression.expression.evaluate_real([&](std::string_view name) { return lookup(name); });
    } catch (const InputError& error) {
      open_dims_.clear();
      fault(expression.place, fmt::format("{}: {}", where, message_of(error)), hint_of(error));
      return std::nullopt;
    }
  }

  // ---- operands ---------------------------------------------------------------------------------------------------

  /// The values that an operator reads; nothing if one of them is unknown. Numbers become constants.
  std::optional<std::vector<Value>> operands_of(std::size_t index) {
    const OperatorSyntax& op = body_.operators[index];
    const std::vector<NameSource>& sources = names_.operands[index];
    std::vector<Value> values(sources.size());
    bool is_known = true;
    std::optional<DataType> first_type;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (sources[i].kind == NameSource::Kind::kNumber) continue;
      const std::optional<Value> value = value_of(sources[i], op.in[i].place, label_ + op.name.text);
      if (!value) {
        is_known = false;
        continue;
      }
      values[i] = *value;
      if (!first_type) first_type = result_->types[*value].dtype;
    }
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (sources[i].kind != NameSource::Kind::kNumber) continue;
      const std::optional<Value> value = number(op, i, first_type);
      if (!value) return std::nullopt;
      values[i] = *value;
    }
    return is_known ? std::optional(std::move(values)) : std::nullopt;
  }

  std::optional<Value> number(const OperatorSyntax& op, std::size_t i, std::optional<DataType> beside) {
    std::optional<double> value;
    bool is_whole = false;
    try {
      const PlacedExpression expression{Expression::parse(op.in[i].text), op.in[i].place};
      is_whole = expression.expression.literal().has_value();
      value = real(expression, label_ + op.name.text);
    } catch (const InputError& error) {
      fault(op.in[i].place, fmt::format("{}{}: {}", label_, op.name.text, message_of(error)));
    }
    if (!value) return std::nullopt;
    BlockTemplate::Stored stored;
    stored.name = fmt::format("{}.in{}", op.name.text, i);
    stored.fill.value = *value;
    const bool is_integer = is_whole && beside && !is_floating(*beside) && *beside != DataType::kBool;
    stored.value = add_value({{}, is_integer ? *beside : state_.options.dtype});
    result_->constants.push_back(stored);
    return stored.value;
  }

  std::optional<Value> value_of(const NameSource& source, const SourcePlace& place, const std::string& where) {
    switch (source.kind) {
      case NameSource::Kind::kInput:
        return inputs_[source.index];
      case NameSource::Kind::kConstant:
        return constants_[source.index];
      case NameSource::Kind::kParameter:
        return parameters_[source.index];
      case NameSource::Kind::kOperator:
        return operators_[source.index].is_typed ? result_of(source, place, where) : std::nullopt;
      default:
        return std::nullopt;
    }
  }

  std::optional<Value> result_of(const NameSource& source, const SourcePlace& place, const std::string& where) {
    BlockTemplate::Item& item = result_->items[operators_[source.index].item];
    const OperatorSyntax& op = *item.syntax;
    if (!op.is_block) {
      if (source.result) return item.results[*source.result];
      if (source.rest.empty()) return item.results[0];
      const std::string wanted = op.name.text + "." + source.rest;
      for (std::size_t i = 0; i < item.result_names.size(); ++i) {
        if (item.result_names[i] == wanted) return item.results[i];
      }
      fault(place, fmt::format("{}: {} has no result '{}'", where, op.name.text, source.rest),
            item.results.size() == 1 ? "its one result is called as the operator"
                                     : fmt::format("{}", fmt::join(item.result_names, ", ")));
      return std::nullopt;
    }
    // call, call.RESULT, call.3, call.3.RESULT, call.PARAMETER, call.3.PARAMETER
    const std::size_t num_copies = item.copies.size();
    const std::size_t results_per_copy = item.results.size() / num_copies;
    std::size_t copy = num_copies - 1;
    std::string rest = source.rest;
    bool names_copy = false;
    if (op.repeat && !rest.empty() && rest[0] >= '0' && rest[0] <= '9') {
      const std::string digits = rest.substr(0, rest.find('.'));
      if (digits.size() > 9 || (digits.size() > 1 && digits[0] == '0') || std::stoul(digits) >= num_copies) {
        fault(place,
              fmt::format("{}: {} has no copy {}; they are 0 to {}", where, op.name.text, digits, num_copies - 1));
        return std::nullopt;
      }
      copy = std::stoul(digits);
      rest = rest.size() == digits.size() ? "" : rest.substr(digits.size() + 1);
      names_copy = true;
    }
    const BlockTemplate& inner = *item.copies[copy];
    if (rest.empty()) {
      if (results_per_copy == 1) return item.results[copy];
      fault(place, fmt::format("{}: {} has {} results; name one: {}.{}", where, op.name.text, results_per_copy,
                               op.name.text, inner.output_names[0]));
      return std::nullopt;
    }
    for (std::size_t i = 0; i < inner.output_names.size(); ++i) {
      if (inner.output_names[i] == rest) return item.results[copy * results_per_copy + i];
    }
    for (const BlockTemplate::Parameter& known : item.parameters) {
      if (known.copy == copy && known.path == rest) return known.value;
    }
    const std::optional<TensorType> type = op.repeat && !names_copy ? std::nullopt : parameter_type(inner, rest);
    if (type) {
      const Value value = add_value(*type);
      item.parameters.push_back({copy, rest, value});
      return value;
    }
    std::vector<std::string> known = inner.output_names.size() > 1 ? inner.output_names : std::vector<std::string>();
    for (const BlockTemplate::Stored& parameter : inner.parameters) known.push_back(parameter.name);
    const std::string prefix = op.name.text + (op.repeat ? "." + std::to_string(copy) : "");
    fault(place, fmt::format("{}: {} has no part '{}'", where, prefix, rest),
          known.empty() ? "" : fmt::format("there is {}.{}", prefix, fmt::join(known, fmt::format(", {}.", prefix))));
    return std::nullopt;
  }

  /// The type of "weight" or "qkv.weight" or "layers.3.weight" within a block.
  static std::optional<TensorType> parameter_type(const BlockTemplate& block, const std::string& path) {
    for (const BlockTemplate::Stored& parameter : block.parameters) {
      if (parameter.name == path) return block.types[parameter.value];
    }
    for (const BlockTemplate::Item& item : block.items) {
      const std::string& name = item.syntax->name.text;
      if (item.copies.empty() || !path.starts_with(name + ".")) continue;
      std::string rest = path.substr(name.size() + 1);
      std::size_t copy = 0;
      if (item.syntax->repeat) {
        const std::size_t dot = rest.find('.');
        if (dot == std::string::npos || dot > 9 || rest.find_first_not_of("0123456789") != dot) return std::nullopt;
        copy = std::stoul(rest.substr(0, dot));
        rest = rest.substr(dot + 1);
      }
      return copy < item.copies.size() ? parameter_type(*item.copies[copy], rest) : std::nullopt;
    }
    return std::nullopt;
  }

  // ---- operators --------------------------------------------------------------------------------------------------

  bool count_operators(const OperatorSyntax& op, std::int64_t added) {
    const std::optional<std::int64_t> sum = checked_add(result_->num_operators, added);
    if (sum && *sum <= state_.options.max_operators) {
      result_->num_operators = *sum;
      return true;
    }
    fault(op.repeat ? op.repeat->place : op.name.place,
          fmt::format("{}{}: more than {} operators", label_, op.name.text, state_.options.max_operators));
    return false;
  }

  /// An attribute's text as the kind wants it; nothing after a fault.
  std::optional<Attribute> attribute(const YamlNode& node, AttributeKind kind, const std::string& where) {
    const SourcePlace place = body_.document->place(node);
    const auto refuse = [&](std::string_view wanted) -> std::optional<Attribute> {
      fault(place, fmt::format("{} is {}; expected {}", where, describe(node), wanted));
      return std::nullopt;
    };
    const auto whole = [&](const YamlNode& item) -> std::optional<std::int64_t> {
      try {
        return Expression::parse(item.text).evaluate([&](std::string_view name) { return lookup(name); });
      } catch (const InputError& error) {
        open_dims_.clear();
        fault(body_.document->place(item), fmt::format("{}: {}", where, message_of(error)), hint_of(error));
        return std::nullopt;
      }
    };
    if (kind == AttributeKind::kFlag) {
      if (node.is_scalar() && node.text == "true") return Attribute(true);
      if (node.is_scalar() && node.text == "false") return Attribute(false);
      return refuse("true or false");
    }
    if (kind == AttributeKind::kText) {
      return node.is_scalar() ? std::optional(Attribute(node.text)) : refuse("a word");
    }
    if (kind == AttributeKind::kNumber) {
      if (!node.is_scalar()) return refuse("a number");
      try {
        const std::optional<double> value = real({Expression::parse(node.text), place}, where);
        return value ? std::optional(Attribute(*value)) : std::nullopt;
      } catch (const InputError& error) {
        fault(place, fmt::format("{}: {}", where, message_of(error)));
        return std::nullopt;
      }
    }
    if (kind == AttributeKind::kList && node.is_sequence()) {
      std::vector<std::int64_t> list;
      for (const YamlNode& item : node.items) {
        if (!item.is_scalar()) return refuse("a list of whole numbers");
        const std::optional<std::int64_t> value = whole(item);
        if (!value) return std::nullopt;
        list.push_back(*value);
      }
      return Attribute(std::move(list));
    }
    if (!node.is_scalar()) return refuse(kind == AttributeKind::kList ? "a list of whole numbers" : "a whole number");
    const std::optional<std::int64_t> value = whole(node);
    if (!value) return std::nullopt;
    if (kind == AttributeKind::kList) return Attribute(std::vector<std::int64_t>{*value});
    return Attribute(*value);
  }

  /// All attributes that stand beside an operator or a built-in block; `shape` is left out unless it is one of `specs`.
  std::optional<Attributes> attributes_of(const OperatorSyntax& op, const std::vector<AttributeSpec>& specs,
                                          const KeySpecs& keys) {
    Attributes attributes;
    bool is_good = true;
    for (const auto& [key, node] : op.attributes) {
      const auto spec =
          std::find_if(specs.begin(), specs.end(), [&](const AttributeSpec& s) { return s.name == key.text; });
      if (spec != specs.end()) {
        std::optional<Attribute> value =
            attribute(*node, spec->kind, fmt::format("{}{}: {}", label_, op.name.text, key.text));
        if (value) {
          attributes.emplace(key.text, std::move(*value));
        } else {
          is_good = false;
        }
      } else if (key.text != "shape" || op.is_block) {
        std::vector<std::string> known = key_names(keys);
        std::vector<std::string> own;
        for (const AttributeSpec& s : specs) own.push_back(s.name);
        known.insert(known.end(), own.begin(), own.end());
        const std::string nearest = nearest_name(key.text, known);
        fault(key.place,
              fmt::format("{}{}: unknown key '{}'{}", label_, op.name.text, key.text,
                          nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)),
              own.empty() ? "" : fmt::format("attributes of {}: {}", op.type.text, fmt::join(own, ", ")));
        is_good = false;
      }
    }
    return is_good ? std::optional(std::move(attributes)) : std::nullopt;
  }

  std::vector<TensorType> types_of(const std::vector<Value>& values) const {
    std::vector<TensorType> types;
    for (const Value value : values) types.push_back(result_->types[value]);
    return types;
  }

  const OperatorType* find_type(const OperatorSyntax& op, const std::vector<TensorType>& operands) {
    if (const OperatorType* type = state_.custom_operators.find(op.type.text, operands, state_.builder)) {
      return type;
    }
    const OperatorType* type = find_operator_type(op.type.text);
    if (type && !type->is_internal) return type;
    std::vector<std::string> known = state_.custom_operators.names();
    for (const OperatorType& other : operator_catalogue()) {
      if (!other.is_internal) known.push_back(other.name);
    }
    const std::string nearest = nearest_name(op.type.text, known);
    fault(op.type.place, fmt::format("{}{}: no operator '{}'{}", label_, op.name.text, op.type.text,
                                     nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)));
    return nullptr;
  }

  void type_operator(std::size_t index, const OperatorSyntax& op, const std::vector<Value>& operands) {
    if (op.type.text.empty()) {  // a fault of its form, told before
      is_good_ = false;
      return;
    }
    const std::vector<TensorType> operand_types = types_of(operands);
    const OperatorType* type = nullptr;
    std::optional<Operation> operation;
    try {
      type = find_type(op, operand_types);
      if (!type) return;
      const std::optional<Attributes> attributes = attributes_of(op, type->attributes, operator_keys());
      if (!attributes) return;
      if (++state_.num_typed > state_.options.max_operators || !count_operators(op, 1)) {
        is_good_ = false;
        return;
      }
      operation = make_operation(*type, *attributes, operand_types);
    } catch (const InputError& error) {
      fault(place_for(op, message_of(error)), fmt::format("{}{}: {}", label_, op.name.text, message_of(error)),
            hint_of(error));
      return;
    }

    BlockTemplate::Item item;
    item.syntax = &op;
    item.operands = operands;
    for (const TensorType& result : operation->results) {
      if (!check_size(op.name.place, label_ + op.name.text, result)) return;
    }
    if (!name_results(op, *operation, item) || !check_shape(op, *operation, item)) return;
    for (const TensorType& result : operation->results) item.results.push_back(add_value(result));
    item.operation = state_.builder.intern(std::move(*operation));
    operators_[index] = {true, false, result_->items.size()};
    result_->items.push_back(std::move(item));
  }

  /// The attribute that a message speaks of, else the inputs, else the operator.
  static SourcePlace place_for(const OperatorSyntax& op, const std::string& message) {
    for (const auto& [key, node] : op.attributes) {
      const std::size_t at = message.find(key.text);
      if (at == std::string::npos) continue;
      const std::size_t end = at + key.text.size();
      const auto is_part = [](char c) { return is_name(std::string_view(&c, 1)) || (c >= '0' && c <= '9'); };
      if ((at == 0 || !is_part(message[at - 1])) && (end == message.size() || !is_part(message[end]))) {
        return {key.place.file, node->line, node->column};
      }
    }
    return op.in.empty() ? op.type.place : op.in_place;
  }

  bool name_results(const OperatorSyntax& op, const Operation& operation, BlockTemplate::Item& item) {
    const std::size_t count = operation.results.size();
    if (!op.out.empty()) {
      if (op.out.size() != count) {
        fault(op.out[0].place,
              fmt::format("{}{}: out has {} name{}, {} has {} result{}", label_, op.name.text, op.out.size(),
                          op.out.size() == 1 ? "" : "s", op.type.text, count, count == 1 ? "" : "s"));
        return false;
      }
      for (const Word& word : op.out) item.result_names.push_back(word.text);
      return true;
    }
    item.result_names.push_back(op.name.text);
    for (std::size_t i = 1; i < count; ++i) {
      const std::vector<std::string>& names = operation.type->result_names;
      const bool has_name = i < names.size() && !names[i].ends_with("...");
      item.result_names.push_back(op.name.text + "." + (has_name ? names[i] : std::to_string(i)));
    }
    return true;
  }

  bool check_shape(const OperatorSyntax& op, const Operation& operation, BlockTemplate::Item& item) {
    const auto given = std::find_if(op.attributes.begin(), op.attributes.end(),
                                    [](const auto& attribute) { return attribute.first.text == "shape"; });
    if (given == op.attributes.end()) return true;
    const YamlNode& node = *given->second;
    const std::string where = fmt::format("{}{}: shape", label_, op.name.text);
    ShapeSyntax written;
    written.place = body_.document->place(node);
    if (!node.is_sequence()) {
      fault(written.place, fmt::format("{} is {}; expected a list, as in [B, 4*H]", where, describe(node)));
      return false;
    }
    for (const YamlNode& part : node.items) {
      try {
        written.dims.push_back({Expression::parse(part.text), body_.document->place(part)});
      } catch (const InputError& error) {
        fault(body_.document->place(part), fmt::format("{}: {}", where, message_of(error)));
        return false;
      }
    }
    const Shape& found = operation.results[0].shape;
    const bool is_target = operation.attributes.contains("shape");
    if (is_target) {  // may hold -1, and has been checked by the operator
      if (written.dims.size() == found.size()) item.shape_text = text_of(written, found);
      for (std::size_t i = 0; i < item.shape_text.size(); ++i) {
        if (item.shape_text[i] == "-1") item.shape_text[i] = std::to_string(found[i]);
      }
      return true;
    }
    const std::optional<Shape> expected = evaluate(written, where);
    if (!expected) return false;
    if (*expected != found) {
      std::vector<std::string> text;
      for (const PlacedExpression& dim : written.dims) text.push_back(dim.expression.text());
      fault(written.place, fmt::format("{}{} is {}; the file says [{}] = {}", label_, op.name.text, shape_text(found),
                                       fmt::join(text, ", "), shape_text(*expected)));
      return false;
    }
    item.shape_text = text_of(written, found);
    return true;
  }

  // ---- blocks -----------------------------------------------------------------------------------------------------

  struct Callee {
    const BlockSyntax* syntax = nullptr;
    std::vector<std::int64_t> given;
  };

  std::optional<Callee> find_callee(const OperatorSyntax& op, const std::vector<TensorType>& inputs) {
    const auto found = state_.blocks.find(op.type.text);
    if (found != state_.blocks.end()) return user_block(op, *found->second);
    if (const BuiltInBlock* built_in = find_built_in_block(op.type.text)) return built_in_block(op, *built_in, inputs);
    std::vector<std::string> known;
    for (const auto& [name, block] : state_.blocks) known.push_back(name);
    for (const BuiltInBlock& block : built_in_blocks()) known.push_back(block.name);
    const std::string nearest = nearest_name(op.type.text, known);
    fault(op.type.place, fmt::format("{}{}: no block '{}'{}", label_, op.name.text, op.type.text,
                                     nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)));
    return std::nullopt;
  }

  std::optional<Callee> user_block(const OperatorSyntax& op, const BlockSyntax& block) {
    std::vector<AttributeSpec> specs;
    for (const BlockDim& dim : block.dims) {
      if (dim.kind != BlockDim::Kind::kGiven) continue;
      AttributeSpec spec;
      spec.name = dim.name.text;
      spec.kind = AttributeKind::kInteger;
      specs.push_back(std::move(spec));
    }
    const std::optional<Attributes> attributes = attributes_of(op, specs, call_keys());
    if (!attributes) return std::nullopt;
    Callee callee{&block, {}};
    for (const AttributeSpec& spec : specs) {
      const auto value = attributes->find(spec.name);
      if (value == attributes->end()) {
        fault(op.type.place,
              fmt::format("{}{}: block {} needs the dim {}", label_, op.name.text, op.type.text, spec.name));
        return std::nullopt;
      }
      callee.given.push_back(std::get<std::int64_t>(value->second));
      if (callee.given.back() < 1) {
        fault(op.type.place,
              fmt::format("{}{}: {} is {}; expected at least 1", label_, op.name.text, spec.name, callee.given.back()));
        return std::nullopt;
      }
    }
    return callee;
  }

  std::optional<Callee> built_in_block(const OperatorSyntax& op, const BuiltInBlock& block,
                                       const std::vector<TensorType>& inputs) {
    std::optional<Attributes> options = attributes_of(op, block.options, call_keys());
    if (!options) return std::nullopt;
    for (const AttributeSpec& spec : block.options) {
      if (options->contains(spec.name)) continue;
      if (!spec.standard) {
        fault(op.type.place,
              fmt::format("{}{}: {} needs {} ({})", label_, op.name.text, op.type.text, spec.name, spec.meaning));
        return std::nullopt;
      }
      options->emplace(spec.name, *spec.standard);
    }
    if (inputs.size() != block.num_inputs) {
      wrong_count(op, block.num_inputs, inputs.size());
      return std::nullopt;
    }
    std::string text;
    try {
      text = block.text(*options, inputs);
    } catch (const InputError& error) {
      fault(place_for(op, message_of(error)), fmt::format("{}{}: {}", label_, op.name.text, message_of(error)),
            hint_of(error));
      return std::nullopt;
    }
    std::unique_ptr<BlockSyntax>& syntax = state_.built_in_syntax[block.name + text];
    if (!syntax) {
      std::vector<Diagnostic> faults;
      syntax = std::make_unique<BlockSyntax>(read_block_syntax(text, block.name, faults));
      SHARDPLAN_CHECK(faults.empty());
      state_.names.emplace(syntax.get(), resolve_names(
                                             *syntax, nullptr, "",
                                             [](const OperatorSyntax&, const std::string&) { return false; }, faults));
      SHARDPLAN_CHECK(faults.empty());
    }
    return Callee{syntax.get(), {}};
  }

  void wrong_count(const OperatorSyntax& op, std::size_t expected, std::size_t found) {
    fault(op.in.empty() ? op.type.place : op.in_place,
          fmt::format("{}{}: {} takes {} input{}, found {}", label_, op.name.text, op.type.text, expected,
                      expected == 1 ? "" : "s", found));
  }

  /// The callee's template for these types, typed now if it is new.
  const BlockTemplate* template_of(const OperatorSyntax& op, const Callee& callee, std::vector<TensorType> inputs) {
    const BlockSyntax& block = *callee.syntax;
    State::Key key{&block, std::move(inputs), callee.given};
    const auto found = state_.templates.find(key);
    if (found != state_.templates.end() && (found->second || !block.is_built_in)) {
      if (!found->second) is_good_ = false;
      return found->second.get();
    }
    if (std::find(state_.active.begin(), state_.active.end(), block.name.text) != state_.active.end()) {
      fault(op.type.place, fmt::format("{}{}: block {} contains itself: {} -> {}", label_, op.name.text,
                                       block.name.text, fmt::join(state_.active, " -> "), block.name.text));
      return nullptr;
    }
    if (state_.active.size() >= kMaxBlockDepth) {
      fault(op.type.place,
            fmt::format("{}{}: blocks within blocks more than {} deep", label_, op.name.text, kMaxBlockDepth));
      return nullptr;
    }
    state_.active.push_back(block.name.text);
    std::string label = block.is_built_in ? label_ + op.name.text + "." : block.name.text + ".";
    std::optional<SourcePlace> place;
    if (call_place_)
      place = call_place_;
    else if (block.is_built_in)
      place = op.in.empty() ? op.type.place : op.in_place;
    std::vector<std::string> unchecked;
    const std::size_t first_fault = state_.faults.size();
    std::unique_ptr<BlockTemplate> typed =
        BodyTyper(state_, block, state_.names.at(&block), label, place).type(key.inputs, key.given, unchecked);
    state_.active.pop_back();
    if (!typed) {
      is_good_ = false;
      // The same text at other sizes is mostly wrong in the same way.
      if (!block.is_built_in && !state_.reported.insert(&block).second) state_.faults.resize(first_fault);
      if (!block.is_built_in && state_.faults.size() > first_fault && body_.name.text.empty()) {
        for (std::size_t i = first_fault; i < state_.faults.size(); ++i) {
          if (state_.faults[i].hint.empty()) {
            state_.faults[i].hint = fmt::format("in {}, line {}", op.name.text, op.name.place.line);
          }
        }
      }
    }
    return (state_.templates[std::move(key)] = std::move(typed)).get();
  }

  void type_call(std::size_t index, const OperatorSyntax& op, const std::vector<Value>& operands) {
    if (op.type.text.empty()) {  // a fault of its form, told before
      is_good_ = false;
      return;
    }
    const std::optional<Callee> callee = find_callee(op, types_of(operands));
    if (!callee) return;
    if (operands.size() != callee->syntax->inputs.size()) {
      wrong_count(op, callee->syntax->inputs.size(), operands.size());
      return;
    }
    std::int64_t repeat = 1;
    if (op.repeat) {
      const std::optional<std::int64_t> value = extent(*op.repeat, fmt::format("{}{}: repeat", label_, op.name.text));
      if (!value) return;
      repeat = *value;
      if (repeat > state_.options.max_operators) {
        fault(op.repeat->place,
              fmt::format("{}{}: more than {} operators", label_, op.name.text, state_.options.max_operators));
        return;
      }
      if (operands.empty()) {
        fault(op.repeat->place, fmt::format("{}{}: a block without inputs cannot be repeated", label_, op.name.text));
        return;
      }
    }
    BlockTemplate::Item item;
    item.syntax = &op;
    item.operands = operands;
    std::vector<TensorType> types = types_of(operands);
    for (std::int64_t i = 0; i < repeat; ++i) {
      const BlockTemplate* copy = template_of(op, *callee, types);
      if (!copy) {
        is_good_ = false;
        return;
      }
      if (!count_operators(op, std::max<std::int64_t>(copy->num_operators, 1))) return;
      if (op.repeat && copy->outputs.size() != 1) {
        fault(op.repeat->place, fmt::format("{}{}: a repeated block has one result; {} has {}", label_, op.name.text,
                                            op.type.text, copy->outputs.size()));
        return;
      }
      item.copies.push_back(copy);
      for (const Value output : copy->outputs) item.results.push_back(add_value(copy->types[output]));
      if (!types.empty() && !copy->outputs.empty()) types[0] = copy->types[copy->outputs[0]];
    }
    operators_[index] = {true, false, result_->items.size()};
    result_->items.push_back(std::move(item));
  }

  State& state_;
  const BlockSyntax& body_;
  const BodyNames& names_;
  const std::string label_;
  const std::optional<SourcePlace> call_place_;
  std::unique_ptr<BlockTemplate> result_;
  bool is_good_ = true;
  std::map<std::string, const BlockDim*> own_dims_;
  std::map<std::string, std::int64_t> bound_;
  std::set<std::string> open_dims_;
  std::vector<std::optional<Value>> inputs_;
  std::vector<std::optional<Value>> constants_;
  std::vector<std::optional<Value>> parameters_;
  std::vector<OperatorState> operators_;
};

TemplateLibrary::TemplateLibrary(const ModelSyntax& model, std::map<std::string, std::int64_t> dims,
                                 TemplateOptions options, OperatorGraphBuilder& builder,
                                 std::vector<Diagnostic>& faults)
    : state_(new State{model,
                       std::move(dims),
                       options,
                       builder,
                       faults,
                       CustomOperators(model.custom_operators),
                       {},
                       {},
                       {},
                       {},
                       {},
                       {},
                       0}) {
  for (const BlockSyntax& block : model.blocks) state_->blocks.emplace(block.name.text, &block);
  const auto reads_parameter = [&](const OperatorSyntax& call, const std::string& rest) {
    const auto found = state_->blocks.find(call.type.text);
    std::string name = rest;
    if (call.repeat && rest[0] >= '0' && rest[0] <= '9') {
      const std::size_t dot = rest.find('.');
      if (dot == std::string::npos) return false;
      name = rest.substr(dot + 1);
    }
    if (found == state_->blocks.end()) return true;  // built-in blocks have one result
    if (!found->second->outputs) return true;
    const std::vector<Word>& outputs = *found->second->outputs;
    return std::none_of(outputs.begin(), outputs.end(), [&](const Word& word) { return word.text == name; });
  };
  for (const BlockSyntax& block : model.blocks) {
    state_->names.emplace(&block, resolve_names(block, nullptr, block.name.text + ".", reads_parameter, faults));
  }
  state_->names.emplace(&model.body,
                        resolve_names(model.body, model.loss ? &*model.loss : nullptr, "", reads_parameter, faults));
}

TemplateLibrary::~TemplateLibrary() = default;

const BlockTemplate* TemplateLibrary::file_template(std::vector<std::string>& unchecked) {
  const BlockSyntax& body = state_->model.body;
  const auto key = State::Key{&body, {}, {}};
  state_->templates[key] = BodyTyper(*state_, body, state_->names.at(&body), "", std::nullopt).type({}, {}, unchecked);
  return state_->templates[key].get();
}

}  // namespace shardplan
