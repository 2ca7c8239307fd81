#include "layouts/redistribution/search/edge_costs.h"

#include <algorithm>

#include "base/error.h"

namespace shardplan {

const PriceList::Entry& PriceList::operator[](std::uint32_t price) {
  if (price >= entries_.size()) entries_.resize(graph_.prices().size());
  Entry& entry = entries_[price];
  if (entry.time >= 0) return entry;
  const RedistributionPrice& group = graph_.prices()[price];
  const bool is_divided = group.kind == CollectiveKind::kAllToAll || group.kind == CollectiveKind::kCollectivePermute;
  const Bytes bytes = of_group(tensor_bytes_ / group.divisor, is_divided ? group.group_size : 1);
  entry.sent = std::min(kMostOfStep, sent_bytes(group.kind, group.group_size, bytes));
  const bool is_free = group.kind == CollectiveKind::kSlice || group.kind == CollectiveKind::kToPartial;
  const auto price_of = [&] { return costs_.time(group.kind, graph_.axes(group.chart, group.pieces), bytes); };
  entry.time = is_free ? 0 : std::min(kMostOfStep, price_of());
  SHARDPLAN_CHECK(entry.time >= 0);
  return entry;
}

}  // namespace shardplan
