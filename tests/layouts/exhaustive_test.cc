// Plans compared with an exhaustive search over all layouts, which compares them pairwise and shares no code with the
// planner.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "layouts/index_digits.h"
#include "layouts/redistribution/redistribution_planner.h"
#include "tests/layouts/all_layouts.h"
#include "tests/layouts/test_costs.h"

namespace shardplan {
namespace {

/// A layout on a grid of digits: the content of each digit of each dimension (a piece, or nothing), and the partial
/// pieces.
struct Grid {
  std::vector<std::vector<std::optional<AxisRef>>> digits;  // by dimension
  std::set<AxisRef> partial;
  Reduction reduction = Reduction::kSum;
};

/// All layouts in which dimension d has digits of the given sizes and a rest. A digit is sharded by a piece of exactly
/// its size.
std::vector<Grid> all_grids(const std::vector<std::vector<std::int64_t>>& sizes, const std::vector<AxisRef>& pieces,
                            const std::vector<Reduction>& reductions) {
  Grid none;
  for (const auto& dimension : sizes) none.digits.emplace_back(dimension.size());
  std::vector<Grid> grids = {none};
  for (const AxisRef& piece : pieces) {
    std::vector<Grid> more = grids;
    for (const Grid& grid : grids) {
      for (std::size_t d = 0; d < sizes.size(); ++d) {
        for (std::size_t i = 0; i < sizes[d].size(); ++i) {
          if (grid.digits[d][i] || sizes[d][i] != piece.size) continue;
          more.push_back(grid);
          more.back().digits[d][i] = piece;
        }
      }
      for (const Reduction reduction : reductions) {
        if (!grid.partial.empty() && grid.reduction != reduction) continue;
        more.push_back(grid);
        more.back().partial.insert(piece);
        more.back().reduction = reduction;
      }
    }
    grids = std::move(more);
  }
  return grids;
}

TensorLayout layout_of(const Grid& grid, const std::vector<std::vector<std::int64_t>>& sizes, const DeviceMesh& mesh,
                       const Shape& shape) {
  TensorLayout layout;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::vector<IndexDigit> digits;
    std::int64_t rest = shape[d];
    for (std::size_t i = 0; i < sizes[d].size(); ++i) {
      digits.push_back({sizes[d][i], grid.digits[d][i]});
      rest /= sizes[d][i];
    }
    digits.push_back({rest, std::nullopt});
    layout.dimensions.push_back(dimension_of_digits(joined(digits)));
  }
  layout.partial = {grid.partial.begin(), grid.partial.end()};
  layout.reduction = grid.reduction;
  return canonical(layout, mesh, shape);
}

class Oracle {
 public:
  Oracle(const std::vector<AxisRef>& pieces, std::vector<Grid> grids, const CollectiveCosts& costs, Bytes tensor_bytes)
      : pieces_(pieces), costs_(costs), bytes_(tensor_bytes), grids_(std::move(grids)) {
    for (const Grid& grid : grids_) {
      std::int64_t shards = 1;
      for (const auto& dimension : grid.digits) {
        for (const auto& piece : dimension) shards *= piece ? piece->size : 1;
      }
      shards_.push_back(shards);
    }
    direct_.assign(grids_.size() * grids_.size(), kNever);
    for (std::size_t a = 0; a < grids_.size(); ++a) {
      for (std::size_t b = 0; b < grids_.size(); ++b) direct_[a * grids_.size() + b] = step(a, b);
    }
  }

  static constexpr Picoseconds kNever = INT64_MAX / 4;

  /// All pairs over states with at least this many shards (Floyd and Warshall).
  std::vector<Picoseconds> closure(std::int64_t least_shards) const {
    std::vector<Picoseconds> best = direct_;
    const std::size_t n = grids_.size();
    for (std::size_t via = 0; via < n; ++via) {
      if (shards_[via] < least_shards) continue;
      const Picoseconds* const from_via = best.data() + via * n;
      for (std::size_t a = 0; a < n; ++a) {
        const Picoseconds to_via = best[a * n + via];
        if (to_via == kNever) continue;
        Picoseconds* const from_a = best.data() + a * n;
        for (std::size_t b = 0; b < n; ++b) from_a[b] = std::min(from_a[b], to_via + from_via[b]);
      }
    }
    return best;
  }
  std::int64_t shards(std::size_t grid) const { return shards_[grid]; }

 private:
  Picoseconds cost(CollectiveKind kind, std::vector<AxisRef> axes, Bytes group_bytes) const {
    std::sort(axes.begin(), axes.end());
    return costs_.time(kind, joined(axes), group_bytes);
  }

  /// The cheapest single collective, or any number of free steps, found by comparing the two layouts.
  Picoseconds step(std::size_t from, std::size_t to) const {
    if (from == to) return 0;
    const Grid& a = grids_[from];
    const Grid& b = grids_[to];
    const Bytes shard = bytes_ / shards_[from];
    std::vector<AxisRef> removed;
    std::vector<AxisRef> added;
    bool removed_in_a_row = true;  // neighbours in one dimension
    bool added_in_a_row = true;
    bool replaced = false;
    bool same_cuts = true;
    std::pair<std::size_t, std::size_t> last_removed;
    std::pair<std::size_t, std::size_t> last_added;
    for (std::size_t d = 0; d < a.digits.size(); ++d) {
      for (std::size_t i = 0; i < a.digits[d].size(); ++i) {
        const auto& x = a.digits[d][i];
        const auto& y = b.digits[d][i];
        same_cuts = same_cuts && x.has_value() == y.has_value();
        if (x == y) continue;
        replaced = replaced || (x && y);
        const auto note = [&](const AxisRef& piece, std::vector<AxisRef>& list, bool& in_a_row,
                              std::pair<std::size_t, std::size_t>& last) {
          if (!list.empty() && last != std::pair(d, i - 1)) in_a_row = false;
          last = {d, i};
          list.push_back(piece);
        };
        if (x) note(*x, removed, removed_in_a_row, last_removed);
        if (y) note(*y, added, added_in_a_row, last_added);
      }
    }
    std::vector<AxisRef> dropped;
    std::set_difference(a.partial.begin(), a.partial.end(), b.partial.begin(), b.partial.end(),
                        std::back_inserter(dropped));
    std::vector<AxisRef> gained;
    std::set_difference(b.partial.begin(), b.partial.end(), a.partial.begin(), a.partial.end(),
                        std::back_inserter(gained));
    const bool same_kind = a.partial.empty() || b.partial.empty() || a.reduction == b.reduction;
    const bool same_partial = dropped.empty() && gained.empty() && same_kind;
    Picoseconds best = kNever;
    if (same_partial && !replaced && removed.empty()) best = 0;
    if (same_partial && !replaced && added.empty() && removed_in_a_row) {
      best = std::min(best, cost(CollectiveKind::kAllGather, removed, bytes_ / shards_[to]));
    }
    if (same_partial && !replaced && removed == added && removed_in_a_row && added_in_a_row) {
      best = std::min(best, cost(CollectiveKind::kAllToAll, removed, shard * num_pieces(removed)));
    }
    if (same_kind && gained.empty() && !dropped.empty() && removed.empty()) {
      if (added.empty()) best = std::min(best, cost(CollectiveKind::kAllReduce, dropped, shard));
      std::vector<AxisRef> scattered = added;
      std::sort(scattered.begin(), scattered.end());
      if (added_in_a_row && scattered == dropped) {
        best = std::min(best, cost(CollectiveKind::kReduceScatter, dropped, shard));
      }
    }
    if (same_kind && dropped.empty() && !gained.empty() && added.empty()) {
      const bool is_padding = std::all_of(removed.begin(), removed.end(), [&](const AxisRef& piece) {
        return std::find(gained.begin(), gained.end(), piece) != gained.end();
      });
      if (is_padding) best = 0;
    }
    const auto summands = [](const Grid& grid) { return num_pieces({grid.partial.begin(), grid.partial.end()}); };
    if (same_cuts && same_kind && a.partial.empty() == b.partial.empty() && summands(a) == summands(b)) {
      std::vector<AxisRef> moved;
      for (const AxisRef& piece : pieces_) {
        if (place(a, piece) != place(b, piece)) moved.push_back(piece);
      }
      best = std::min(best, cost(CollectiveKind::kCollectivePermute, moved, shard * num_pieces(moved)));
    }
    return best;
  }
  static std::pair<int, std::size_t> place(const Grid& grid, const AxisRef& piece) {
    for (std::size_t d = 0; d < grid.digits.size(); ++d) {
      for (std::size_t i = 0; i < grid.digits[d].size(); ++i) {
        if (grid.digits[d][i] == piece) return {static_cast<int>(d), i};
      }
    }
    return {grid.partial.contains(piece) ? -1 : -2, 0};
  }

  std::vector<AxisRef> pieces_;
  const CollectiveCosts& costs_;
  Bytes bytes_;
  std::vector<Grid> grids_;
  std::vector<std::int64_t> shards_;
  std::vector<Picoseconds> direct_;
};

struct ExhaustiveCase {
  const char* mesh;
  std::vector<AxisRef> pieces;
  Shape shape;
  std::vector<std::vector<std::int64_t>> digits;
  std::vector<Reduction> reductions;
};
const ExhaustiveCase kExhaustive[] = {
    {"x=2,y=2", {{0, 1, 2}, {1, 1, 2}}, {12, 8, 8}, {{2, 2}, {2, 2}, {2, 2}}, {Reduction::kSum, Reduction::kMax}},
    {"x=2,y=2,z=2", {{0, 1, 2}, {1, 1, 2}, {2, 1, 2}}, {16, 24}, {{2, 2, 2}, {2, 2, 2}}, {Reduction::kSum}},
    {"x=2,y=2,z=2", {{0, 1, 2}, {1, 1, 2}, {2, 1, 2}}, {16}, {{2, 2, 2}}, {Reduction::kSum, Reduction::kMin}},
    {"x=4,y=2", {{0, 1, 2}, {0, 2, 2}, {1, 1, 2}}, {16, 24}, {{2, 2, 2}, {2, 2, 2}}, {Reduction::kSum}},
    {"x=4,y=2", {{0, 1, 2}, {0, 2, 2}, {1, 1, 2}}, {4, 2, 2}, {{2, 2}, {2}, {2}}, {Reduction::kSum}},
    {"x=3,y=2", {{0, 1, 3}, {1, 1, 2}}, {12, 18, 6}, {{2, 3}, {2, 3}, {2, 3}}, {Reduction::kSum, Reduction::kMin}},
    {"x=2,y=3,z=2", {{0, 1, 2}, {1, 1, 3}, {2, 1, 2}}, {24, 36}, {{2, 2, 3}, {2, 2, 3}}, {Reduction::kSum}},
};
class ExhaustiveTest : public ::testing::TestWithParam<ExhaustiveCase> {};

// One closure per bound gives every answer. The triangle inequality and monotonicity in bytes are then checked on the
// planner's answers.
TEST_P(ExhaustiveTest, NoSequenceIsCheaper) {
  const auto& [text, pieces, shape, digits, reductions] = GetParam();
  const DeviceMesh mesh = DeviceMesh::parse(text);
  const std::vector<Grid> grids = all_grids(digits, pieces, reductions);
  std::vector<TensorLayout> layouts;
  for (const Grid& grid : grids) layouts.push_back(layout_of(grid, digits, mesh, shape));
  const Bytes tensor_bytes = num_bytes(shape, 4);
  // Some sources of the large ones; with SHARDPLAN_EXHAUSTIVE=1 all of them, and the triangles.
  const std::size_t stride = layouts.size() < 40 || is_exhaustive() ? 1 : layouts.size() / 6;
  // If there are many layouts, one case with equal and one with unequal links; if very many, one case.
  std::size_t num_costs = 0;
  for (const CostCase& cost : cost_cases()) {
    const std::size_t number = num_costs++;
    if (layouts.size() > 200 && number != 2 && !is_exhaustive()) continue;
    if (layouts.size() > 100 && number % 3 == 0 && !is_exhaustive()) continue;
    SCOPED_TRACE(fmt::format("{}, {}", text, cost.name));
    const Oracle oracle(pieces, grids, *cost.costs, tensor_bytes);
    RedistributionPlanner bounded(mesh, cost.costs);
    RedistributionPlanner unbounded(mesh, cost.costs, {.bounded_memory = false});
    std::map<std::int64_t, std::vector<Picoseconds>> closures;
    closures[1] = oracle.closure(1);
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      if (!closures.contains(oracle.shards(i))) closures[oracle.shards(i)] = oracle.closure(oracle.shards(i));
    }
    std::vector<std::vector<Picoseconds>> times(layouts.size());
    std::size_t above_bound = 0;
    for (std::size_t a = 0; a < layouts.size(); a += stride) {
      for (std::size_t b = 0; b < layouts.size(); ++b) {
        const std::string name = to_string(layouts[a], mesh) + " -> " + to_string(layouts[b], mesh);
        const Redistribution& plan = bounded.plan(layouts[a], layouts[b], shape, 4);
        times[a].push_back(plan.time);
        const std::int64_t least = std::min(oracle.shards(a), oracle.shards(b));
        const Picoseconds best = closures[least][a * layouts.size() + b];
        bool is_within = true;
        bool is_permuted = false;
        for (const CollectiveStep& step : plan.steps) {
          const bool is_permute = step.kind == CollectiveKind::kCollectivePermute;
          ASSERT_FALSE(is_permute && is_permuted) << name << " has two permutes in a row";
          is_permuted = is_permute;
          is_within = is_within && num_shards(step.after) >= least;
        }
        above_bound += is_within ? 0 : 1;
        if (best < Oracle::kNever) {
          ASSERT_TRUE(is_within) << name;
          ASSERT_EQ(plan.time, best) << name;
        }
        const Picoseconds free = unbounded.time(layouts[a], layouts[b], shape, 4);
        ASSERT_EQ(free, closures[1][a * layouts.size() + b]) << name;
        ASSERT_LE(plan.time, bounded.time(layouts[a], layouts[b], shape, 8)) << name;
      }
    }
    EXPECT_EQ(above_bound, 0u);
    for (std::size_t a = 0; stride == 1 && a < layouts.size(); ++a) {
      for (std::size_t b = 0; b < layouts.size(); ++b) {
        for (std::size_t c = 0; c < layouts.size(); ++c) {
          if (oracle.shards(b) < std::min(oracle.shards(a), oracle.shards(c))) continue;
          ASSERT_LE(times[a][c], times[a][b] + times[b][c])
              << to_string(layouts[a], mesh) << " -> " << to_string(layouts[b], mesh) << " -> "
              << to_string(layouts[c], mesh);
        }
      }
    }
    fmt::print("{}, {}, {}: {} layouts\n", text, shape.size(), cost.name, layouts.size());
  }
}
INSTANTIATE_TEST_SUITE_P(Meshes, ExhaustiveTest, ::testing::ValuesIn(kExhaustive));

}  // namespace
}  // namespace shardplan
