// Plans against oracles that share no code with the planner: an exhaustive search over all layouts by comparing them
// pairwise, and the greedy orders of MindSpore and Shardy.

#include "layouts/redistribution.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "layouts/greedy_redistribution.h"
#include "layouts/index_digits.h"
#include "layouts/mindspore_layout.h"
#include "tests/layouts/all_layouts.h"
#include "tests/layouts/test_costs.h"

namespace shardplan {
namespace {

struct CostCase {
  const char* name;
  bool has_equal_links;
  std::shared_ptr<const CollectiveCosts> costs;
};
/// For up to four axes.
std::vector<CostCase> cost_cases() {
  using Axes = std::vector<TestCosts::Axis>;
  const auto made = [](Picoseconds launch, Axes axes) { return std::make_shared<TestCosts>(launch, std::move(axes)); };
  return {
      {"bandwidth only", true, made(0, Axes(4, {0, 1}))},
      {"launch and hops", true, made(1000, Axes(4, {50, 1}))},
      {"slow outer axis", false, made(100, {{200, 10}, {20, 1}, {20, 1}, {20, 1}})},
      {"slow inner axis", false, made(0, {{0, 1}, {0, 8}, {0, 3}, {0, 2}})},
  };
}

bool is_exhaustive() { return std::getenv("SHARDPLAN_EXHAUSTIVE") != nullptr; }

std::vector<std::string> kinds(const Redistribution& plan) {
  std::vector<std::string> result;
  for (const CollectiveStep& step : plan.steps) result.emplace_back(to_string(step.kind));
  return result;
}

TEST(RedistributionTest, TheExampleOfTheManual) {
  const DeviceMesh mesh = DeviceMesh::parse("x=2,y=4");
  RedistributionPlanner planner(mesh, even_costs(2));
  const Redistribution& plan =
      planner.plan(parse_layout("[{x}, {y}]", mesh), parse_layout("[{y}, {x}]", mesh), {16, 8}, 4);
  ASSERT_EQ(kinds(plan), (std::vector<std::string>{"all_to_all", "collective_permute"}));
  EXPECT_EQ(mesh.to_string(plan.steps[0].axes), "{y:(2)2}");
  EXPECT_EQ(plan.steps[0].from_dim, 1u);
  EXPECT_EQ(plan.steps[0].to_dim, 0u);
  EXPECT_EQ(to_string(plan.steps[0].after, mesh), "[{x, y:(2)2}, {y:(1)2}]");
  EXPECT_EQ(plan.steps[0].local_shape, (Shape{4, 4}));
  EXPECT_EQ(plan.steps[0].sent, 32);
  EXPECT_EQ(plan.steps[0].time, 100 + 10 + 32);
  EXPECT_EQ(mesh.to_string(plan.steps[1].axes), "{x, y:(1)2}");
  EXPECT_EQ(plan.steps[1].time, 100 + 10 + 64);
  EXPECT_EQ(plan.sent, 96);
  EXPECT_EQ(plan.peak, 128);
}

/// Table 1.F with AllToAll, and what a single collective must do.
struct StepsCase {
  const char* name;
  const char* mesh;
  Shape shape;
  const char* from;
  const char* to;
  std::vector<std::string> kinds;
};
const StepsCase kSteps[] = {
    {"X1", "d=8", {512, 1024}, "[{d}, {}]", "[{}, {}]", {"all_gather"}},
    {"X3", "d=8", {512, 1024}, "[{}, {}]", "[{d}, {}]", {"slice"}},
    {"X5", "d=8", {512, 1024}, "[{d}, {}]", "[{}, {d}]", {"all_to_all"}},
    {"X7", "a=2,b=4", {64, 64}, "[{a}, {b}]", "[{a}, {}]", {"all_gather"}},
    {"X9", "a=2,b=4", {64, 64}, "[{a}, {}]", "[{a}, {b}]", {"slice"}},
    {"X17", "a=16", {512, 1024}, "[{a}, {}]", "[{}, {a}]", {"all_to_all"}},
    {"two_axes_in_one_gather", "a=2,b=4", {64, 64}, "[{a, b}, {}]", "[{}, {}]", {"all_gather"}},
    {"two_axes_in_one_all_to_all", "a=2,b=4", {64, 64}, "[{a, b}, {}]", "[{}, {a, b}]", {"all_to_all"}},
    {"two_axes_in_one_all_reduce", "a=2,b=4", {64}, "[{}] unreduced={a, b}", "[{}]", {"all_reduce"}},
    {"two_axes_in_one_reduce_scatter", "a=2,b=4", {64}, "[{}] unreduced={a, b}", "[{b, a}]", {"reduce_scatter"}},
    {"two_slices_of_a_dimension_are_one", "a=2,b=4", {64}, "[{}]", "[{b, a}]", {"slice"}},
    {"two_slices_of_two_dimensions", "a=2,b=4", {64, 64}, "[{}, {}]", "[{b}, {a}]", {"slice", "slice"}},
    {"order", "a=2,b=4", {64}, "[{a, b}]", "[{b, a}]", {"collective_permute"}},
    {"replicated_to_sum", "a=2,b=4", {64}, "[{}]", "[{}] unreduced={a, b}", {"to_partial"}},
    {"sharded_to_max", "a=2", {64}, "[{a}]", "[{}] unreduced={a} unreduced_kind=max", {"to_partial"}},
    {"sum_to_max",
     "a=2",
     {64},
     "[{}] unreduced={a}",
     "[{}] unreduced={a} unreduced_kind=max",
     {"reduce_scatter", "to_partial"}},
    {"nothing_to_do", "a=2,b=4", {64}, "[{b:(1)2, b:(2)2}]", "[{b}]", {}},
    {"part_is_all_that_is_cut", "a=2", {8}, "[(2:{}, 4:{a})]", "[{}]", {"all_gather"}},
    {"no_common_refinement", "a=6", {36}, "[{a:(1)2}]", "[{a:(1)3}]", {"slice", "all_gather"}},
};
TEST(RedistributionTest, TakesTheStepsThatAreEnough) {
  for (const StepsCase& c : kSteps) {
    const DeviceMesh mesh = DeviceMesh::parse(c.mesh);
    RedistributionPlanner planner(mesh, even_costs(mesh.axes().size()));
    const Redistribution& plan = planner.plan(parse_layout(c.from, mesh), parse_layout(c.to, mesh), c.shape, 4);
    EXPECT_EQ(kinds(plan), c.kinds) << c.name;
  }
}

TEST(RedistributionTest, AnswersDoNotDependOnWhatWasAskedBefore) {
  const DeviceMesh mesh = DeviceMesh::parse("x=2,y=2,z=2");
  const Shape shape = {16, 16};
  const auto layouts = all_layouts(mesh, shape, whole_axes(mesh), {});
  RedistributionPlanner forwards(mesh, even_costs(3));
  RedistributionPlanner backwards(mesh, even_costs(3));
  for (std::size_t i = layouts.size(); i-- > 0;) {
    for (std::size_t j = layouts.size(); j-- > 0; j -= std::min<std::size_t>(j, 2))
      backwards.plan(layouts[i], layouts[j], shape, 4);
  }
  const auto told = [&](const Redistribution& plan) {
    std::string text;
    for (const CollectiveStep& step : plan.steps) {
      text += fmt::format("{} {} {}; ", to_string(step.kind), mesh.to_string(step.axes), to_string(step.after, mesh));
    }
    return text;
  };
  for (const TensorLayout& from : layouts) {
    for (const TensorLayout& to : layouts) {
      const Redistribution& plan = forwards.plan(from, to, shape, 4);
      ASSERT_EQ(told(plan), told(backwards.plan(from, to, shape, 4)));
      ASSERT_EQ(plan.time, backwards.time(from, to, shape, 4));
    }
  }
}

// ---- The exhaustive oracle ----

/// A layout as lists: prime pieces by dimension, and the partial ones.
struct Lists {
  std::vector<std::vector<AxisRef>> dimensions;
  std::set<AxisRef> partial;
  Reduction reduction = Reduction::kSum;
};

Lists lists_of(const TensorLayout& layout, const std::vector<AxisRef>& pieces) {
  const auto split = [&](const std::vector<AxisRef>& axes) {
    std::vector<AxisRef> result;
    for (const AxisRef& axis : axes) {
      for (const AxisRef& piece : pieces) {
        if (piece.axis == axis.axis && piece.before >= axis.before && piece.before < axis.before * axis.size) {
          result.push_back(piece);
        }
      }
    }
    return result;
  };
  Lists lists;
  for (const DimensionLayout& dimension : layout.dimensions) lists.dimensions.push_back(split(dimension.parts[0].axes));
  for (const AxisRef& piece : split(layout.partial)) lists.partial.insert(piece);
  lists.reduction = layout.reduction;
  return lists;
}

/// A layout on a grid of digits: what stands in each digit of each dimension (a piece, or nothing), and the partial
/// pieces.
struct Grid {
  std::vector<std::vector<std::optional<AxisRef>>> digits;  // by dimension
  std::set<AxisRef> partial;
  Reduction reduction = Reduction::kSum;
};

/// All of them, where dimension d has digits of the given sizes and a rest. A digit is cut by a piece of just its size.
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
  layout.partial.assign(grid.partial.begin(), grid.partial.end());
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

  /// All pairs over states with at least so many shards (Floyd and Warshall).
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
  Picoseconds price(CollectiveKind kind, std::vector<AxisRef> axes, Bytes group_bytes) const {
    std::sort(axes.begin(), axes.end());
    return costs_.time(kind, joined(axes), group_bytes);
  }

  /// The cheapest single collective, or any number of free steps, found by comparing the two.
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
      best = std::min(best, price(CollectiveKind::kAllGather, removed, bytes_ / shards_[to]));
    }
    if (same_partial && !replaced && removed == added && removed_in_a_row && added_in_a_row) {
      best = std::min(best, price(CollectiveKind::kAllToAll, removed, shard * num_pieces(removed)));
    }
    if (same_kind && gained.empty() && !dropped.empty() && removed.empty()) {
      if (added.empty()) best = std::min(best, price(CollectiveKind::kAllReduce, dropped, shard));
      std::vector<AxisRef> scattered = added;
      std::sort(scattered.begin(), scattered.end());
      if (added_in_a_row && scattered == dropped) {
        best = std::min(best, price(CollectiveKind::kReduceScatter, dropped, shard));
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
      best = std::min(best, price(CollectiveKind::kCollectivePermute, moved, shard * num_pieces(moved)));
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

// One closure per bound gives every answer. Triangle inequality and monotony in bytes are then checked on the planner's
// answers.
TEST_P(ExhaustiveTest, NoSequenceIsCheaper) {
  const auto& [text, pieces, shape, digits, reductions] = GetParam();
  const DeviceMesh mesh = DeviceMesh::parse(text);
  const std::vector<Grid> grids = all_grids(digits, pieces, reductions);
  std::vector<TensorLayout> layouts;
  for (const Grid& grid : grids) layouts.push_back(layout_of(grid, digits, mesh, shape));
  Bytes tensor_bytes = 4;
  for (const std::int64_t extent : shape) tensor_bytes *= extent;
  // Some sources of the large ones; all of them, and the triangles, with SHARDPLAN_EXHAUSTIVE=1.
  const std::size_t stride = layouts.size() < 40 || is_exhaustive() ? 1 : layouts.size() / 6;
  std::size_t num_costs = 0;
  for (const CostCase& cost : cost_cases()) {
    if (layouts.size() > 200 && num_costs++ != 2 && !is_exhaustive()) continue;
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
    std::size_t most_permutes = 0;
    std::size_t above_bound = 0;
    for (std::size_t a = 0; a < layouts.size(); a += stride) {
      for (std::size_t b = 0; b < layouts.size(); ++b) {
        const std::string name = to_string(layouts[a], mesh) + " -> " + to_string(layouts[b], mesh);
        const Redistribution& plan = bounded.plan(layouts[a], layouts[b], shape, 4);
        times[a].push_back(plan.time);
        const std::int64_t least = std::min(oracle.shards(a), oracle.shards(b));
        const Picoseconds best = closures[least][a * layouts.size() + b];
        std::size_t permutes = 0;
        bool is_within = true;
        for (const CollectiveStep& step : plan.steps) {
          permutes += step.kind == CollectiveKind::kCollectivePermute ? 1 : 0;
          is_within = is_within && num_shards(step.after) >= least;
        }
        most_permutes = std::max(most_permutes, permutes);
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
    // Between unequal links a shard may be carried in two hops.
    EXPECT_LE(most_permutes, cost.has_equal_links ? 1u : 2u);
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

// ---- Greedy oracles ----

/// All maps of device dimensions to n tensor dimensions, on a cube of twos.
std::map<std::size_t, int> greedy_histogram(std::size_t n) {
  std::vector<MeshAxis> axes;
  for (std::size_t i = 0; i < n; ++i) axes.push_back({fmt::format("a{}", i), 2});
  const DeviceMesh mesh(axes);
  const Shape shape(n, 8);
  std::vector<TensorLayout> maps;
  for (const TensorLayout& layout : all_layouts(mesh, shape, whole_axes(mesh), {})) {
    const bool is_map = std::all_of(layout.dimensions.begin(), layout.dimensions.end(),
                                    [](const DimensionLayout& d) { return d.parts[0].axes.size() <= 1; });
    const bool is_whole = std::all_of(layout.dimensions.begin(), layout.dimensions.end(),
                                      [](const DimensionLayout& d) { return d.num_pieces() <= 2; });
    if (is_map && is_whole) maps.push_back(layout);
  }
  const TestCosts costs(0, std::vector<TestCosts::Axis>(n));
  std::map<std::size_t, int> histogram;
  for (const TensorLayout& from : maps) {
    for (const TensorLayout& to : maps) {
      if (from != to) ++histogram[greedy_redistribution(from, to, shape, 4, mesh, costs)->steps.size()];
    }
  }
  return histogram;
}

TEST(GreedyRedistributionTest, HasMindSporesFingerprint) {
  EXPECT_EQ(greedy_histogram(2), (std::map<std::size_t, int>{{1, 20}, {2, 20}, {3, 2}}));
  EXPECT_EQ(greedy_histogram(3), (std::map<std::size_t, int>{{1, 180}, {2, 450}, {3, 444}, {4, 48}}));
}

/// Shardy's order on meshes of twos: slice what is missing, permute so that each dimension begins as it ends, exchange
/// what is in the wrong dimension, gather the rest. Collectives that differ only in their axes are one.
Picoseconds shardy_time(const Lists& from, const Lists& to, const CollectiveCosts& costs, Bytes tensor_bytes,
                        const std::vector<AxisRef>& pieces, std::int64_t& least_shards) {
  std::vector<std::vector<AxisRef>> now = from.dimensions;
  const auto shards = [&] {
    std::int64_t product = 1;
    for (const auto& list : now) product *= num_pieces(list);
    return product;
  };
  const auto price = [&](CollectiveKind kind, std::vector<AxisRef> axes, Bytes bytes) {
    std::sort(axes.begin(), axes.end());
    return costs.time(kind, joined(axes), bytes);
  };
  std::set<AxisRef> used;
  for (const auto& list : now) used.insert(list.begin(), list.end());
  least_shards = shards();
  Picoseconds time = 0;
  for (std::size_t d = 0; d < now.size(); ++d) {
    std::vector<AxisRef> free;
    for (const AxisRef& piece : to.dimensions[d]) {
      if (!used.contains(piece)) free.push_back(piece);
    }
    for (const AxisRef& piece : pieces) {
      if (!used.contains(piece) && std::find(free.begin(), free.end(), piece) == free.end()) free.push_back(piece);
    }
    for (const AxisRef& piece : free) {
      if (now[d].size() >= to.dimensions[d].size()) break;
      now[d].push_back(piece);
      used.insert(piece);
    }
  }
  // What the permute must reach: heads as they end, then what is to be gathered, then what is to be exchanged.
  std::vector<std::vector<AxisRef>> wanted(now.size());
  std::vector<std::pair<std::size_t, AxisRef>> missing;  // by dimension, in order
  std::set<AxisRef> final_pieces;
  for (std::size_t d = 0; d < now.size(); ++d) {
    final_pieces.insert(to.dimensions[d].begin(), to.dimensions[d].end());
    for (std::size_t i = 0; i < to.dimensions[d].size(); ++i) {
      if (i < now[d].size()) {
        wanted[d].push_back(to.dimensions[d][i]);
      } else {
        missing.emplace_back(d, to.dimensions[d][i]);
      }
    }
  }
  std::vector<AxisRef> rest;  // to be gathered
  for (const AxisRef& piece : pieces) {
    if (used.contains(piece) && !final_pieces.contains(piece)) rest.push_back(piece);
  }
  std::size_t surplus = 0;
  for (std::size_t d = 0; d < now.size(); ++d) surplus += now[d].size() - wanted[d].size();
  for (const AxisRef& piece : pieces) {
    // A piece that the target wants, but which a slice has replaced by another, waits unused; then others are gathered.
    if (rest.size() + missing.size() >= surplus) break;
    if (!final_pieces.contains(piece) && std::find(rest.begin(), rest.end(), piece) == rest.end())
      rest.push_back(piece);
  }
  std::vector<std::vector<std::pair<std::size_t, AxisRef>>> moves(now.size());
  for (std::size_t d = 0; d < now.size(); ++d) {
    while (wanted[d].size() < now[d].size() && !rest.empty() &&
           (now[d].size() - wanted[d].size() > missing.size() || missing.empty())) {
      wanted[d].push_back(rest.back());
      rest.pop_back();
    }
    std::vector<std::pair<std::size_t, AxisRef>> taken;
    while (wanted[d].size() + taken.size() < now[d].size() && !missing.empty()) {
      taken.push_back(missing.back());  // the last of a dimension is appended last
      missing.pop_back();
    }
    std::reverse(taken.begin(), taken.end());
    for (const auto& move : taken) wanted[d].push_back(move.second);
    moves[d] = taken;
    while (wanted[d].size() < now[d].size() && !rest.empty()) {
      wanted[d].insert(wanted[d].end() - static_cast<std::ptrdiff_t>(taken.size()), rest.back());
      rest.pop_back();
    }
  }
  if (wanted != now) {
    Lists a{now, {}, {}};
    Lists b{wanted, {}, {}};
    std::vector<AxisRef> moved;
    const auto place = [](const Lists& lists, const AxisRef& piece) {
      for (std::size_t d = 0; d < lists.dimensions.size(); ++d) {
        for (std::size_t i = 0; i < lists.dimensions[d].size(); ++i) {
          if (lists.dimensions[d][i] == piece) return std::pair<std::size_t, std::size_t>(d, i);
        }
      }
      return std::pair<std::size_t, std::size_t>(99, 0);
    };
    for (const AxisRef& piece : pieces) {
      if (place(a, piece) != place(b, piece)) moved.push_back(piece);
    }
    time += price(CollectiveKind::kCollectivePermute, moved, tensor_bytes / shards() * num_pieces(moved));
    now = wanted;
  }
  // Runs that leave one dimension for another are one all_to_all if they are appended in their order.
  for (std::size_t d = 0; d < now.size(); ++d) {
    while (!moves[d].empty()) {
      const std::size_t target = moves[d].back().first;
      std::vector<AxisRef> axes;
      while (!moves[d].empty() && moves[d].back().first == target) {
        axes.insert(axes.begin(), moves[d].back().second);
        moves[d].pop_back();
      }
      time += price(CollectiveKind::kAllToAll, axes, tensor_bytes / shards() * num_pieces(axes));
    }
  }
  for (std::size_t d = 0; d < now.size(); ++d) {
    std::vector<AxisRef> gathered;
    for (const AxisRef& piece : wanted[d]) {
      if (!final_pieces.contains(piece)) gathered.push_back(piece);
    }
    if (gathered.empty()) continue;
    const std::int64_t after = shards() / num_pieces(gathered);
    for (const AxisRef& piece : gathered) now[d].erase(std::find(now[d].begin(), now[d].end(), piece));
    time += price(CollectiveKind::kAllGather, gathered, tensor_bytes / after);
    least_shards = std::min(least_shards, after);
  }
  return time;
}

struct Wins {
  std::size_t pairs = 0;
  std::size_t wins = 0;
  double sum_of_ratios = 0;
  double largest_ratio = 1;

  void add(Picoseconds best, Picoseconds greedy) {
    ++pairs;
    if (best == greedy) return;
    ++wins;
    const double ratio = static_cast<double>(greedy) / static_cast<double>(std::max<Picoseconds>(best, 1));
    sum_of_ratios += ratio;
    largest_ratio = std::max(largest_ratio, ratio);
  }
  std::string text() const {
    return fmt::format("{} of {} pairs, there {:.2f} times as fast on average, at most {:.1f} times", wins, pairs,
                       wins == 0 ? 1.0 : sum_of_ratios / static_cast<double>(wins), largest_ratio);
  }
};

TEST(GreedyRedistributionTest, IsNeverBetter) {
  struct Case {
    const char* mesh;
    Shape shape;
    std::vector<AxisRef> twos;  // for Shardy's order; empty where the mesh is not of twos
  };
  const Case cases[] = {
      {"x=2,y=2", {12, 8, 8}, {{0, 1, 2}, {1, 1, 2}}},
      {"x=2,y=2,z=2", {16, 16}, {{0, 1, 2}, {1, 1, 2}, {2, 1, 2}}},
      {"x=2,y=2,z=2", {16, 16, 16}, {{0, 1, 2}, {1, 1, 2}, {2, 1, 2}}},
      {"x=4,y=2", {16, 16, 16}, {{0, 1, 2}, {0, 2, 2}, {1, 1, 2}}},
      {"x=3,y=2", {12, 18, 6}, {}},
      {"x=2,y=3,z=2", {24, 36}, {}},
  };
  for (const CostCase& cost : cost_cases()) {
    Wins mindspore;
    Wins shardy;
    for (const auto& [text, shape, twos] : cases) {
      const DeviceMesh mesh = DeviceMesh::parse(text);
      const std::vector<TensorLayout> layouts = all_layouts(mesh, shape, whole_axes(mesh), {});
      RedistributionPlanner bounded(mesh, cost.costs);
      RedistributionPlanner unbounded(mesh, cost.costs, {.bounded_memory = false});
      Bytes tensor_bytes = 4;
      for (const std::int64_t extent : shape) tensor_bytes *= extent;
      // Every twelfth pair of the large products; all of them with SHARDPLAN_EXHAUSTIVE=1.
      const std::size_t stride = layouts.size() < 30 || is_exhaustive() ? 1 : 12;
      std::size_t pair = 0;
      for (const TensorLayout& from : layouts) {
        for (const TensorLayout& to : layouts) {
          if (pair++ % stride != 0) continue;
          const std::int64_t bound = std::min(num_shards(from), num_shards(to));
          const auto best = [&](std::int64_t least_shards) {
            return (least_shards >= bound ? bounded : unbounded).time(from, to, shape, 4);
          };
          const Redistribution greedy = *greedy_redistribution(from, to, shape, 4, mesh, *cost.costs);
          std::int64_t least_shards = bound;
          for (const CollectiveStep& step : greedy.steps) least_shards = std::min(least_shards, num_shards(step.after));
          ASSERT_LE(best(least_shards), greedy.time) << to_string(from, mesh) << " -> " << to_string(to, mesh);
          mindspore.add(best(least_shards), greedy.time);
          if (twos.empty()) continue;
          const Picoseconds time =
              shardy_time(lists_of(from, twos), lists_of(to, twos), *cost.costs, tensor_bytes, twos, least_shards);
          ASSERT_LE(best(least_shards), time) << to_string(from, mesh) << " -> " << to_string(to, mesh);
          shardy.add(best(least_shards), time);
        }
      }
    }
    fmt::print("{}: beats MindSpore's order on {}\n", cost.name, mindspore.text());
    fmt::print("{}: beats Shardy's order on {}\n", cost.name, shardy.text());
  }
}

TEST(GreedyRedistributionTest, IsNeverBetterOnFourAxesWithSubAxes) {
  const DeviceMesh mesh = DeviceMesh::parse("a=4,b=2,c=2,d=4");
  const Shape shape = {64, 128, 64, 2};
  Random random(31);
  for (const CostCase& cost : cost_cases()) {
    Wins wins;
    RedistributionPlanner bounded(mesh, cost.costs);
    RedistributionPlanner unbounded(mesh, cost.costs, {.bounded_memory = false});
    for (int i = 0; i < 40; ++i) {
      TensorLayout ends[2];
      for (TensorLayout& end : ends) {
        end = random_layout(mesh, shape, random, true, false);
        end.partial.clear();
        end.reduction = Reduction::kSum;
      }
      const Redistribution greedy = *greedy_redistribution(ends[0], ends[1], shape, 4, mesh, *cost.costs);
      bool is_within = true;
      for (const CollectiveStep& step : greedy.steps) {
        is_within = is_within && num_shards(step.after) >= std::min(num_shards(ends[0]), num_shards(ends[1]));
      }
      const Picoseconds best = (is_within ? bounded : unbounded).time(ends[0], ends[1], shape, 4);
      ASSERT_LE(best, greedy.time) << to_string(ends[0], mesh) << " -> " << to_string(ends[1], mesh);
      wins.add(best, greedy.time);
    }
    fmt::print("{}, four axes with sub-axes: beats MindSpore's order on {}\n", cost.name, wins.text());
  }
}

}  // namespace
}  // namespace shardplan
