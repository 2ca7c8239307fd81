#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/blocks/block_faults.h"
#include "model/blocks/block_template.h"
#include "model/blocks/block_tensors.h"
#include "model/blocks/file_context.h"

namespace shardplan {

/// Types the uses of blocks in one block: finds the block, reads the dims or options that the caller gives, and gets
/// the template of every copy from the file's library.
class CallTyper {
 public:
  using Value = BlockTemplate::Value;

  /// All must outlive the object; results become values of `result`.
  CallTyper(FileContext& file, const BlockSyntax& block, BlockFaults& faults, BlockTensors& tensors,
            BlockTemplate& result)
      : file_(file), block_(block), faults_(faults), tensors_(tensors), result_(result) {}

  /// Nothing after faults.
  std::optional<BlockTemplate::Item> type(const OperatorSyntax& call, const std::vector<Value>& operands);

  /// What is wrong with a line whatever its inputs are: its block and its options.
  void check_line(const OperatorSyntax& call);

  /// The value that `rest` names behind a call: call, call.RESULT, call.3, call.3.RESULT, call.PARAMETER,
  /// call.3.PARAMETER. A parameter is added to the item. Nothing after a fault.
  std::optional<Value> part_of(BlockTemplate::Item& item, std::string rest, const SourcePlace& place,
                               const std::string& where);

 private:
  /// Either is null; both are, with a fault, if there is no such block.
  struct FoundBlock {
    const UsableBlock* of_file = nullptr;
    const BuiltInBlock* built_in = nullptr;
  };
  FoundBlock find_name(const OperatorSyntax& call);
  std::optional<BlockUse> find_block(const OperatorSyntax& call, std::vector<TensorType> inputs);
  std::optional<BlockUse> file_block(const OperatorSyntax& call, const UsableBlock& block);
  std::optional<BlockUse> built_in_block(const OperatorSyntax& call, const BuiltInBlock& block,
                                         const std::vector<TensorType>& inputs);
  std::optional<std::int64_t> num_copies(const OperatorSyntax& call, const std::vector<Value>& operands);

  FileContext& file_;
  const BlockSyntax& block_;
  BlockFaults& faults_;
  BlockTensors& tensors_;
  BlockTemplate& result_;
};

}  // namespace shardplan
