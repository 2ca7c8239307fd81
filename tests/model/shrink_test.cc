#include "model/shrink.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "model/read_model.h"

namespace shardplan {
namespace {

using Pieces = std::map<std::string, std::map<std::string, std::int64_t>>;  // by operator and factor

ShrinkRequest request_for(const Model& model, const Pieces& pieces) {
  ShrinkRequest request;
  for (const OperatorId id : model.graph.operators().ids()) {
    std::vector<std::int64_t> of_factors;
    const auto op = pieces.find(model.graph.operators()[id].name);
    for (const Factor& factor : model.graph.operation(id).rule.factors) {
      const bool is_sharded = op != pieces.end() && op->second.contains(factor.name);
      of_factors.push_back(is_sharded ? op->second.at(factor.name) : 1);
    }
    request.operator_pieces.push_back(std::move(of_factors));
  }
  return request;
}

std::string text_of(const ShrunkModel& shrunk) {
  std::string text;
  for (const ShrunkDim& dim : shrunk.dims) text += fmt::format("{} {} -> {}; ", dim.name, dim.from, dim.to);
  for (const std::string& note : shrunk.notes) text += note + "; ";
  return text;
}

const char* kAttention = R"(shardplan: 1
dims: {B: 32, S: 1024, H: 768, heads: 12, D: H/heads}
inputs: {q: [B, S, H], k: [B, S, H]}
operators:
  qh:     {op: Reshape, in: q, shape: [B, S, heads, D]}
  kh:     {op: Reshape, in: k, shape: [B, S, heads, D]}
  qt:     {op: Transpose, in: qh, perm: [0, 2, 1, 3]}
  kt:     {op: Transpose, in: kh, perm: [0, 2, 1, 3]}
  scores: {op: BatchMatMul, in: [qt, kt], transpose_b: true}
  probs:  {op: Softmax, in: scores}
)";

TEST(ShrinkTest, SizesStayWholeDivisibleLargeEnoughAndUnlike) {
  const Model model = read_model_text(kAttention, "m.yaml");
  // B at least 2 on each of 8 devices; heads 2 on each of 4; S normalised; D unlike all.
  const Pieces pieces = {{"qt", {{"a", 8}, {"c", 4}}}};
  const ShrunkModel small = shrink(model, request_for(model, pieces));
  const std::map<std::string, std::int64_t>& dims = small.model.dims;
  EXPECT_EQ(dims.at("B") % 8, 0);
  EXPECT_GE(dims.at("B"), 16);
  EXPECT_EQ(dims.at("heads") % 4, 0);
  EXPECT_GE(dims.at("heads"), 8);
  EXPECT_GE(dims.at("S"), 8);
  EXPECT_EQ(dims.at("D") * dims.at("heads"), dims.at("H"));
  EXPECT_LT(dims.at("H"), 100);
  const std::set<std::int64_t> sizes = {dims.at("B"), dims.at("heads"), dims.at("S"), dims.at("D")};
  EXPECT_EQ(sizes.size(), 4u);
  EXPECT_EQ(small.model.graph.operators().size(), model.graph.operators().size());
}

// One expert of each token would have the weight 1, and its router no gradient to compare.
TEST(ShrinkTest, SeveralOfTheLargestStaySeveral) {
  const Model model = read_model_text(R"(shardplan: 1
dims: {T: 64, E: 32, k: 8}
inputs: {logits: [1, T, E], scores: [T, E]}
operators:
  route: {op: TopKRouter, in: logits, out: [gates, experts], k: k}
  best:  {op: TopK, in: scores, out: [values, positions], k: 1}
)",
                                      "m.yaml");
  const ShrunkModel small = shrink(model, request_for(model, {}));
  EXPECT_EQ(small.model.dims.at("k"), 2) << text_of(small);
  EXPECT_LT(small.model.dims.at("E"), 10);
}

TEST(ShrinkTest, WindowsAreNoMonomialsAndStillShrink) {
  const Model model = read_model("configs/lenet.yaml");
  const ShrunkModel small = shrink(model, request_for(model, {}));
  EXPECT_LT(small.model.dims.at("side"), 32);
  EXPECT_GE(small.model.dims.at("pool2"), 2);
}

TEST(ShrinkTest, LiteralSizesAndCopiesStayAndAreNamed) {
  const Model model = read_model_text(R"(shardplan: 1
dims: {B: 64, H: 32, L: 24}
inputs: {x: [B, H]}
parameters: {fixed: [H, 512]}
blocks:
  layer:
    inputs: {x: [B, H]}
    operators: {dense: {block: nn.Dense, in: x, out_channels: H}}
operators:
  layers: {block: layer, in: x, repeat: L}
  last:   {op: MatMul, in: [layers, fixed]}
)",
                                      "m.yaml");
  const ShrunkModel small = shrink(model, request_for(model, {{"last", {{"n", 4}}}}));
  EXPECT_EQ(text_of(small), "B 64 -> 3; H 32 -> 2; n of last stays 512: no dim of the file says it; ");
}

const char* kLiterals = R"(shardplan: 1
dims: {B: 64}
inputs: {x: [B, 512], token: {shape: [B], dtype: i32}}
parameters: {table: [30522, 512]}
blocks:
  layer:
    dims: {N: inferred}
    inputs: {x: [N, 512]}
    operators:
      dense:   {block: nn.Dense, in: x, out_channels: 512}
      by_head: {op: Reshape, in: dense, shape: [N, 8, 64]}
      soft:    {op: Softmax, in: by_head}
      merged:  {op: Reshape, in: soft, shape: [N, 512]}
operators:
  row:    {op: Gather, in: [table, token], axis: 0}
  both:   {op: Add, in: [x, row]}
  layers: {block: layer, in: both, repeat: 16}
)";

// 64 can only change together with its multiple 512; 16 copies remain, and so do 8 heads.
TEST(ShrinkTest, NumbersWrittenInTheFileBecomeSmallerWhereTheyMay) {
  const Model model = read_model_text(kLiterals, "m.yaml");
  EXPECT_EQ(model.literals, (std::vector<std::int64_t>{64, 512, 30522}));
  ShrinkRequest request = request_for(model, {{"row", {{"v", 2}}}});
  request.shrinks_literals = true;
  const ShrunkModel small = shrink(model, request);
  const std::map<std::int64_t, std::int64_t>& literals = small.model.overrides.literals;
  EXPECT_LT(literals.at(30522), 100);
  EXPECT_EQ(literals.at(30522) % 2, 0);
  EXPECT_EQ(literals.at(512), 8 * literals.at(64));
  EXPECT_LT(literals.at(64), 16);
  EXPECT_EQ(small.model.graph.operators().size(), model.graph.operators().size());
  const TensorId table = *small.model.graph.find_tensor("table");
  EXPECT_EQ(small.model.graph.tensor(table).type.shape, (Shape{literals.at(30522), literals.at(512)}));
  EXPECT_EQ(small.origins[small.origin_of[table][0]], std::vector<std::string>{"the number 30522"});
  EXPECT_TRUE(shrink(model, request_for(model, {})).model.overrides.literals.empty()) << "unless they are asked for";
}

TEST(ShrinkTest, DimsThatCannotChangeAloneChangeTogether) {
  const Model model = read_model_text(R"(shardplan: 1
dims: {B: 8, H: 4096, heads: 32, D: 128, F: 11008}
inputs: {x: [B, H]}
parameters: {w: [H, F]}
operators:
  h: {op: Reshape, in: x, shape: [B, heads, D]}
  y: {op: MatMul, in: [x, w]}
)",
                                      "m.yaml");
  const ShrunkModel small = shrink(model, request_for(model, {{"y", {{"k", 4}}}}));
  const std::map<std::string, std::int64_t>& dims = small.model.dims;
  EXPECT_EQ(dims.at("H"), dims.at("heads") * dims.at("D"));
  EXPECT_EQ(dims.at("H") % 4, 0);
  EXPECT_LT(dims.at("H"), 64);
  EXPECT_TRUE(small.notes.empty()) << text_of(small);
  const TensorId w = *small.model.graph.find_tensor("w");
  EXPECT_EQ(small.origins[small.origin_of[w][0]], (std::vector<std::string>{"heads", "D"}));
}

TEST(ShrinkTest, DimsThatCannotChangeAreNamed) {
  const Model model = read_model_text(R"(shardplan: 1
dims: {B: 8, H: 4096}
inputs: {x: [B, H]}
operators:
  y: {op: Reshape, in: x, shape: [B, 32, 128]}
)",
                                      "m.yaml");
  const ShrunkModel small = shrink(model, request_for(model, {}));
  EXPECT_EQ(small.notes.front(), "H stays 4096: it cannot change alone");
  const TensorId x = *small.model.graph.find_tensor("x");
  EXPECT_EQ(small.origins[small.origin_of[x][1]], std::vector<std::string>{"H, which cannot change alone"});
}

// Equal tokens have equal scores, between which rounding decides.
TEST(ShrinkTest, WhereScoresAreComparedTheTokensOfARowMayDiffer) {
  const auto dims = [](const char* compared) {
    const Model model = read_model_text(std::string(R"(shardplan: 1
dims: {B: 8, S: 512, H: 64, V: 50304}
inputs: {tokens: {shape: [B, S], dtype: i32}}
parameters: {table: [V, H], w: [H]}
operators:
  x: {op: Gather, in: [table, tokens], axis: 0}
  r: {op: Mul, in: [x, w]}
  s: {op: ReduceSum, in: r, axis: 2}
  y: )") + compared,
                                        "m.yaml");
    return shrink(model, request_for(model, {{"y", {{"a", 4}}}, {"x", {{"i1", 16}}}})).model.dims;
  };
  const auto of_top_k = dims("{op: TopK, in: s, k: 8, out: [values, places]}\n");
  EXPECT_GE(of_top_k.at("S"), 8);
  EXPECT_GE(of_top_k.at("V"), of_top_k.at("S"));
  EXPECT_LT(of_top_k.at("V"), 32);
  const auto of_sum = dims("{op: Softmax, in: s}\n");
  EXPECT_LT(of_sum.at("V"), of_sum.at("S"));
}

TEST(ShrinkTest, TheCallersCheckMakesAFactorGrow) {
  const Model model = read_model_text(kAttention, "m.yaml");
  ShrinkRequest request = request_for(model, {});
  const OperatorId probs = *model.graph.find_operator("probs");
  request.check = [&](const Model&, const OperatorGraph& graph) -> std::optional<TooSmall> {
    const std::vector<Factor>& factors = graph.operation(probs).rule.factors;
    for (std::size_t f = 0; f < factors.size(); ++f) {
      if (factors[f].size < 20) return TooSmall{probs, f};
    }
    return std::nullopt;
  };
  const ShrunkModel small = shrink(model, request);
  for (const Factor& factor : small.model.graph.operation(probs).rule.factors) {
    EXPECT_GE(factor.size, std::min<std::int64_t>(20, factor.size == 12 ? 12 : 20));
  }
  EXPECT_EQ(small.model.dims.at("heads"), 12);  // cannot reach 20, and stays unchanged
}

}  // namespace
}  // namespace shardplan
