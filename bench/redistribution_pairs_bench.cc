// Are redistributions correct, and how much faster are they than greedy orders?
//
// Between all layouts of a mesh (whole axes in any order; also partial over sums, maxima and minima) every ordered pair
// is planned, executed on simulated devices and compared, with several kinds of costs. Pairs without partial ends are
// compared with MindSpore's order and, on meshes of twos, with Shardy's, both at the same costs. A greedy order that
// exceeds the larger end's memory is compared with the plan that may do so too.
//
// By default a sample of the pairs; all of them, which takes minutes, with SHARDPLAN_EXHAUSTIVE=1. Exit code 1 if a
// result differs, or a greedy order is cheaper.

#include <fmt/format.h>

#include <array>
#include <optional>

#include "costmodel/cluster/cluster.h"
#include "costmodel/hierarchical_costs.h"
#include "layouts/redistribution/greedy_redistribution.h"
#include "layouts/redistribution/redistribution_planner.h"
#include "simulator/execute/collectives.h"
#include "tests/layouts/all_layouts.h"
#include "tests/layouts/shardy_order.h"
#include "tests/layouts/test_costs.h"

namespace shardplan {
namespace {

struct Prices {
  const char* name;
  Bytes tensor_bytes;  // approximately; sets the size of the elements
  std::function<std::shared_ptr<const CollectiveCosts>(const DeviceMesh&)> costs;
};

/// Puts the outermost axis on the cluster's outer links, the others on the inner ones.
std::shared_ptr<const CollectiveCosts> of_cluster(const DeviceMesh& mesh) {
  Cluster cluster = read_cluster("ascend-910");
  cluster.levels[1].count = mesh.axes().front().size;                       // pcie
  cluster.levels[2].count = mesh.num_devices() / mesh.axes().front().size;  // hccs
  return std::make_shared<HierarchicalCosts>(cluster, mesh);
}
std::shared_ptr<const CollectiveCosts> per_launch(const DeviceMesh& mesh) {
  return std::make_shared<TestCosts>(1, std::vector<TestCosts::Axis>(mesh.axes().size(), {0, 0}));
}
std::shared_ptr<const CollectiveCosts> per_byte(const DeviceMesh& mesh) {
  return std::make_shared<TestCosts>(0, std::vector<TestCosts::Axis>(mesh.axes().size(), {0, 1}));
}

const Prices kPrices[] = {
    {"ascend-910, 64 KiB", 1 << 16, of_cluster},
    {"ascend-910, 64 MiB", 1 << 26, of_cluster},
    {"bandwidth only", 1 << 26, per_byte},
    {"one price a launch", 1 << 26, per_launch},
};
constexpr std::size_t kNumPrices = std::size(kPrices);

struct Case {
  const char* mesh;
  std::vector<Shape> shapes;  // local extents of at least 2, also if all devices shard one dimension
  std::vector<AxisRef> twos;  // empty if the mesh is not of twos
};
const Case kCases[] = {
    {"x=2,y=2", {{12}, {8, 12}, {8, 12, 8}}, {{0, 1, 2}, {1, 1, 2}}},
    {"x=2,y=2,z=2", {{24}, {16, 24}, {16, 24, 16}}, {{0, 1, 2}, {1, 1, 2}, {2, 1, 2}}},
    {"x=4,y=2", {{24}, {16, 24}, {16, 24, 16}}, {{0, 1, 2}, {0, 2, 2}, {1, 1, 2}}},
    {"x=3,y=2", {{18}, {12, 18}, {12, 18, 12}}, {}},
    {"x=2,y=3,z=2", {{36}, {24, 36}, {24, 36, 24}}, {}},
};

struct Counts {
  std::size_t pairs = 0;
  std::size_t executed = 0;  // distinct sequences of steps per pair
  std::size_t unequal = 0;
  std::size_t above = 0;
  std::size_t dearer = 0;  // than a greedy order
  Wins mindspore;
  Wins shardy;
};

bool are_equal(const Redistribution& a, const Redistribution& b) {
  return std::equal(a.steps.begin(), a.steps.end(), b.steps.begin(), b.steps.end(),
                    [](const CollectiveStep& x, const CollectiveStep& y) {
                      return x.kind == y.kind && x.axes == y.axes && x.after == y.after;
                    });
}

/// All kinds of costs for one mesh and shape.
class Comparison {
 public:
  Comparison(const Case& one, const Shape& shape, std::array<Counts, kNumPrices>& counts)
      : mesh_(DeviceMesh::parse(one.mesh)), shape_(shape), twos_(one.twos), counts_(counts) {
    const std::int64_t elements = num_elements(shape);
    Random random(7);
    for (std::int64_t i = 0; i < elements; ++i) values_.push_back(random.unit() * 20 - 10);
    for (const Prices& prices : kPrices) {
      costs_.push_back(prices.costs(mesh_));
      element_bytes_.push_back(std::max<Bytes>(1, prices.tensor_bytes / elements));
    }
  }

  void run(std::size_t stride) {
    const std::vector<TensorLayout> layouts =
        all_layouts(mesh_, shape_, whole_axes(mesh_), {Reduction::kSum, Reduction::kMax, Reduction::kMin});
    std::size_t pair = 0;
    for (std::size_t from = 0; from < layouts.size(); ++from) {
      if (from % 16 == 0) forget_plans();
      const DeviceBuffers buffers = scatter(values_, shape_, layouts[from], mesh_, 3);
      for (const TensorLayout& to : layouts) {
        if (pair++ % stride == 0) compare(layouts[from], to, buffers);
      }
    }
  }

 private:
  void forget_plans() {
    bounded_.clear();
    unbounded_.clear();
    for (const auto& costs : costs_) {
      bounded_.push_back(std::make_unique<RedistributionPlanner>(mesh_, costs));
      unbounded_.push_back(
          std::make_unique<RedistributionPlanner>(mesh_, costs, RedistributionOptions{.bounded_memory = false}));
    }
  }

  void compare(const TensorLayout& from, const TensorLayout& to, const DeviceBuffers& buffers) {
    for (std::size_t i = 0; i < kNumPrices; ++i) {
      Counts& counts = counts_[i];
      const Redistribution& plan = bounded_[i]->plan(from, to, shape_, element_bytes_[i]);
      ++counts.pairs;
      counts.above += exceeds_larger_end(plan) ? 1 : 0;
      const bool is_known = i > 0 && are_equal(plan, bounded_[i - 1]->plan(from, to, shape_, element_bytes_[i - 1]));
      if (!is_known) {
        ++counts.executed;
        const DeviceBuffers result = apply(plan, mesh_, shape_, buffers);
        if (!(largest_error(result, values_, shape_, to, mesh_) <= 1e-9)) {
          ++counts.unequal;
          fmt::print("WRONG: {}: {} -> {}\n", mesh_.to_string(), to_string(from, mesh_), to_string(to, mesh_));
        }
      }
      if (from.partial.empty() && to.partial.empty()) compare_with_greedy(i, from, to);
    }
  }

  void compare_with_greedy(std::size_t i, const TensorLayout& from, const TensorLayout& to) {
    const std::int64_t bound = std::min(num_shards(from), num_shards(to));
    const auto add = [&](Wins& wins, Picoseconds time, std::int64_t least) {
      RedistributionPlanner& planner = least >= bound ? *bounded_[i] : *unbounded_[i];
      const Picoseconds best = planner.plan(from, to, shape_, element_bytes_[i]).time;
      wins.add(best, time);
      if (best <= time) return;
      ++counts_[i].dearer;
      fmt::print("DEARER: {}, {}: {} -> {}\n", kPrices[i].name, mesh_.to_string(), to_string(from, mesh_),
                 to_string(to, mesh_));
    };
    const Redistribution greedy = *greedy_redistribution(from, to, shape_, element_bytes_[i], mesh_, *costs_[i]);
    add(counts_[i].mindspore, greedy.time, least_shards(greedy));
    if (twos_.empty()) return;
    const Bytes tensor_bytes = element_bytes_[i] * static_cast<Bytes>(values_.size());
    const ShardyOrder order = shardy_order(from, to, twos_, tensor_bytes, *costs_[i]);
    add(counts_[i].shardy, order.time, order.least_shards);
  }

  DeviceMesh mesh_;
  Shape shape_;
  std::vector<AxisRef> twos_;
  std::array<Counts, kNumPrices>& counts_;
  std::vector<double> values_;
  std::vector<std::shared_ptr<const CollectiveCosts>> costs_;
  std::vector<Bytes> element_bytes_;
  std::vector<std::unique_ptr<RedistributionPlanner>> bounded_;
  std::vector<std::unique_ptr<RedistributionPlanner>> unbounded_;
};

bool run() {
  constexpr std::size_t kStride = 211;
  std::array<Counts, kNumPrices> all;
  fmt::print("{}\n", is_exhaustive() ? "all ordered pairs" : "a sample; all pairs with SHARDPLAN_EXHAUSTIVE=1");
  for (const Case& one : kCases) {
    for (const Shape& shape : one.shapes) {
      std::array<Counts, kNumPrices> counts;
      Comparison(one, shape, counts).run(is_exhaustive() ? 1 : kStride);
      std::size_t executed = 0;
      std::size_t unequal = 0;
      for (std::size_t i = 0; i < kNumPrices; ++i) {
        executed += counts[i].executed;
        unequal += counts[i].unequal;
        all[i].pairs += counts[i].pairs;
        all[i].executed += counts[i].executed;
        all[i].unequal += counts[i].unequal;
        all[i].above += counts[i].above;
        all[i].dearer += counts[i].dearer;
        all[i].mindspore.add(counts[i].mindspore);
        all[i].shardy.add(counts[i].shardy);
      }
      fmt::print("{:12} rank {}: {} pairs at {} prices, {} different sequences executed, {} equal\n", one.mesh,
                 shape.size(), counts[0].pairs, kNumPrices, executed, executed - unequal);
      std::fflush(stdout);
    }
  }
  bool is_right = true;
  for (std::size_t i = 0; i < kNumPrices; ++i) {
    const Counts& counts = all[i];
    fmt::print("\n{}: {} pairs, {} above the larger end, {} dearer than a greedy order\n", kPrices[i].name,
               counts.pairs, counts.above, counts.dearer);
    fmt::print("  beats MindSpore's order on {}\n", counts.mindspore.text());
    fmt::print("  beats Shardy's order on {}\n", counts.shardy.text());
    is_right = is_right && counts.unequal == 0 && counts.above == 0 && counts.dearer == 0;
  }
  return is_right;
}

}  // namespace
}  // namespace shardplan

int main() { return shardplan::run() ? 0 : 1; }
