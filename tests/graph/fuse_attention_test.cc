#include "graph/fuse_attention.h"

#include <gtest/gtest.h>

#include "model/read_model.h"

namespace shardplan {
namespace {

// What is recognised, and the resulting operator. That it trains as the written form does is tested by execution in
// tests/simulator/fused_attention_test.cc.

/// Attention of [B, heads, S, D] with these lines between the two products; the last of them is `probs`.
OperatorGraph attention(const std::string& lines, const std::string& more = "") {
  std::string constants;
  for (const auto& [name, text] : {std::pair{"mask", "{shape: [S, S], fill: causal}"},
                                   {"half", "0.5"},
                                   {"four", "4"},
                                   {"ones", "{shape: [S, S], fill: ones}"}}) {
    if (lines.find(name) != std::string::npos) constants += std::string("  ") + name + ": " + text + "\n";
  }
  return read_model_text(
             "shardplan: 1\nmodel: a\ndims: {B: 2, N: 3, S: 4, D: 5}\n"
             "inputs: {q: [B, N, S, D], k: [B, N, S, D], v: [B, N, S, D]}\n" +
                 (constants.empty() ? "" : "constants:\n" + constants) +
                 "operators:\n  scores: {op: BatchMatMul, in: [q, k], transpose_b: true}\n" + lines +
                 "  context: {op: BatchMatMul, in: [probs, v]}\n" + more,
             "a.yaml")
      .graph;
}

std::size_t count(const OperatorGraph& graph, std::string_view type) {
  std::size_t found = 0;
  for (const OperatorId id : graph.operators().ids()) found += graph.operation(id).type->name == type ? 1 : 0;
  return found;
}

struct FusedCase {
  const char* lines;
  double scale;
  bool causal;
  double keep_prob;
};
const FusedCase kFused[] = {
    {"  probs: {op: Softmax, in: scores}\n", 1, false, 1},
    {"  a: {op: Mul, in: [scores, half]}\n  probs: {op: Softmax, in: a}\n", 0.5, false, 1},
    {"  a: {op: Mul, in: [half, scores]}\n  probs: {op: Softmax, in: a}\n", 0.5, false, 1},
    {"  a: {op: RealDiv, in: [scores, four]}\n  probs: {op: Softmax, in: a}\n", 0.25, false, 1},
    {"  a: {op: Mul, in: [scores, half]}\n  b: {op: RealDiv, in: [a, four]}\n  probs: {op: Softmax, in: b}\n", 0.125,
     false, 1},
    {"  a: {op: Add, in: [scores, mask]}\n  probs: {op: Softmax, in: a}\n", 1, true, 1},
    {"  a: {op: Mul, in: [scores, half]}\n  b: {op: Add, in: [mask, a]}\n  c: {op: Softmax, in: b, axis: 3}\n"
     "  probs: {op: Dropout, in: c, keep_prob: 0.75}\n",
     0.5, true, 0.75},
};

TEST(FuseAttentionTest, OneOperatorIsTheWholeOfIt) {
  for (const FusedCase& c : kFused) {
    const OperatorGraph graph = fuse_attention(attention(c.lines));
    ASSERT_EQ(graph.operators().size(), 1u) << c.lines;
    const GraphOperator& fused = graph.operators()[OperatorId(0)];
    EXPECT_EQ(fused.name, "context");  // of the last product
    const Operation& operation = graph.operation(OperatorId(0));
    EXPECT_EQ(operation.type->name, "FlashAttention");
    EXPECT_DOUBLE_EQ(operation.number("scale"), c.scale) << c.lines;
    EXPECT_EQ(operation.flag("causal"), c.causal) << c.lines;
    EXPECT_DOUBLE_EQ(operation.number("keep_prob"), c.keep_prob) << c.lines;
    std::string operands;
    for (const TensorId operand : fused.operands) operands += graph.tensor(operand).name;
    EXPECT_EQ(operands, "qkv");
    EXPECT_EQ(graph.tensor(*graph.find_tensor("context")).type.shape, (Shape{2, 3, 4, 5}));
    EXPECT_FALSE(graph.find_tensor("half"));  // what only the written form read is gone
  }
}

/// The operators' types in order, with the permutations of Transpose.
std::string types(const OperatorGraph& graph) {
  std::string text;
  for (const OperatorId id : graph.operators().ids()) {
    const Operation& operation = graph.operation(id);
    text += (text.empty() ? "" : " ") + std::string(operation.type->name);
    if (operation.type->name != "Transpose") continue;
    for (const std::int64_t place : operation.list("perm")) text += std::to_string(place);
  }
  return text;
}

TEST(FuseAttentionTest, EinsumsAreProductsInAnyOrderOfDimensions) {
  const auto fused = [](const std::string& shapes, const char* scores, const char* context) {
    return types(fuse_attention(
        read_model_text("shardplan: 1\nmodel: a\ndims: {B: 2, N: 3, S: 4, T: 6, D: 5, E: 7}\ninputs: {" + shapes +
                            "}\noperators:\n  scores: {op: Einsum, in: [q, k], equation: \"" + scores +
                            "\"}\n  probs: {op: Softmax, in: scores}\n"
                            "  context: {op: Einsum, in: [probs, v], equation: \"" +
                            context + "\"}\n",
                        "a.yaml")
            .graph));
  };
  const std::string by_head = "q: [B, N, S, D], k: [B, N, T, D], v: [B, N, T, D]";
  const std::string by_position = "q: [B, S, N, D], k: [B, T, N, D], v: [B, T, N, D]";
  EXPECT_EQ(fused(by_head, "bhqd,bhkd->bhqk", "bhqk,bhkd->bhqd"), "FlashAttention");
  EXPECT_EQ(fused(by_position, "bqhd,bkhd->bhqk", "xyst,xtyz->xsyz"),
            "FlashAttention");  // in the layout BSND
  EXPECT_EQ(fused("q: [S, B, D, N], k: [B, N, T, D], v: [B, N, T, D]", "qbdh,bhkd->bhqk", "bhqk,bhkd->qhbd"),
            "Transpose1302 FlashAttention Transpose2103");
  // Scores of keys by queries: the operand called k takes the role of the queries, and q that of the keys.
  EXPECT_EQ(fused("q: [B, S, N, D], k: [B, S, N, D], v: [B, S, N, D]", "bqhd,bkhd->bhkq", "bhqk,bkhd->bqhd"),
            "FlashAttention");
  // A sum over heads, a context by keys.
  EXPECT_EQ(fused(by_position, "bqhd,bkhd->bhqk", "bhqk,bkhd->bqd"), "Einsum Softmax Einsum");
  EXPECT_EQ(fused("q: [B, S, N, D], k: [B, S, N, D], v: [B, S, N, D]", "bqhd,bkhd->bhqk", "bhqk,bqhd->bkhd"),
            "Einsum Softmax Einsum");
}

struct KeptCase {
  const char* why;
  const char* lines;
  const char* more = "";
};
const KeptCase kKept[] = {
    {"normalised over queries", "  probs: {op: Softmax, in: scores, axis: 2}\n"},
    {"something else reads the scores", "  probs: {op: Softmax, in: scores}\n", "  more: {op: ReLU, in: scores}\n"},
    {"something else reads the probabilities", "  probs: {op: Softmax, in: scores}\n",
     "  more: {op: ReLU, in: probs}\n"},
    {"masked twice",
     "  a: {op: Add, in: [scores, mask]}\n  b: {op: Add, in: [a, mask]}\n"
     "  probs: {op: Softmax, in: b}\n"},
    {"a bias that is multiplied",
     "  a: {op: Add, in: [scores, ones]}\n  b: {op: Mul, in: [a, half]}\n  probs: {op: Softmax, in: b}\n"},
    {"a factor that is no constant", "  a: {op: Mul, in: [scores, scores]}\n  probs: {op: Softmax, in: a}\n"},
    {"a divisor of scores", "  a: {op: RealDiv, in: [half, scores]}\n  probs: {op: Softmax, in: a}\n"},
    {"another function between", "  a: {op: Tanh, in: scores}\n  probs: {op: Softmax, in: a}\n"},
    {"a strategy of its own", "  probs: {op: Softmax, in: scores, in_strategy: [[1, 1, 1, 1]]}\n"},
};
TEST(FuseAttentionTest, LeavesWhatIsSomethingElse) {
  for (const KeptCase& c : kKept) {
    const OperatorGraph written = attention(c.lines, c.more);
    const OperatorGraph graph = fuse_attention(written);
    EXPECT_EQ(graph.operators().size(), written.operators().size()) << c.why;
    EXPECT_EQ(count(graph, "FlashAttention"), 0u) << c.why;
    EXPECT_EQ(count(graph, "BatchMatMul"), 2u) << c.why;
  }
}

}  // namespace
}  // namespace shardplan
