#include "planner/problem/running_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/read_model.h"
#include "planner/model_planner.h"
#include "program/memory_profile.h"
#include "solver/minimum_peak.h"
#include "solver/searches/search_list.h"
#include "tests/fuzz/random_model.h"
#include "tests/support/files.h"
#include "tests/support/marked_model.h"
#include "tests/support/planned_model.h"

namespace shardplan {
namespace {

/// The same decisions, but a version of a stored tensor that only versions in that tensor's memory follow is in it, too:
/// the program does not make it.
Decisions without_unread_versions(const PlannedModel& model, Decisions decisions) {
  for (std::size_t i = model.versions.all.size(); i-- > 0;) {
    const TensorVersion& version = model.versions.all[VersionId(i)];
    if (!version.stored || !version.readers.empty() || version.next.empty()) continue;
    const TensorLayout& stored = decisions.versions[*version.stored];
    const bool is_read = std::any_of(version.next.begin(), version.next.end(),
                                     [&](VersionId next) { return !(decisions.versions[next] == stored); });
    if (!is_read) decisions.versions[VersionId(i)] = stored;
  }
  return decisions;
}

struct Compared {
  std::size_t choices = 0;
  std::size_t equal = 0;   // to what the program holds
  std::size_t nearer = 0;  // than a problem with the copies of operands alone
};

/// Compares the peaks of random choices with those of their programs, counted instruction by instruction.
Compared compare_peaks(const std::string& text, int rounds, Compared before = {}, const ModelOverrides& sizes = {}) {
  const PlannedModel model(read_model_text(text, "m.yaml", sizes), "ascend-910", {{"a", 2}, {"b", 4}});
  const ModelProblem counted = model.with_redistributions(), copies = model.with_copies();
  check_problem(counted.problem);
  Random random(7);
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(round);
    const Decisions decisions = without_unread_versions(model, model.decided(model.random_choice(random)));
    const ParallelProgram program = lower(model.graph, model.versions, decisions, *model.costs, *model.redistributions);
    if (has_unread_result(program)) continue;
    const auto peak = [&](const ModelProblem& problem) {
      const auto choice = find_choice(model.versions, problem, decisions.strategies, decisions.versions);
      EXPECT_TRUE(choice.has_value());
      const Evaluation evaluation = evaluate(problem.problem, choice.value_or(Choice{}));
      EXPECT_EQ(evaluation.forbidden_count, 0u);
      return evaluation.peak_bytes;
    };
    const Bytes held = memory_profile(program).peak, seen = peak(counted), without = peak(copies);
    EXPECT_LE(seen, held);
    ++before.choices;
    before.equal += seen == held ? 1 : 0;
    before.nearer += seen > without ? 1 : 0;
  }
  return before;
}

TEST(RunningMemoryTest, HoldsNoMoreThanTheProgramsOfRandomModelsAndMostlyAsMuch) {
  Compared all;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    all = compare_peaks(random_model(random), 10, all);
  }
  EXPECT_GT(all.choices, 1500u);
  EXPECT_GT(all.equal, all.choices * 2 / 3);
  EXPECT_GT(all.nearer, all.choices / 3);
}

TEST(RunningMemoryTest, HoldsNoMoreThanTheProgramsOfTrainedLayers) {
  Compared all;
  for (const char* training :
       {"", ", mixed_precision: f16, clip_norm: 1", ", micro_batches: 2", ", recompute: [layers.*]",
        ", recompute: [layers.*.gelu, layers.*.drop, layers.*.norm.layer_norm]"}) {
    SCOPED_TRACE(training);
    all = compare_peaks(layered_model(training), 30, all);
  }
  EXPECT_GT(all.choices, 100u);
  EXPECT_GT(all.nearer, all.choices / 3);
}

TEST(RunningMemoryTest, HoldsNoMoreThanTheProgramsOfAModelThatWritesInPlace) {
  ModelOverrides sizes;
  sizes.dims = {{"B", 8}, {"T", 32}, {"H", 64}, {"heads", 8}, {"kv", 4}, {"D", 8}, {"F", 64}, {"V", 64}, {"L", 2}};
  std::string text = content_of("configs/models/llama3-70b-decode.yaml");
  text.replace(text.find("dtype: bf16"), 11, "dtype: f16");  // which the cluster computes
  EXPECT_GT(compare_peaks(text, 50, {}, sizes).choices, 10u);
}

/// The least peak of the programs of all choices; nothing if there are too many.
std::optional<Bytes> least_held(const PlannedModel& model) {
  const StrategyProblem& problem = model.problem.problem;
  std::size_t count = 1;
  for (const NodeId node : problem.nodes.ids()) {
    count *= problem.num_strategies(node);
    if (count > 10'000) return std::nullopt;
  }
  std::optional<Bytes> least;
  for (std::size_t number = 0; number < count; ++number) {
    Choice choice;
    std::size_t rest = number;
    for (const NodeId node : problem.nodes.ids()) {
      choice.strategy.push_back(StrategyId(rest % problem.num_strategies(node)));
      rest /= problem.num_strategies(node);
    }
    if (evaluate(problem, choice).forbidden_count > 0) continue;
    const Bytes held = memory_profile(model.lowered(choice)).peak;
    least = std::min(held, least.value_or(held));
  }
  return least;
}

/// Models of views whose sources are read elsewhere, or not; of a view read twice; and of one that another one views.
const char* const kViews[] = {
    "inputs: {x: [8, 2, 6]}\nparameters: {w: [12, 4]}\noperators:\n"
    "  flat: {op: Flatten, in: x, shape: [8, 12]}\n  y: {op: MatMul, in: [flat, w]}\n",
    "inputs: {x: [8, 3]}\noperators:\n"
    "  flat: {op: Reshape, in: x, shape: [24]}\n  a: {op: Exp, in: flat}\n  b: {op: ReduceMean, in: x}\n",
    "inputs: {x: [8, 2, 6]}\noperators:\n"
    "  flat: {op: Flatten, in: x, shape: [8, 12]}\n  a: {op: Mul, in: [flat, flat]}\n",
    "inputs: {x: [8, 12]}\noperators:\n  a: {op: Exp, in: x}\n"
    "  back: {op: Reshape, in: a, shape: [8, 2, 6]}\n  b: {op: ReduceMean, in: back}\n",
    "inputs: {x: [8, 12]}\noperators:\n  a: {op: Reshape, in: x, shape: [4, 24]}\n"
    "  b: {op: Reshape, in: a, shape: [96]}\n  c: {op: Exp, in: b}\n"};

TEST(RunningMemoryTest, TheLeastPeakIsALowerBoundOnAllProgramsAndMostlyEqual) {
  std::vector<std::string> texts;
  for (const char* text : kViews) texts.push_back(std::string("shardplan: 1\n") + text);
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    texts.push_back(random_model(random, 4));
  }
  std::size_t checked = 0, equal = 0;
  for (const std::string& text : texts) {
    SCOPED_TRACE(text);
    const PlannedModel model(read_model_text(text, "m.yaml"), take_devices(read_cluster("ascend-910"), 2), {{"a", 2}});
    const std::optional<Bytes> held = least_held(model);
    EXPECT_TRUE(held || checked >= std::size(kViews));
    if (!held) continue;
    SearchOptions options;
    options.objective = {0, 0};
    const MinimumPeak least =
        minimum_peak(model.with_redistributions().problem, *make_search(kDefaultSearch), options, 0);
    ASSERT_EQ(least.status, PlanStatus::kOptimal);
    EXPECT_LE(least.feasible, *held);
    ++checked;
    equal += least.feasible == *held ? 1 : 0;
  }
  EXPECT_GT(checked, 30u);
  EXPECT_GT(equal, checked * 9 / 10);
}

// The product's weight is smallest in eight pieces, but then the flattened image is redistributed, which holds it twice.
TEST(RunningMemoryTest, PinningALayoutDoesNotSaveMemory) {
  const auto planned = [](const char* weight) {
    const std::string text = std::string(R"(
shardplan: 1
inputs: {image: [32, 1, 28, 28]}
parameters: {w: )") + weight +
                             R"(}
operators:
  flat: {op: Flatten, in: image, shape: [32, 784]}
  y:    {op: MatMul, in: [flat, w]}
outputs: [y]
)";
    const auto model = std::make_shared<const Model>(read_model_text(text, "m.yaml"));
    PlanOptions options;
    options.overlap = false;
    return ModelPlanner(model, read_cluster("ascend-910"), options).plan(Level::kMemory, "auto");
  };
  const Plan free = planned("[784, 16]");
  EXPECT_LE(free.memory.peak, planned("{shape: [784, 16], strategy: [4, 1]}").memory.peak);
  EXPECT_LE(free.bound.amount, free.memory.peak);
  EXPECT_GT(free.bound.amount, free.memory.peak - free.memory.peak / 100);
}

}  // namespace
}  // namespace shardplan
