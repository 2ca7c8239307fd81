// A training step of shipped transformers as written and with `attention: fused`: the same numbers, and plans that are proven.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
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

/// A shipped file with its attention as written, without dropout (its masks are drawn by the operator's name) unless asked
/// for.
std::string text_of(const std::string& path, bool has_dropout = false) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  std::string written = replaced(text.str(), "parallel: {attention: fused}\n", "");
  written = replaced(std::move(written), "parallel: {attention: fused, ", "parallel: {");
  return has_dropout ? written : replaced(std::move(written), "keep_prob: 0.9", "keep_prob: 1.0");
}

/// The file may have a section `parallel:` or none.
std::string fused(const std::string& text) {
  if (text.find("parallel: {") == std::string::npos) return text + "parallel: {attention: fused}\n";
  return replaced(text, "parallel: {", "parallel: {attention: fused, ");
}

Model model_of(const std::string& text, const std::map<std::string, std::int64_t>& dims) {
  return read_model_text(text, "model.yaml", {dims, {}});
}

std::size_t count(const OperatorGraph& graph, std::string_view type) {
  return static_cast<std::size_t>(
      std::count_if(graph.operators().begin(), graph.operators().end(),
                    [&](const auto& op) { return graph.operations()[op.operation].type->name == type; }));
}

void expect_same_step(const std::string& path, const std::map<std::string, std::int64_t>& dims, std::size_t layers) {
  const std::string text = text_of(path);
  const OperatorGraph whole = planned_graph(model_of(text, dims));
  const OperatorGraph one = planned_graph(model_of(fused(text), dims));
  EXPECT_EQ(count(whole, "FlashAttention"), 0u);
  EXPECT_EQ(count(one, "FlashAttention"), layers);
  EXPECT_EQ(count(one, "FlashAttentionGrad"), layers);
  EXPECT_EQ(count(one, "Softmax") + count(one, "BatchMatMul"), 0u);
  const auto run = [](const OperatorGraph& graph) {
    return run_reference(
        graph, [&](TensorId id, std::uint64_t) { return draw_tensor(graph, id, 5, 0); }, 5, 0, Precision::kFloat64);
  };
  const ReferenceStep expected = run(whole);
  const ReferenceStep found = run(one);
  EXPECT_NEAR(found.tensors[*one.loss()][0], expected.tensors[*whole.loss()][0], 1e-12);
  std::size_t compared = 0;
  for (const TensorId id : whole.tensors().ids()) {
    if (!whole.tensor(id).gradient_of) continue;
    const std::optional<TensorId> same = one.find_tensor(whole.tensor(id).name);
    if (!same) continue;  // gradients of what only the written form has
    const TensorValues& a = expected.tensors[id];
    const TensorValues& b = found.tensors[*same];
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-9) << whole.tensor(id).name;
    ++compared;
  }
  EXPECT_GE(compared, 8 * layers);
}

TEST(FusedAttention, TrainsAsTheWrittenForm) {
  expect_same_step("configs/gpt2-small.yaml", {{"B", 2}, {"S", 8}, {"H", 16}, {"heads", 2}, {"L", 2}, {"V", 16}}, 2);
  expect_same_step("configs/llama-7b.yaml",
                   {{"B", 2}, {"S", 8}, {"H", 16}, {"heads", 2}, {"F", 24}, {"L", 2}, {"V", 16}}, 2);
}

// Products as Einsum, heads behind positions; no masks and no scale but constants.
TEST(FusedAttention, ProductsMayBeWrittenAsEinsum) {
  expect_same_step("configs/models/dit-xl2.yaml",
                   {{"B", 2}, {"side", 8}, {"H", 16}, {"heads", 2}, {"L", 2}, {"classes", 5}, {"waves", 8}}, 2);
}

TEST(FusedAttention, IsPlannedAndProvenWithItsDropout) {
  const auto model =
      std::make_shared<const Model>(model_of(fused(text_of("configs/gpt2-small.yaml", true)), {{"L", 2}}));
  const Plan plan = ModelPlanner(model, read_cluster("ascend-910"), {}).plan(Level::kSpeed, "auto");
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
  EXPECT_EQ(fusions(replaced(text, "fill: causal", "fill: 0")), 0u) << "another mask";
}

}  // namespace
}  // namespace shardplan
