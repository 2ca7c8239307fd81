// A training step of shipped transformers as written and with `attention: fused`: equal numbers, and proven plans.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "model/planned_model.h"
#include "model/read_model.h"
#include "planner/model_planner.h"
#include "simulator/execute/reference.h"
#include "simulator/proof/prove.h"

namespace shardplan {
namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

/// A shipped file with its attention as written, and without dropout (its masks depend on the operator's name) unless
/// asked for.
std::string text_of(const std::string& path, bool has_dropout = false) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  std::string written = replaced(text.str(), "parallel: {attention: fused}\n", "");
  written = replaced(std::move(written), "parallel: {attention: fused, ", "parallel: {");
  return has_dropout ? written : replaced(std::move(written), "keep_prob: 0.9", "keep_prob: 1.0");
}

/// The file may or may not have a section `parallel:`.
std::string fused(const std::string& text) {
  if (text.find("parallel: {") == std::string::npos) return text + "parallel: {attention: fused}\n";
  return replaced(text, "parallel: {", "parallel: {attention: fused, ");
}

Model model_of(const std::string& text, const std::map<std::string, std::int64_t>& dims) {
  return read_model_text(text, "model.yaml", {dims, {}});
}

std::size_t count(const OperatorGraph& graph, std::string_view type) {
  return static_cast<std::size_t>(std::count_if(
      graph.operators().begin(), graph.operators().end(),
      [&](const auto& op) { return !op.is_copy && graph.operations()[op.operation].type->name == type; }));
}

void expect_same_step_of(const std::string& text, const std::map<std::string, std::int64_t>& dims, std::size_t layers,
                         std::size_t least_compared) {
  const OperatorGraph whole = planned_graph(model_of(text, dims));
  const OperatorGraph one = planned_graph(model_of(fused(text), dims));
  EXPECT_EQ(count(whole, "FlashAttention"), 0u);
  EXPECT_EQ(count(one, "FlashAttention"), layers);
  EXPECT_EQ(count(one, "FlashAttentionGrad"), layers);
  EXPECT_EQ(count(one, "Softmax") + count(one, "BatchMatMul"), count(whole, "Softmax") - layers);
  const auto run = [&](const OperatorGraph& graph) {
    return run_reference(
        // Drawn as for the written form: the scale of parameters depends on what reads them.
        graph,
        [&](TensorId id, std::uint64_t) {
          return draw_tensor(whole, *whole.find_tensor(graph.tensor(id).name.str()), 5, 0);
        },
        5, 0, Precision::kFloat64);
  };
  const ReferenceStep expected = run(whole);
  const ReferenceStep found = run(one);
  EXPECT_NEAR(found.tensors[*one.loss()][0], expected.tensors[*whole.loss()][0], 1e-12);
  const auto gradients = [](const OperatorGraph& graph) {  // by parameter
    std::map<std::string, TensorId> found_gradients;
    for (const TensorId id : graph.tensors().ids()) {
      const std::optional<TensorId> parameter = graph.tensor(id).gradient_of;
      if (parameter) found_gradients.emplace(graph.tensor(*parameter).name.str(), id);
    }
    return found_gradients;
  };
  const std::map<std::string, TensorId> of_whole = gradients(whole), of_one = gradients(one);
  ASSERT_EQ(of_whole.size(), of_one.size());
  EXPECT_GE(of_whole.size(), least_compared);
  for (const auto& [name, id] : of_whole) {
    const TensorValues& a = expected.tensors[id];
    const TensorValues& b = found.tensors[of_one.at(name)];
    ASSERT_EQ(a.size(), b.size()) << name;
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-9) << name;
  }
}
void expect_same_step(const std::string& path, const std::map<std::string, std::int64_t>& dims, std::size_t layers) {
  expect_same_step_of(text_of(path), dims, layers, 7 * layers);
}

/// The parts of an attention: its operands, its scores, what is added to them, the context.
struct Form {
  const char* why;
  const char* tensors;
  const char* scores;
  const char* context;
};
const Form kForms[] = {
    {"heads behind positions", "q: [B, S, N, D], k: [B, T, N, D], v: [B, T, N, E]",
     "scores: {op: Einsum, in: [q, k], equation: \"bqhd,bkhd->bhqk\"}",
     "{op: Einsum, in: [probs, v], equation: \"bhqk,bkhd->bqhd\"}"},
    {"values first", "q: [B, S, N, D], k: [B, T, N, D], v: [B, T, N, E]",
     "scores: {op: Einsum, in: [k, q], equation: \"bkhd,bqhd->bhqk\"}",
     "{op: Einsum, in: [v, probs], equation: \"bkhd,bhqk->hqbd\"}"},
    {"normalised over what made the first operand", "q: [B, T, N, D], k: [B, S, N, D], v: [B, T, N, E]",
     "scores: {op: Einsum, in: [q, k], equation: \"bkhd,bqhd->bhqk\"}",
     "{op: Einsum, in: [probs, v], equation: \"bhqk,bkhd->bqhd\"}"},
    {"grouped", "q: [B, G, R, S, D], k: [B, G, T, D], v: [B, T, G, E]",
     "scores: {op: Einsum, in: [q, k], equation: \"bgrsd,bgtd->bgrst\"}",
     "{op: Einsum, in: [probs, v], equation: \"bgrst,btgd->bsgrd\"}"},
    {"grouped, heads of a group first", "q: [B, S, R, G, D], k: [B, T, G, D], v: [B, T, G, E]",
     "scores: {op: Einsum, in: [q, k], equation: \"bsrgd,btgd->brgst\"}",
     "{op: Einsum, in: [probs, v], equation: \"brgst,btgd->bsrgd\"}"},
    {"one key head", "q: [B, S, N, D], k: [B, T, D], v: [B, T, E]",
     "scores: {op: Einsum, in: [q, k], equation: \"bqhd,bkd->bhqk\"}",
     "{op: Einsum, in: [probs, v], equation: \"bhqk,bkd->bqhd\"}"},
    {"one key head, values of their own", "q: [B, S, N, D], k: [B, T, D], v: [B, T, N, E]",
     "scores: {op: Einsum, in: [q, k], equation: \"bqhd,bkd->bhqk\"}",
     "{op: Einsum, in: [probs, v], equation: \"bhqk,bkhd->bqhd\"}"},
    {"no heads", "q: [B, S, D], k: [B, T, D], v: [B, T, E]", "scores: {op: MatMul, in: [q, k], transpose_b: true}",
     "{op: MatMul, in: [probs, v]}"},
    {"no batch", "q: [S, D], k: [D, T], v: [E, T]", "scores: {op: MatMul, in: [q, k]}",
     "{op: MatMul, in: [probs, v], transpose_b: true}"},
    {"the same queries for all", "q: [S, D], k: [B, T, D], v: [B, T, E]",
     "scores: {op: Einsum, in: [q, k], equation: \"qd,bkd->bqk\"}",
     "{op: Einsum, in: [probs, v], equation: \"bqk,bkd->bqd\"}"},
    {"windows", "q: [B, W, N, S, D], k: [B, W, N, T, D], v: [B, W, N, T, E]",
     "scores: {op: BatchMatMul, in: [q, k], transpose_b: true}", "{op: BatchMatMul, in: [probs, v]}"},
    {"in two parts, of which one is of all heads",
     "q: [B, S, N, D], p: [B, N, S, E], k: [B, T, N, D], r: [B, T, E], v: [B, T, N, E]",
     "word: {op: Einsum, in: [q, k], equation: \"bshd,bthd->bhst\"}\n"
     "  place: {op: Einsum, in: [p, r], equation: \"bhsr,btr->bhst\"}\n  scores: {op: Add, in: [word, place]}",
     "{op: Einsum, in: [probs, v], equation: \"bhst,bthd->bshd\"}"},
};
/// Between scores and softmax: the added tensors, and how they are added.
struct Addition {
  const char* shapes;  // of `bias` and `other`
  const char* lines;   // to `sum`
};
const Addition kAdditions[] = {
    {"", "sum: {op: Mul, in: [scores, 0.7]}"},
    {"bias: [N, S, T]", "half: {op: Mul, in: [scores, 0.5]}\n  sum: {op: Add, in: [half, bias]}"},
    {"bias: [S, T], other: [1, T]", "a: {op: Add, in: [bias, scores]}\n  sum: {op: Add, in: [a, other]}"},
    {"bias: [S, T]", "masked: {op: Add, in: [bias, mask]}\n  sum: {op: Add, in: [scores, masked]}"},
};
std::string text_of(const Form& form, const Addition& addition) {
  const bool has_mask = std::string_view(addition.lines).find("mask") != std::string_view::npos;
  return std::string(
             "shardplan: 1\nmodel: a\ndims: {B: 2, W: 3, N: 4, G: 2, R: 2, S: 4, T: 6, D: 3, E: 5}\ninputs: {x: "
             "[B]}\n") +
         "parameters: {" + form.tensors + (*addition.shapes == 0 ? "" : ", ") + addition.shapes + "}\n" +
         (has_mask ? "constants: {mask: {shape: [S, T], fill: causal}}\n" : "") + "operators:\n  " + form.scores +
         "\n  " + addition.lines + "\n  probs: {op: Softmax, in: sum}\n  context: " + form.context +
         "\n  square: {op: Square, in: context}\n  turned: {op: Exp, in: square}\n  mean: {op: ReduceMean, in: "
         "turned}\n"
         "  inputs: {op: ReduceMean, in: x}\n  loss: {op: Add, in: [mean, inputs]}\nloss: loss\ntraining: {optimizer: "
         "sgd}\n";
}

TEST(FusedAttention, TrainsAsTheWrittenForm) {
  expect_same_step("configs/gpt2-small.yaml", {{"B", 2}, {"S", 8}, {"H", 16}, {"heads", 2}, {"L", 2}, {"V", 16}}, 2);
  expect_same_step("configs/llama-7b.yaml",
                   {{"B", 2}, {"S", 8}, {"H", 16}, {"heads", 2}, {"F", 24}, {"L", 2}, {"V", 16}}, 2);
}

// Products as Einsum, heads after positions; no masks and no scale but constants.
TEST(FusedAttention, ProductsMayBeWrittenAsEinsum) {
  expect_same_step("configs/models/dit-xl2.yaml",
                   {{"B", 2}, {"side", 8}, {"H", 16}, {"heads", 2}, {"L", 2}, {"classes", 5}, {"waves", 8}}, 2);
}

// Grouped heads in five dimensions; two parts, one of them for all heads; learned biases, one with a causal mask added;
// windows.
TEST(FusedAttention, FormsOfPublishedNetworksTrainAsWritten) {
  expect_same_step("configs/models/llama3-8b.yaml",
                   {{"B", 2}, {"S", 8}, {"H", 24}, {"heads", 4}, {"kv", 2}, {"D", 6}, {"F", 16}, {"L", 2}, {"V", 16}},
                   2);
  expect_same_step(
      "configs/models/mla.yaml",
      {{"B", 2}, {"S", 8}, {"H", 16}, {"heads", 2}, {"D", 6}, {"R", 4}, {"latent", 8}, {"F", 16}, {"L", 2}, {"V", 16}},
      2);
  expect_same_step(
      "configs/models/t5-large.yaml",
      {{"B", 2}, {"S", 8}, {"T", 6}, {"H", 16}, {"heads", 2}, {"D", 4}, {"F", 16}, {"L", 2}, {"V", 16}, {"buckets", 5}},
      6);
  expect_same_step("configs/models/swin-t.yaml", {{"B", 1}, {"win", 2}, {"shift", 1}, {"head", 4}, {"classes", 5}}, 12);
}

TEST(FusedAttention, EveryWayToWriteItTrainsAsWritten) {
  std::size_t tried = 0;
  for (const Form& form : kForms) {
    const std::string_view tensors = form.tensors;
    for (const Addition& addition : kAdditions) {
      // A bias by head needs heads as one dimension of the scores, before the queries.
      const bool has_heads = tensors.find("N, ") != std::string_view::npos;
      if (std::string_view(addition.shapes).find("N, S, T") != std::string_view::npos && !has_heads) continue;
      SCOPED_TRACE(std::string(form.why) + ": " + addition.lines);
      expect_same_step_of(text_of(form, addition), {}, 1, 3);
      ++tried;
    }
  }
  EXPECT_EQ(tried, 43u);
}

// On simulated devices, with the plan that is found and with data parallelism.
TEST(FusedAttention, IsProvenWithBiasesGroupsAndParts) {
  for (const Form& form : kForms) {
    if (std::set<std::string_view>{"grouped", "windows", "in two parts, of which one is of all heads"}.count(
            form.why) == 0) {
      continue;
    }
    for (const Addition& addition : kAdditions) {
      if (*addition.shapes == 'b' && std::string_view(addition.shapes).find("N,") != std::string_view::npos &&
          std::string_view(form.tensors).find("N, ") == std::string_view::npos) {
        continue;
      }
      SCOPED_TRACE(std::string(form.why) + ": " + addition.lines);
      const auto model = std::make_shared<const Model>(
          model_of(fused(text_of(form, addition)),
                   {{"B", 8}, {"W", 4}, {"S", 8}, {"T", 16}, {"G", 4}, {"R", 2}, {"D", 4}, {"E", 4}}));
      ASSERT_EQ(count(model->graph, "FlashAttention"), 1u);
      const Plan plan = ModelPlanner(model, read_cluster("dgx-a100"), {}).plan(Level::kRatio, "auto");
      EXPECT_TRUE(prove(plan, {.validation = {.steps = 1}}).is_proven());
    }
  }
}

TEST(FusedAttention, IsPlannedAndProvenWithItsDropout) {
  const auto model =
      std::make_shared<const Model>(model_of(fused(text_of("configs/gpt2-small.yaml", true)), {{"L", 1}, {"V", 512}}));
  PlanOptions options;
  options.work_limit = 500'000'000;  // some tens of plans are scheduled
  const Plan plan = ModelPlanner(model, read_cluster("ascend-910"), options).plan(Level::kSpeed, "auto");
  EXPECT_TRUE(prove(plan, {.validation = {.steps = 1}}).is_proven());
}

TEST(FusedAttention, LeavesWhatIsNotItsPattern) {
  const std::string text = text_of("configs/gpt2-small.yaml");
  const std::map<std::string, std::int64_t> dims = {{"B", 2}, {"S", 8}, {"H", 16}, {"heads", 2}, {"L", 1}, {"V", 16}};
  const auto fusions = [&](const std::string& changed) {
    return count(model_of(fused(changed), dims).graph, "FlashAttention");
  };
  EXPECT_EQ(fusions(text), 1u);
  EXPECT_EQ(fusions(replaced(text, "{op: Softmax, in: masked, axis: -1}", "{op: Softmax, in: masked, axis: 2}")), 0u)
      << "normalised over queries";
  EXPECT_EQ(fusions(replaced(text, "in: [drop, v_t]}", "in: [drop, v_t], transpose_a: true}")), 0u);
  EXPECT_EQ(fusions(replaced(text, "in: masked, axis", "in: masked, in_strategy: [[1, 1, 1, 1]], axis")), 0u)
      << "the user's strategy of Softmax would have no place";
  EXPECT_EQ(fusions(replaced(text, "fill: causal", "fill: 0")), 1u) << "nothing is added";
}

}  // namespace
}  // namespace shardplan
