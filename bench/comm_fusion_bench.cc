// What does joining collectives gain, and which rule joins best?
//
// For every model, in pure data parallelism and with sharded optimizer states: the overlapped step with separate
// collectives of gradients and updated weights, in buckets of 64 MiB (auto), of 8 and 25 MiB (size; 25 is the default
// of PyTorch's DistributedDataParallel), in three buckets of equal counts (index), and in the best buckets. If a rule
// is faster than best by a thousandth, the program reports it and exits with 1.
//
// Arguments: model files (default: configs/gpt2-small.yaml configs/bert-base.yaml), preceded by an optional --cluster
// NAME that applies to all of them.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "bench/each_model.h"
#include "model/read_model.h"
#include "planner/job_cluster.h"
#include "planner/model_planner.h"
#include "program/buckets.h"

namespace shardplan {
namespace {

using Mode = CommFusion::Mode;

struct Rule {
  std::string name;
  CommFusion fusion;
};

Plan planned(Model model, const CommFusion& fusion, const std::optional<std::string>& cluster) {
  model.parallel.comm_fusion = {fusion, fusion, fusion, SourcePlace{}};
  if (fusion.mode == Mode::kIndex) {
    model.parallel.comm_fusion.all_gather.mode = Mode::kSize;
    model.parallel.comm_fusion.reduce_scatter.mode = Mode::kSize;
  }
  const Cluster machine = job_cluster(model, {.cluster = cluster, .device_num = {}, .rank_table = {}}).cluster;
  const ModelPlanner planner(std::make_shared<const Model>(std::move(model)), machine, {});
  return planner.plan(Level::kSpeed, "auto");
}

/// The boundaries of three buckets with equal numbers of all_reduces.
std::vector<std::int64_t> thirds(const Plan& plan) {
  std::vector<std::uint32_t> order(plan.program.instructions.size());
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  const auto all = joinable_collectives(plan.program, *plan.graph, order);
  const std::int64_t count = std::count_if(
      all.begin(), all.end(), [](const JoinableCollective& one) { return one.kind == CollectiveKind::kAllReduce; });
  return {count / 3, 2 * count / 3};
}

/// Returns the number of contradictions.
int run(const std::string& path, const std::optional<std::string>& cluster, bool cuts_states) {
  Model model = read_model(path);
  model.parallel.parallel_mode = ParallelMode::kDataParallel;
  model.parallel.enable_parallel_optimizer = cuts_states;
  const Plan none = planned(model, {Mode::kNone, 0, {}}, cluster);
  const Plan best = planned(model, {Mode::kBest, Bytes{64} << 20, {}}, cluster);
  fmt::print("{}, data parallel on {} devices, states {}\n", path, none.mesh.num_devices(),
             cuts_states ? "in pieces" : "whole");
  int contradictions = 0;
  const auto print = [&](const std::string& name, const Plan& plan) {
    fmt::print("  {:<10} step {:>8}  exposed {:>8}  buckets {:>4}  peak {:>9}\n", name, format_time(plan.time.step()),
               format_time(plan.time.exposed), plan.program.buckets.size(), format_bytes(plan.memory.peak));
    if (plan.time.step() + plan.time.step() / 1000 >= best.time.step()) return;
    ++contradictions;
    fmt::print("    FAULT: faster than best\n");
  };
  print("none", none);
  const std::vector<Rule> rules = {{"auto", {Mode::kSize, Bytes{64} << 20, {}}},
                                   {"size 8", {Mode::kSize, Bytes{8} << 20, {}}},
                                   {"size 25", {Mode::kSize, Bytes{25} << 20, {}}},
                                   {"index", {Mode::kIndex, Bytes{64} << 20, thirds(none)}}};
  for (const Rule& rule : rules) print(rule.name, planned(model, rule.fusion, cluster));
  print("best", best);
  return contradictions;
}

}  // namespace
}  // namespace shardplan

int main(int argc, char** argv) {
  return shardplan::run_on_each_model(
      argc, argv, {"configs/gpt2-small.yaml", "configs/bert-base.yaml"}, [](const auto& path, const auto& cluster) {
        return shardplan::run(path, cluster, false) + shardplan::run(path, cluster, true);
      });
}
