// The search finds by itself, from the rules of two operators, what people do by hand for long sequences and experts.
#include <gtest/gtest.h>

#include "model/read_model.h"
#include "planner/model_planner.h"
#include "report/metrics/parallelism_patterns.h"
#include "report/proof_report.h"
#include "simulator/proof/prove.h"

namespace shardplan {
namespace {

Plan fastest_of_sequences(const std::string& path, const std::map<std::string, std::int64_t>& dims = {},
                          bool overlap = true, const std::string& cluster = "dgx-a100") {
  PlanOptions options;
  options.overlap = overlap;
  return ModelPlanner(std::make_shared<const Model>(read_model(path, {dims, {}})), read_cluster(cluster), options)
      .plan(Level::kSpeed, "auto");
}

/// In how many pieces the last forward operator of this type shards a factor; the first layer is free to take its input
/// in any layout.
std::int64_t pieces(const Plan& plan, std::string_view type, std::string_view factor) {
  const OperatorGraph& graph = *plan.graph;
  std::int64_t last = 0;
  for (const OperatorId id : graph.operators().ids()) {
    const Operation& operation = graph.operation(id);
    if (operation.type->name != type || graph.operators()[id].pass != Pass::kForward) continue;
    last = num_pieces(plan.strategies[id].factors[*operation.rule.find(factor)]);
  }
  return last;
}

std::size_t count(const Plan& plan, CollectiveKind kind) {
  std::size_t found = 0;
  for (const Instruction& instruction : plan.program.instructions) {
    found += instruction.kind == InstructionKind::kCollective && instruction.step->kind == kind ? 1 : 0;
  }
  return found;
}

void expect_proven(const Plan& plan) {
  ProofOptions options;
  options.validation.steps = 1;
  EXPECT_EQ(validation_exit_code(prove(plan, options)), 0);
}

/// DeepSpeed-Ulysses: positions are sharded everywhere except in attention, which shards heads; an all_to_all on each
/// side.
TEST(EmergenceOfSequences, HeadsAreCutWhereThereAreEnough) {
  const Plan plan = fastest_of_sequences("configs/long-context.yaml");
  EXPECT_EQ(pieces(plan, "FlashAttention", "g"), 8);
  EXPECT_EQ(pieces(plan, "FlashAttention", "s"), 1);
  EXPECT_EQ(pieces(plan, "RmsNorm", "b"), 8) << "positions";
  EXPECT_GE(count(plan, CollectiveKind::kAllToAll), 8u) << "q, k, v and the result, and back";
  expect_proven(plan);
}

/// Llama 3's context parallelism: with fewer heads than devices, queries stay sharded and keys and values are gathered.
TEST(EmergenceOfSequences, KeysAreGatheredWhereHeadsAreFew) {
  const Plan plan = fastest_of_sequences("configs/long-context.yaml", {{"heads", 4}, {"H", 512}});
  EXPECT_EQ(pieces(plan, "FlashAttention", "g"), 1);
  EXPECT_EQ(pieces(plan, "FlashAttention", "s"), 8);
  EXPECT_NE(parallelism_patterns(plan).find("queries in 8 (context parallel)"), std::string::npos);
  EXPECT_EQ(count(plan, CollectiveKind::kAllToAll), 0u);
  expect_proven(plan);
}

/// Decoding one long sequence: of its keys and values each device keeps those of one head and of a half of the tokens.
TEST(EmergenceOfSequences, CachesAreCutByTokensWhereHeadsAreFew) {
  const Plan plan = fastest_of_sequences("configs/models/llama3-70b-decode.yaml",
                                         {{"B", 1}, {"T", 1'048'576}, {"L", 1}}, true, "dgx-h100x2");
  EXPECT_EQ(pieces(plan, "KVCacheScatterUpdate", "c"), 2);
  EXPECT_EQ(pieces(plan, "FlashAttention", "g"), 8);
  EXPECT_EQ(pieces(plan, "FlashAttention", "t"), 2);
  EXPECT_TRUE(parallelism_patterns(plan).starts_with("keys in 2 over ")) << parallelism_patterns(plan);
  expect_proven(plan);
}

/// Expert parallelism: sequences are sharded before and after the experts, and experts between; all_to_all moves the
/// tokens. (With overlap, replicated experts are as fast: their weights' communication is hidden, that of tokens is
/// not.)
TEST(EmergenceOfSequences, ExpertsAreCutBetweenGroups) {
  const Plan plan = fastest_of_sequences("configs/mixture.yaml", {}, false);
  EXPECT_EQ(pieces(plan, "RmsNorm", "a"), 8) << "sequences";
  EXPECT_EQ(pieces(plan, "Dispatch", "g"), 8);
  EXPECT_EQ(pieces(plan, "Einsum", "e"), 8);
  EXPECT_EQ(pieces(plan, "Combine", "g"), 8);
  EXPECT_NE(parallelism_patterns(plan).find("stacked weights in 8 (as expert parallelism)"), std::string::npos);
  EXPECT_GE(count(plan, CollectiveKind::kAllToAll), 4u);
  expect_proven(plan);
}

}  // namespace
}  // namespace shardplan
