// How do our step times compare with published training runs? Prints docs/accuracy.md; with part of a run's name, only
// the table's rows of those runs, and with `--model` after it their model files. Run in the project's folder.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "report/metrics/peak_holders.h"
#include "tests/support/published_runs.h"

namespace shardplan {
namespace {

struct Outcome {
  const PublishedRun* run = nullptr;
  double ratio = 0;  // our step time to the published one; 0: none is published, or it does not fit
  bool fits = false;
  Bytes peak = 0;
  std::string holders;  // the kinds with most of the peak
};

std::string gibibytes(Bytes bytes) { return fmt::format("{:.1f}", static_cast<double>(bytes) / (1 << 30)); }

/// The kinds of tensors with most of the peak, with their GiB.
std::string main_holders(const Plan& plan) {
  std::string text;
  for (const auto& [what, bytes] : peak_holders(plan)) {
    if (bytes * 10 >= plan.memory.peak)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", what, gibibytes(bytes));
  }
  return text;
}

Outcome print_row(const PublishedRun& run) {
  const Plan plan = plan_of(run);
  Outcome outcome;
  outcome.run = &run;
  const auto seconds = [](Picoseconds time) { return static_cast<double>(time) / 1e12; };
  outcome.fits = !plan.program.instructions.empty() && plan.fits();
  if (plan.program.instructions.empty()) {
    fmt::print("| {} | {} | {} | {:.4g} | does not fit | | | {} |\n", run.name, run.what, run.figure, run.seconds,
               run.assumed);
    return outcome;
  }
  outcome.peak = plan.memory.peak;
  outcome.holders = main_holders(plan);
  const double exposed = 100 * seconds(plan.time.exposed) / seconds(plan.time.step());
  if (run.seconds > 0) {
    outcome.ratio = seconds(plan.time.step()) / run.seconds;
    fmt::print("| {} | {} | {} | {:.4g} | {:.4g} | {:.2f} | {:.0f} | {} |\n", run.name, run.what, run.figure,
               run.seconds, seconds(plan.time.step()), outcome.ratio, exposed, run.assumed);
  } else {
    fmt::print("| {} | {} | memory alone | | {:.4g} | | {:.0f} | {} |\n", run.name, run.what, seconds(plan.time.step()),
               exposed, run.assumed);
  }
  std::fflush(stdout);
  return outcome;
}

/// Errors of the ratios, as distances to one, of the runs that have a ratio.
struct Errors {
  double sum = 0, signed_sum = 0;
  std::vector<std::pair<double, std::string>> sorted;

  void add(double ratio, const std::string& name) {
    sum += std::abs(ratio - 1);
    signed_sum += ratio - 1;
    sorted.emplace_back(std::abs(ratio - 1), name);
  }
  /// "mean | median | signed mean | within 10 % | worst" of at least one run.
  std::string row() {
    std::sort(sorted.begin(), sorted.end());
    const auto count = static_cast<double>(sorted.size());
    const auto within_ten = std::ranges::count_if(sorted, [](const auto& error) { return error.first <= 0.10; });
    return fmt::format("{:.1f} % | {:.1f} % | {:+.1f} % | {} | {:.0f} % ({})", 100 * sum / count,
                       100 * sorted[sorted.size() / 2].first, 100 * signed_sum / count, within_ten,
                       100 * sorted.back().first, sorted.back().second);
  }
};

void print_summary(const std::vector<Outcome>& outcomes) {
  Errors errors;
  std::size_t timed = 0, refused = 0;
  for (const Outcome& outcome : outcomes) {
    refused += outcome.fits ? 0 : 1;
    timed += outcome.run->seconds > 0 ? 1 : 0;
    if (outcome.ratio > 0) errors.add(outcome.ratio, outcome.run->name);
  }
  if (errors.sorted.empty()) return;
  fmt::print(
      "| runs | mean error | median | mean with its sign | within 10 % | worst | do not fit, though they ran |\n");
  fmt::print("|---|---|---|---|---|---|---|\n");
  fmt::print("| {} | {} | {} |\n", timed, errors.row(), refused);
}

void print_memory(const std::vector<Outcome>& outcomes) {
  Errors errors;
  fmt::print("| run | configuration | published | GiB | ours, GiB | ratio | of that, GiB |\n");
  fmt::print("|---|---|---|---|---|---|---|\n");
  for (const Outcome& outcome : outcomes) {
    const PublishedRun& run = *outcome.run;
    if (run.gibibytes == 0 || outcome.peak == 0) continue;
    const double ratio = static_cast<double>(outcome.peak) / (1 << 30) / run.gibibytes;
    errors.add(ratio, run.name);
    fmt::print("| {} | {} | {} | {:.1f} | {} | {:.2f} | {} |\n", run.name, run.what, run.memory, run.gibibytes,
               gibibytes(outcome.peak), ratio, outcome.holders);
  }
  if (errors.sorted.empty()) return;
  fmt::print("\n| runs | mean error | median | mean with its sign | within 10 % | worst |\n");
  fmt::print("|---|---|---|---|---|---|\n");
  fmt::print("| {} | {} |\n", errors.sorted.size(), errors.row());
}

constexpr const char* kIntroduction =
    R"(# Step times and memory against published runs

Runs with published step times or memory, each planned with the parallelism that the run used: training, and inference (gpt-fast, vLLM, TensorRT-LLM), where a
step is one token of each sequence, or a prompt. This page is the output of `bench/published_bench`; the runs, with their models and clusters, are in
`bench/published/*.yaml`.

A run is a model file in which placeholders for its parallelism are replaced by axes of its mesh: what shards the batch, features and
heads, the sequence, and the stored weights. Its mode is `semi_auto_parallel`, so nothing is left to the search. The *published* step time in
seconds follows from the figure in the source: tokens or floating-point operations per step divided by the rate, with operations counted as in the
source. *Exposed* is the share of our step spent waiting for collectives. Kernels run in the order of the graph, as those systems
run them; level 2 would reorder them to hide more communication.

Left out:

- runs with pipeline parallelism (interleaved or not), and BERT with sequences binned by length, whose number of tokens is not known;
- EfficientNet-B0 on 8 and 16 devices, which are 6.7 and 11.8 times as fast as one with only 10 MB of gradients (we assume that hosts cannot load
  images faster), and in TF32, whose depthwise convolutions run in other kernels;
- DLRM on 8 devices, where software decides: a batch of 55,296 takes HugeCTR 1.4 ms (MLPerf 2.0; it copies frequent rows to all devices and starts a
  whole graph of kernels at once) and one of 65,536 takes TensorFlow 4.7 ms, our plans 2.4 and 2.7 ms;
- MindFormers' GPT-2 of 124M on one Ascend 910, whose 1265 tokens/s are a thirtieth of what BERT-large reaches there, and image models of MindCV on
  910B, which wait for images (ResNet-50 with 32 for each takes 33 ms, on Ascend 910 19 ms);
- mixtures of experts in Megatron Bridge, whose software takes time that is not described (gpt-oss 120B on 64 B200 and GB200 takes 10.2 and 5.2 s, our
  plans 7.9 and 2.6 s), its runs that offload activations to hosts, and torchao's runs on B200 of limited power;
- Oracle's Llama 3.1 405B on 8 MI300X in vLLM of 2024, whose 28 ms for a token of one sequence and 139 ms for 256 our plans take 0.80 and 0.41 of;
- Llama 2 70B decoded by TensorRT-LLM 0.6, before its kernels for grouped queries doubled the throughput, and its prompts of 128 tokens, which take 7 to
  47 ms, 0.57 to 0.82 of it in our plans (some milliseconds on the host are not described).
)";

constexpr const char* kRemarks = R"(
Each cluster file names in its `sources` the runs that its constants were fitted to; the other runs were not used for fitting. All A100
share one efficiency of matrix products, all H100 and H200 another, B200 and GB200 a third, and Ascend 910 and 910B have their own; tiles, waves and the depth of k
(`matrix_units`) account for different shapes, and `fusion` for compilers, hand-written kernels and libraries. Two groups of runs have separate clusters:
llm-foundry's H100 with the software of early 2023, and torchtitan's H100, which are limited to 500 W. Convolutions have one efficiency on A100, another on
H100 and H200, and a third on Ascend 910.

Special settings, with their sources:

- ZeRO-3 of 2021 gains little from more devices: DeepSpeed gathered every parameter separately, made views and copies for each device of the group
  one after the other on the host, and waited for each collective (DeepSpeed's issue 1069 and PR 1188). Its cluster models this by `per_device`, without
  any overlap. Newer implementations (torchtitan, fms-fsdp, llm-foundry) do neither.
- KempnerForge's tensor parallelism gathers the operand of each product separately (`own_gathers`: ColwiseParallel of DTensor) and does not shard
  the embedding; its inter-node links are those of its own profile.
- torchtitan and KempnerForge reduce gradients in f32, fms-fsdp and llm-foundry in bf16.
- Megatron-Core splits the collectives of tensor parallelism into pieces that run beside the products they belong to (`--tp-comm-overlap`): its
  runs set `collective_matmul`; no other source mentions it.
- Megatron-LM and Megatron-Core keep each device's part of the sequence after a norm and gather it again in the backward pass (`gather_again`).
- Megatron-LM's kernels do not fuse the dropout of attention probabilities (`fusion: hand-written`).
- gpt-fast and vLLM sum the activations of a token by one kernel that reads from all devices of a node (`direct_all_reduce`, fitted on GF-7B-tp8); with NCCL's all_reduce
  GF-7B-tp8 would take 1.17 of the published time. No other constant was fitted to decoding.
- Convolutions of PyTorch without `channels_last` reach less than half of the rate that they have with it (`a100-channels-first.yaml`): cuDNN transposes
  what it reads and writes.
- The models of timm and NG run under `autocast`: norms, softmaxes and residual sums are f32. The other runs of mixed precision are planned in two bytes throughout,
  which is what they say, or as good where kernels are fused (BERT, Stable Diffusion with its norms in low precision).
- torchtitan's selective recomputation keeps the results of every other product, but in FP8 of none, since its list of saved operators, as copies of its code of
  that time show it, has `aten.mm` and not `aten._scaled_mm`; what it keeps instead are magnitudes of operands (`aten.abs`), for which the plans keep these. Its loss of 2024 is not compiled
  (`eager_loss`), that of 2025 is (`fused_loss`). Of its runs in FP8, TT-H100-8-fp8 was used for fitting (`efficiency: {matmul_f8}`).
- Of NeMo's steps in FP8 those of B200 and GB200 were used for fitting, none of H100. Its context parallelism deals sequences to devices in zigzag; torchtitan's
  is taken not to (`zigzag`), by its steps with sequences of 128k and more. NeMo casts weights once in a step, our plans with every micro-batch.
- Of NG, the steps by which GPT-2 became faster, only the first was used for fitting (`efficiency: {matmul_f32}`). Eager PyTorch's loss and mask are written
  as its kernels are; its products with an odd vocabulary are slow (`efficiency: {odd_rows}`, from another source).
- AutoModel's mixtures of experts are written as its kernels of that time are: eager rotations and losses, biases of experts added in slices that are copied
  together again, in f32 where probabilities are factors, and one compiled activation. Its balanced choices follow each other, so a token's experts belong
  to one or two devices of a node; DeepEP sends it once to each node, and there once to each device, which copies it for its experts.
- MindSpore's compiler for Ascend 910 fuses elementwise operators with each other and into products (`fusion: elementwise`). Without that its six
  ResNet-50 would take 1.24 to 1.31 of the published times. Of these eleven runs MS-RN50-b256-g1, MS-BERT-base-g8 and MS-NEZHA-g8 were used for fitting. Of
  the seven on 910B three with a compiler were (MF-L2-7B-acc, MF-L2-13B, MF-L3-8B); tensor parallelism over its links (AS) was not.

Causes of the largest errors:

- Megatron-Core gathers new weights during the forward pass of the next step (`--overlap-param-gather`); here the step ends with these gathers.
- Data parallelism over 128 groups makes Megatron-LM 4 to 7 % slower, our plans 1 to 2 %.
- vLLM does work on the host between two tokens.
- DTensor copies a sequence that it gathers or scatters along a dimension behind the batch, which our plans do not count; this may be why TT-8B-tp8, with
  twelve sequences on each device, takes longer. Megatron-LM's sequences come first.
- Without a backward pass products reach more of an A100 than in training, where its efficiency was fitted (TRT-7B-a100-p2048).
- AutoModel's host waits in each layer until it knows how many tokens arrive, and starts eager kernels one by one; our plans count no time on the
  host. No constant was fitted to mixtures of experts.
- MindFormers' steps of one sequence per device (MF-L2-7B, MF-BC2-7B) may wait for weights and gradients, which our plans hide.
- MLPerf's U-Net for volumes: convolutions with 32 to 64 channels at 128 voxels a side may run below the efficiency that was met on ResNet-50.
- Why timm's Swin-T takes longer is not known. Eager PyTorch may copy windows more often.
- MosaicML's images of 256 x 256 per second grow by a third only from 64 to 128 devices, those of 512 x 512 twofold; the source gives no reason.
)";

constexpr const char* kAboutMemory =
    R"(Peak memory per device, where it was published. KempnerForge's figures are PyTorch's `max_memory_allocated` in units of
1024^3 bytes, which it calls GB (`kempnerforge/metrics/memory.py`). torchtitan's are what the allocator has reserved from the device (`max_reserved`
of its log), which is more than was ever in use. KempnerForge holds weights, reduced gradients and moments in bf16, without a master
copy (`training: {master_copy: false, state_dtype: bf16}`), and sums of gradients over micro-batches unsharded in f32 (FSDP2 without synchronisation).
)";

constexpr const char* kMemoryRemarks = R"(
A separate test checks the activations of a GPT layer against Korthikanti's formulas (no parallelism, tensor and sequence parallelism, over 2 and 8
devices) (`tests/planner/memory_test.cc`).
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
  const std::vector<PublishedSource> sources = published_sources();
  std::vector<Outcome> outcomes;
  if (filter.empty()) fmt::print("{}", kIntroduction);
  for (const PublishedSource& source : sources) {
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
  if (filter.empty()) fmt::print("{}\n## Memory\n\n{}\n", kRemarks, kAboutMemory);
  print_memory(outcomes);
  if (filter.empty()) fmt::print("{}", kMemoryRemarks);
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
