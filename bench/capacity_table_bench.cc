// Which parallelism does the search pick as devices get smaller, and is any hand-made plan cheaper?
//
// For every subject: the fastest plan (level 2) over device capacities, from ample down to the least that fits, with
// its named parallelism; then the plans that people make by hand, as user strategies with the rest searched. If a
// hand-made plan fits and is faster than the search's at some capacity, the program reports it and exits with 1.
//
// Plans are searched within a fixed amount of work, so the table is the same everywhere. Models are configs/*.yaml
// without their own `strategies:`, and with `parallel: {attention: fused}` only. Run in the project's folder.

#include <fmt/format.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "model/read_model.h"
#include "planner/model_planner.h"
#include "report/metrics/parallelism_patterns.h"

namespace shardplan {
namespace {

constexpr std::uint64_t kWork = 5'000'000'000;
constexpr double kGiB = 1024.0 * 1024 * 1024;

struct Subject {
  const char* file;
  const char* cluster;
  std::map<std::string, std::int64_t> dims;
  std::map<std::string, std::string> tensor_pieces;  // Megatron's matmuls on dp=2, tp=4: columns, then rows
};

const Subject kSubjects[] = {
    {"configs/gpt2-small.yaml",
     "ascend-910",
     {{"B", 8}},
     {{"layers.*.attn.qkv.matmul", "[[2, 1, 1], [4, 1]]"},
      {"layers.*.attn.proj.matmul", "[[2, 1, 4], [1, 4]]"},
      {"layers.*.up.matmul", "[[2, 1, 1], [4, 1]]"},
      {"layers.*.down.matmul", "[[2, 1, 4], [1, 4]]"}}},
    {"configs/gpt2-small.yaml",
     "dgx-a100",
     {{"B", 8}},
     {{"layers.*.attn.qkv.matmul", "[[2, 1, 1], [4, 1]]"},
      {"layers.*.attn.proj.matmul", "[[2, 1, 4], [1, 4]]"},
      {"layers.*.up.matmul", "[[2, 1, 1], [4, 1]]"},
      {"layers.*.down.matmul", "[[2, 1, 4], [1, 4]]"}}},
    {"configs/llama-7b.yaml",
     "dgx-a100",
     {{"B", 8}},
     {{"layers.*.q.dense.matmul", "[[2, 1, 1], [4, 1]]"},
      {"layers.*.k.dense.matmul", "[[2, 1, 1], [4, 1]]"},
      {"layers.*.v.dense.matmul", "[[2, 1, 1], [4, 1]]"},
      {"layers.*.o.matmul", "[[2, 1, 4], [1, 4]]"},
      {"layers.*.gate.matmul", "[[2, 1, 1], [4, 1]]"},
      {"layers.*.up.matmul", "[[2, 1, 1], [4, 1]]"},
      {"layers.*.down.matmul", "[[2, 1, 4], [1, 4]]"}}},
};

/// The file without its `parallel:`; the caller adds `attention: fused`.
std::string model_text(const std::string& path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return text.substr(0, text.find("\nparallel:")) + "\n";
}

std::unique_ptr<ModelPlanner> planning_of(const Subject& subject, const std::string& parallel,
                                          const std::map<std::string, std::string>& strategies,
                                          std::optional<Bytes> capacity) {
  const std::string text = model_text(subject.file) + "parallel: {attention: fused" + parallel + "}\n";
  auto model = std::make_shared<const Model>(read_model_text(text, subject.file, {subject.dims, strategies}));
  PlanOptions options;
  options.work_limit = kWork;
  options.overlap = false;  // both the search and its bound are for the additive step
  options.capacity = capacity;
  return std::make_unique<ModelPlanner>(std::move(model), read_cluster(subject.cluster), options);
}

/// Stores every trained matrix and vector in one piece, or in `pieces` of its first dimension.
std::map<std::string, std::string> stored_in(const Subject& subject, std::int64_t pieces) {
  const Model model = read_model_text(model_text(subject.file), subject.file, {subject.dims, {}});
  std::map<std::string, std::string> strategies;
  for (const GraphTensor& tensor : model.graph.tensors()) {
    if (tensor.kind != TensorKind::kParameter || !tensor.requires_grad) continue;
    std::string entry = fmt::format("[{}", tensor.type.shape[0] % pieces == 0 ? pieces : 1);
    for (std::size_t d = 1; d < tensor.type.shape.size(); ++d) entry += ", 1";
    strategies[tensor.name] = entry + "]";
  }
  return strategies;
}

struct HandMade {
  std::string name;
  Picoseconds time = 0;
  Bytes peak = 0;
};

double milliseconds(Picoseconds time) { return static_cast<double>(time) / 1e9; }
double gibibytes(Bytes bytes) { return static_cast<double>(bytes) / kGiB; }

bool run(const Subject& subject) {
  const auto whole = planning_of(subject, "", {}, std::nullopt);
  fmt::print("\n{}, {} of {}, {} devices, mesh {}\n", subject.file, "B", subject.dims.at("B"),
             whole->mesh().num_devices(), whole->mesh().to_string());

  std::vector<HandMade> hand_made;
  const Baseline data_parallel = whole->data_parallel();
  hand_made.push_back({"data parallel, nothing sharded but the batch", data_parallel.time.step(), data_parallel.peak});
  const auto add = [&](const char* name, const std::string& parallel,
                       const std::map<std::string, std::string>& strategies) {
    const Plan plan = planning_of(subject, parallel, strategies, kUnlimitedBytes)->plan(Level::kSpeed, "auto");
    if (!plan.program.instructions.empty()) hand_made.push_back({name, plan.time.step(), plan.memory.peak});
  };
  const std::int64_t devices = whole->mesh().num_devices();
  const std::string semi_auto = ", parallel_mode: semi_auto_parallel";
  add("data parallel by its mode, gradients summed as f32", semi_auto, stored_in(subject, 1));
  add("ZeRO-1", semi_auto + ", enable_parallel_optimizer: true", stored_in(subject, 1));
  add("ZeRO-3", semi_auto + ", enable_parallel_optimizer: true", stored_in(subject, devices));
  add("Megatron, tp=4 dp=2, rest searched", "", subject.tensor_pieces);

  fmt::print("{:>10} {:>10} {:>9} {:>7} {:>8}  {}\n", "capacity", "step, ms", "peak, GiB", "gap, %", "search s",
             "plan");
  bool is_good = true;
  const Bytes least = whole->smallest().memory.peak;
  Bytes ample = 0;
  for (const double share : {1.0, 0.75, 0.5, 0.25, 0.1, 0.0}) {
    std::optional<Bytes> capacity;  // at first the cluster's
    if (ample > 0) capacity = least + static_cast<Bytes>(share * static_cast<double>(ample - least));
    const auto start = std::chrono::steady_clock::now();
    const Plan plan = planning_of(subject, "", {}, capacity)->plan(Level::kSpeed, "auto");
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (ample == 0) ample = plan.memory.peak;
    const bool is_found = plan.status == PlanStatus::kOptimal || plan.status == PlanStatus::kFeasible;
    if (is_found) {
      fmt::print("{:>10.2f} {:>10.2f} {:>9.2f} {:>7.2f} {:>8.1f}  {}\n", gibibytes(plan.usable),
                 milliseconds(plan.time.step()), gibibytes(plan.memory.peak),
                 100 * gap(plan.cost, plan.bound).value_or(0), seconds, parallelism_patterns(plan));
    } else {
      fmt::print("{:>10.2f} {:>10} {:>9} {:>7} {:>8.1f}  none found\n", gibibytes(plan.usable), "-", "-", "-", seconds);
    }
    std::fflush(stdout);
    for (const HandMade& hand : hand_made) {
      if (hand.peak > plan.usable || (is_found && hand.time >= plan.time.step())) continue;
      fmt::print("  FASTER: {}\n", hand.name);
      is_good = false;
    }
  }
  fmt::print("by hand\n");
  for (const HandMade& hand : hand_made) {
    fmt::print("{:>10} {:>10.2f} {:>9.2f} {:>7} {:>8}  {}\n", "", milliseconds(hand.time), gibibytes(hand.peak), "", "",
               hand.name);
  }
  return is_good;
}

}  // namespace
}  // namespace shardplan

int main(int count, char** arguments) {
  const std::string filter = count > 1 ? arguments[1] : "";
  bool is_good = true;
  for (const shardplan::Subject& subject : shardplan::kSubjects) {
    const std::string name = std::string(subject.file) + "@" + subject.cluster;
    if (name.find(filter) != std::string::npos) is_good = shardplan::run(subject) && is_good;
  }
  return is_good ? 0 : 1;
}
