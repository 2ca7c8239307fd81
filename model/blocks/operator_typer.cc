#include "model/blocks/operator_typer.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "model/blocks/communication_line.h"
#include "model/blocks/operator_line.h"
#include "operators/catalogue.h"
#include "operators/families/communication.h"

namespace shardplan {
namespace {

constexpr std::size_t kMostDescribed = 4;

/// What an operator that cannot be made was given: "x is f32 [4, 6], w is bf16 [6, 8]". Empty for one input, whose
/// shape the error tells where it matters.
std::string describe_inputs(const OperatorSyntax& op, const std::vector<TensorType>& operands,
                            const TemplateOptions& options) {
  if (op.in.size() != operands.size() || operands.size() < 2 || operands.size() > kMostDescribed) return "";
  std::vector<std::string> parts;
  bool has_usual = false, has_other = false;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const auto& [shape, dtype] = operands[i];
    parts.push_back(fmt::format("{} is {} {}", op.in[i].text, to_string(dtype), to_string(shape)));
    if (is_floating(dtype)) (dtype == options.dtype ? has_usual : has_other) = true;
  }
  std::string text = fmt::format("{}", fmt::join(parts, ", "));
  if (has_usual && has_other && options.autocast) {
    text += fmt::format("; under autocast all are declared {}, and cast where operators read them",
                        to_string(options.dtype));
  } else if (has_usual && has_other) {
    text += fmt::format("; without a dtype of its own a tensor is {} here (dtype, mixed_precision)",
                        to_string(options.dtype));
  }
  return text;
}

}  // namespace

const OperatorType* OperatorTyper::find_type(const OperatorSyntax& op, const std::vector<TensorType>& operands) {
  if (const OperatorType* type = file_.custom_operators.find(op.type.text, operands, file_.builder)) return type;
  return find_in_catalogue(op);
}

const OperatorType* OperatorTyper::find_in_catalogue(const OperatorSyntax& op) {
  const OperatorType* type = find_operator_type(op.type.text);
  if (type && !type->is_internal) return type;
  std::vector<std::string> known = file_.custom_operators.names();
  for (const OperatorType& other : operator_catalogue()) {
    if (!other.is_internal) known.push_back(other.name);
  }
  const std::string nearest = nearest_name(op.type.text, known);
  faults_.add(op.type.place, fmt::format("{}: no operator '{}'{}", faults_.name(op.name.text), op.type.text,
                                         nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)));
  return nullptr;
}

void OperatorTyper::check_line(const OperatorSyntax& op) {
  const std::vector<std::string> own = file_.custom_operators.names();
  if (std::ranges::find(own, op.type.text) != own.end()) return;
  const OperatorType* type = find_in_catalogue(op);
  if (type == nullptr || is_communication(*type)) return;
  read_attributes(op, type->attributes, operator_keys(), *block_.document, tensors_.dims(), faults_);
}

std::optional<Operation> OperatorTyper::make(const OperatorSyntax& op, const std::vector<TensorType>& operands) {
  try {
    const OperatorType* type = find_type(op, operands);
    if (!type) return std::nullopt;
    if (!file_.options.local && is_communication(*type)) {  // refused where the file was found to be of all devices
      faults_.mark();
      return std::nullopt;
    }
    const std::optional<Attributes> attributes =
        file_.options.local && is_communication(*type)
            ? read_communication(op, *type, *block_.document, tensors_.dims(), file_.options, faults_)
            : read_attributes(op, type->attributes, operator_keys(), *block_.document, tensors_.dims(), faults_);
    if (!attributes) return std::nullopt;
    // All templates together, used or not, are no larger than a graph may be.
    const std::int64_t added = ++file_.num_typed > file_.options.max_operators ? file_.options.max_operators : 1;
    if (!count_operators(result_, added, op, file_.options, faults_)) return std::nullopt;
    return make_operation(*type, *attributes, operands);
  } catch (const InputError& error) {
    const Diagnostic& wrong = error.diagnostics()[0];
    const bool has_place = wrong.place.line > 0;
    std::string hint = wrong.hint;
    if (hint.empty() && !has_place) hint = describe_inputs(op, operands, file_.options);
    faults_.add(has_place ? wrong.place : place_of(op, wrong.message),
                fmt::format("{}: {}", faults_.name(op.name.text), wrong.message), std::move(hint));
    return std::nullopt;
  }
}

std::optional<BlockTemplate::Item> OperatorTyper::type(const OperatorSyntax& op, const std::vector<Value>& operands) {
  std::optional<Operation> operation = make(op, result_.types_of(operands));
  if (!operation) return std::nullopt;
  for (const TensorType& result : operation->results) {
    if (!tensors_.check_size(op.name.place, faults_.name(op.name.text), result)) return std::nullopt;
  }
  std::optional<std::vector<std::string>> names = result_names(op, *operation);
  if (!names || !check_shape(op, *operation)) return std::nullopt;
  BlockTemplate::Item item;
  item.syntax = &op;
  item.operands = operands;
  item.result_names = std::move(*names);
  for (const TensorType& result : operation->results) item.results.push_back(result_.add_value(result));
  item.operation = file_.builder.intern(std::move(*operation));
  return item;
}

std::optional<std::vector<std::string>> OperatorTyper::result_names(const OperatorSyntax& op,
                                                                    const Operation& operation) {
  const std::size_t count = operation.results.size();
  std::vector<std::string> names;
  if (!op.out.empty()) {
    if (op.out.size() != count) {
      faults_.add(op.out[0].place,
                  fmt::format("{}: out has {} name{}, {} has {} result{}", faults_.name(op.name.text), op.out.size(),
                              op.out.size() == 1 ? "" : "s", op.type.text, count, count == 1 ? "" : "s"));
      return std::nullopt;
    }
    for (const Word& word : op.out) names.push_back(word.text);
    return names;
  }
  names.push_back(op.name.text);
  for (std::size_t i = 1; i < count; ++i) {
    const std::vector<std::string>& of_type = operation.type->signature.results;
    const bool has_name = i < of_type.size() && !of_type[i].ends_with("...");
    names.push_back(op.name.text + "." + (has_name ? of_type[i] : std::to_string(i)));
  }
  return names;
}

bool OperatorTyper::check_shape(const OperatorSyntax& op, const Operation& operation) {
  const auto given = std::find_if(op.attributes.begin(), op.attributes.end(),
                                  [](const auto& attribute) { return attribute.first.text == "shape"; });
  // As an attribute it is the result's shape already, and may hold -1.
  if (given == op.attributes.end() || operation.attributes.contains("shape")) return true;
  const YamlNode& node = *given->second;
  const std::string where = fmt::format("{}: shape", faults_.name(op.name.text));
  ShapeSyntax written;
  written.place = block_.document->place(node);
  if (!node.is_sequence()) {
    faults_.add(written.place, fmt::format("{} is {}; expected a list, as in [B, 4*H]", where, describe(node)));
    return false;
  }
  for (const YamlNode& part : node.items) {
    try {
      written.dims.push_back({Expression::parse(part.text), block_.document->place(part)});
    } catch (const InputError& error) {
      faults_.add(block_.document->place(part), fmt::format("{}: {}", where, error.diagnostics()[0].message));
      return false;
    }
  }
  const Shape& found = operation.results[0].shape;
  const std::optional<Shape> expected = tensors_.evaluate(written, where);
  if (!expected) return false;
  if (*expected == found) return true;
  std::vector<std::string> text;
  for (const PlacedExpression& dim : written.dims) text.push_back(dim.expression.text());
  faults_.add(written.place, fmt::format("{} is {}; the file says [{}] = {}", faults_.name(op.name.text),
                                         to_string(found), fmt::join(text, ", "), to_string(*expected)));
  return false;
}

std::optional<OperatorTyper::Value> OperatorTyper::result_of(const BlockTemplate::Item& item, const NameSource& source,
                                                             const SourcePlace& place, const std::string& where) {
  if (source.result) return item.results[*source.result];
  if (source.rest.empty()) return item.results[0];
  const std::string& op = item.syntax->name.text;
  for (std::size_t i = 0; i < item.result_names.size(); ++i) {
    if (item.result_names[i] == op + "." + source.rest) return item.results[i];
  }
  faults_.add(place, fmt::format("{}: {} has no result '{}'", where, op, source.rest),
              item.results.size() == 1 ? "its one result is called as the operator"
                                       : fmt::format("{}", fmt::join(item.result_names, ", ")));
  return std::nullopt;
}

}  // namespace shardplan
