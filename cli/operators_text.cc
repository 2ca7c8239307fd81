#include "cli/operators_text.h"

#include <vector>

#include "base/error.h"
#include "model/blocks/built_in_blocks.h"
#include "operators/catalogue.h"
#include "report/catalogue_report.h"

namespace shardplan {
namespace {

std::string block_text(const BuiltInBlock& block) {
  std::string text = fmt::format("{}: {}\n", block.name, block.summary);
  for (const AttributeSpec& option : block.options) {
    text += fmt::format("  {}{}: {}\n", option.name,
                        option.default_value ? " = " + to_string(*option.default_value) : "", option.description);
  }
  return text;
}

}  // namespace

std::string operators_text(const std::string& name) {
  if (name.empty()) return catalogue_report();
  if (const OperatorType* type = find_operator_type(name)) return operator_report(*type);
  if (const BuiltInBlock* block = find_built_in_block(name)) return block_text(*block);
  std::vector<std::string> known;
  for (const OperatorType& type : operator_catalogue()) known.push_back(type.name);
  for (const BuiltInBlock& block : built_in_blocks()) known.push_back(block.name);
  const std::string nearest = nearest_name(name, known);
  throw InputError(SourcePlace{}, "no operator '{}'{}", name,
                   nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest));
}

}  // namespace shardplan
