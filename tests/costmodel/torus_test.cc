// Collectives on a torus compared with what their messages load each link with.
#include "costmodel/torus.h"

#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "costmodel/cluster/cluster_mesh.h"
#include "costmodel/hierarchical_costs.h"

namespace shardplan {
namespace {

constexpr std::int64_t kRate = 1'000'000'000;  // bytes per second of a link, in each direction

ClusterLevel dimension(std::string name, std::int64_t count, Topology topology) {
  ClusterLevel level;
  level.name = std::move(name);
  level.count = count;
  level.bandwidth = kRate;
  level.topology = topology;
  return level;
}

/// The bytes that cross each link of a torus, by the device that sends, the dimension and the direction.
class Links {
 public:
  explicit Links(const Cluster& cluster) : cluster_(cluster) {}

  std::int64_t place(std::int64_t device, std::size_t dimension) const {
    return device / weight(dimension) % cluster_.levels[dimension].count;
  }
  std::int64_t moved(std::int64_t device, std::size_t dimension, std::int64_t place_there) const {
    return device + (place_there - place(device, dimension)) * weight(dimension);
  }
  /// Steps one link on; closes the ring.
  void hop(std::int64_t& device, std::size_t dimension, int direction, double bytes) {
    loads_[{device, dimension, direction}] += bytes;
    const std::int64_t count = cluster_.levels[dimension].count;
    const std::int64_t next = place(device, dimension) + direction;
    const bool is_ring = cluster_.levels[dimension].topology == Topology::kRing;
    EXPECT_TRUE(is_ring || (next >= 0 && next < count)) << "there is no link";
    device = moved(device, dimension, (next + count) % count);
  }
  void walk(std::int64_t from, std::int64_t to, std::size_t dimension, int direction, double bytes) {
    for (std::int64_t at = from; at != to;) hop(at, dimension, direction, bytes);
  }
  /// The shortest way along one dimension, half of the bytes each way if both are as short.
  void send(std::int64_t from, std::int64_t to, std::size_t dimension, double bytes) {
    const std::int64_t up = place(to, dimension) - place(from, dimension);
    if (cluster_.levels[dimension].topology == Topology::kLine) {
      walk(from, to, dimension, up > 0 ? 1 : -1, bytes);
      return;
    }
    const std::int64_t count = cluster_.levels[dimension].count;
    const std::int64_t ahead = (up + count) % count;
    if (2 * ahead <= count) walk(from, to, dimension, 1, 2 * ahead == count ? bytes / 2 : bytes);
    if (2 * ahead >= count) walk(from, to, dimension, -1, 2 * ahead == count ? bytes / 2 : bytes);
  }
  /// Picoseconds that the busiest link takes; afterwards all are free.
  double busiest() {
    double most = 0;
    for (const auto& [link, bytes] : loads_) most = std::max(most, bytes);
    loads_.clear();
    return most * static_cast<double>(kPicosecondsPerSecond) / static_cast<double>(kRate);
  }

 private:
  std::int64_t weight(std::size_t dimension) const {
    std::int64_t product = 1;
    for (std::size_t inner = dimension + 1; inner < cluster_.levels.size(); ++inner) {
      product *= cluster_.levels[inner].count;
    }
    return product;
  }

  const Cluster& cluster_;
  std::map<std::tuple<std::int64_t, std::size_t, int>, double> loads_;
};

void expect_near(Picoseconds ours, double simulated, const std::string& where) {
  EXPECT_NEAR(static_cast<double>(ours), simulated, simulated * 1e-7 + 3) << where;
}

/// The axis of a one-dimensional cluster in three factors; groups along any one of them.
struct Along {
  std::int64_t count;
  std::int64_t before, size;
};

std::vector<Along> alongs() {
  std::vector<Along> result;
  for (std::int64_t count = 2; count <= 16; ++count) {
    for (std::int64_t before = 1; before <= count; ++before) {
      for (std::int64_t size = 2; size <= count; ++size) {
        if (count % (before * size) == 0) result.push_back({count, before, size});
      }
    }
  }
  return result;
}

// Whole rings and lines, blocks of neighbours, and every second or third device: of each group, how its links are loaded.
TEST(Torus, ARingOrALineTakesAsLongAsItsBusiestLink) {
  for (const Topology topology : {Topology::kRing, Topology::kLine}) {
    for (const Along& along : alongs()) {
      Cluster cluster;
      cluster.levels = {dimension("x", along.count, topology)};
      const DeviceMesh mesh = make_mesh(cluster);
      const HierarchicalCosts costs(cluster, mesh);
      const std::vector<AxisRef> axes = {{0, along.before, along.size}};
      const std::int64_t bytes = along.size * along.size * 1'000'000;
      const double piece = static_cast<double>(bytes / along.size);
      const auto groups = mesh.groups(axes);
      const std::string where = fmt::format("{} {} {}x{}", topology == Topology::kRing ? "ring" : "line", along.count,
                                            along.before, along.size);
      Links links(cluster);

      for (const auto& group : groups) {
        for (const std::int64_t from : group) {
          for (const std::int64_t to : group) {
            if (from != to) links.send(from, to, 0, piece / static_cast<double>(along.size));
          }
        }
      }
      expect_near(costs.time(CollectiveKind::kAllToAll, axes, bytes), links.busiest(), where + " all_to_all");

      // One step of an all_gather: pieces go to and fro, or half of each around either way.
      for (const auto& group : groups) {
        for (std::size_t i = 0; i < group.size(); ++i) {
          const bool is_last = i + 1 == group.size();
          links.walk(group[i], is_last ? group[0] : group[i + 1], 0, is_last ? -1 : 1, piece);
        }
      }
      double step = links.busiest();
      if (topology == Topology::kRing) {
        for (const auto& group : groups) {
          for (std::size_t i = 0; i < group.size(); ++i) {
            const std::int64_t next = group[(i + 1) % group.size()];
            links.walk(group[i], next, 0, 1, piece / 2);
            links.walk(next, group[i], 0, -1, piece / 2);
          }
        }
        step = std::min(step, links.busiest());
      }
      const double steps = static_cast<double>(along.size - 1);
      expect_near(costs.time(CollectiveKind::kAllGather, axes, bytes), steps * step, where + " all_gather");
      expect_near(costs.time(CollectiveKind::kReduceScatter, axes, bytes), steps * step, where + " reduce_scatter");
      expect_near(costs.time(CollectiveKind::kAllReduce, axes, bytes), 2 * steps * step, where + " all_reduce");

      // The slowest permutation: a reversal, or a rotation of which each part goes the way that it shares best.
      double longest = 0;
      const bool goes_around = topology == Topology::kRing && along.before == 1;
      for (std::int64_t turn = goes_around ? 1 : along.size; turn < along.size + (goes_around ? 0 : 1); ++turn) {
        for (const auto& group : groups) {
          for (std::int64_t i = 0; i < along.size; ++i) {
            const std::int64_t from = group[static_cast<std::size_t>(i)];
            if (goes_around) {
              const std::int64_t to = group[static_cast<std::size_t>((i + turn) % along.size)];
              const double ahead = piece * static_cast<double>(along.size - turn) / static_cast<double>(along.size);
              links.walk(from, to, 0, 1, ahead);
              links.walk(from, to, 0, -1, piece - ahead);
            } else if (2 * i + 1 != along.size) {
              links.send(from, group[static_cast<std::size_t>(along.size - 1 - i)], 0, piece);
            }
          }
        }
        longest = std::max(longest, links.busiest());
      }
      const auto permute = static_cast<double>(costs.time(CollectiveKind::kCollectivePermute, axes, bytes));
      const double odd = static_cast<double>(along.size + along.size % 2) / static_cast<double>(along.size);
      EXPECT_GE(permute * (1 + 1e-7), longest) << where << " permute";
      EXPECT_LE(permute, longest * odd * (1 + 1e-7)) << where << " permute";
    }
  }
}

// A 4 x 4 or 5 x 5 torus is two Hamiltonian cycles that share no link (Bae and Bose, IEEE Transactions on Computers 52(10),
// 2003). A quarter of each piece goes around either of them in either direction.
TEST(Torus, AnAllGatherUsesTheLinksOfAllDimensions) {
  for (const std::int64_t count : {3, 4, 5, 7}) {
    Cluster cluster;
    cluster.levels = {dimension("y", count, Topology::kRing), dimension("x", count, Topology::kRing)};
    const DeviceMesh mesh = make_mesh(cluster);
    const std::int64_t devices = count * count;
    const std::int64_t bytes = devices * 4'000'000;
    Links links(cluster);
    for (const bool is_swapped : {false, true}) {
      const auto device_at = [&](std::int64_t step) {
        const std::int64_t row = step / count % count, column = (step % count - row + count) % count;
        return is_swapped ? column * count + row : row * count + column;
      };
      for (std::int64_t step = 0; step < devices; ++step) {
        const std::int64_t from = device_at(step), to = device_at((step + 1) % devices);
        const std::size_t along = links.place(from, 0) != links.place(to, 0) ? 0 : 1;
        ASSERT_EQ(links.place(from, 1 - along), links.place(to, 1 - along));
        const std::int64_t up = (links.place(to, along) - links.place(from, along) + count) % count;
        ASSERT_TRUE(up == 1 || up == count - 1);
        links.walk(from, to, along, up == 1 ? 1 : -1, 1'000'000);
        links.walk(to, from, along, up == 1 ? -1 : 1, 1'000'000);
      }
    }
    const double steps = static_cast<double>(devices - 1);
    expect_near(
        HierarchicalCosts(cluster, mesh).time(CollectiveKind::kAllGather, {mesh.whole(0), mesh.whole(1)}, bytes),
        steps * links.busiest(), fmt::format("{0} x {0}", count));
  }
}

// Parts of the messages take the dimensions in different orders, so that all of them are busy in each phase.
TEST(Torus, AnAllToAllTakesAsLongAsItsBusiestDimension) {
  const std::vector<std::vector<ClusterLevel>> tori = {
      {dimension("y", 4, Topology::kRing), dimension("x", 4, Topology::kRing)},
      {dimension("y", 2, Topology::kRing), dimension("x", 8, Topology::kLine)},
      {dimension("z", 2, Topology::kLine), dimension("y", 3, Topology::kRing), dimension("x", 4, Topology::kRing)}};
  for (const auto& levels : tori) {
    Cluster cluster;
    cluster.levels = levels;
    const DeviceMesh mesh = make_mesh(cluster);
    std::vector<AxisRef> axes;
    for (std::size_t axis = 0; axis < levels.size(); ++axis) axes.push_back(mesh.whole(axis));
    const std::int64_t devices = mesh.num_devices();
    const std::int64_t bytes = devices * devices * 120'000;
    double time = 0;
    Links links(cluster);
    for (std::size_t phase = 0; phase < levels.size(); ++phase) {
      for (std::size_t part = 0; part < levels.size(); ++part) {
        const std::size_t now = (part + phase) % levels.size();
        for (std::int64_t from = 0; from < devices; ++from) {
          for (std::int64_t to = 0; to < devices; ++to) {
            std::int64_t at = from;
            for (std::size_t before = 0; before < phase; ++before) {
              const std::size_t done = (part + before) % levels.size();
              at = links.moved(at, done, links.place(to, done));
            }
            const std::int64_t next = links.moved(at, now, links.place(to, now));
            if (at != next) links.send(at, next, now, 120'000.0 / static_cast<double>(levels.size()));
          }
        }
      }
      time += links.busiest();
    }
    expect_near(HierarchicalCosts(cluster, mesh).time(CollectiveKind::kAllToAll, axes, bytes), time,
                fmt::format("{} devices", devices));
  }
}

// A dimension with slow links: each of its slabs has to receive what the other slabs have.
TEST(Torus, NoDimensionCarriesLessThanWhatMustCrossIt) {
  Cluster cluster;
  cluster.levels = {dimension("slow", 2, Topology::kLine), dimension("x", 8, Topology::kRing)};
  cluster.levels[0].bandwidth = kRate / 1000;
  const DeviceMesh mesh = make_mesh(cluster);
  const std::vector<AxisRef> all = {mesh.whole(0), mesh.whole(1)};
  const HierarchicalCosts costs(cluster, mesh);
  // 8 GB on 16 devices: 4 GB cross 8 links of 1 MB/s.
  EXPECT_EQ(costs.time(CollectiveKind::kAllGather, all, 8 * kRate), 500 * kPicosecondsPerSecond);
}

TEST(Torus, LatencyIsThatOfItsHops) {
  Cluster cluster;
  cluster.levels = {dimension("y", 4, Topology::kLine), dimension("x", 16, Topology::kRing)};
  for (ClusterLevel& level : cluster.levels) level.latency = 1'000'000;
  const DeviceMesh mesh = make_mesh(cluster);
  const HierarchicalCosts costs(cluster, mesh);
  const auto hops = [&](CollectiveKind kind, const std::vector<AxisRef>& axes) {
    return costs.time(kind, axes, 0) / 1'000'000;
  };
  EXPECT_EQ(hops(CollectiveKind::kAllGather, {mesh.whole(0)}), 3);  // to the other end
  EXPECT_EQ(hops(CollectiveKind::kAllGather, {mesh.whole(1)}), 8);  // half the way around
  EXPECT_EQ(hops(CollectiveKind::kAllGather, {{1, 4, 4}}), 3);      // four neighbours
  EXPECT_EQ(hops(CollectiveKind::kAllReduce, {mesh.whole(0), mesh.whole(1)}), 2 * (3 + 8));
}

// The part of a ring that a smaller job gets is not closed.
TEST(Torus, PartOfARingIsALine) {
  const Cluster pod = read_cluster("tpu-v5e");
  const Cluster part = take_devices(pod, 64);
  EXPECT_EQ(part.levels[1].topology, Topology::kLine);
  EXPECT_EQ(part.levels[2].topology, Topology::kRing);
  EXPECT_EQ(read_cluster_text(write_cluster(part), "part.yaml").levels, part.levels);
}

}  // namespace
}  // namespace shardplan
