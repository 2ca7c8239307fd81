// What does the program say of training runs whose times were published? Prints docs/accuracy.md; with a part of a run's
// name, only the table's rows of those runs, and with `--model` behind it their model files. Run in the project's folder.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/support/published_runs.h"

namespace shardplan {
namespace {

struct Outcome {
  std::string name;
  double ratio = 0;
  bool fits = false;
};

Outcome print_row(const PublishedRun& run) {
  const Plan plan = plan_of(run);
  Outcome outcome;
  outcome.name = run.name;
  const auto seconds = [](Picoseconds time) { return static_cast<double>(time) / 1e12; };
  outcome.fits = !plan.program.instructions.empty() && plan.fits();
  if (plan.program.instructions.empty()) {
    fmt::print("| {} | {} | {} | {:.4g} | does not fit | | | {} |\n", run.name, run.what, run.figure, run.seconds,
               run.assumed);
    return outcome;
  }
  outcome.ratio = seconds(plan.time.step()) / run.seconds;
  fmt::print("| {} | {} | {} | {:.4g} | {:.4g} | {:.2f} | {:.0f} | {} |\n", run.name, run.what, run.figure, run.seconds,
             seconds(plan.time.step()), outcome.ratio, 100 * seconds(plan.time.exposed) / seconds(plan.time.step()),
             run.assumed);
  std::fflush(stdout);
  return outcome;
}

void print_summary(const std::vector<Outcome>& outcomes) {
  double sum = 0, signed_sum = 0;
  std::size_t planned = 0, within_ten = 0, refused = 0;
  std::vector<std::pair<double, std::string>> errors;
  for (const Outcome& outcome : outcomes) {
    refused += outcome.fits ? 0 : 1;
    if (outcome.ratio == 0) continue;
    ++planned;
    const double error = std::abs(outcome.ratio - 1);
    sum += error;
    signed_sum += outcome.ratio - 1;
    within_ten += error <= 0.10 ? 1 : 0;
    errors.emplace_back(error, outcome.name);
  }
  if (planned == 0) return;
  std::sort(errors.begin(), errors.end());
  const auto count = static_cast<double>(planned);
  fmt::print(
      "| runs | mean error | median | mean with its sign | within 10 % | worst | do not fit, though they ran |\n");
  fmt::print("|---|---|---|---|---|---|---|\n");
  fmt::print("| {} | {:.1f} % | {:.1f} % | {:+.1f} % | {} | {:.0f} % ({}) | {} |\n", outcomes.size(), 100 * sum / count,
             100 * errors[planned / 2].first, 100 * signed_sum / count, within_ten, 100 * errors.back().first,
             errors.back().second, refused);
}

constexpr const char* kIntroduction =
    R"(# Step times against published runs

Training runs whose step times were published, each planned by the program with the parallelism that it used. This page is the
output of `bench/published_bench`; the runs are `bench/published/*.yaml`, their models and clusters stand beside them.

A run is a model file in which the words of its parallelism are replaced by axes of its mesh: what cuts the batch, features and
heads, the sequence, and what is stored in pieces. Its mode is `semi_auto_parallel`, so that nothing is left to the search. *Published*
seconds follow from the figure in the source: tokens or floating-point operations of a step over the rate, operations counted as the source
counts them. *Exposed* is the share of our step in which a collective is waited for. Kernels stand in the order of the graph, as those systems
run them; the plans of level 2 reorder them where that hides more.

Left out: runs with pipeline parallelism (interleaved or not), with FP8, and BERT with sequences binned by length, whose number of tokens is not
known.
)";

constexpr const char* kRemarks = R"(
What the figures of a cluster were fitted on stands in its `sources`, by the names of runs; the other runs were not used. One
efficiency of matrix products holds for all A100 and one for all H100 and H200; tiles, waves and the depth of k (`matrix_units`) make the
difference between shapes, and `fusion` that between compilers, hand-written kernels and libraries. Two groups of runs have clusters of their own:
llm-foundry's H100 with the software of early 2023, and torchtitan's H100, which may draw 500 W.

Causes of what is special, with their sources:

- ZeRO-3 of 2021 hardly gains by more devices: DeepSpeed gathered every parameter by itself, made views and copies for each device of the group
  one after the other on the host, and waited for each collective (DeepSpeed's issue 1069 and PR 1188). That is `per_device` in its cluster, and nothing
  overlaps. Newer implementations (torchtitan, fms-fsdp, llm-foundry) do neither.
- KempnerForge's tensor parallelism gathers the operand of each product by itself (`own_gathers`: ColwiseParallel of DTensor) and leaves the embedding
  whole; its links between nodes are those of its own profile.
- torchtitan and KempnerForge reduce gradients as f32, fms-fsdp and llm-foundry as bf16.
- Megatron-Core cuts the collectives of tensor parallelism into pieces that run beside the products that they are for (`--tp-comm-overlap`):
  `collective_matmul` of its runs, which no other source says.
- Megatron-LM's kernels leave the dropout of attention's probabilities alone (`fusion: hand-written`).

Where the errors are:

- Megatron-Core gathers new weights beside the next step's forward pass (`--overlap-param-gather`); here the step ends with that.
- Data parallelism of Megatron-LM over 128 groups: 4 to 7 % slower than without it, ours 1 to 2 %.
)";

int print_models(const std::string& filter) {
  for (const PublishedSource& source : published_sources()) {
    for (const PublishedRun& run : source.runs) {
      if (run.name.find(filter) != std::string::npos) fmt::print("{}\n", model_text(run));
    }
  }
  return 0;
}

int run(const std::string& filter) {
  std::vector<Outcome> outcomes;
  if (filter.empty()) fmt::print("{}", kIntroduction);
  for (const PublishedSource& source : published_sources()) {
    if (filter.empty()) {
      fmt::print("\n## {}\n\nSource: {}.", source.title, source.from);
      fmt::print("{}\n\n", source.assumed.empty() ? "" : fmt::format(" Assumed: {}.", source.assumed));
      fmt::print("| run | configuration | published | s | ours, s | ratio | exposed, % | assumed |\n");
      fmt::print("|---|---|---|---|---|---|---|---|\n");
    }
    for (const PublishedRun& run : source.runs) {
      if (run.name.find(filter) == std::string::npos) continue;
      outcomes.push_back(print_row(run));
    }
  }
  if (filter.empty()) fmt::print("\n## All together\n\n");
  print_summary(outcomes);
  if (filter.empty()) fmt::print("{}", kRemarks);
  return 0;
}

}  // namespace
}  // namespace shardplan

int main(int count, char** arguments) {
  try {
    if (count > 2 && std::string(arguments[2]) == "--model") return shardplan::print_models(arguments[1]);
    return shardplan::run(count > 1 ? arguments[1] : "");
  } catch (const shardplan::InputError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 3;
  }
}
