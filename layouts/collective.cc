#include "layouts/collective.h"

#include <algorithm>

#include "base/integer.h"

namespace shardplan {
namespace {

constexpr std::int64_t kMostOfStep = std::int64_t{1} << 55;

}  // namespace

std::string_view to_string(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kSlice:
      return "slice";
    case CollectiveKind::kAllGather:
      return "all_gather";
    case CollectiveKind::kAllToAll:
      return "all_to_all";
    case CollectiveKind::kReduceScatter:
      return "reduce_scatter";
    case CollectiveKind::kAllReduce:
      return "all_reduce";
    case CollectiveKind::kCollectivePermute:
      return "collective_permute";
    case CollectiveKind::kToPartial:
      return "to_partial";
  }
  return "?";
}

bool is_local(CollectiveKind kind) { return kind == CollectiveKind::kSlice || kind == CollectiveKind::kToPartial; }

StepCost step_cost(CollectiveKind kind, const std::vector<AxisRef>& axes, Bytes shard_bytes,
                   const CollectiveCosts& costs) {
  if (is_local(kind)) return {};
  const std::int64_t group_size = num_pieces(axes);
  const bool counts_all_members = kind == CollectiveKind::kAllToAll || kind == CollectiveKind::kCollectivePermute;
  const Bytes group_bytes = counts_all_members ? multiply_divide(shard_bytes, group_size, 1) : shard_bytes;
  return {std::min(kMostOfStep, costs.time(kind, axes, group_bytes)),
          std::min(kMostOfStep, sent_bytes(kind, group_size, group_bytes))};
}

Bytes sent_bytes(CollectiveKind kind, std::int64_t group_size, Bytes group_bytes) {
  const std::int64_t p = group_size;
  switch (kind) {
    case CollectiveKind::kSlice:
    case CollectiveKind::kToPartial:
      return 0;
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      return group_bytes / p * (p - 1);
    case CollectiveKind::kAllReduce:
      return multiply_divide(2 * (p - 1), group_bytes, p);
    case CollectiveKind::kAllToAll:
      return group_bytes / p / p * (p - 1);
    case CollectiveKind::kCollectivePermute:
      return group_bytes / p;
  }
  return 0;
}

void set_cost(CollectiveStep& step, Bytes tensor_bytes, const CollectiveCosts& costs) {
  const Bytes shard = tensor_bytes / num_shards(step.kind == CollectiveKind::kAllGather ? step.after : step.before);
  std::vector<AxisRef> axes = step.axes;
  std::sort(axes.begin(), axes.end());
  const StepCost cost = step_cost(step.kind, joined(axes), shard, costs);
  step.time = cost.time;
  step.sent = cost.sent;
}

}  // namespace shardplan
