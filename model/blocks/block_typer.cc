#include "model/blocks/block_typer.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/integer.h"

namespace shardplan {
namespace {

constexpr Bytes kMaxTensorBytes = Bytes{1} << 50;

std::string type_text(const TensorType& type) {
  return fmt::format("{} {}", to_string(type.dtype), to_string(type.shape));
}

/// Bytes of a tensor, or nothing beyond what the project computes with.
std::optional<Bytes> checked_bytes(const TensorType& type) {
  std::optional<Bytes> bytes = element_bytes(type.dtype);
  for (const std::int64_t extent : type.shape) {
    if (bytes) bytes = checked_multiply(*bytes, extent);
  }
  return bytes && *bytes <= kMaxTensorBytes ? bytes : std::nullopt;
}

}  // namespace

// The file's own dims are evaluated already, and reach its body as the file's.
BodyTyper::BodyTyper(State& state, const BlockSyntax& body, const BodyNames& names, std::string label,
                     std::optional<SourcePlace> call_place)
    : state_(state),
      body_(body),
      names_(names),
      label_(std::move(label)),
      call_place_(std::move(call_place)),
      dims_(state.dims) {
  if (!body.name.text.empty()) dims_.declare(body.dims);
}

std::unique_ptr<BlockTemplate> BodyTyper::type(const std::vector<TensorType>& inputs,
                                               const std::vector<std::int64_t>& given,
                                               std::vector<std::string>& unchecked) {
  result_ = std::make_unique<BlockTemplate>();
  result_->syntax = &body_;
  bind_given(given);
  read_inputs(inputs);
  if (!is_good_ && !body_.name.text.empty()) return nullptr;  // the rest would be wrong for the same reason
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

void BodyTyper::fault(const SourcePlace& place, std::string message, std::string hint) {
  is_good_ = false;
  state_.faults.push_back({call_place_ ? *call_place_ : place, std::move(message), std::move(hint)});
}

void BodyTyper::note_unchecked(std::size_t index, std::vector<std::string>& unchecked) {
  operators_[index].is_unchecked = true;
  for (const NameSource& source : names_.operands[index]) {
    if (source.kind != NameSource::Kind::kOperator) continue;
    const OperatorState& before = operators_[source.index];
    const std::string name = label_ + body_.operators[source.index].name.text;
    const bool is_known = std::find(unchecked.begin(), unchecked.end(), name) != unchecked.end();
    if (!before.is_typed && !before.is_unchecked && !is_known) unchecked.push_back(name);
  }
}

// ---- dims ----

std::optional<std::int64_t> BodyTyper::extent(const PlacedExpression& dim, const std::string& where) {
  try {
    const std::int64_t value = dims_.whole(dim.expression);
    if (value >= 1) return value;
    fault(dim.place, fmt::format("{}: a size of {}{}; expected at least 1", where, value,
                                 dim.expression.literal() ? "" : fmt::format(" ({})", dim.expression.text())));
  } catch (const InputError& error) {
    fault(dim.place, fmt::format("{}: {}", where, error.diagnostics()[0].message));
  }
  return std::nullopt;
}

std::optional<double> BodyTyper::real(const PlacedExpression& expression, const std::string& where) {
  try {
    return dims_.real(expression.expression);
  } catch (const InputError& error) {
    fault(expression.place, fmt::format("{}: {}", where, error.diagnostics()[0].message));
    return std::nullopt;
  }
}

std::optional<Shape> BodyTyper::evaluate(const ShapeSyntax& shape, const std::string& where) {
  Shape result;
  for (const PlacedExpression& dim : shape.dims) {
    const std::optional<std::int64_t> value = extent(dim, where);
    if (!value) return std::nullopt;
    result.push_back(*value);
  }
  return result;
}

void BodyTyper::bind_given(const std::vector<std::int64_t>& given) {
  std::size_t next = 0;
  for (const BlockDim& dim : body_.dims) {
    if (dim.kind == BlockDim::Kind::kGiven) dims_.bind(dim.name.text, given[next++]);
  }
}

void BodyTyper::infer_dims(const TensorSyntax& input, const Shape& shape) {
  if (!input.shape) return;
  const std::size_t rank = input.shape->dims.size();
  if (shape.size() < rank || (shape.size() > rank && !input.shape->has_prefix)) return;
  for (std::size_t d = 0; d < rank; ++d) {
    const std::optional<std::string> name = input.shape->dims[d].expression.single_name();
    if (name && dims_.is_inferred(*name)) dims_.bind(*name, shape[shape.size() - rank + d]);
  }
}

// ---- tensors ----

BodyTyper::Value BodyTyper::add_value(TensorType type) {
  result_->types.push_back(std::move(type));
  return static_cast<Value>(result_->types.size() - 1);
}

bool BodyTyper::check_size(const SourcePlace& place, const std::string& name, const TensorType& type) {
  if (checked_bytes(type)) return true;
  fault(place, fmt::format("{} of {} is too large: a tensor may have at most 1 PiB", name, type_text(type)));
  return false;
}

void BodyTyper::read_inputs(const std::vector<TensorType>& passed) {
  const bool is_file = body_.name.text.empty();
  if (!is_file) {
    for (std::size_t i = 0; i < body_.inputs.size(); ++i) infer_dims(body_.inputs[i], passed[i].shape);
  }
  for (std::size_t i = 0; i < body_.inputs.size(); ++i) {
    const TensorSyntax& input = body_.inputs[i];
    const std::string where = label_ + input.name.text;
    if (!is_file) {
      inputs_.push_back(add_value(passed[i]));
      if (input.shape) check_input(input, passed[i], where);
      continue;
    }
    inputs_.push_back(std::nullopt);
    const std::optional<Shape> shape = input.shape ? evaluate(*input.shape, where) : std::nullopt;
    if (!shape) {
      is_good_ = false;
      continue;
    }
    const TensorType type{*shape, input.dtype.value_or(state_.options.dtype)};
    if (!check_size(input.name.place, where, type)) continue;
    inputs_.back() = add_value(type);
  }
  result_->num_inputs = result_->types.size();
}

void BodyTyper::check_input(const TensorSyntax& input, const TensorType& passed, const std::string& where) {
  std::vector<std::string> written;
  if (input.shape->has_prefix) written.push_back("...");
  for (const PlacedExpression& dim : input.shape->dims) written.push_back(dim.expression.text());
  const std::size_t rank = input.shape->dims.size();
  const std::size_t found = passed.shape.size();
  if (found < rank || (found > rank && !input.shape->has_prefix)) {
    fault(input.shape->place,
          fmt::format("{} is {}; expected [{}]", where, to_string(passed.shape), fmt::join(written, ", ")));
    return;
  }
  const std::optional<Shape> expected = evaluate(*input.shape, where);
  if (!expected) return;
  if (!std::equal(expected->begin(), expected->end(), passed.shape.end() - static_cast<std::ptrdiff_t>(rank))) {
    fault(input.shape->place, fmt::format("{} is {}; expected [{}] = {}", where, to_string(passed.shape),
                                          fmt::join(written, ", "), to_string(*expected)));
  }
  if (input.dtype && *input.dtype != passed.dtype) {
    fault(input.name.place,
          fmt::format("{} is {}; expected {}", where, to_string(passed.dtype), to_string(*input.dtype)));
  }
}

void BodyTyper::read_stored(const std::vector<TensorSyntax>& tensors, std::vector<BlockTemplate::Stored>& list,
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

// ---- operands ----

std::optional<std::vector<BodyTyper::Value>> BodyTyper::operands_of(std::size_t index) {
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

std::optional<BodyTyper::Value> BodyTyper::number(const OperatorSyntax& op, std::size_t i,
                                                  std::optional<DataType> beside) {
  std::optional<double> value;
  bool is_whole = false;
  try {
    const PlacedExpression expression{Expression::parse(op.in[i].text), op.in[i].place};
    is_whole = expression.expression.literal().has_value();
    value = real(expression, label_ + op.name.text);
  } catch (const InputError& error) {
    fault(op.in[i].place, fmt::format("{}{}: {}", label_, op.name.text, error.diagnostics()[0].message));
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

std::optional<BodyTyper::Value> BodyTyper::value_of(const NameSource& source, const SourcePlace& place,
                                                    const std::string& where) {
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

std::optional<BodyTyper::Value> BodyTyper::result_of(const NameSource& source, const SourcePlace& place,
                                                     const std::string& where) {
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
  return part_of_call(item, source.rest, place, where);
}

}  // namespace shardplan
