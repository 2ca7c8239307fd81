#include "model/blocks/built_in_syntax.h"

#include "base/error.h"

namespace shardplan {

const BuiltInSyntax::Block& BuiltInSyntax::at(const BuiltInBlock& block, const Attributes& options,
                                              const std::vector<TensorType>& inputs) {
  const std::string text = block.text(options, inputs);
  std::unique_ptr<Block>& known = blocks_[block.name + text];
  if (!known) {
    std::vector<Diagnostic> faults;
    known = std::make_unique<Block>();
    known->syntax = read_block_syntax(text, block.name, faults);
    const auto reads_no_parameter = [](const OperatorSyntax&, const std::string&) { return false; };
    known->names = resolve_names(known->syntax, nullptr, "", reads_no_parameter, faults);
    SHARDPLAN_CHECK(faults.empty());
  }
  return *known;
}

}  // namespace shardplan
