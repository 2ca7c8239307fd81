#include "program/instruction_table.h"

#include <numeric>

#include "program/collective_matmul.h"
#include "program/instruction_facts.h"

namespace shardplan {

InstructionTable::InstructionTable(const ParallelProgram& program)
    : program_(&program),
      loop_(program.num_in_micro_batch()),
      bytes_(program.values.size()),
      is_in_registers_(program.values.size(), 0),
      old_values_(program.values.size(), kReplacesNone) {
  rows_.reserve(program.instructions.size());
  std::size_t num_operands = 0;
  for (const Instruction& instruction : program.instructions) {
    num_operands += instruction.inputs.size() + instruction.outputs.size();
  }
  operands_.reserve(num_operands);
  for (const Instruction& instruction : program.instructions) {
    Row row;
    row.time = instruction.time;
    row.runs = instruction.runs;
    row.links = instruction.links;
    row.first = static_cast<std::uint32_t>(operands_.size());
    row.num_inputs = static_cast<std::uint32_t>(instruction.inputs.size());
    row.num_outputs = static_cast<std::uint32_t>(instruction.outputs.size());
    row.kind = instruction.kind;
    row.collective = instruction.step->kind;
    row.is_communication = is_communication(instruction);
    row.is_view =
        instruction.kind == InstructionKind::kOperator && instruction.operation->type->work == WorkKind::kView;
    row.is_accumulating = is_accumulating(instruction);
    if (instruction.in_pieces) row.pieces = static_cast<std::uint32_t>(num_pieces(instruction.step->axes));
    row.is_product = instruction.kind == InstructionKind::kOperator && is_product(*instruction.operation);
    operands_.insert(operands_.end(), instruction.inputs.begin(), instruction.inputs.end());
    operands_.insert(operands_.end(), instruction.outputs.begin(), instruction.outputs.end());
    rows_.push_back(row);
  }
  for (const ValueId id : program.values.ids()) {
    bytes_[id] = program.values[id].bytes;
    all_bytes_ += bytes_[id];
    is_in_registers_[id] = program.values[id].in_registers ? 1 : 0;
  }
  std::vector<std::uint32_t> stored;  // by tensor
  for (const Binding& given : program.given) {
    const std::size_t tensor = given.tensor.value();
    if (tensor >= stored.size()) stored.resize(tensor + 1, kReplacesNone);
    if (stored[tensor] == kReplacesNone) stored[tensor] = static_cast<std::uint32_t>(given.value.value());
  }
  for (const Binding& update : program.updates) {
    const std::size_t tensor = update.tensor.value();
    if (tensor < stored.size()) old_values_[update.value] = stored[tensor];
  }
}

TableOrder::TableOrder(const InstructionTable& of)
    : table(&of), sequence(of.size()), fusion(of.size()), reduces_in_last_run(of.program().reduces_in_last_run) {
  std::iota(sequence.begin(), sequence.end(), std::uint32_t{0});
  for (std::size_t i = 0; i < of.size(); ++i) fusion[i] = of.program().instructions[i].fusion;
  for (const Bucket& bucket : of.program().buckets) {
    buckets.push_back({bucket.time, bucket.buffer, of.bytes(bucket.buffer)});
  }
}

TableOrder::TableOrder(const InstructionTable& of, std::span<const std::uint32_t> order)
    : table(&of), sequence(order.begin(), order.end()), fusion(order.size(), 0) {}

Bytes TableOrder::all_bytes() const {
  Bytes all = table->all_bytes();
  for (const TriedBucket& bucket : buckets) all += bucket.bytes;
  return all;
}

bool TableOrder::scatters_pieces_behind(std::size_t place) const {
  if (place + 1 >= size() || fusion[place + 1] != 0 || !(*this)[place].is_product) return false;
  const InstructionTable::Row& next = (*this)[place + 1];
  return next.pieces > 1 && next.is_collective(CollectiveKind::kReduceScatter) &&
         inputs(place + 1)[0] == outputs(place)[0];
}

std::size_t TableOrder::end_of_bucket(std::size_t begin) const {
  std::size_t end = begin + 1;
  while (fusion[begin] > 0 && end < size() && fusion[end] == fusion[begin]) ++end;
  return end;
}

}  // namespace shardplan
