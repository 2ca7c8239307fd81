// How many seconds does it take to find a plan of a real network, how far may it be from the best one, and how much
// time and memory does its proof take?
//
// For every network, on 8 and on 64 devices, with uniform and with free layers, at each level: seconds of planning,
// step, gap, then the result of the proof, its seconds and its process's peak memory. Plans are those of `plan` with
// default options. Seconds and memory depend on the machine, everything else is the same everywhere. Each row and its
// proof run in separate processes, so that memory is measured separately.
//
// Arguments: [--devices N,N] [--levels N,N] [--layers uniform|free] [--no-proof] [--markdown WHEN] [model files]; by
// default all of configs/ and configs/models. A model's own cluster gives the kind of node. --markdown prints a page of
// documentation that states WHEN and on how many cores it was measured. Exit code 1: a plan is wrong.

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "bench/own_process.h"
#include "model/read_model.h"
#include "planner/job_cluster.h"
#include "planner/model_planner.h"
#include "report/proof_report.h"
#include "simulator/proof/prove.h"
#include "solver/searches/search_list.h"

namespace shardplan {
namespace {

struct Arguments {
  std::vector<std::int64_t> devices = {8, 64};
  std::vector<std::int64_t> levels = {0, 1, 2};
  std::vector<bool> uniform = {true, false};
  bool proves = true;
  std::string measured;  // when it was measured; if not empty, a page is printed
  std::string words;     // as given
  std::vector<std::string> paths;
};

/// Measures the processor time of all threads together, which other load on the machine hardly changes.
struct Stopwatch {
  std::clock_t begin = std::clock();
  double seconds() const { return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC; }
};

/// The model's cluster with the number of nodes that gives `devices` devices.
std::string cluster_of(const Model& model, std::int64_t devices) {
  std::string name = model.cluster.value;
  const std::size_t times = name.rfind('x');
  const bool is_counted = times != std::string::npos && times + 1 < name.size() &&
                          name.find_first_not_of("0123456789", times + 1) == std::string::npos;
  if (is_counted) name.resize(times);
  return devices == 8 ? name : fmt::format("{}x{}", name, devices / 8);
}

std::string seconds_text(double seconds) { return fmt::format("{:.2f}", seconds); }

int prove_row(const Plan& plan) {
  const Stopwatch watch;
  const Proof proof = prove(plan, {});
  std::string verdict = proof.is_proven() ? "equal" : proof.shrinking.refusal;
  if (verdict.empty()) verdict = proof.validation.without_kernel.empty() ? "DIFFERENT" : "an operator without a kernel";
  fmt::print(" | {:>6} | {}", seconds_text(watch.seconds()), verdict);
  return proof.shrinking.refusal.empty() && !proof.is_proven() ? 1 : 0;
}

int make_row(const std::string& path, std::int64_t devices, bool is_uniform, Level level, bool proves) {
  const Stopwatch watch;
  const auto model = std::make_shared<const Model>(read_model(path));
  PlanOptions options;
  options.level = level;
  options.uniform_layers = is_uniform;
  const Cluster cluster =
      job_cluster(*model, {.cluster = cluster_of(*model, devices), .device_num = {}, .rank_table = {}}).cluster;
  const ModelPlanner planner(model, cluster, options);
  const Plan plan = planner.plan(level, kDefaultSearch);
  const double seconds = watch.seconds();
  if (plan.strategies.empty() || !plan.fits()) {
    fmt::print("{:>6} | no plan: {}\n", seconds_text(seconds), to_string(plan.status));
    return 0;
  }
  const std::optional<double> open = open_gap(plan);
  fmt::print("{:>6} | {:>9} | {:>9} | {:>6}", seconds_text(seconds), format_time(plan.time.step()),
             format_bytes(plan.memory.peak), open ? fmt::format("{:.2f} %", 100 * *open) : "-");
  if (!proves) {
    fmt::print("\n");
    return 0;
  }
  const Process proof = in_own_process([&] { return prove_row(plan); });
  if (!proof.is_finished) fmt::print(" | ended without an answer");
  fmt::print(" | {:.0f} MiB\n", proof.mebibytes);
  return proof.is_finished ? proof.exit_code : 1;
}

std::vector<std::string> shipped_models() {
  std::vector<std::string> paths;
  for (const char* folder : {"configs", "configs/models"}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == ".yaml") paths.push_back(entry.path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<std::int64_t> numbers(const std::string& text) {
  std::vector<std::int64_t> result;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) result.push_back(std::stoll(part));
  return result;
}

Arguments read_arguments(const std::vector<std::string>& words) {
  Arguments arguments;
  for (const std::string& word : words) arguments.words += " " + word;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto value = [&] { return i + 1 < words.size() ? words[++i] : std::string(); };
    if (words[i] == "--devices") {
      arguments.devices = numbers(value());
    } else if (words[i] == "--levels") {
      arguments.levels = numbers(value());
    } else if (words[i] == "--layers") {
      arguments.uniform = {value() == "uniform"};
    } else if (words[i] == "--no-proof") {
      arguments.proves = false;
    } else if (words[i] == "--markdown") {
      arguments.measured = value();
    } else {
      arguments.paths.push_back(words[i]);
    }
  }
  if (arguments.paths.empty()) arguments.paths = shipped_models();
  return arguments;
}

constexpr const char* kPage = R"(# Real networks: planned and proven

For each network at the sizes of its paper: the plan and its proof, on one node of 8 devices and on 8 such nodes. Step,
peak and gap are the plan's ([search.md](search.md)); the proof ([proof.md](proof.md)) is of the same plan at sizes that it chooses itself. Seconds are
processor time over all threads. The memory is that of the proof's process, including what planning holds. Measured on {} cores, {};
all other columns are the same on every machine.

This page is made by `models_bench{}`, a program of `./run bench`.

)";

int run(const Arguments& arguments) {
  const bool is_page = !arguments.measured.empty();
  if (is_page) fmt::print(kPage, std::thread::hardware_concurrency(), arguments.measured, arguments.words);
  fmt::print("model | devices | layers | level | plan s | step | peak | gap | proof s | proof | its memory\n");
  if (is_page) fmt::print("---|--:|---|--:|--:|--:|--:|--:|--:|---|--:\n");
  int status = 0;
  for (const std::string& path : arguments.paths) {
    for (const std::int64_t devices : arguments.devices) {
      for (const bool is_uniform : arguments.uniform) {
        for (const std::int64_t level : arguments.levels) {
          const std::string name = std::filesystem::path(path).stem().string();
          fmt::print("{:<16} | {:>2} | {:<7} | {} | ", name, devices, is_uniform ? "uniform" : "free", level);
          const Process row =
              in_own_process([&] { return make_row(path, devices, is_uniform, level_of(level), arguments.proves); });
          if (!row.is_finished) fmt::print("ended without an answer\n");
          if (!row.is_finished || row.exit_code != 0) status = 1;
        }
      }
    }
  }
  return status;
}

}  // namespace
}  // namespace shardplan

int main(int argc, char** argv) {
  return shardplan::run(shardplan::read_arguments(std::vector<std::string>(argv + 1, argv + argc)));
}
