#include "model/blocks/block_typer.h"

#include <algorithm>

namespace shardplan {

BlockTyper::BlockTyper(FileContext& file, const UsableBlock& block, std::string label, std::optional<SourcePlace> use)
    : file_(file),
      block_(*block.syntax),
      names_(*block.names),
      result_(std::make_unique<BlockTemplate>()),
      faults_(file.faults, std::move(label), std::move(use)),
      tensors_(file, block_, faults_, *result_),
      operator_typer_(file, block_, faults_, tensors_, *result_),
      call_typer_(file, block_, faults_, tensors_, *result_) {
  result_->syntax = &block_;
}

std::unique_ptr<BlockTemplate> BlockTyper::type(const std::vector<TensorType>& inputs,
                                                const std::vector<std::int64_t>& given,
                                                std::vector<std::string>& unchecked) {
  tensors_.read_inputs(inputs, given);
  if (faults_.has_any() && !block_.is_file()) return nullptr;  // the rest would be wrong for the same reason
  tensors_.read_parameters_and_constants();
  operators_.resize(block_.operators.size());
  for (const std::size_t index : names_.order) {
    const std::optional<std::vector<Value>> operands = operands_of(index);
    if (operands) {
      type_line(index, *operands);
    } else {
      note_unchecked(index, unchecked);
    }
  }
  set_outputs();
  return faults_.has_any() || !names_.is_good ? nullptr : std::move(result_);
}

void BlockTyper::type_line(std::size_t index, const std::vector<Value>& operands) {
  const OperatorSyntax& op = block_.operators[index];
  if (op.type.text.empty()) {  // a fault of its form, reported there
    faults_.mark();
    return;
  }
  std::optional<BlockTemplate::Item> item =
      op.is_block ? call_typer_.type(op, operands) : operator_typer_.type(op, operands);
  if (!item) return;
  operators_[index].item = result_->items.size();
  result_->items.push_back(std::move(*item));
}

void BlockTyper::set_outputs() {
  const auto value_of_result = [&](const NameSource& source, const SourcePlace& place) {
    return source.kind == NameSource::Kind::kOperator ? value_of(source, place, faults_.name("outputs")) : std::nullopt;
  };
  for (std::size_t i = 0; i < names_.outputs.size(); ++i) {
    const std::optional<Value> value = value_of_result(names_.outputs[i], names_.output_places[i]);
    if (!value) continue;
    result_->outputs.push_back(*value);
    result_->output_names.push_back(names_.output_names[i]);
  }
  if (names_.loss) result_->loss = value_of_result(*names_.loss, file_.model.loss->place);
}

void BlockTyper::note_unchecked(std::size_t index, std::vector<std::string>& unchecked) {
  operators_[index].is_unchecked = true;
  const OperatorSyntax& op = block_.operators[index];
  if (!op.type.text.empty()) op.is_block ? call_typer_.check_line(op) : operator_typer_.check_line(op);
  for (const NameSource& source : names_.operands[index]) {
    if (source.kind != NameSource::Kind::kOperator) continue;
    const OperatorState& before = operators_[source.index];
    const std::string name = faults_.name(block_.operators[source.index].name.text);
    const bool is_known = std::find(unchecked.begin(), unchecked.end(), name) != unchecked.end();
    if (!before.item && !before.is_unchecked && !is_known) unchecked.push_back(name);
  }
}

std::optional<std::vector<BlockTyper::Value>> BlockTyper::operands_of(std::size_t index) {
  const OperatorSyntax& op = block_.operators[index];
  const std::vector<NameSource>& sources = names_.operands[index];
  std::vector<Value> values(sources.size());
  bool is_known = true;
  std::optional<DataType> first_type;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].kind == NameSource::Kind::kNumber) continue;
    const std::optional<Value> value = value_of(sources[i], op.in[i].place, faults_.name(op.name.text));
    if (!value) {
      is_known = false;
      continue;
    }
    values[i] = *value;
    if (!first_type) first_type = result_->types[*value].dtype;
  }
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].kind != NameSource::Kind::kNumber) continue;
    const std::optional<Value> value = tensors_.number(op, i, first_type);
    if (!value) return std::nullopt;
    values[i] = *value;
  }
  return is_known ? std::optional(std::move(values)) : std::nullopt;
}

std::optional<BlockTyper::Value> BlockTyper::value_of(const NameSource& source, const SourcePlace& place,
                                                      const std::string& where) {
  if (source.kind != NameSource::Kind::kOperator) return tensors_.find(source);
  const OperatorState& state = operators_[source.index];
  if (!state.item) return std::nullopt;
  BlockTemplate::Item& item = result_->items[*state.item];
  return item.syntax->is_block ? call_typer_.part_of(item, source.rest, place, where)
                               : operator_typer_.result_of(item, source, place, where);
}

}  // namespace shardplan
