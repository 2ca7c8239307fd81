#include "operators/kernel.h"

#include <optional>

#include "base/error.h"

namespace shardplan {
namespace {

Box dimension_box(const DimensionWalk& walk, std::span<const Box> boxes, std::int64_t extent) {
  SHARDPLAN_CHECK(!walk.window && walk.factors.size() <= 1);
  return walk.factors.empty() ? Box{0, extent, extent} : boxes[walk.factors[0]];
}

}  // namespace

const Box& KernelCall::box(std::string_view factor) const {
  const std::optional<std::uint32_t> at = operation.rule.find(factor);
  SHARDPLAN_CHECK(at.has_value());
  return boxes[*at];
}

Box KernelCall::operand_box(std::size_t operand, std::size_t dimension) const {
  return dimension_box(operation.rule.operands[operand][dimension], boxes,
                       operation.operands[operand].shape[dimension]);
}

Box KernelCall::result_box(std::size_t result, std::size_t dimension) const {
  return dimension_box(operation.rule.results[result][dimension], boxes, operation.results[result].shape[dimension]);
}

}  // namespace shardplan
