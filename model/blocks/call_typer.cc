#include "model/blocks/call_typer.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "model/blocks/operator_line.h"
#include "operators/catalogue.h"

// A use of a block is typed like an operator: its block is found, its options give the block's dims, and the template of
// that block at these inputs says the types of the results. Copies of a repeat are typed one after the other.

namespace shardplan {
namespace {

/// The dims that a use of the block gives.
std::vector<AttributeSpec> given_dims(const BlockSyntax& block) {
  std::vector<AttributeSpec> specs;
  for (const BlockDim& dim : block.dims) {
    if (dim.kind != BlockDim::Kind::kGiven) continue;
    AttributeSpec spec;
    spec.name = dim.name.text;
    spec.kind = AttributeKind::kInteger;
    specs.push_back(std::move(spec));
  }
  return specs;
}

}  // namespace

CallTyper::FoundBlock CallTyper::find_name(const OperatorSyntax& call) {
  FoundBlock result;
  const auto found = file_.blocks.find(call.type.text);
  if (found != file_.blocks.end()) {
    result.of_file = &found->second;
  } else {
    result.built_in = find_built_in_block(call.type.text);
  }
  if (result.of_file == nullptr && result.built_in == nullptr) {
    std::vector<std::string> known;
    for (const auto& [name, block] : file_.blocks) known.push_back(name);
    for (const BuiltInBlock& block : built_in_blocks()) known.push_back(block.name);
    const std::string nearest = nearest_name(call.type.text, known);
    const std::string behind_dot = call.type.text.substr(call.type.text.rfind('.') + 1);
    const OperatorType* type = find_operator_type(behind_dot);
    const bool is_operator = type != nullptr && !type->is_internal;
    faults_.add(call.type.place,
                fmt::format("{}: no block '{}'{}", faults_.name(call.name.text), call.type.text,
                            nearest.empty() || is_operator ? "" : fmt::format("; did you mean '{}'?", nearest)),
                is_operator ? fmt::format("{} is an operator: op: {}", behind_dot, behind_dot) : "");
  }
  return result;
}

void CallTyper::check_line(const OperatorSyntax& call) {
  const FoundBlock found = find_name(call);
  if (found.built_in == nullptr && found.of_file == nullptr) return;
  const std::vector<AttributeSpec> specs =
      found.built_in != nullptr ? found.built_in->options : given_dims(*found.of_file->syntax);
  read_attributes(call, specs, call_keys(), *block_.document, tensors_.dims(), faults_);
}

std::optional<BlockUse> CallTyper::find_block(const OperatorSyntax& call, std::vector<TensorType> inputs) {
  const FoundBlock found = find_name(call);
  if (found.built_in == nullptr && found.of_file == nullptr) return std::nullopt;
  std::optional<BlockUse> use =
      found.built_in != nullptr ? built_in_block(call, *found.built_in, inputs) : file_block(call, *found.of_file);
  if (!use) return std::nullopt;
  if (inputs.size() != use->block.syntax->inputs.size()) {
    report_wrong_count(call, use->block.syntax->inputs.size(), faults_);
    return std::nullopt;
  }
  use->call = &call;
  use->inputs = std::move(inputs);
  return use;
}

std::optional<BlockUse> CallTyper::file_block(const OperatorSyntax& call, const UsableBlock& block) {
  const std::vector<AttributeSpec> specs = given_dims(*block.syntax);
  const std::optional<Attributes> attributes =
      read_attributes(call, specs, call_keys(), *block_.document, tensors_.dims(), faults_);
  if (!attributes) return std::nullopt;
  BlockUse use;
  use.block = block;
  for (const AttributeSpec& spec : specs) {
    const auto value = attributes->find(spec.name);
    if (value == attributes->end()) {
      faults_.add(call.type.place, fmt::format("{}: block {} needs the dim {}", faults_.name(call.name.text),
                                               call.type.text, spec.name));
      return std::nullopt;
    }
    use.given.push_back(std::get<std::int64_t>(value->second));
    if (use.given.back() < 1) {
      faults_.add(call.type.place, fmt::format("{}: {} is {}; expected at least 1", faults_.name(call.name.text),
                                               spec.name, use.given.back()));
      return std::nullopt;
    }
  }
  return use;
}

std::optional<BlockUse> CallTyper::built_in_block(const OperatorSyntax& call, const BuiltInBlock& block,
                                                  const std::vector<TensorType>& inputs) {
  std::optional<Attributes> options =
      read_attributes(call, block.options, call_keys(), *block_.document, tensors_.dims(), faults_);
  if (!options) return std::nullopt;
  for (const AttributeSpec& spec : block.options) {
    if (options->contains(spec.name)) continue;
    if (!spec.default_value) {
      faults_.add(call.type.place, fmt::format("{}: {} needs {} ({})", faults_.name(call.name.text), call.type.text,
                                               spec.name, spec.description));
      return std::nullopt;
    }
    options->emplace(spec.name, *spec.default_value);
  }
  if (inputs.size() != block.num_inputs) {
    report_wrong_count(call, block.num_inputs, faults_);
    return std::nullopt;
  }
  try {
    const BuiltInSyntax::Block& found = file_.built_in.at(block, *options, inputs);
    BlockUse use;
    use.block = {&found.syntax, &found.names};
    return use;
  } catch (const InputError& error) {
    const std::string& message = error.diagnostics()[0].message;
    faults_.add(place_of(call, message), fmt::format("{}: {}", faults_.name(call.name.text), message));
    return std::nullopt;
  }
}

std::optional<std::int64_t> CallTyper::num_copies(const OperatorSyntax& call, const std::vector<Value>& operands) {
  if (!call.repeat) return 1;
  const std::string name = faults_.name(call.name.text);
  const std::optional<std::int64_t> copies = tensors_.count(*call.repeat, fmt::format("{}: repeat", name));
  if (!copies) return std::nullopt;
  if (*copies > file_.options.max_operators) {
    faults_.add(call.repeat->place, fmt::format("{}: more than {} operators", name, file_.options.max_operators));
    return std::nullopt;
  }
  if (operands.empty()) {
    faults_.add(call.repeat->place, fmt::format("{}: a block without inputs cannot be repeated", name));
    return std::nullopt;
  }
  return file_.options.most_copies > 0 ? std::min(*copies, file_.options.most_copies) : *copies;
}

std::optional<BlockTemplate::Item> CallTyper::type(const OperatorSyntax& call, const std::vector<Value>& operands) {
  std::optional<BlockUse> use = find_block(call, result_.types_of(operands));
  if (!use) return std::nullopt;
  const std::optional<std::int64_t> copies = num_copies(call, operands);
  if (!copies) return std::nullopt;
  BlockTemplate::Item item;
  item.syntax = &call;
  item.operands = operands;
  for (std::int64_t i = 0; i < *copies; ++i) {
    const BlockTemplate* copy = file_.template_of(*use, faults_);
    if (!copy) {
      faults_.mark();
      return std::nullopt;
    }
    if (!count_operators(result_, std::max<std::int64_t>(copy->num_operators, 1), call, file_.options, faults_)) {
      return std::nullopt;
    }
    if (call.repeat && (copy->outputs.empty() || copy->outputs.size() > use->inputs.size())) {
      const std::string name = faults_.name(call.name.text);
      faults_.add(
          call.repeat->place,
          copy->outputs.empty()
              ? fmt::format("{}: a repeated block has a result; {} has none", name, call.type.text)
              : fmt::format("{}: the results of each copy are the first inputs of the next; {} has more results "
                            "({}) than inputs ({})",
                            name, call.type.text, copy->outputs.size(), use->inputs.size()));
      return std::nullopt;
    }
    item.copies.push_back(copy);
    for (const Value output : copy->outputs) item.results.push_back(result_.add_value(copy->types[output]));
    if (!call.repeat) continue;
    for (std::size_t k = 0; k < copy->outputs.size(); ++k) use->inputs[k] = copy->types[copy->outputs[k]];
  }
  return item;
}

std::optional<CallTyper::Value> CallTyper::part_of(BlockTemplate::Item& item, std::string rest,
                                                   const SourcePlace& place, const std::string& where) {
  const OperatorSyntax& call = *item.syntax;
  const std::size_t count = item.copies.size();
  const std::size_t results_per_copy = item.results.size() / count;
  std::size_t copy = count - 1;
  bool names_copy = false;
  if (call.repeat && !rest.empty() && rest[0] >= '0' && rest[0] <= '9') {
    const std::string digits = rest.substr(0, rest.find('.'));
    if (digits.size() > 9 || (digits.size() > 1 && digits[0] == '0') || std::stoul(digits) >= count) {
      faults_.add(place,
                  fmt::format("{}: {} has no copy {}; they are 0 to {}", where, call.name.text, digits, count - 1));
      return std::nullopt;
    }
    copy = std::stoul(digits);
    rest = rest.size() == digits.size() ? "" : rest.substr(digits.size() + 1);
    names_copy = true;
  }
  const BlockTemplate& inner = *item.copies[copy];
  if (rest.empty()) {
    if (results_per_copy == 1) return item.results[copy];
    faults_.add(place, fmt::format("{}: {} has {} results; name one: {}.{}", where, call.name.text, results_per_copy,
                                   call.name.text, inner.output_names[0]));
    return std::nullopt;
  }
  for (std::size_t i = 0; i < inner.output_names.size(); ++i) {
    if (inner.output_names[i] == rest) return item.results[copy * results_per_copy + i];
  }
  for (const BlockTemplate::Parameter& known : item.parameters) {
    if (known.copy == copy && known.path == rest) return known.value;
  }
  const std::optional<TensorType> type = parameter_type(inner, rest);
  if (type && call.repeat && !names_copy) {
    faults_.add(place, fmt::format("{}: each copy of {} has its own {}; name one: {}.0.{}", where, call.name.text, rest,
                                   call.name.text, rest));
    return std::nullopt;
  }
  if (type) {
    const Value value = result_.add_value(*type);
    item.parameters.push_back({copy, rest, value});
    return value;
  }
  std::vector<std::string> known = inner.output_names.size() > 1 ? inner.output_names : std::vector<std::string>();
  for (const BlockTemplate::Stored& parameter : inner.parameters) known.push_back(parameter.name);
  const std::string prefix = call.name.text + (call.repeat ? "." + std::to_string(copy) : "");
  faults_.add(
      place, fmt::format("{}: {} has no part '{}'", where, prefix, rest),
      known.empty() ? "" : fmt::format("there is {}.{}", prefix, fmt::join(known, fmt::format(", {}.", prefix))));
  return std::nullopt;
}

}  // namespace shardplan
