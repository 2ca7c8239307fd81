#include "planner/problem/layout_tables.h"

namespace shardplan {

std::optional<MatrixId> LayoutTables::make_matrix(const std::vector<ListedLayout>& from,
                                                  const std::vector<ListedLayout>& to, TypeId type, EdgeKind kind,
                                                  std::int64_t runs) {
  CostMatrix matrix;
  matrix.rows = static_cast<std::uint32_t>(from.size());
  matrix.columns = static_cast<std::uint32_t>(to.size());
  if (kind == EdgeKind::kShares) {
    matrix.costs.assign(from.size() * to.size(), 0);
  } else {
    const WholeTensor& tensor = types_[type];
    matrix.costs = redistributions_.times(layouts_of(from), layouts_of(to), tensor.shape, tensor.element_bytes);
    for (std::int64_t& cost : matrix.costs) cost = repeated_cost(cost, runs);
  }
  const bool may_share = std::any_of(to.begin(), to.end(), [](const ListedLayout& entry) { return entry.shares; });
  for (std::size_t i = 0; may_share && i < from.size(); ++i) {
    for (std::size_t j = 0; j < to.size(); ++j) {
      std::int64_t& cost = matrix.costs[i * to.size() + j];
      const bool says_never = kind != EdgeKind::kMadeOrShared && to[j].shares != (from[i].layout == to[j].layout);
      if (says_never) {
        cost = kForbidden;
      } else if (to[j].shares) {
        cost = 0;
      }
    }
  }
  const bool is_zero = std::all_of(matrix.costs.begin(), matrix.costs.end(), [](std::int64_t c) { return c == 0; });
  if (is_zero) return std::nullopt;
  return problem_.matrices.push_back(std::move(matrix));
}

}  // namespace shardplan
