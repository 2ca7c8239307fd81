// How do time and memory of planning grow with the operators of a model and with the devices?
//
// Each row is a complete `plan`, from the model file to the summary with data parallelism beside the plan, in a process
// of its own. First one model with increasing numbers of layers, uniform or free; memory per device is raised so that
// it does not bind. Then one model on increasing numbers of devices.
//
// Arguments: [--most OPERATORS] [--markdown WHEN]; without --most up to a million operators. --markdown prints
// docs/scale.md, which states WHEN and on how many cores it was measured. Exit code 1: a row ended without an answer.

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bench/own_process.h"
#include "model/read_model.h"
#include "planner/job_cluster.h"
#include "planner/model_planner.h"
#include "report/plan/summary.h"
#include "solver/searches/search_list.h"

namespace shardplan {
namespace {

constexpr const char* kDeep = "configs/gpt2-small.yaml";
constexpr std::int64_t kOperatorsOfLayer = 91;  // forward, backward and update
constexpr Bytes kCapacity = Bytes{64} << 40;
constexpr const char* kWide = "configs/gpt3-175b.yaml";
constexpr std::int64_t kDevicesOfNode = 8;

struct Row {
  std::string path;
  std::map<std::string, std::int64_t> dims;
  std::optional<std::string> cluster;
  std::optional<Bytes> capacity;
  bool is_uniform = true;
  Level level = Level::kSpeed;
};

int plan_row(const Row& row) {
  ModelOverrides overrides;
  overrides.dims = row.dims;
  const auto model = std::make_shared<const Model>(read_model(row.path, overrides));
  PlanOptions options;
  options.level = row.level;
  options.uniform_layers = row.is_uniform;
  options.capacity = row.capacity;
  const Cluster cluster = job_cluster(*model, {.cluster = row.cluster, .device_num = {}, .rank_table = {}}).cluster;
  const ModelPlanner planner(model, cluster, options);
  planner.begin_data_parallel();
  Plan plan = planner.plan(row.level, kDefaultSearch);
  if (plan.strategies.empty() || !plan.fits()) {
    fmt::print("no plan: {}\n", to_string(plan.status));
    return 1;
  }
  plan.baselines.push_back(planner.data_parallel());
  if (summary_report(plan, {}).empty()) return 1;
  const std::optional<double> open = open_gap(plan);
  fmt::print("{:>9} | {:>7} | {:>9} | {:>6} | ", plan.graph->operators().size(), planner.mesh().num_devices(),
             format_time(plan.time.step()), open ? fmt::format("{:.2f} %", 100 * *open) : "-");
  return 0;
}

constexpr const char* kPage = R"(# Scale

Time and memory of planning as models get deeper and clusters larger. Each row is a complete `plan` command, from the model file to the summary, in a
separate process: gpt2-small with more and more layers, in training on 8 devices (with their memory raised so that it is not binding), then gpt3-175b
(96 layers, the same batch) on more and more devices of DGX A100. Seconds are processor time.

The searched problem is as large for ten layers as for ten thousand, uniform or free ([search.md](search.md)). What grows is the graph, its
derivatives, the program, the orders that are tried for it, and the reports. Up to 20,000 operators level 2 also searches the overlapped step;
for larger graphs its gap refers to the additive step.

Measured on {} cores, {}; step and gap are the same on every machine. This page is made by `scale_bench`, a program of `./run bench`.

)";

struct Arguments {
  std::int64_t most = 1'000'000;
  std::string measured;
};

Arguments read_arguments(const std::vector<std::string>& words) {
  Arguments arguments;
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
    if (words[i] == "--most") arguments.most = std::stoll(words[i + 1]);
    if (words[i] == "--markdown") arguments.measured = words[i + 1];
  }
  return arguments;
}

int run(const Arguments& arguments) {
  std::vector<Row> rows;
  for (const bool is_uniform : {true, false}) {
    for (std::int64_t operators = 1'000; operators <= arguments.most; operators *= 10) {
      for (const Level level : {Level::kRatio, Level::kSpeed}) {
        rows.push_back({kDeep, {{"L", operators / kOperatorsOfLayer}}, {}, kCapacity, is_uniform, level});
      }
    }
  }
  for (const std::int64_t devices : {128, 1024, 8192, 98304}) {
    for (const Level level : {Level::kRatio, Level::kSpeed}) {
      rows.push_back({kWide, {}, fmt::format("dgx-a100x{}", devices / kDevicesOfNode), {}, true, level});
    }
  }
  const bool is_page = !arguments.measured.empty();
  if (is_page) fmt::print(kPage, std::thread::hardware_concurrency(), arguments.measured);
  fmt::print("model      | layers  | level | operators | devices | step      | gap    | s | MiB\n");
  if (is_page) fmt::print("---|---|--:|--:|--:|--:|--:|--:|--:\n");
  int status = 0;
  for (const Row& row : rows) {
    const std::string name = row.path == kDeep ? "gpt2-small" : "gpt3-175b";
    fmt::print("{:<10} | {:<7} | {:>5} | ", name, row.is_uniform ? "uniform" : "free", number_of(row.level));
    const Process process = in_own_process([&] { return plan_row(row); });
    fmt::print("{:.2f} | {:.0f}\n", process.seconds, process.mebibytes);
    if (!process.is_finished || process.exit_code != 0) status = 1;
  }
  return status;
}

}  // namespace
}  // namespace shardplan

int main(int argc, char** argv) {
  return shardplan::run(shardplan::read_arguments(std::vector<std::string>(argv + 1, argv + argc)));
}
