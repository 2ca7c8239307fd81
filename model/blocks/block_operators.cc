#include <fmt/ranges.h>

#include <algorithm>

#include "base/integer.h"
#include "model/blocks/block_typer.h"
#include "model/syntax/attribute_reader.h"
#include "operators/catalogue.h"

namespace shardplan {
namespace {}  // namespace

bool BodyTyper::count_operators(const OperatorSyntax& op, std::int64_t added) {
  const std::optional<std::int64_t> sum = checked_add(result_->num_operators, added);
  if (sum && *sum <= state_.options.max_operators) {
    result_->num_operators = *sum;
    return true;
  }
  fault(op.repeat ? op.repeat->place : op.name.place,
        fmt::format("{}{}: more than {} operators", label_, op.name.text, state_.options.max_operators));
  return false;
}

std::optional<Attributes> BodyTyper::attributes_of(const OperatorSyntax& op, const std::vector<AttributeSpec>& specs,
                                                   const KeySpecs& keys) {
  Attributes attributes;
  bool is_good = true;
  for (const auto& [key, node] : op.attributes) {
    const auto spec =
        std::find_if(specs.begin(), specs.end(), [&](const AttributeSpec& s) { return s.name == key.text; });
    if (spec != specs.end()) {
      try {
        const std::string where = fmt::format("{}{}: {}", label_, op.name.text, key.text);
        attributes.emplace(key.text, read_attribute(*body_.document, *node, spec->kind, dims_, where));
      } catch (const InputError& error) {
        fault(error.diagnostics()[0].place, error.diagnostics()[0].message);
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

std::vector<TensorType> BodyTyper::types_of(const std::vector<Value>& values) const {
  std::vector<TensorType> types;
  for (const Value value : values) types.push_back(result_->types[value]);
  return types;
}

const OperatorType* BodyTyper::find_type(const OperatorSyntax& op, const std::vector<TensorType>& operands) {
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

void BodyTyper::type_operator(std::size_t index, const OperatorSyntax& op, const std::vector<Value>& operands) {
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
    const Diagnostic& wrong = error.diagnostics()[0];
    const bool has_place = wrong.place.line > 0;
    fault(has_place ? wrong.place : place_for(op, wrong.message),
          fmt::format("{}{}: {}", label_, op.name.text, wrong.message), wrong.hint);
    return;
  }

  BlockTemplate::Item item;
  item.syntax = &op;
  item.operands = operands;
  for (const TensorType& result : operation->results) {
    if (!check_size(op.name.place, label_ + op.name.text, result)) return;
  }
  if (!name_results(op, *operation, item) || !check_shape(op, *operation)) return;
  for (const TensorType& result : operation->results) item.results.push_back(add_value(result));
  item.operation = state_.builder.intern(std::move(*operation));
  operators_[index] = {true, false, result_->items.size()};
  result_->items.push_back(std::move(item));
}

SourcePlace BodyTyper::place_for(const OperatorSyntax& op, const std::string& message) {
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

bool BodyTyper::name_results(const OperatorSyntax& op, const Operation& operation, BlockTemplate::Item& item) {
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
    const std::vector<std::string>& names = operation.type->signature.results;
    const bool has_name = i < names.size() && !names[i].ends_with("...");
    item.result_names.push_back(op.name.text + "." + (has_name ? names[i] : std::to_string(i)));
  }
  return true;
}

bool BodyTyper::check_shape(const OperatorSyntax& op, const Operation& operation) {
  const auto given = std::find_if(op.attributes.begin(), op.attributes.end(),
                                  [](const auto& attribute) { return attribute.first.text == "shape"; });
  // As an attribute it is the result's shape already, and may hold -1.
  if (given == op.attributes.end() || operation.attributes.contains("shape")) return true;
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
      fault(body_.document->place(part), fmt::format("{}: {}", where, error.diagnostics()[0].message));
      return false;
    }
  }
  const Shape& found = operation.results[0].shape;
  const std::optional<Shape> expected = evaluate(written, where);
  if (!expected) return false;
  if (*expected != found) {
    std::vector<std::string> text;
    for (const PlacedExpression& dim : written.dims) text.push_back(dim.expression.text());
    fault(written.place, fmt::format("{}{} is {}; the file says [{}] = {}", label_, op.name.text, to_string(found),
                                     fmt::join(text, ", "), to_string(*expected)));
    return false;
  }
  return true;
}

}  // namespace shardplan
