// How long does it take to plan a redistribution, and by how much are the plans better than greedy ones?
//
// Costs are 10 us a hop and 10 GB/s on the outermost axis, 2 us and 100 GB/s on the others. Times are processor time of
// this thread, so that other load hardly matters. `cold` plans with a new planner each time; `warm` asks a planner that
// has planned other pairs of the shape; `known` asks again; `all` is the time of one pair when the times of all pairs
// of the layouts are asked for in turn, as when a strategy problem is built.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <time.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "layouts/redistribution/greedy_redistribution.h"
#include "layouts/redistribution/redistribution_planner.h"
#include "layouts/redistribution/search/common_refinement.h"
#include "layouts/redistribution/search/shortest_paths.h"
#include "tests/layouts/all_layouts.h"
#include "tests/layouts/test_costs.h"

namespace shardplan {
namespace {

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

struct Spread {
  std::vector<double> microseconds;

  /// Takes the fastest of several runs, to exclude other load on the machine.
  void add(const std::function<void()>& work, int runs = 1) {
    double least = 1e9;
    for (int run = 0; run < runs; ++run) {
      const double start = thread_seconds();
      work();
      least = std::min(least, thread_seconds() - start);
    }
    microseconds.push_back(least * 1e6);
  }
  std::string text() {
    std::sort(microseconds.begin(), microseconds.end());
    const auto at = [&](double share) {
      return microseconds[static_cast<std::size_t>(share * static_cast<double>(microseconds.size() - 1))];
    };
    return fmt::format("{:8.1f} {:8.1f} {:8.1f}", at(0.5), at(0.9), at(1));
  }
};

/// The least time over all states of prime pieces and digits, without the planner's limits on the size of its graphs;
/// empty if there are too many states.
std::optional<Picoseconds> exhaustive_time(const TensorLayout& from, const TensorLayout& to, const DeviceMesh& mesh,
                                           const Shape& shape, const CollectiveCosts& costs) {
  constexpr std::int64_t kMostStates = 20'000;
  const std::vector<LayoutSpace> spaces = common_spaces(from, to, mesh, shape, Refinement::kFull);
  std::int64_t states = 0;
  for (const LayoutSpace& space : spaces) {
    if (space.pieces.size() > Placement::kMostPieces || space.slots.size() > Placement::kMostSlots) return std::nullopt;
    states += num_placements(space);
  }
  if (states > kMostStates) return std::nullopt;
  RedistributionGraph graph(spaces, shape);
  const Bytes bytes = num_bytes(shape, 2);
  EdgeCosts edge_costs(graph, costs, bytes);
  PathBound bound;
  bound.least_shards = std::min(num_shards(from), num_shards(to));
  return ShortestPaths(graph, edge_costs, *graph.find(from, shape), bound).time(*graph.find(to, shape));
}

constexpr std::size_t kExhaustivePairs = 60;

struct Instance {
  const char* mesh;
  Shape shape;
  bool with_sub_axes;
  std::size_t pairs;
};
const Instance kInstances[] = {
    {"pcie=2,hccs=4", {4096, 4096}, false, 200},       {"a=2,b=2,c=2", {4096, 4096}, false, 200},
    {"a=2,b=2,c=2", {32, 16, 1024, 64}, false, 200},   {"node=8,a=2,b=4", {32, 64, 1024, 64}, false, 200},
    {"a=4,b=2,c=2,d=4", {64, 128, 64, 64}, true, 200}, {"node=16,a=4,b=2,c=8", {1024, 1024, 1024}, true, 200},
};

void run(const Instance& instance) {
  const DeviceMesh mesh = DeviceMesh::parse(instance.mesh);
  std::vector<TestCosts::Axis> links(mesh.axes().size(), {2'000'000, 10});
  links[0] = {10'000'000, 100};
  const auto costs = std::make_shared<TestCosts>(0, links);
  Random random(1);
  const auto draw = [&] {
    TensorLayout layout = random_layout(mesh, instance.shape, random, instance.with_sub_axes, false);
    if (layout.reduction != Reduction::kSum) layout.partial.clear();
    layout.reduction = Reduction::kSum;
    return layout;
  };
  std::vector<std::pair<TensorLayout, TensorLayout>> pairs;
  for (std::size_t i = 0; i < instance.pairs; ++i) {
    TensorLayout from = draw();
    pairs.emplace_back(std::move(from), draw());
  }

  Spread cold;
  std::size_t slowest = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto& [from, to] = pairs[i];
    cold.add([&] { RedistributionPlanner(mesh, costs).plan(from, to, instance.shape, 2); }, 5);
    if (cold.microseconds[i] > cold.microseconds[slowest]) slowest = i;
  }
  Spread warm;
  Spread known;
  RedistributionPlanner planner(mesh, costs);
  double sum_of_ratios = 0;
  std::size_t compared = 0;
  std::size_t wins = 0;
  for (const auto& [from, to] : pairs) {
    warm.add([&] { planner.plan(from, to, instance.shape, 2); });
  }
  for (const auto& [from, to] : pairs) {
    known.add([&] { planner.plan(from, to, instance.shape, 2); });
    const auto greedy = greedy_redistribution(from, to, instance.shape, 2, mesh, *costs);
    const Picoseconds best = planner.plan(from, to, instance.shape, 2).time;
    if (!greedy || best == 0) continue;
    ++compared;
    wins += greedy->time > best ? 1 : 0;
    sum_of_ratios += static_cast<double>(greedy->time) / static_cast<double>(best);
  }
  Spread ratios;  // the plans' times divided by the least
  double exhaustive_seconds = 0;
  std::size_t above_bound = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto& [from, to] = pairs[i];
    const Redistribution& plan = planner.plan(from, to, instance.shape, 2);
    above_bound += exceeds_larger_end(plan) ? 1 : 0;
    if (i >= kExhaustivePairs || plan.time == 0) continue;
    const double begin = thread_seconds();
    const std::optional<Picoseconds> least = exhaustive_time(from, to, mesh, instance.shape, *costs);
    if (!least) continue;
    exhaustive_seconds += thread_seconds() - begin;
    ratios.microseconds.push_back(static_cast<double>(plan.time) / static_cast<double>(*least));
  }
  RedistributionPlanner many(mesh, costs);
  std::vector<TensorLayout> layouts;
  for (std::size_t i = 0; i < 60; ++i) layouts.push_back(pairs[i].first);
  const double start = thread_seconds();
  for (const TensorLayout& from : layouts) {
    for (const TensorLayout& to : layouts) many.time(from, to, instance.shape, 2);
  }
  const double all = (thread_seconds() - start) * 1e6 / static_cast<double>(layouts.size() * layouts.size());
  std::string exhaustive = "too large";
  if (!ratios.microseconds.empty()) {
    const std::vector<double>& list = ratios.microseconds;
    double sum = 0;
    for (const double ratio : list) sum += ratio;
    exhaustive = fmt::format("{:2} {:5.3f} {:5.3f} {:8.0f}", list.size(), sum / static_cast<double>(list.size()),
                             *std::max_element(list.begin(), list.end()),
                             exhaustive_seconds * 1e6 / static_cast<double>(list.size()));
  }
  fmt::print("{:22} {:22} {} {} {} {:8.1f}   {:3.0f} % {:5.2f}   {:24} {:3}\n", instance.mesh,
             to_string(instance.shape), cold.text(), warm.text(), known.text(), all,
             100.0 * static_cast<double>(wins) / static_cast<double>(std::max<std::size_t>(compared, 1)),
             sum_of_ratios / static_cast<double>(std::max<std::size_t>(compared, 1)), exhaustive, above_bound);
  fmt::print("  slowest cold: {} -> {}\n", to_string(pairs[slowest].first, mesh),
             to_string(pairs[slowest].second, mesh));
}

}  // namespace
}  // namespace shardplan

int main() {
  fmt::print(
      "seed 1; microseconds of processor time: median, 90 %, largest; greedy: pairs where MindSpore's order is "
      "slower,\n"
      "and its time over ours on average; exhaustive: pairs, our time over the least on average and at most,\n"
      "microseconds of such a search; above: plans with a shard above the larger end\n");
  fmt::print("{:22} {:22} {:^26} {:^26} {:^26} {:>8}   {:10} {:24} {}\n", "mesh", "shape", "cold", "warm", "known",
             "all", "greedy", "exhaustive", "above");
  for (const shardplan::Instance& instance : shardplan::kInstances) shardplan::run(instance);
  return 0;
}
