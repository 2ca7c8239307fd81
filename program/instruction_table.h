#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/index.h"
#include "base/units.h"
#include "layouts/collective.h"
#include "program/parallel_program.h"

namespace shardplan {

/// The data of a program's instructions that timelines and memory profiles need, in one flat table: fifty bytes per
/// instruction, a tenth of the program itself. Orders are tried on the table; instructions are moved only once an
/// order is chosen. It refers to the program, which must outlive it and not move its instructions.
class InstructionTable {
 public:
  struct Row {
    Picoseconds time = 0;  // per run
    std::int64_t runs = 1;
    std::uint32_t links = 0;
    std::uint32_t first = 0;  // position of its first input in the list of all operands; its outputs follow its inputs
    std::uint32_t num_inputs = 0;
    std::uint32_t num_outputs = 0;
    std::uint32_t pieces = 0;  // above 0: the number of pieces of a collective in pieces (`Instruction::in_pieces`)
    InstructionKind kind = InstructionKind::kOperator;
    CollectiveKind collective = CollectiveKind::kSlice;  // if kCollective
    bool is_communication = false;                       // occupies links (program/instruction_facts.h)
    bool is_view = false;
    bool is_accumulating = false;
    bool is_product = false;

    bool is_collective(CollectiveKind of) const { return kind == InstructionKind::kCollective && collective == of; }
    /// Kernels that take time run one after the other.
    bool is_timed_kernel() const { return kind == InstructionKind::kOperator && time > 0; }
  };

  explicit InstructionTable(const ParallelProgram& program);

  const ParallelProgram& program() const { return *program_; }
  std::size_t size() const { return rows_.size(); }
  /// Number of instructions of the micro-batch loop, which come first.
  std::size_t loop() const { return loop_; }
  const Row& operator[](std::size_t i) const { return rows_[i]; }
  std::span<const ValueId> inputs(std::size_t i) const {
    return std::span(operands_).subspan(rows_[i].first, rows_[i].num_inputs);
  }
  std::span<const ValueId> outputs(std::size_t i) const {
    return std::span(operands_).subspan(rows_[i].first + rows_[i].num_inputs, rows_[i].num_outputs);
  }
  std::size_t num_values() const { return bytes_.size(); }
  Bytes bytes(ValueId value) const { return bytes_[value]; }
  /// Total bytes of all values.
  Bytes all_bytes() const { return all_bytes_; }
  bool is_in_registers(ValueId value) const { return is_in_registers_[value] != 0; }
  /// The stored value that this one replaces; nothing for others.
  std::optional<ValueId> old_value(ValueId value) const {
    const std::uint32_t old = value.value() < old_values_.size() ? old_values_[value] : kReplacesNone;
    return old == kReplacesNone ? std::nullopt : std::optional(ValueId(old));
  }

 private:
  static constexpr std::uint32_t kReplacesNone = std::numeric_limits<std::uint32_t>::max();

  const ParallelProgram* program_;
  std::size_t loop_ = 0;
  std::vector<Row> rows_;
  std::vector<ValueId> operands_;
  Bytes all_bytes_ = 0;
  IdVector<ValueId, Bytes> bytes_;
  IdVector<ValueId, char> is_in_registers_;
  IdVector<ValueId, std::uint32_t> old_values_;
};

/// The instructions of a table in one order: that of the program, or one that is tried.
struct TableOrder {
  /// A bucket as in `ParallelProgram::buckets`.
  struct TriedBucket {
    Picoseconds time = 0;
    ValueId buffer;  // in a tried order: numbered after the program's values
    Bytes bytes = 0;
  };

  /// The program's own order, with its buckets.
  explicit TableOrder(const InstructionTable& table);
  /// Without buckets.
  TableOrder(const InstructionTable& table, std::span<const std::uint32_t> sequence);

  std::size_t size() const { return sequence.size(); }
  const InstructionTable::Row& operator[](std::size_t place) const { return (*table)[sequence[place]]; }
  std::span<const ValueId> inputs(std::size_t place) const { return table->inputs(sequence[place]); }
  std::span<const ValueId> outputs(std::size_t place) const { return table->outputs(sequence[place]); }
  std::size_t num_values() const { return table->num_values() + num_buffers; }
  /// Total bytes of all values and buffers: an upper bound on memory.
  Bytes all_bytes() const;
  /// Whether a reduce_scatter in pieces comes right after the product that computes its operand.
  bool scatters_pieces_behind(std::size_t place) const;
  /// One past the last position that is issued together with `begin`: the end of its bucket, or `begin + 1`.
  std::size_t end_of_bucket(std::size_t begin) const;

  const InstructionTable* table;
  std::vector<std::uint32_t> sequence;  // by position: the instruction
  std::vector<std::uint32_t> fusion;    // by position: as Instruction::fusion
  std::vector<TriedBucket> buckets;     // fusion id n is buckets[n - 1]
  std::size_t num_buffers = 0;          // buffers that are not values of the program
  bool reduces_in_last_run = false;
};

}  // namespace shardplan
