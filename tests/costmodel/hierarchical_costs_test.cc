// Collective times compared with a step-by-step simulation (message_simulation.h), and their guarantees.
#include "costmodel/hierarchical_costs.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/integer.h"
#include "base/random.h"
#include "costmodel/cluster/cluster_mesh.h"
#include "tests/costmodel/message_simulation.h"

namespace shardplan {
namespace {

constexpr Picoseconds kUs = 1'000'000;
constexpr std::int64_t kGB = 1'000'000'000;

Cluster cluster_of(std::vector<ClusterLevel> levels) {
  Cluster cluster;
  cluster.name = "made-up";
  cluster.levels = std::move(levels);
  return cluster;
}

ClusterLevel level(std::string name, std::int64_t count, Picoseconds latency, std::int64_t bandwidth,
                   LinkPer link_per = LinkPer::kDevice) {
  ClusterLevel result;
  result.name = std::move(name);
  result.count = count;
  result.latency = latency;
  result.bandwidth = bandwidth;
  result.link_per = link_per;
  return result;
}

struct Case {
  const char* name;
  std::vector<ClusterLevel> levels;
  std::vector<MeshAxis> axes;  // empty: the levels
  std::vector<AxisRef> along;
};

std::vector<Case> cases() {
  const auto device = LinkPer::kDevice;
  const auto group = LinkPer::kGroup;
  const std::vector<ClusterLevel> one = {level("link", 6, 5 * kUs, 70 * kGB, device)};
  const std::vector<ClusterLevel> halves = {level("pcie", 2, 10 * kUs, 25 * kGB, group),
                                            level("hccs", 4, 5 * kUs, 72 * kGB)};
  const std::vector<ClusterLevel> nodes = {level("node", 3, 14 * kUs, 21 * kGB, group),
                                           level("nvlink", 8, 4 * kUs, 232 * kGB)};
  const std::vector<ClusterLevel> nics = {level("ib", 2, 14 * kUs, 21 * kGB), level("nvlink", 8, 4 * kUs, 232 * kGB)};
  const std::vector<ClusterLevel> three = {level("roce", 2, 20 * kUs, 11 * kGB),
                                           level("pcie", 2, 10 * kUs, 25 * kGB, group),
                                           level("hccs", 4, 5 * kUs, 72 * kGB)};
  const std::vector<ClusterLevel> slow_inside = {level("out", 4, 1 * kUs, 90 * kGB, group),
                                                 level("in", 3, 9 * kUs, 3 * kGB, group)};
  return {
      {"one_level", one, {}, {{0, 1, 6}}},
      {"part_of_one_level", one, {}, {{0, 2, 3}}},
      {"both_halves", halves, {}, {{0, 1, 2}, {1, 1, 4}}},
      {"across_the_halves", halves, {}, {{0, 1, 2}}},
      {"across_and_half_of_a_ring", halves, {}, {{0, 1, 2}, {1, 1, 2}}},
      {"one_axis_over_two_levels", halves, {{"all", 8}}, {{0, 1, 8}}},
      {"dp_over_nodes_and_part_of_a_node", nodes, {{"dp", 6}, {"mp", 4}}, {{0, 1, 6}}},
      {"mp_within_a_node", nodes, {{"dp", 6}, {"mp", 4}}, {{1, 1, 4}}},
      {"outer_part_of_dp", nodes, {{"dp", 6}, {"mp", 4}}, {{0, 1, 3}}},
      {"a_link_per_device", nics, {}, {{0, 1, 2}, {1, 1, 8}}},
      {"a_link_per_device_split", nics, {}, {{0, 1, 2}, {1, 4, 2}}},
      {"three_levels", three, {}, {{0, 1, 2}, {1, 1, 2}, {2, 1, 4}}},
      {"outer_two_of_three", three, {}, {{0, 1, 2}, {1, 1, 2}}},
      {"outermost_and_innermost", three, {}, {{0, 1, 2}, {2, 1, 4}}},
      {"slow_inside", slow_inside, {}, {{0, 1, 4}, {1, 1, 3}}},
  };
}

Groups places(const Cluster& cluster, const DeviceMesh& mesh, const std::vector<AxisRef>& along) {
  Groups groups = mesh.groups(along);
  const std::vector<std::int64_t> positions = point_positions(cluster, mesh);
  if (positions.empty()) return groups;
  for (auto& group : groups) {
    for (std::int64_t& point : group) point = positions[static_cast<std::size_t>(point)];
  }
  return groups;
}

#define EXPECT_BETWEEN(low, value, high) \
  do {                                   \
    EXPECT_LE(low, value) << where;      \
    EXPECT_LE(value, high) << where;     \
  } while (false)

TEST(HierarchicalCosts, EqualASimulationOfEveryMessage) {
  for (const Case& test : cases()) {
    const Cluster cluster = cluster_of(test.levels);
    const DeviceMesh mesh = test.axes.empty() ? make_mesh(cluster) : make_mesh(cluster, test.axes);
    const HierarchicalCosts costs(cluster, mesh);
    const Groups groups = places(cluster, mesh, test.along);
    for (const std::int64_t bytes :
         {std::int64_t{1}, std::int64_t{1000}, std::int64_t{65'536}, std::int64_t{28'311'553}, 3 * kGB}) {
      const std::string where = fmt::format("{}, {} bytes", test.name, bytes);
      const auto time = [&](CollectiveKind kind) { return costs.time(kind, test.along, bytes); };

      const Simulated scatter = simulate_reduce_scatter(cluster, groups, bytes);
      EXPECT_BETWEEN(scatter.time.ceil(), time(CollectiveKind::kReduceScatter), scatter.time.ceil() + scatter.stages);
      EXPECT_EQ(time(CollectiveKind::kAllGather), time(CollectiveKind::kReduceScatter)) << where;

      const Simulated flat = simulate_flat_all_reduce(cluster, groups, bytes);
      const Fraction twice = scatter.time * 2;
      const Fraction reduce = flat.time < twice ? flat.time : twice;
      EXPECT_BETWEEN(reduce.ceil(), time(CollectiveKind::kAllReduce), reduce.ceil() + 2 * scatter.stages);

      const Simulated staged = simulate_staged_all_to_all(cluster, groups, bytes);
      const Simulated direct = simulate_direct_all_to_all(cluster, groups, bytes);
      const Fraction all_to_all = direct.time < staged.time ? direct.time : staged.time;
      EXPECT_BETWEEN(all_to_all.ceil(), time(CollectiveKind::kAllToAll), all_to_all.ceil() + staged.stages);

      // Every device sends its piece to the member half-way around the outermost level.
      std::vector<Message> messages;
      for (const auto& group : groups) {
        for (std::size_t i = 0; i < group.size(); ++i)
          messages.push_back({group[i], group[(i + group.size() / 2) % group.size()]});
      }
      const Fraction permute =
          Simulation(cluster).step(messages, Fraction::of(bytes, static_cast<Int128>(groups.front().size())));
      if (groups.front().size() % 2 == 0) {
        EXPECT_EQ(time(CollectiveKind::kCollectivePermute), permute.ceil()) << where;
      }
      EXPECT_EQ(time(CollectiveKind::kSlice), 0);
      EXPECT_EQ(time(CollectiveKind::kToPartial), 0);
    }
  }
}

// A group of p out of n devices has p - 1 of each device's n - 1 links.
TEST(HierarchicalCosts, GroupsOfAFullMeshUseTheLinksBetweenTheirMembers) {
  Cluster mesh = cluster_of({level("xgmi", 8, 0, 70 * kGB, LinkPer::kDevice)});
  mesh.levels[0].topology = Topology::kFullMesh;
  Cluster one_link = mesh;
  one_link.levels[0] = level("xgmi", 8, 0, 10 * kGB, LinkPer::kDevice);
  const DeviceMesh devices({{"a", 2}, {"b", 4}});
  const HierarchicalCosts of_mesh(mesh, devices), of_link(one_link, devices);
  const auto time = [](const HierarchicalCosts& costs, CollectiveKind kind, const std::vector<AxisRef>& axes) {
    return costs.time(kind, axes, 84'000'000);
  };
  const std::vector<AxisRef> pair{{0, 1, 2}}, four{{1, 1, 4}}, all{{0, 1, 2}, {1, 1, 4}};
  for (const CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
                                    CollectiveKind::kAllReduce, CollectiveKind::kAllToAll}) {
    EXPECT_EQ(time(of_mesh, kind, pair), time(of_link, kind, pair));
    EXPECT_EQ(3 * time(of_mesh, kind, four), time(of_link, kind, four));
    EXPECT_EQ(7 * time(of_mesh, kind, all), time(of_link, kind, all));
  }
  for (const std::vector<AxisRef>& axes : {pair, four, all}) {
    EXPECT_EQ(time(of_mesh, CollectiveKind::kCollectivePermute, axes),
              time(of_link, CollectiveKind::kCollectivePermute, axes));
  }
  EXPECT_EQ(take_devices(mesh, 4).levels[0].bandwidth, 30 * kGB);
}

/// A random cluster, with switches, rings and lines, of up to three levels and up to about a hundred devices.
Cluster random_cluster(Random& random) {
  std::vector<ClusterLevel> levels;
  const auto num_levels = 1 + random.below(3);
  for (std::size_t i = 0; i < num_levels; ++i) {
    constexpr std::int64_t kCounts[] = {1, 2, 2, 3, 4, 4, 6, 8};
    levels.push_back(level(fmt::format("l{}", i), kCounts[random.below(num_levels == 3 ? 6 : 8)],
                           static_cast<Picoseconds>(random.below(20)) * kUs,
                           static_cast<std::int64_t>(1 + random.below(300)) * kGB,
                           random.below(2) == 0 ? LinkPer::kDevice : LinkPer::kGroup));
    if (levels.back().link_per == LinkPer::kDevice && random.below(2) == 0) {
      levels.back().topology = random.below(2) == 0 ? Topology::kRing : Topology::kLine;
    }
    if (random.below(2) == 0) {
      levels.back().protocols = {
          {static_cast<Picoseconds>(random.below(5)) * kUs, static_cast<std::int64_t>(1 + random.below(1'000'000))}};
    }
  }
  Cluster cluster = cluster_of(levels);
  cluster.collectives.launch = static_cast<Picoseconds>(random.below(3)) * kUs;
  cluster.collectives.has_rings_and_trees = random.below(2) == 0;
  return cluster;
}

/// Axes whose product is the number of devices, in random factors.
std::vector<MeshAxis> random_axes(Random& random, std::int64_t devices) {
  std::vector<std::int64_t> factors;
  for (std::int64_t factor = 2; devices > 1;) {
    if (devices % factor == 0) {
      factors.push_back(factor);
      devices /= factor;
    } else {
      ++factor;
    }
  }
  for (std::size_t i = factors.size(); i > 1; --i) std::swap(factors[i - 1], factors[random.below(i)]);
  std::vector<MeshAxis> axes;
  for (const std::int64_t factor : factors) {
    if (axes.empty() || random.below(2) == 0) {
      axes.push_back({fmt::format("a{}", axes.size()), factor});
    } else {
      axes.back().size *= factor;
    }
  }
  return axes;
}

/// Some axes, whole or in part.
std::vector<AxisRef> random_along(Random& random, const DeviceMesh& mesh) {
  std::vector<AxisRef> along;
  for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
    if (random.below(3) == 0) continue;
    const std::int64_t size = mesh.axes()[axis].size;
    std::vector<AxisRef> choices;
    for (std::int64_t before = 1; before <= size; ++before) {
      for (std::int64_t part = 2; part <= size; ++part) {
        if (size % (before * part) == 0) choices.push_back({static_cast<std::uint32_t>(axis), before, part});
      }
    }
    along.push_back(choices[random.below(choices.size())]);
  }
  return along;
}

TEST(GroupSpan, ArithmeticOnAxesEqualsWalkingAllGroups) {
  Random random(1);
  int num_uniform = 0;
  for (int round = 0; round < 400; ++round) {
    const Cluster cluster = random_cluster(random);
    const DeviceMesh mesh(random_axes(random, cluster.num_devices()));
    const std::vector<AxisRef> along = random_along(random, mesh);
    std::vector<std::int64_t> identity(static_cast<std::size_t>(cluster.num_devices()));
    std::iota(identity.begin(), identity.end(), 0);
    const GroupSpan walked = group_span(cluster, mesh, identity, along);
    const GroupSpan span = group_span(cluster, mesh, {}, along);
    EXPECT_EQ(span, walked) << "round " << round << ": " << mesh.to_string() << " along " << mesh.to_string(along);
    EXPECT_EQ(span.size, num_pieces(along));
    num_uniform += span.is_uniform;
  }
  EXPECT_GT(num_uniform, 100);
  EXPECT_LT(num_uniform, 400);  // some meshes do not follow the levels
}

TEST(HierarchicalCosts, WhatTheHeaderPromisesHoldsOnRandomClusters) {
  Random random(2);
  for (int round = 0; round < 400; ++round) {
    const Cluster cluster = random_cluster(random);
    const DeviceMesh mesh(random_axes(random, cluster.num_devices()));
    const HierarchicalCosts costs(cluster, mesh);
    const std::vector<AxisRef> along = random_along(random, mesh);
    const bool is_uniform = group_span(cluster, mesh, {}, along).is_uniform;
    std::map<CollectiveKind, Picoseconds> before;
    for (const std::int64_t bytes : {std::int64_t{0}, std::int64_t{1}, std::int64_t{7}, std::int64_t{4096},
                                     std::int64_t{1} << 20, (std::int64_t{1} << 20) + 1, std::int64_t{1} << 33}) {
      const std::string where =
          fmt::format("round {}: {} along {}, {} bytes", round, mesh.to_string(), mesh.to_string(along), bytes);
      std::map<CollectiveKind, Picoseconds> now;
      for (const CollectiveKind kind :
           {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllReduce,
            CollectiveKind::kAllToAll, CollectiveKind::kCollectivePermute}) {
        now[kind] = costs.time(kind, along, bytes);
        EXPECT_GE(now[kind], before[kind]) << where << ": falls with more bytes";
        if (num_pieces(along) == 1) {
          EXPECT_EQ(now[kind], 0) << where;
        }
      }
      EXPECT_EQ(now[CollectiveKind::kAllGather], now[CollectiveKind::kReduceScatter]) << where;
      EXPECT_LE(now[CollectiveKind::kAllReduce], now[CollectiveKind::kAllGather] + now[CollectiveKind::kReduceScatter])
          << where;
      EXPECT_LE(now[CollectiveKind::kAllToAll], now[CollectiveKind::kAllGather]) << where;
      EXPECT_LE(now[CollectiveKind::kCollectivePermute], now[CollectiveKind::kAllGather] + (is_uniform ? 0 : 1))
          << where;
      before = now;
    }
  }
}

TEST(HierarchicalCosts, WholeLevelsAreNotDearerTogetherThanOneByOne) {
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    Cluster cluster = random_cluster(random);
    for (ClusterLevel& level : cluster.levels) level.protocols.clear();  // one after the other, each could use its own
    const DeviceMesh mesh = make_mesh(cluster);
    const HierarchicalCosts costs(cluster, mesh);
    std::vector<AxisRef> all;
    for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) all.push_back(mesh.whole(axis));
    const std::int64_t bytes = static_cast<std::int64_t>(random.below(1 << 26)) * mesh.num_devices();
    for (const CollectiveKind kind :
         {CollectiveKind::kReduceScatter, CollectiveKind::kAllReduce, CollectiveKind::kAllToAll}) {
      Picoseconds sum = 0;
      std::int64_t inner = 1;
      for (std::size_t axis = mesh.axes().size(); axis-- > 0;) {
        // What the axis by itself operates on: the remaining shard, or the pieces of its own members.
        const std::int64_t size = mesh.axes()[axis].size;
        const std::int64_t own = kind == CollectiveKind::kReduceScatter ? bytes / inner
                                 : kind == CollectiveKind::kAllToAll    ? bytes * size / mesh.num_devices()
                                                                        : bytes;
        sum += costs.time(kind, {all[axis]}, own);
        inner *= size;
      }
      EXPECT_LE(costs.time(kind, all, bytes), sum + 3) << "round " << round << " " << mesh.to_string();
    }
  }
}

// Channels: one ring for every device of an outermost part, each starting a part at another device, so that every link
// into the outer level carries one of them. The formula assumes that all of them cross every inner link, where in fact
// one device of the part uses its outer link instead.
TEST(HierarchicalCosts, AChannelRingCarriesWhatItsMessagesLoadTheLinksWith) {
  for (const Case& test : cases()) {
    if (!test.axes.empty()) continue;
    Cluster cluster = cluster_of(test.levels);
    for (ClusterLevel& level : cluster.levels) level.latency = 0;
    const DeviceMesh mesh = make_mesh(cluster);
    const Groups groups = places(cluster, mesh, test.along);
    const std::int64_t bytes = 3 * kGB;
    const Simulation simulation(cluster);
    std::vector<Message> messages;
    std::size_t channels = 1;
    for (std::vector<std::int64_t> group : groups) {
      std::sort(group.begin(), group.end());
      const std::size_t outermost = simulation.level_between(group.front(), group.back());
      const std::int64_t part = simulation.part(outermost);
      std::vector<std::vector<std::int64_t>> parts;
      for (const std::int64_t place : group) {
        if (parts.empty() || parts.back().front() / part != place / part) parts.emplace_back();
        parts.back().push_back(place);
      }
      channels = parts.front().size();
      for (std::size_t channel = 0; channel < channels; ++channel) {
        std::vector<std::int64_t> ring;
        for (const auto& members : parts) {
          for (std::size_t i = 0; i < channels; ++i) ring.push_back(members[(channel + i) % channels]);
        }
        for (std::size_t i = 0; i < ring.size(); ++i) messages.push_back({ring[i], ring[(i + 1) % ring.size()]});
      }
    }
    const auto size = static_cast<std::int64_t>(groups.front().size());
    const Fraction ring =
        simulation.step(messages, Fraction::of(bytes, size * static_cast<std::int64_t>(channels))) * (size - 1);
    const Simulated levels = simulate_reduce_scatter(cluster, groups, bytes);
    cluster.collectives.has_rings_and_trees = true;
    const Picoseconds ours = HierarchicalCosts(cluster, mesh).time(CollectiveKind::kAllGather, test.along, bytes);
    const Fraction least = ring < levels.time ? ring : levels.time;
    EXPECT_LE(least.ceil(), ours) << test.name;
    const std::int64_t whole = ring.ceil();
    const std::int64_t at_most =
        channels == 1 ? whole
                      : whole / static_cast<std::int64_t>(channels - 1) * static_cast<std::int64_t>(channels) + size;
    EXPECT_LE(ours, std::min(at_most, levels.time.ceil()) + levels.stages) << test.name;
  }
}

/// With NCCL's algorithms and a launch of 7 us.
Cluster nodes_of_8(std::int64_t count) {
  Cluster cluster = cluster_of({level("ib", count, 10 * kUs, 50 * kGB), level("nvlink", 8, 1 * kUs, 400 * kGB)});
  cluster.collectives = {.launch = 7 * kUs, .has_rings_and_trees = true};
  return cluster;
}

// 32 nodes of 8: up and down five levels of nodes and a chain of seven devices, not a ring of 510 hops.
TEST(HierarchicalCosts, FewBytesGoUpAndDownATree) {
  Cluster cluster = nodes_of_8(32);
  const DeviceMesh mesh = make_mesh(cluster);
  const std::vector<AxisRef> all = {mesh.whole(0), mesh.whole(1)};
  EXPECT_EQ(HierarchicalCosts(cluster, mesh).time(CollectiveKind::kAllReduce, all, 0), (7 + 2 * (5 * 10 + 7)) * kUs);
  // Within a node a chain gains nothing over the ring: 14 hops.
  EXPECT_EQ(HierarchicalCosts(cluster, mesh).time(CollectiveKind::kAllReduce, {mesh.whole(1)}, 0), (7 + 14) * kUs);
  // Two collectives over sub-axes launch twice: 2 (7 + 1) + (7 + 3 hops of 4 devices, there and back) gains nothing.
  const auto over = [&](CollectiveKind kind, std::int64_t before, std::int64_t size) {
    return HierarchicalCosts(cluster, mesh).time(kind, {{1, before, size}}, 0);
  };
  EXPECT_LT(over(CollectiveKind::kAllReduce, 1, 8), over(CollectiveKind::kReduceScatter, 1, 2) +
                                                        over(CollectiveKind::kAllReduce, 2, 4) +
                                                        over(CollectiveKind::kAllGather, 1, 2));
}

// Software that handles pieces one by one pays for every device of the group, wherever the group is.
TEST(HierarchicalCosts, PiecesThatAreHandledOneByOneCostAsManyTimesAsThereAreDevices) {
  Cluster cluster = nodes_of_8(4);
  const DeviceMesh mesh = make_mesh(cluster);
  const HierarchicalCosts at_once(cluster, mesh);
  cluster.collectives.per_device = 20 * kUs;
  const HierarchicalCosts one_by_one(cluster, mesh);
  const std::pair<std::vector<AxisRef>, std::int64_t> groups[] = {
      {{mesh.whole(1)}, 8}, {{mesh.whole(0)}, 4}, {{mesh.whole(0), mesh.whole(1)}, 32}, {{{1, 2, 2}}, 2}};
  for (const auto& [axes, size] : groups) {
    for (const Bytes bytes : {Bytes{0}, Bytes{1} << 16, Bytes{1} << 30}) {
      for (const CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
                                        CollectiveKind::kAllReduce, CollectiveKind::kAllToAll}) {
        EXPECT_EQ(one_by_one.time(kind, axes, bytes), at_once.time(kind, axes, bytes) + size * 20 * kUs);
      }
      const CollectiveKind permute = CollectiveKind::kCollectivePermute;
      EXPECT_EQ(one_by_one.time(permute, axes, bytes), at_once.time(permute, axes, bytes));
    }
  }
}

// One kernel that reads from everyone, at once or in two phases; what leaves the node has no part in it.
TEST(HierarchicalCosts, AnAllReduceInOneKernelReadsTheMemoryOfAllOthers) {
  Cluster cluster = nodes_of_8(4);
  const DeviceMesh mesh = make_mesh(cluster);
  const HierarchicalCosts rings(cluster, mesh);
  cluster.collectives.direct_all_reduce = 5 * kUs;
  const HierarchicalCosts direct(cluster, mesh);
  const CollectiveKind all_reduce = CollectiveKind::kAllReduce;
  const std::vector<AxisRef> node = {mesh.whole(1)}, pair = {{1, 4, 2}};
  EXPECT_EQ(direct.time(all_reduce, node, 0), 5 * kUs);
  EXPECT_EQ(direct.time(all_reduce, pair, 400'000), (5 + 1) * kUs);  // one tensor of 1 us
  // Seven tensors of 1 us at once, or a message's latency and 14 pieces of 1/8 us.
  EXPECT_EQ(direct.time(all_reduce, node, 400'000), (5 + 1) * kUs + 14 * kUs / 8);
  EXPECT_EQ(direct.time(all_reduce, node, 8), 5 * kUs + 7 * 20);
  for (const std::vector<AxisRef>& axes : {std::vector<AxisRef>{mesh.whole(0)}, {mesh.whole(0), mesh.whole(1)}}) {
    EXPECT_EQ(direct.time(all_reduce, axes, 4096), rings.time(all_reduce, axes, 4096));
  }
  EXPECT_EQ(direct.time(CollectiveKind::kAllGather, node, 4096), rings.time(CollectiveKind::kAllGather, node, 4096));
}

// A low-latency protocol at half the bandwidth wins as long as less than half of the time saved is spent on bytes.
TEST(HierarchicalCosts, TheFastestProtocolCounts) {
  Cluster cluster = cluster_of({level("nvlink", 2, 4 * kUs, 100 * kGB)});
  cluster.levels[0].protocols = {{1 * kUs, 500'000}};
  const HierarchicalCosts costs(cluster, make_mesh(cluster));
  const auto time = [&](Bytes bytes) { return costs.time(CollectiveKind::kAllGather, {{0, 1, 2}}, bytes); };
  EXPECT_EQ(time(0), 1 * kUs);
  EXPECT_EQ(time(200'000), 3 * kUs);     // 1 us + 100 kB / 50 GB/s; the other one takes 4 + 1
  EXPECT_EQ(time(2'000'000), 14 * kUs);  // 4 us + 1 MB / 100 GB/s; the other one takes 1 + 20
}

TEST(HierarchicalCosts, UplinksOfANodeAreSharedByTheGroupsThatCross) {
  // Two nodes of 8, dp=4, mp=4: four dp groups cross each uplink, each has a quarter of it.
  const Cluster cluster =
      cluster_of({level("node", 2, 0, 16 * kGB, LinkPer::kGroup), level("nvlink", 8, 0, 1000 * kGB)});
  const DeviceMesh mesh = make_mesh(cluster, {{"dp", 4}, {"mp", 4}});
  const HierarchicalCosts costs(cluster, mesh);
  // nvlink: 1/2 x 8 GB / 1000 GB/s = 4 ms; node: 1/2 x 4 GB / (16 GB/s / 8 devices) = 1 s.
  EXPECT_EQ(costs.time(CollectiveKind::kReduceScatter, {mesh.whole(0)}, 8 * kGB), 1'004'000'000'000);
  // One part of dp only: the same four groups, now two in each node's half.
  EXPECT_EQ(group_span(cluster, mesh, {}, {mesh.whole(0)}).levels.front(), (LevelSpan{0, 2, 2, 8, 4, 2, 1, 1, 1}));
}

TEST(HierarchicalCosts, ContentionAndEfficiencyScaleTheLine) {
  Cluster cluster = cluster_of({level("spine", 2, 0, 100 * kGB)});
  cluster.levels[0].efficiency_ppm = 500'000;
  cluster.levels[0].contention_ppm = 200'000;
  const HierarchicalCosts costs(cluster, make_mesh(cluster));
  EXPECT_EQ(costs.time(CollectiveKind::kAllGather, {{0, 1, 2}}, 20 * kGB), kPicosecondsPerSecond);  // 10 GB at 10 GB/s
  EXPECT_EQ(costs.neighbour_exchange({{0, 1, 2}}, 20 * kGB), 2 * kPicosecondsPerSecond);
}

TEST(HierarchicalCosts, DevicesOutOfOrderPayForTheLevelsThatTheyCross) {
  const Cluster halves =
      cluster_of({level("pcie", 2, 10 * kUs, 25 * kGB, LinkPer::kGroup), level("hccs", 4, 5 * kUs, 72 * kGB)});
  Cluster crossed = halves;
  crossed.position_of_rank = {0, 1, 4, 5, 2, 3, 6, 7};
  const HierarchicalCosts straight(halves, make_mesh(halves));
  const HierarchicalCosts costs(crossed, make_mesh(crossed));
  const std::vector<AxisRef> hccs = {{1, 1, 4}};
  EXPECT_EQ(straight.time(CollectiveKind::kAllGather, hccs, 0), 15 * kUs);
  EXPECT_EQ(costs.time(CollectiveKind::kAllGather, hccs, 0), 15 * kUs);  // 5 within the half, 10 across
  // hccs 1/2 x 72 GB / 2 / 72 GB/s... outer first: pcie 1/2 x 36 GB / (25 GB/s / 4), hccs 1/2 x 72 GB / 72 GB/s.
  EXPECT_EQ(costs.time(CollectiveKind::kAllGather, hccs, 72 * kGB), 15 * kUs + 2'880'000'000'000 + 500'000'000'000);
  // Uneven halves: three of a group in one, one in the other. The worst of all groups counts.
  crossed.position_of_rank = {0, 1, 2, 4, 3, 5, 6, 7};
  const GroupSpan span = group_span(crossed, make_mesh(crossed), point_positions(crossed, make_mesh(crossed)), hccs);
  EXPECT_FALSE(span.is_uniform);
  EXPECT_EQ(span.size, 4);
  EXPECT_EQ(span.levels, (std::vector<LevelSpan>{{0, 2, 1, 4, 2, 3, 1, 1, 1}, {1, 3, 1, 1, 1, 2, 2, 1, 1}}));
}

TEST(HierarchicalCosts, AMeshOfSomeDevicesUsesTheirLinks) {
  const Cluster cluster =
      cluster_of({level("node", 2, 10 * kUs, 10 * kGB, LinkPer::kGroup), level("nvlink", 4, 1 * kUs, 100 * kGB)});
  const DeviceMesh stage({{"dp", 2}}, {1, 5});
  const HierarchicalCosts costs(cluster, stage);
  EXPECT_EQ(costs.time(CollectiveKind::kAllGather, {{0, 1, 2}}, 20 * kGB),
            10 * kUs + kPicosecondsPerSecond);  // the link alone
  EXPECT_THROW(HierarchicalCosts(cluster, DeviceMesh({{"dp", 2}}, {1, 8})), InputError);
  EXPECT_THROW(HierarchicalCosts(cluster, DeviceMesh({{"dp", 16}})), InputError);
}

TEST(HierarchicalCosts, HugeNumbersStopAtTheLongestTime) {
  Cluster cluster = cluster_of({level("slow", 1 << 10, INT64_MAX / 2, 1, LinkPer::kGroup),
                                level("in", 1 << 10, INT64_MAX / 2, 1, LinkPer::kGroup)});
  cluster.levels[0].efficiency_ppm = 1;
  cluster.levels[0].contention_ppm = 1;
  const HierarchicalCosts costs(cluster, make_mesh(cluster));
  for (const CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kAllReduce, CollectiveKind::kAllToAll,
                                    CollectiveKind::kCollectivePermute}) {
    EXPECT_EQ(costs.time(kind, {{0, 1, 1 << 10}, {1, 1, 1 << 10}}, INT64_MAX), kLongestTime);
  }
}

TEST(HierarchicalCosts, ThreadsShareOneModel) {
  const Cluster cluster = cluster_of({level("a", 16, kUs, kGB), level("b", 16, kUs, kGB)});
  const DeviceMesh mesh = make_mesh(cluster);
  const HierarchicalCosts shared(cluster, mesh);
  const auto sum = [&](const HierarchicalCosts& costs) {
    std::int64_t total = 0;
    Random random(4);
    for (int i = 0; i < 2000; ++i)
      total += costs.time(CollectiveKind::kAllReduce, random_along(random, mesh), i) % 1000;
    return total;
  };
  std::array<std::int64_t, 4> totals{};
  std::vector<std::thread> threads;
  for (std::int64_t& total : totals) threads.emplace_back([&shared, &sum, &total] { total = sum(shared); });
  for (std::thread& thread : threads) thread.join();
  for (const std::int64_t total : totals) EXPECT_EQ(total, sum(HierarchicalCosts(cluster, mesh)));
}

}  // namespace
}  // namespace shardplan
