// Plans against the greedy orders of MindSpore and Shardy.

#include "layouts/greedy_redistribution.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "layouts/index_digits.h"
#include "layouts/redistribution.h"
#include "tests/layouts/all_layouts.h"
#include "tests/layouts/test_costs.h"

namespace shardplan {
namespace {

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
