#include <fmt/ranges.h>

#include <algorithm>

#include "model/blocks/block_typer.h"

namespace shardplan {
namespace {

constexpr std::size_t kMaxBlockDepth = 32;

/// The type of "weight" or "qkv.weight" or "layers.3.weight" within a block.
std::optional<TensorType> parameter_type(const BlockTemplate& block, const std::string& path) {
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

}  // namespace

std::optional<BodyTyper::Callee> BodyTyper::find_callee(const OperatorSyntax& op,
                                                        const std::vector<TensorType>& inputs) {
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

std::optional<BodyTyper::Callee> BodyTyper::user_block(const OperatorSyntax& op, const BlockSyntax& block) {
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

std::optional<BodyTyper::Callee> BodyTyper::built_in_block(const OperatorSyntax& op, const BuiltInBlock& block,
                                                           const std::vector<TensorType>& inputs) {
  std::optional<Attributes> options = attributes_of(op, block.options, call_keys());
  if (!options) return std::nullopt;
  for (const AttributeSpec& spec : block.options) {
    if (options->contains(spec.name)) continue;
    if (!spec.default_value) {
      fault(op.type.place,
            fmt::format("{}{}: {} needs {} ({})", label_, op.name.text, op.type.text, spec.name, spec.description));
      return std::nullopt;
    }
    options->emplace(spec.name, *spec.default_value);
  }
  if (inputs.size() != block.num_inputs) {
    wrong_count(op, block.num_inputs, inputs.size());
    return std::nullopt;
  }
  std::string text;
  try {
    text = block.text(*options, inputs);
  } catch (const InputError& error) {
    const std::string& message = error.diagnostics()[0].message;
    fault(place_for(op, message), fmt::format("{}{}: {}", label_, op.name.text, message));
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

void BodyTyper::wrong_count(const OperatorSyntax& op, std::size_t expected, std::size_t found) {
  fault(op.in.empty() ? op.type.place : op.in_place,
        fmt::format("{}{}: {} takes {} input{}, found {}", label_, op.name.text, op.type.text, expected,
                    expected == 1 ? "" : "s", found));
}

const BlockTemplate* BodyTyper::template_of(const OperatorSyntax& op, const Callee& callee,
                                            std::vector<TensorType> inputs) {
  const BlockSyntax& block = *callee.syntax;
  State::Key key{&block, std::move(inputs), callee.given};
  const auto found = state_.templates.find(key);
  if (found != state_.templates.end() && (found->second || !block.is_built_in)) {
    if (!found->second) is_good_ = false;
    return found->second.get();
  }
  if (std::find(state_.active.begin(), state_.active.end(), block.name.text) != state_.active.end()) {
    fault(op.type.place, fmt::format("{}{}: block {} contains itself: {} -> {}", label_, op.name.text, block.name.text,
                                     fmt::join(state_.active, " -> "), block.name.text));
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

void BodyTyper::type_call(std::size_t index, const OperatorSyntax& op, const std::vector<Value>& operands) {
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

/// call, call.RESULT, call.3, call.3.RESULT, call.PARAMETER, call.3.PARAMETER.
std::optional<BodyTyper::Value> BodyTyper::part_of_call(BlockTemplate::Item& item, std::string rest,
                                                        const SourcePlace& place, const std::string& where) {
  const OperatorSyntax& op = *item.syntax;
  const std::size_t num_copies = item.copies.size();
  const std::size_t results_per_copy = item.results.size() / num_copies;
  std::size_t copy = num_copies - 1;
  bool names_copy = false;
  if (op.repeat && !rest.empty() && rest[0] >= '0' && rest[0] <= '9') {
    const std::string digits = rest.substr(0, rest.find('.'));
    if (digits.size() > 9 || (digits.size() > 1 && digits[0] == '0') || std::stoul(digits) >= num_copies) {
      fault(place, fmt::format("{}: {} has no copy {}; they are 0 to {}", where, op.name.text, digits, num_copies - 1));
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
  const std::optional<TensorType> type = parameter_type(inner, rest);
  if (type && op.repeat && !names_copy) {
    fault(place, fmt::format("{}: each copy of {} has its own {}; name one: {}.0.{}", where, op.name.text, rest,
                             op.name.text, rest));
    return std::nullopt;
  }
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

}  // namespace shardplan
