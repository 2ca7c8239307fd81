#include "report/metrics/parallelism_patterns.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/error.h"
#include "model/planned_model.h"
#include "model/read_model.h"
#include "planner/job_cluster.h"
#include "planner/model_planner.h"
#include "report/export/export.h"
#include "report/export/uniform_plan.h"
#include "tests/support/hand_plan.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

/// Two products whose weights the key `zero` shards; `more` adds keys at the top.
Plan plan_by_keys(const std::string& more, int batch = 64) {
  const std::string text = "shardplan: 1\ncluster: dgx-h100\ninputs: {x: [" + std::to_string(batch) + R"(, 256]}
operators:
  a:    {block: nn.Dense, in: x, out_channels: 1024, has_bias: false}
  r:    {op: ReLU, in: a}
  b:    {block: nn.Dense, in: r, out_channels: 256, has_bias: false}
  loss: {op: ReduceMean, in: b}
loss: loss
training: {optimizer: adamw}
)" + more + "\n";
  auto model = std::make_shared<const Model>(read_model_text(text, "m.yaml", {}));
  return ModelPlanner(model, job_cluster(*model, {}).cluster, {}).plan(Level::kSpeed, "auto");
}

std::string patterns_of(const std::string& more) { return parallelism_patterns(plan_by_keys(more)); }

// Without micro-batches gradients wait for their update in its pieces, so stage 1 is stage 2. Exports say the same.
TEST(ParallelismPatternsTest, StagesOfZeroAreNamed) {
  const auto zero = [](int stage) {
    const std::string key = "parallel: {parallel_mode: data_parallel, zero: " + std::to_string(stage) + "}";
    const std::string patterns = patterns_of(key);
    const std::string exported = export_plan(plan_by_keys(key), "megatron").text;
    for (const char* const name : {"ZeRO-1", "ZeRO-2", "ZeRO-3"}) {
      const auto says = [&](const std::string& text) { return text.find(name) != std::string::npos; };
      EXPECT_EQ(says(exported), says(patterns)) << name << " in " << exported;
    }
    return patterns;
  };
  EXPECT_EQ(zero(0), "batch in 8");
  EXPECT_EQ(zero(1), "batch in 8, optimizer states in 8 (as ZeRO-2)");
  EXPECT_EQ(zero(2), "batch in 8, optimizer states in 8 (as ZeRO-2)");
  EXPECT_EQ(zero(3), "batch in 8, weights and optimizer states in 8 (as ZeRO-3)");
}

// Two key heads for eight devices: attention, most of the work, cuts what it has. Its axes cut weights everywhere else.
TEST(ParallelismPatternsTest, AttentionDoesNotSayHowTheBatchIsCut) {
  const OperatorGraph graph = planned_graph(read_model_text(R"(
shardplan: 1
dims: {B: 4, T: 65536, H: 8, D: 16}
inputs: {x: [B, H*D]}
parameters: {keys: {shape: [B, 2, T, D], requires_grad: false}}
operators:
  q:       {block: nn.Dense, in: x, out_channels: H*D, has_bias: false}
  heads:   {op: Reshape, in: q, shape: [B, H, 1, D]}
  context: {op: FlashAttention, in: [heads, keys, keys]}
  merged:  {op: Reshape, in: context, shape: [B, H*D]}
  o:       {block: nn.Dense, in: merged, out_channels: H*D, has_bias: false}
)",
                                                            "m.yaml"));
  const Plan plan = hand_plan(graph, {{"q.matmul", {{"n", "{pcie, hccs}"}}},
                                      {"context", {{"b", "{hccs}"}, {"g", "{pcie}"}}},
                                      {"o.matmul", {{"k", "{pcie, hccs}"}}}});
  EXPECT_EQ(parallelism_patterns(plan), "heads in 2 over pcie, weights in 8 (tensor parallel)");
}

/// A product, then eight experts; sequences of 64 tokens.
OperatorGraph of_experts(int batch) {
  return planned_graph(
      read_model_text("shardplan: 1\ndims: {B: " + std::to_string(batch) + R"(, S: 64, H: 32, E: 8, C: 8}
inputs: {x: [B, S, H]}
parameters: {up: [E, H, H], down: [E, H, H]}
operators:
  q:        {block: nn.Dense, in: x, out_channels: H, has_bias: false}
  norm:     {block: nn.RMSNorm, in: q}
  logits:   {block: nn.Dense, in: norm, out_channels: E, has_bias: false}
  router:   {op: TopKRouter, in: logits, k: 1, out: [gates, chosen]}
  slots:    {op: ExpertSlots, in: chosen, num_experts: E, capacity: C}
  dispatch: {op: Dispatch, in: [norm, chosen, slots], num_experts: E, capacity: C}
  wide:     {op: Einsum, in: [dispatch, up], equation: "egch,ehf->egcf"}
  narrow:   {op: Einsum, in: [wide, down], equation: "egcf,efh->egch"}
  combine:  {op: Combine, in: [narrow, chosen, slots, gates]}
)",
                      "m.yaml"));
}

HandStrategies by_expert() { return {{"wide", {{"e", "{pcie, hccs}"}}}, {"narrow", {{"e", "{pcie, hccs}"}}}}; }

// Tables of a recommender hold nearly all bytes, but do no work.
TEST(ParallelismPatternsTest, CutColumnsOfTablesAreNamedIfTablesAreMostOfTheWeights) {
  const auto patterns = [](int words) {
    const auto model = std::make_shared<const Model>(
        read_model_text("shardplan: 1\ncluster: dgx-h100\ninputs: {ids: {shape: [64], dtype: i32}}\noperators:\n"
                        "  table: {block: nn.Embedding, in: ids, vocab_size: " +
                            std::to_string(words) +
                            ", embedding_size: 64}\n"
                            "  wide:  {block: nn.Dense, in: table, out_channels: 1024, has_bias: false}\n"
                            "strategies: {table.gather: {in_strategy: [[1, 8], [1]]}}\n",
                        "m.yaml"));
    return parallelism_patterns(ModelPlanner(model, job_cluster(*model, {}).cluster, {}).plan(Level::kSpeed, "auto"));
  };
  const std::string columns = "columns of embedding tables in 8";
  expect_has(patterns(4096), columns);
  EXPECT_EQ(patterns(512).find(columns), std::string::npos);
}

// The nodes of a graph are the batch, also of products behind sums over edges.
TEST(ParallelismPatternsTest, NodesBehindSumsOverEdgesAreTheBatch) {
  const OperatorGraph graph = planned_graph(read_model_text(R"(
shardplan: 1
dims: {N: 64, E: 128, F: 16}
inputs: {features: [N, F], sources: {shape: [E], dtype: i32}, targets: {shape: [E], dtype: i32}}
operators:
  first:    {block: nn.Dense, in: features, out_channels: 8, has_bias: false}
  messages: {op: Gather, in: [first, sources]}
  sums:     {op: UnsortedSegmentSum, in: [messages, targets], num_segments: N}
  second:   {block: nn.Dense, in: sums, out_channels: 64, has_bias: false}
)",
                                                            "m.yaml"));
  const Plan plan = hand_plan(graph, {{"second.matmul", {{"m", "{pcie, hccs}"}}}});
  EXPECT_EQ(parallelism_patterns(plan), "batch in 8");
}

// The number of experts is a multiple of every batch here.
TEST(ParallelismPatternsTest, ExpertsAreNeitherTheBatchNorTensorParallelism) {
  const char* const experts = "stacked weights in 8 (as expert parallelism)";
  const auto patterns = [](int batch, std::size_t cut_dimension) {
    const OperatorGraph graph = of_experts(batch);
    HandStrategies strategies = by_expert();
    for (const char* name : {"q.matmul", "logits.matmul", "norm.rms_norm"}) {
      const bool is_norm = std::string_view(name) == "norm.rms_norm";
      if (is_norm && cut_dimension == 2) continue;
      strategies[name] = {{factor_of_result(graph, name, cut_dimension), "{pcie, hccs}"}};
    }
    return parallelism_patterns(hand_plan(graph, strategies));
  };
  EXPECT_EQ(patterns(8, 0), std::string("batch in 8, ") + experts);
  EXPECT_EQ(patterns(1, 1), std::string("sequence in 8 (context parallel), ") + experts);
  EXPECT_EQ(patterns(1, 2), std::string(experts) + ", weights in 8 (tensor parallel)");
}

// Experts take the place of the sequence over the devices of context parallelism, and half of them of the batch.
TEST(ParallelismPatternsTest, ExpertsAreADegreeBesideContextParallelism) {
  const auto check = [](int batch, const std::string& of_batch, const std::string& of_sequence) {
    const OperatorGraph graph = of_experts(batch);
    HandStrategies strategies = by_expert();
    for (const char* name : {"q.matmul", "logits.matmul", "norm.rms_norm"}) {
      if (batch > 1) strategies[name][factor_of_result(graph, name, 0)] = of_batch;
      strategies[name][factor_of_result(graph, name, 1)] = of_sequence;
    }
    for (const char* name : {"router", "slots", "combine"}) {
      if (batch > 1) strategies[name] = {{factor_of_result(graph, name, 0), of_batch}};
    }
    if (batch > 1) strategies["dispatch"] = {{"g", of_batch}};
    const Plan plan = hand_plan(graph, strategies);
    const GlobalDegrees degrees = nearest_degrees(plan);
    const UniformPlan uniform = uniform_plan(plan, degrees);
    EXPECT_EQ(uniform.tensor, 1);
    EXPECT_EQ(uniform.data, batch);
    EXPECT_EQ(uniform.context, 8 / batch);
    EXPECT_EQ(uniform.experts, 8);
    EXPECT_EQ(uniform.differences, std::vector<std::string>());
  };
  check(1, "{}", "{pcie, hccs}");
  check(2, "{pcie}", "{hccs}");
}

// Megatron's sequence parallelism is around norms, where weights are cut; context parallelism is everywhere.
TEST(ParallelismPatternsTest, SequenceAndContextParallelismAreToldApart) {
  const OperatorGraph graph = planned_graph(read_model_text(R"(
shardplan: 1
dims: {B: 2, S: 64, H: 32}
inputs: {x: [B, S, H]}
operators:
  norm: {block: nn.RMSNorm, in: x}
  up:   {block: nn.Dense, in: norm, out_channels: H, has_bias: false}
)",
                                                            "m.yaml"));
  const auto patterns = [&](const std::string& of_norm, const std::string& of_product, const std::string& of_weight) {
    HandStrategies strategies;
    strategies["norm.rms_norm"] = {{factor_of_result(graph, "norm.rms_norm", 1), of_norm}};
    strategies["up.matmul"] = {{factor_of_result(graph, "up.matmul", 1), of_product},
                               {factor_of_result(graph, "up.matmul", 2), of_weight}};
    return parallelism_patterns(hand_plan(graph, strategies));
  };
  EXPECT_EQ(patterns("{hccs}", "{hccs}", "{}"), "sequence in 4 over hccs (context parallel)");
  EXPECT_EQ(patterns("{hccs}", "{}", "{hccs}"),
            "sequence in 4 over hccs around norms (sequence parallel), weights in 4 over hccs (tensor parallel)");
  EXPECT_EQ(patterns("{hccs}", "{hccs:(1)2}", "{hccs:(2)2}"),
            "sequence in 2 over hccs:(1)2 (context parallel), sequence in 2 over hccs:(2)2 around norms (sequence "
            "parallel), weights in 2 over hccs:(2)2 (tensor parallel)");
}

// One image in eight stripes: nothing else can be shared out without repeating work.
TEST(ParallelismPatternsTest, CutImagesAreNamed) {
  const std::string text = R"(
shardplan: 1
cluster: dgx-h100
inputs: {x: [1, 8, 512, 512]}
operators:
  a: {block: nn.Conv2d, in: x, out_channels: 8, kernel_size: 3, in_strategy: [[1, 1, 4, 2]]}
  r: {op: ReLU, in: a}
  b: {block: nn.Conv2d, in: r, out_channels: 8, kernel_size: 3, in_strategy: [[1, 1, 4, 2]]}
)";
  auto model = std::make_shared<const Model>(read_model_text(text, "m.yaml", {}));
  const Plan plan = ModelPlanner(model, job_cluster(*model, {}).cluster, {}).plan(Level::kRatio, "auto");
  EXPECT_EQ(parallelism_patterns(plan), "height in 4 over nvlink:(1)4, width in 2 over nvlink:(4)2");
}

// What reads a stored weight is a cast of the same shard; gathered is the cast.
TEST(ParallelismPatternsTest, CastWeightsCountWhereTheirCastIsUsed) {
  const std::string zero = "parallel: {parallel_mode: data_parallel, zero: 3}";
  EXPECT_EQ(patterns_of("autocast: bf16\n" + zero), "batch in 8, weights and optimizer states in 8 (as ZeRO-3)");
  EXPECT_EQ(patterns_of("dtype: bf16\nfp8: [a, b]\n" + zero),
            "batch in 8, weights and optimizer states in 8 (as ZeRO-3)");
}

// The frozen weight stays whole; of what is trained all is sharded.
TEST(ParallelismPatternsTest, FrozenWeightsDoNotOutvoteTrainedOnes) {
  const std::string user =
      "strategies: {a: {requires_grad: false}, a.weight: {strategy: \"[{}, {}]\"}}\n"
      "parallel: {parallel_mode: semi_auto_parallel, zero: 3, mesh: {dp: 8}}";
  EXPECT_EQ(patterns_of(user), "batch in 8, weights and optimizer states in 8 (as ZeRO-3)");
}

// Frameworks with one degree of data parallelism cannot divide 36 rows among 8 devices.
TEST(ParallelismPatternsTest, ExportsRefuseABatchThatTheirDevicesDoNotDivide) {
  const Plan plan = plan_by_keys("parallel: {parallel_mode: auto_parallel}", 36);
  for (const char* const framework : {"megatron", "torchtitan", "deepspeed"}) {
    try {
      export_plan(plan, framework);
      FAIL() << framework;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("36 rows are not in 8 equal pieces"), std::string::npos) << error.what();
    }
  }
  EXPECT_FALSE(export_plan(plan, "jax").text.empty());
}

}  // namespace
}  // namespace shardplan
