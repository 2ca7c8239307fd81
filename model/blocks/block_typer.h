#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/blocks/block_faults.h"
#include "model/blocks/block_template.h"
#include "model/blocks/block_tensors.h"
#include "model/blocks/call_typer.h"
#include "model/blocks/file_context.h"
#include "model/blocks/operator_typer.h"

namespace shardplan {

/// Types one block, or the file itself, for given input types: its tensors (BlockTensors), then its operators
/// (OperatorTyper) and uses of blocks (CallTyper), each after those that it reads. It continues after faults; what reads
/// something that is wrong stays unchecked.
class BlockTyper {
 public:
  /// `label` stands before names in faults; faults in a built-in block point at `use`. All must outlive the object.
  BlockTyper(FileContext& file, const UsableBlock& block, std::string label, std::optional<SourcePlace> use);

  /// Null after faults. `given` are the values of the dims that the caller gives, in the block's order; `unchecked`
  /// receives the operators that are wrong and keep others from being checked.
  std::unique_ptr<BlockTemplate> type(const std::vector<TensorType>& inputs, const std::vector<std::int64_t>& given,
                                      std::vector<std::string>& unchecked);

 private:
  using Value = BlockTemplate::Value;
  struct OperatorState {
    std::optional<std::size_t> item;  // where it is in the template, if it is typed
    bool is_unchecked = false;        // something before it is wrong
  };

  /// The values that an operator reads; nothing if one of them is unknown. Numbers become constants.
  std::optional<std::vector<Value>> operands_of(std::size_t index);
  std::optional<Value> value_of(const NameSource& source, const SourcePlace& place, const std::string& where);
  void type_line(std::size_t index, const std::vector<Value>& operands);
  void note_unchecked(std::size_t index, std::vector<std::string>& unchecked);
  void set_outputs();

  const FileContext& file_;
  const BlockSyntax& block_;
  const BlockNames& names_;
  std::unique_ptr<BlockTemplate> result_;
  BlockFaults faults_;
  BlockTensors tensors_;
  OperatorTyper operator_typer_;
  CallTyper call_typer_;
  std::vector<OperatorState> operators_;
};

}  // namespace shardplan
