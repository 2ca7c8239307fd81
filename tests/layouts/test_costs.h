#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "layouts/collective.h"

namespace shardplan {

/// Made-up costs that a reader can recompute. A group along axes with p devices and n bytes pays `launch` once,
/// `latency` for each of p - 1 hops (a permute: one hop), and `per_byte` for what the busiest device sends, that of the
/// slowest axis in use.
class TestCosts : public CollectiveCosts {
 public:
  struct Axis {
    Picoseconds latency = 0;
    Picoseconds per_byte = 1;
  };
  TestCosts(Picoseconds launch, std::vector<Axis> axes) : launch_(launch), axes_(std::move(axes)) {}

  Picoseconds time(CollectiveKind kind, const std::vector<AxisRef>& axes, Bytes group_bytes) const override {
    Axis link;
    link.per_byte = 0;
    for (const AxisRef& axis : axes) {
      link.latency = std::max(link.latency, axes_[axis.axis].latency);
      link.per_byte = std::max(link.per_byte, axes_[axis.axis].per_byte);
    }
    const std::int64_t p = num_pieces(axes);
    switch (kind) {
      case CollectiveKind::kSlice:
      case CollectiveKind::kToPartial:
        return 0;
      case CollectiveKind::kAllGather:
      case CollectiveKind::kReduceScatter:
        return launch_ + (p - 1) * link.latency + group_bytes / p * (p - 1) * link.per_byte;
      case CollectiveKind::kAllReduce:
        return launch_ + 2 * (p - 1) * link.latency + 2 * (group_bytes * (p - 1) / p) * link.per_byte;
      case CollectiveKind::kAllToAll:
        return launch_ + (p - 1) * link.latency + group_bytes / p * (p - 1) / p * link.per_byte;
      case CollectiveKind::kCollectivePermute:
        return launch_ + link.latency + group_bytes / p * link.per_byte;
    }
    return 0;
  }

 private:
  Picoseconds launch_;
  std::vector<Axis> axes_;
};

/// Equal links: 1 per byte sent, 100 per launch and 10 per hop.
inline std::shared_ptr<const CollectiveCosts> even_costs(std::size_t num_axes) {
  return std::make_shared<TestCosts>(100, std::vector<TestCosts::Axis>(num_axes, {10, 1}));
}

/// Costs of different kinds.
struct CostCase {
  const char* name;
  std::shared_ptr<const CollectiveCosts> costs;
};
/// For up to four axes.
inline std::vector<CostCase> cost_cases() {
  using Axes = std::vector<TestCosts::Axis>;
  const auto made = [](Picoseconds launch, Axes axes) { return std::make_shared<TestCosts>(launch, std::move(axes)); };
  return {
      {"bandwidth only", made(0, Axes(4, {0, 1}))},
      {"launch and hops", made(1000, Axes(4, {50, 1}))},
      {"slow outer axis", made(100, {{200, 10}, {20, 1}, {20, 1}, {20, 1}})},
      {"slow inner axis", made(0, {{0, 1}, {0, 8}, {0, 3}, {0, 2}})},
  };
}

/// Whether to try all pairs.
inline bool is_exhaustive() { return std::getenv("SHARDPLAN_EXHAUSTIVE") != nullptr; }

}  // namespace shardplan
