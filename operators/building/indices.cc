#include "operators/building/indices.h"

#include <fmt/format.h>

#include "operators/building/rule_builder.h"
#include "operators/operator_type.h"

namespace shardplan {

void check_indices(const Operation& operation, std::size_t operand) {
  if (is_floating(operation.operands[operand].dtype)) {
    operand_error(operation, fmt::format("{} are {}; expected integers", operation.type->signature.operands[operand],
                                         to_string(operation.operands[operand].dtype)));
  }
}

}  // namespace shardplan
