// Random models with randomly padded dims compute the same as the model without padding, at every position that the
// latter has: forward, gradients, and three steps of training. What cannot be padded is rejected with a place.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <optional>

#include "base/error.h"
#include "model/planned_model.h"
#include "model/read_model.h"
#include "simulator/proof/unpadded.h"
#include "tests/fuzz/random_model.h"

namespace shardplan {
namespace {

constexpr std::uint64_t kSeedOfPadding = 20261123;
constexpr std::uint64_t kPaddedCases = 400;

TEST(PaddedModelsTest, ComputeWhatTheyComputeWithoutPadding) {
  std::size_t padded = 0, with_masks = 0;
  std::map<std::string, int> refused;
  for (std::uint64_t i = 0; i < kPaddedCases; ++i) {
    Random random(mix(kSeedOfPadding ^ mix(i)));
    const std::string text = with_random_padding(random_model(random), random);
    SCOPED_TRACE(fmt::format("seed {} case {}\n{}", kSeedOfPadding, i, text));
    std::optional<Model> model;
    try {
      model = read_model_text(text, "padded.yaml");
    } catch (const InputError& error) {
      const Diagnostic& fault = error.diagnostics().front();
      EXPECT_GT(fault.place.line, 0) << fault.message;
      ++refused[fault.message.substr(0, 60)];
      continue;
    }
    if (!model->unpadded) continue;
    ++padded;
    const OperatorGraph graph = planned_graph(*model);
    for (const OperatorId op : graph.operators().ids()) {
      if (graph.operation(op).type->name != "MaskPadding") continue;
      ++with_masks;
      break;
    }
    const UnpaddedComparison found =
        compare_with_unpadded(graph, planned_graph(*model->unpadded), {.seed = random.next() >> 32});
    EXPECT_TRUE(found.missing.empty()) << fmt::format("{}", fmt::join(found.missing, ", "));
    if (found.first_wrong) {
      ADD_FAILURE() << fmt::format("{} at {} in step {}: found {}, should be {}", found.first_wrong->tensor,
                                   to_string(found.first_wrong->index), found.first_wrong->step,
                                   found.first_wrong->found, found.first_wrong->should_be);
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(padded, kPaddedCases / 6);
  EXPECT_GT(with_masks, kPaddedCases / 20);
  if (std::getenv("SHARDPLAN_SHOW") != nullptr) {
    fmt::print("{} padded, {} with masks\n", padded, with_masks);
    for (const auto& [message, count] : refused) fmt::print("{:4} {}\n", count, message);
  }
}

}  // namespace
}  // namespace shardplan
