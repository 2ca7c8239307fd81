// Absolute accuracy of times. A sample of bench/published, each run planned by the program with its own parallelism;
// docs/accuracy.md has all of them. The tolerances are the largest deviations of the sample, rounded up.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "tests/support/published_runs.h"

namespace shardplan {
namespace {

const std::map<std::string, PublishedRun>& published_by_name() {
  static const std::map<std::string, PublishedRun> all = [] {
    std::map<std::string, PublishedRun> by_name;
    for (const PublishedSource& source : published_sources()) {
      for (const PublishedRun& run : source.runs) by_name[run.name] = run;
    }
    return by_name;
  }();
  return all;
}

/// Plans are made once for all tests.
const Plan& planned(const std::string& name) {
  static std::map<std::string, Plan> plans;
  const auto found = plans.find(name);
  return found != plans.end() ? found->second
                              : plans.emplace(name, plan_of(published_by_name().at(name))).first->second;
}

TEST(Accuracy, PlansOfPublishedRunsTakeWhatWasPublished) {
  // One of each kind: tensor parallel, data parallel, both with sequence parallelism, FSDP on 2 to 128 devices with and
  // without a compiler, attention written and fused, convolution networks on A100, H100 and H200, replicas of FSDP,
  // ZeRO-3 of 2021, decoding.
  const std::string sample[] = {"SC21-1.7B",        "SC21-7.5B",           "MEG20-8B",
                                "KOR-22B-full",     "KOR-22B-spsel",       "MPT-a100-7b-s4096-g8",
                                "TT-L2-13B-none",   "TT-H100-128-compile", "KF-7B-fsdp2",
                                "KF-13B-fsdp8",     "FA2-1.3B-8k-flash2",  "FA2-2.7B-2k-standard",
                                "BERT-L-s128-g8",   "RN50-MXNet-g1",       "MEG20-8B-dp128",
                                "IBM-7B",           "ZERO3-175B-768",      "SD2-256-g64",
                                "MLPERF-RN50-h200", "MLPERF-SD2-g64",      "GF-7B-tp2",
                                "GF-70B-tp8"};
  double sum = 0, signed_sum = 0;
  for (const std::string& name : sample) {
    ASSERT_TRUE(published_by_name().contains(name)) << name;
    const PublishedRun& run = published_by_name().at(name);
    const Plan& plan = planned(name);
    ASSERT_FALSE(plan.program.instructions.empty()) << name << " ran, but is refused";
    EXPECT_TRUE(plan.fits()) << name;
    const double ratio = static_cast<double>(plan.time.step()) / 1e12 / run.seconds;
    EXPECT_NEAR(ratio, 1, 0.12) << name;
    sum += std::abs(ratio - 1);
    signed_sum += ratio - 1;
  }
  const auto count = static_cast<double>(std::size(sample));
  EXPECT_LT(sum / count, 0.05);
  EXPECT_NEAR(signed_sum / count, 0, 0.03);
}

TEST(Accuracy, PlansOfPublishedRunsHoldWhatWasPublished) {
  // The allocator's reserved memory with and without a compiler, activations sharded over the sequence, and the memory
  // in use with FSDP alone and together with tensor parallelism.
  for (const char* name : {"TT-H100-8-eager", "TT-H100-128-compile", "MEG-L2-7B-tp8", "KF-7B-fsdp2", "KF-7B-tp2fsdp2",
                           "KF-13B-fsdp8", "KF-13B-tp4fsdp40", "KF-70B-tp4fsdp24"}) {
    const PublishedRun& run = published_by_name().at(name);
    const double ratio = static_cast<double>(planned(name).memory.peak) / (1 << 30) / run.gibibytes;
    EXPECT_NEAR(ratio, 1, std::string(name).starts_with("KF") ? 0.04 : 0.11) << name;
  }
}

TEST(Accuracy, RunsThatDidNotFitOnceAreNotRefused) {
  for (const char* name : {"MPT-a100-760m-s2048-g8", "MPT-a100-7b-s4096-g8", "IBM-34B", "TT-H100-8-eager"}) {
    const Plan& plan = planned(name);
    EXPECT_FALSE(plan.program.instructions.empty()) << name;
    EXPECT_TRUE(plan.fits()) << name;
  }
}

}  // namespace
}  // namespace shardplan
