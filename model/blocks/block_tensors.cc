#include "model/blocks/block_tensors.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/integer.h"

// Dims get their values in this order: those that the caller gives; those that the shapes of the passed inputs bind
// (`x: [N, C]` against [6, 10] makes N 6 and C 10, if N and C are `inferred`); all others when an expression first asks
// for them. Then every declared shape can be computed, and is checked against what was passed.

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

// The file's own dims are evaluated already, and reach its operators as the file's.
BlockTensors::BlockTensors(FileContext& file, const BlockSyntax& block, BlockFaults& faults, BlockTemplate& result)
    : file_(file), block_(block), faults_(faults), result_(result), dims_(file.numbers, block.is_built_in) {
  if (!block.is_file()) dims_.declare(block.dims);
}

// ---- dims -----------------------------------------------------------------------------------------------------------

std::optional<std::int64_t> BlockTensors::extent(const PlacedExpression& dim, const std::string& where) {
  return positive(dim, where, &DimScope::whole);
}

std::optional<std::int64_t> BlockTensors::count(const PlacedExpression& number, const std::string& where) {
  return positive(number, where, &DimScope::count);
}

std::optional<std::int64_t> BlockTensors::positive(const PlacedExpression& dim, const std::string& where,
                                                   std::int64_t (DimScope::*compute)(const Expression&)) {
  try {
    const std::int64_t value = (dims_.*compute)(dim.expression);
    if (value >= 1) return value;
    faults_.add(dim.place, fmt::format("{}: a size of {}{}; expected at least 1", where, value,
                                       dim.expression.literal() ? "" : fmt::format(" ({})", dim.expression.text())));
  } catch (const InputError& error) {
    faults_.add(dim.place, fmt::format("{}: {}", where, error.diagnostics()[0].message));
  }
  return std::nullopt;
}

std::optional<double> BlockTensors::real(const PlacedExpression& expression, const std::string& where) {
  try {
    return dims_.real(expression.expression);
  } catch (const InputError& error) {
    faults_.add(expression.place, fmt::format("{}: {}", where, error.diagnostics()[0].message));
    return std::nullopt;
  }
}

std::optional<Shape> BlockTensors::evaluate(const ShapeSyntax& shape, const std::string& where) {
  Shape result;
  for (const PlacedExpression& dim : shape.dims) {
    const std::optional<std::int64_t> value = extent(dim, where);
    if (!value) return std::nullopt;
    result.push_back(*value);
  }
  return result;
}

void BlockTensors::infer_dims(const TensorSyntax& input, const Shape& shape) {
  if (!input.shape) return;
  const std::size_t rank = input.shape->dims.size();
  if (shape.size() < rank || (shape.size() > rank && !input.shape->has_prefix)) return;
  for (std::size_t d = 0; d < rank; ++d) {
    const std::optional<std::string> name = input.shape->dims[d].expression.single_name();
    if (name && dims_.is_inferred(*name)) dims_.bind(*name, shape[shape.size() - rank + d]);
  }
}

// ---- tensors --------------------------------------------------------------------------------------------------------

bool BlockTensors::check_size(const SourcePlace& place, const std::string& name, const TensorType& type) {
  if (checked_bytes(type)) return true;
  faults_.add(place, fmt::format("{} of {} is too large: a tensor may have at most 1 PiB", name, type_text(type)));
  return false;
}

void BlockTensors::read_inputs(const std::vector<TensorType>& passed, const std::vector<std::int64_t>& given) {
  std::size_t next = 0;
  for (const BlockDim& dim : block_.dims) {
    if (dim.kind == BlockDim::Kind::kGiven) dims_.bind(dim.name.text, given[next++]);
  }
  if (block_.is_file()) {
    for (const TensorSyntax& input : block_.inputs) declare_input(input);
  } else {
    for (std::size_t i = 0; i < block_.inputs.size(); ++i) infer_dims(block_.inputs[i], passed[i].shape);
    for (std::size_t i = 0; i < block_.inputs.size(); ++i) {
      inputs_.push_back(result_.add_value(passed[i]));
      const TensorSyntax& input = block_.inputs[i];
      if (input.shape) check_input(input, passed[i], faults_.name(input.name.text));
    }
  }
  result_.num_inputs = result_.types.size();
}

void BlockTensors::declare_input(const TensorSyntax& input) {
  inputs_.push_back(std::nullopt);
  const std::string where = faults_.name(input.name.text);
  const std::optional<Shape> shape = input.shape ? evaluate(*input.shape, where) : std::nullopt;
  if (!shape) {
    faults_.mark();
    return;
  }
  const TensorType type{*shape, input.dtype.value_or(file_.options.dtype)};
  if (check_size(input.name.place, where, type)) inputs_.back() = result_.add_value(type);
}

void BlockTensors::check_input(const TensorSyntax& input, const TensorType& passed, const std::string& where) {
  std::vector<std::string> written;
  if (input.shape->has_prefix) written.push_back("...");
  for (const PlacedExpression& dim : input.shape->dims) written.push_back(dim.expression.text());
  const std::size_t rank = input.shape->dims.size();
  const std::size_t found = passed.shape.size();
  if (found < rank || (found > rank && !input.shape->has_prefix)) {
    faults_.add(input.shape->place,
                fmt::format("{} is {}; expected [{}]", where, to_string(passed.shape), fmt::join(written, ", ")));
    return;
  }
  const std::optional<Shape> expected = evaluate(*input.shape, where);
  if (!expected) return;
  if (!std::equal(expected->begin(), expected->end(), passed.shape.end() - static_cast<std::ptrdiff_t>(rank))) {
    faults_.add(input.shape->place, fmt::format("{} is {}; expected [{}] = {}", where, to_string(passed.shape),
                                                fmt::join(written, ", "), to_string(*expected)));
  }
  if (input.dtype && *input.dtype != passed.dtype) {
    faults_.add(input.name.place,
                fmt::format("{} is {}; expected {}", where, to_string(passed.dtype), to_string(*input.dtype)));
  }
}

void BlockTensors::read_parameters_and_constants() {
  read_stored(block_.parameters, result_.parameters, parameters_);
  read_stored(block_.constants, result_.constants, constants_);
}

void BlockTensors::read_stored(const std::vector<TensorSyntax>& tensors, std::vector<BlockTemplate::Stored>& list,
                               std::vector<std::optional<Value>>& values) {
  for (const TensorSyntax& tensor : tensors) {
    values.push_back(std::nullopt);
    const std::string where = faults_.name(tensor.name.text);
    BlockTemplate::Stored stored;
    stored.name = tensor.name.text;
    stored.syntax = &tensor;
    stored.fill.kind = tensor.fill;
    TensorType type{{}, tensor.dtype.value_or(file_.options.dtype)};
    if (tensor.shape) {
      const std::optional<Shape> shape = evaluate(*tensor.shape, where);
      if (!shape) continue;
      type.shape = *shape;
    } else if (!tensor.value) {
      faults_.mark();  // a fault of its form, reported there
      continue;
    }
    if (tensor.fill == Fill::Kind::kCausal && (type.shape.size() < 2 || !is_floating(type.dtype))) {
      faults_.add(tensor.name.place,
                  fmt::format("{} is {}; fill: causal needs a floating type and at least 2 dimensions", where,
                              type_text(type)));
      continue;
    }
    if (tensor.fill == Fill::Kind::kIota && type.shape.empty()) {
      faults_.add(tensor.name.place, fmt::format("{} is a scalar; fill: iota needs a dimension", where));
      continue;
    }
    if (tensor.value) {
      const std::optional<double> value = real(*tensor.value, where);
      if (!value) continue;
      stored.fill.value = *value;
    }
    if (!check_size(tensor.name.place, where, type)) continue;
    stored.value = result_.add_value(type);
    values.back() = stored.value;
    list.push_back(std::move(stored));
  }
}

std::optional<BlockTensors::Value> BlockTensors::find(const NameSource& source) const {
  switch (source.kind) {
    case NameSource::Kind::kInput:
      return inputs_[source.index];
    case NameSource::Kind::kConstant:
      return constants_[source.index];
    case NameSource::Kind::kParameter:
      return parameters_[source.index];
    default:
      return std::nullopt;
  }
}

std::optional<BlockTensors::Value> BlockTensors::number(const OperatorSyntax& op, std::size_t i,
                                                        std::optional<DataType> beside) {
  std::optional<double> value;
  bool is_whole = false;
  try {
    const PlacedExpression expression{Expression::parse(op.in[i].text), op.in[i].place};
    is_whole = expression.expression.literal().has_value();
    value = real(expression, faults_.name(op.name.text));
  } catch (const InputError& error) {
    faults_.add(op.in[i].place, fmt::format("{}: {}", faults_.name(op.name.text), error.diagnostics()[0].message));
  }
  if (!value) return std::nullopt;
  BlockTemplate::Stored stored;
  stored.name = fmt::format("{}.in{}", op.name.text, i);
  stored.fill.value = *value;
  const bool is_integer = is_whole && beside && !is_floating(*beside) && *beside != DataType::kBool;
  stored.value = result_.add_value({{}, is_integer ? *beside : file_.options.dtype});
  result_.constants.push_back(stored);
  return stored.value;
}

}  // namespace shardplan
