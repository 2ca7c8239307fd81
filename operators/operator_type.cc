#include "operators/operator_type.h"

#include <algorithm>

#include "base/error.h"

namespace shardplan {

const Box& KernelCall::box(std::string_view factor) const {
  const std::optional<std::uint32_t> at = operation.rule.find(factor);
  SHARDPLAN_CHECK(at.has_value());
  return boxes[*at];
}

namespace {

Box dimension_box(const DimensionWalk& walk, std::span<const Box> boxes, std::int64_t extent) {
  SHARDPLAN_CHECK(!walk.window && walk.factors.size() <= 1);
  return walk.factors.empty() ? Box{0, extent, extent} : boxes[walk.factors[0]];
}

}  // namespace

Box KernelCall::operand_box(std::size_t operand, std::size_t dimension) const {
  return dimension_box(operation.rule.operands[operand][dimension], boxes,
                       operation.operands[operand].shape[dimension]);
}

Box KernelCall::result_box(std::size_t result, std::size_t dimension) const {
  return dimension_box(operation.rule.results[result][dimension], boxes, operation.results[result].shape[dimension]);
}

const OperatorType* find_operator_type(std::string_view name) {
  const std::vector<OperatorType>& all = operator_catalogue();
  const auto at =
      std::ranges::lower_bound(all, name, {}, [](const OperatorType& type) -> std::string_view { return type.name; });
  return at != all.end() && at->name == name ? &*at : nullptr;
}

double flops(const Operation& operation, std::span<const std::int64_t> factor_extents) {
  const OperatorType& type = *operation.type;
  if (type.work == WorkKind::kView) return 0;
  double points = 1;
  double all_points = 1;
  for (std::size_t f = 0; f < factor_extents.size(); ++f) {
    points *= static_cast<double>(factor_extents[f]);
    all_points *= static_cast<double>(operation.rule.factors[f].size);
  }
  return type.whole_flops != nullptr ? type.whole_flops(operation) * (points / all_points)
                                     : type.flops_per_point * points;
}

}  // namespace shardplan
