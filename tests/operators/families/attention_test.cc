#include "operators/families/attention.h"

#include <cmath>

#include "base/error.h"
#include "operators/catalogue.h"
#include "operators/per_device.h"
#include "tests/operators/family_fixture.h"

namespace shardplan {
namespace {

/// Random variants: layout, groups, cross attention, mask, window, dropout, positions.
OperatorCase random_attention(Random& r, bool is_gradient) {
  const std::int64_t b = any_of(r, {1, 2, 4}), groups = any_of(r, {1, 2, 4}), ratio = any_of(r, {1, 1, 2, 4});
  const std::int64_t s = any_of(r, {2, 4, 8}), t = r.below(2) == 0 ? s : any_of(r, {4, 8});
  const std::int64_t d = any_of(r, {2, 3}), e = any_of(r, {2, 4});
  const bool bsnd = r.below(2) == 0;
  const auto shape = [&](std::int64_t heads, std::int64_t positions, std::int64_t last) -> Shape {
    return bsnd ? Shape{b, positions, heads, last} : Shape{b, heads, positions, last};
  };
  const Shape q = shape(groups * ratio, s, d), k = shape(groups, t, d), v = shape(groups, t, e);
  const Shape o = shape(groups * ratio, s, e), lse = {b, groups * ratio, s};
  OperatorCase example;
  example.type = is_gradient ? "FlashAttentionGrad" : "FlashAttention";
  example.attributes = {{"input_layout", std::string(bsnd ? "BSND" : "BNSD")},
                        {"causal", r.below(2) == 0},
                        {"window", r.below(3) == 0 ? std::int64_t{3} : std::int64_t{0}},
                        {"scale", r.below(2) == 0 ? 0.0 : 0.7},
                        {"keep_prob", r.below(3) == 0 ? 0.6 : 1.0},
                        {"valid_keys", r.below(4) == 0 ? std::int64_t{3} : std::int64_t{0}}};
  if (r.below(3) == 0) {
    const auto some_of = [&](std::int64_t size) { return 1 + static_cast<std::int64_t>(r.below(size)); };
    example.attributes["drawn_shape"] = List{some_of(groups), ratio, some_of(s), some_of(t)};
  }
  if (is_gradient) {
    example.operands = {real(o), {q, -2, 2}, {k, -2, 2}, real(v), real(o), {lse, 1, 3}};
    if (r.below(2) == 0) example.operands.push_back(real(lse));
  } else {
    example.operands = {{q, -2, 2}, {k, -2, 2}, real(v)};
  }
  if (r.below(2) == 0) {
    const auto or_one = [&](std::int64_t size) { return r.below(3) == 0 ? 1 : size; };
    example.operands.push_back({{or_one(b), or_one(groups * ratio), or_one(s), or_one(t)}, -2, 2});
    if (is_gradient) example.attributes["bias_gradient"] = r.below(3) > 0;
  }
  if (r.below(4) == 0) {
    example.operands.push_back(index({s}, 8));
    example.operands.push_back(index({t}, 8));
  }
  return example;
}

}  // namespace

std::vector<CaseMaker> attention_cases() {
  std::vector<CaseMaker> cases;
  // Several of each, since each instance is one variant.
  for (const std::string form : {"", "_2", "_3", "_4"}) {
    add_case(cases, "FlashAttention" + form, [](Random& r) { return random_attention(r, false); });
    add_case(cases, "FlashAttentionGrad" + form, [](Random& r) { return random_attention(r, true); });
  }
  return cases;
}

namespace {

class AttentionTest : public FamilyTest {};

/// The operators of a graph that materialises the scores: expand heads, q k^T, scale, mask, softmax, dropout, v.
TEST_F(AttentionTest, EqualsTheMaterialisedGraph) {
  for (int i = 0; i < 60; ++i) {
    const OperatorCase example = random_attention(random_, false);
    const Operation operation = operation_of(example);
    const std::vector<Values> operands = draw_operands(example, random_);
    const std::vector<Values> found = run_whole(operation, operands);
    const bool bsnd = operation.text("input_layout") == "BSND";
    const auto heads_first = [&](const Values& x) {
      return bsnd ? run("Transpose", {{"perm", List{0, 2, 1, 3}}}, {x})[0] : x;
    };
    const Values q = heads_first(operands[0]);
    const std::int64_t ratio = q.shape[1] / heads_first(operands[1]).shape[1];
    const auto repeated = [&](const Values& x) {  // head h reads h / ratio
      return tabulate({x.shape[0], x.shape[1] * ratio, x.shape[2], x.shape[3]}, [&](const Point& p) {
        return at(x, {p[0], p[1] / ratio, p[2], p[3]});
      });
    };
    const Values k = repeated(heads_first(operands[1])), v = repeated(heads_first(operands[2]));
    const double given = operation.number("scale");
    const double scale = given == 0 ? 1 / std::sqrt(static_cast<double>(q.shape[3])) : given;
    const Values products = run("BatchMatMul", {{"transpose_b", true}}, {q, k})[0];
    const bool has_bias = operands.size() > 3 && operands[3].shape.size() == 4;
    const bool has_positions = operands.size() >= 5;
    const auto position = [&](std::size_t of, std::int64_t j) {
      return has_positions ? operands[operands.size() - 2 + of].data[static_cast<std::size_t>(j)]
                           : static_cast<double>(j);
    };
    const auto bias = [&](Point p) {
      for (std::size_t d = 0; d < p.size(); ++d) p[d] = operands[3].shape[d] == 1 ? 0 : p[d];
      return at(operands[3], p);
    };
    const auto is_seen = [&](std::int64_t query, std::int64_t key) {
      const double distance = position(0, query) - position(1, key);
      const auto window = static_cast<double>(operation.integer("window"));
      const std::int64_t valid = operation.integer("valid_keys");
      return !(operation.flag("causal") && distance < 0) && (window == 0 || std::abs(distance) < window) &&
             (valid == 0 || key < valid);
    };
    const Values scores = tabulate(products.shape, [&](const Point& p) {
      return is_seen(p[2], p[3]) ? scale * at(products, p) + (has_bias ? bias(p) : 0) : -1e9;
    });
    Attributes dropout = {{"keep_prob", operation.number("keep_prob")}};
    if (const List& drawn = operation.list("drawn_shape"); !drawn.empty()) {
      dropout["drawn_shape"] = List{q.shape[0], drawn[0] * drawn[1], drawn[2], drawn[3]};
    }
    const Values weights = run("Dropout", dropout, {run("Softmax", {{"axis", std::int64_t{3}}}, {scores})[0]})[0];
    const Values context = run("BatchMatMul", {}, {weights, v})[0];
    const auto is_blind = [&](std::int64_t query) {
      for (std::int64_t key = 0; key < k.shape[2]; ++key) {
        if (is_seen(query, key)) return false;
      }
      return true;
    };
    const Values o = tabulate(context.shape, [&](const Point& p) { return is_blind(p[2]) ? 0 : at(context, p); });
    EXPECT_LE(relative_difference(o, heads_first(found[0])), 1e-12) << to_string(operation.rule);
    expect(found[1], [&](const Point& p) {
      double sum = 0;
      for (std::int64_t j = 0; j < k.shape[2]; ++j) sum += std::exp(at(scores, {p[0], p[1], p[2], j}));
      return sum == 0 ? 0.0 : std::log(sum);
    });
  }
}

Operation attention(const Attributes& attributes, const Shape& q, const Shape& k, const Shape& v) {
  return make_operation(*find_operator_type("FlashAttention"), attributes,
                        {{q, DataType::kBF16}, {k, DataType::kBF16}, {v, DataType::kBF16}});
}

double whole_flops(const Operation& operation) {
  std::vector<std::int64_t> extents;
  for (const Factor& factor : operation.rule.factors) extents.push_back(factor.size);
  return flops(operation, extents);
}

TEST_F(AttentionTest, CountsThePairsThatSeeEachOther) {
  const Shape x = {2, 4, 64, 8};
  const double all = 4.0 * 2 * 4 * 64 * 64 * 8;  // two products
  EXPECT_EQ(whole_flops(attention({}, x, x, x)), all);
  EXPECT_EQ(whole_flops(attention({{"causal", true}}, x, x, x)), all * 65 / 128);
  EXPECT_EQ(whole_flops(attention({{"causal", true}, {"window", std::int64_t{1}}}, x, x, x)), all / 64);
}

/// Without a causal mask, counted pair by pair; in pieces, as many as the busiest of all runs of so many queries.
TEST_F(AttentionTest, AWindowIsShorterAtTheEnds) {
  for (const std::int64_t keys : {16, 24}) {
    for (const std::int64_t window : {1, 3, 9, 16, 40}) {
      const Attributes attributes = {{"window", window}};
      const Operation operation = attention(attributes, {1, 1, 16, 8}, {1, 1, keys, 8}, {1, 1, keys, 8});
      for (const std::int64_t queries : {1, 2, 4, 8, 16}) {
        std::int64_t most = 0;
        for (std::int64_t first = 0; first + queries <= 16; ++first) {
          std::int64_t pairs = 0;
          for (std::int64_t i = first; i < first + queries; ++i) {
            for (std::int64_t j = 0; j < keys; ++j) pairs += std::abs(i - j) < window ? 1 : 0;
          }
          most = std::max(most, pairs);
        }
        std::vector<std::int64_t> extents;
        for (const Factor& factor : operation.rule.factors) extents.push_back(factor.size);
        extents[*operation.rule.find("s")] = queries;
        EXPECT_DOUBLE_EQ(flops(operation, extents) / (4 * 8), static_cast<double>(most))
            << keys << " keys, window " << window << ", " << queries << " queries";
      }
    }
  }
}

/// The last of four pieces of a causal sequence sees most pairs; dealt in zigzag all see as many. Counted pair by pair.
TEST_F(AttentionTest, PositionsBalanceCausalWork) {
  for (const std::int64_t window : {0, 1, 5, 20}) {
    const Attributes attributes = {{"causal", true}, {"window", window}};
    const Shape x = {1, 1, 16, 8};
    const TensorType positions{{16}, DataType::kI32}, real_type{x, DataType::kBF16};
    const Operation counted = attention(attributes, x, x, x);
    const Operation given = make_operation(*find_operator_type("FlashAttention"), attributes,
                                           {real_type, real_type, real_type, positions, positions});
    for (const std::int64_t pieces : {1, 2, 4, 8}) {
      const std::int64_t queries = 16 / pieces;
      std::int64_t last = 0, all = 0;
      for (std::int64_t i = 0; i < 16; ++i) {
        for (std::int64_t j = 0; j <= i; ++j) {
          if (window > 0 && i - j >= window) continue;
          ++all;
          last += i >= 16 - queries ? 1 : 0;
        }
      }
      const auto pairs = [&](const Operation& operation) {
        std::vector<std::int64_t> extents;
        for (const Factor& factor : operation.rule.factors) extents.push_back(factor.size);
        extents[*operation.rule.find("s")] = queries;
        return flops(operation, extents) / (4 * 8);
      };
      EXPECT_DOUBLE_EQ(pairs(counted), static_cast<double>(last)) << window << ", " << pieces;
      EXPECT_DOUBLE_EQ(pairs(given), static_cast<double>(all) / static_cast<double>(pieces))
          << window << ", " << pieces;
    }
  }
}

/// Fewer queries than keys, with positions: the next part of a prompt, behind what a cache holds already.
TEST_F(AttentionTest, QueriesWithPositionsAreTheLastOnes) {
  for (const std::int64_t window : {0, 1, 3, 20}) {
    const Attributes attributes = {{"causal", true}, {"window", window}};
    const TensorType q{{1, 1, 4, 8}, DataType::kBF16}, k{{1, 1, 16, 8}, DataType::kBF16};
    const Operation operation = make_operation(*find_operator_type("FlashAttention"), attributes,
                                               {q, k, k, {{4}, DataType::kI32}, {{16}, DataType::kI32}});
    std::int64_t pairs = 0;
    for (std::int64_t i = 12; i < 16; ++i) {
      for (std::int64_t j = 0; j <= i; ++j) pairs += window > 0 && i - j >= window ? 0 : 1;
    }
    EXPECT_DOUBLE_EQ(whole_flops(operation) / (4 * 8), static_cast<double>(pairs)) << window;
  }
}

/// The keys that at least one of some neighbouring queries sees, wherever they are, counted key by key.
TEST_F(AttentionTest, ReadsTheKeysThatItsWindowReaches) {
  for (const bool causal : {false, true}) {
    for (const std::int64_t window : {0, 1, 3, 5, 20}) {
      for (const std::int64_t queries : {1, 4, 16}) {
        const Operation operation =
            attention({{"causal", causal}, {"window", window}}, {1, 1, queries, 8}, {1, 1, 16, 8}, {1, 1, 16, 8});
        std::int64_t most = 0;
        for (std::int64_t first = 0; first + queries <= 16; ++first) {
          std::int64_t seen = 0;
          for (std::int64_t j = 0; j < 16; ++j) {
            bool is_seen = false;
            for (std::int64_t i = first; i < first + queries; ++i) {
              is_seen |= window == 0 || (std::abs(i - j) < window && (!causal || j <= i));
            }
            seen += is_seen ? 1 : 0;
          }
          most = std::max(most, seen);
        }
        std::vector<std::int64_t> extents;
        for (const Factor& factor : operation.rule.factors) extents.push_back(factor.size);
        const auto share = [&](std::size_t operand) { return operation.type->read_share(operation, extents, operand); };
        EXPECT_EQ(share(0), 1);
        EXPECT_DOUBLE_EQ(share(1), static_cast<double>(most) / 16) << causal << window << queries;
        EXPECT_DOUBLE_EQ(share(2), share(1));
      }
    }
  }
}

/// A cache of keys and values may be of one byte; what is computed has the type of the queries.
TEST_F(AttentionTest, KeysAndValuesMayBeOfF8) {
  const auto made_of = [](DataType q, DataType k, DataType v) {
    const Shape x = {2, 4, 8, 16};
    return make_operation(*find_operator_type("FlashAttention"), {}, {{x, q}, {x, k}, {x, v}}).results[0].dtype;
  };
  EXPECT_EQ(made_of(DataType::kBF16, DataType::kF8E4M3, DataType::kF8E4M3), DataType::kBF16);
  EXPECT_THROW(made_of(DataType::kBF16, DataType::kF8E4M3, DataType::kBF16), InputError);
  EXPECT_THROW(made_of(DataType::kBF16, DataType::kF32, DataType::kF32), InputError);
  const TensorType wide{{2, 4, 8, 16}, DataType::kBF16}, narrow{{2, 4, 8, 16}, DataType::kF8E4M3};
  const TensorType lse{{2, 4, 8}, DataType::kF32};
  const Operation gradient =
      make_operation(*find_graph_operator_type("FlashAttentionGrad"), {}, {wide, wide, narrow, narrow, wide, lse});
  ASSERT_EQ(gradient.results.size(), 3u);
  for (const TensorType& result : gradient.results) EXPECT_EQ(result, wide);
}

TEST_F(AttentionTest, KeepsNoScores) {
  const Operation operation = attention({{"causal", true}}, {2, 8, 64, 16}, {2, 2, 64, 16}, {2, 2, 64, 16});
  ASSERT_EQ(operation.results.size(), 2u);
  EXPECT_EQ(operation.results[0], (TensorType{{2, 8, 64, 16}, DataType::kBF16}));
  EXPECT_EQ(operation.results[1], (TensorType{{2, 8, 64}, DataType::kF32}));
}

TEST_F(AttentionTest, RejectsWhatDoesNotFit) {
  const auto message = [&](const Attributes& attributes, const Shape& q, const Shape& k,
                           const Shape& v) -> std::string {
    try {
      (void)attention(attributes, q, k, v);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  const Shape x = {2, 4, 8, 16};
  EXPECT_NE(message({}, {2, 6, 8, 16}, x, x).find("heads of q a multiple of those of k"), std::string::npos);
  EXPECT_NE(message({}, {4, 8, 16}, x, x).find("4 dimensions"), std::string::npos);
  EXPECT_NE(message({{"keep_prob", 0.0}}, x, x, x).find("keep_prob is 0"), std::string::npos);
  EXPECT_NE(message({{"window", std::int64_t{-1}}}, x, x, x).find("window is -1"), std::string::npos);
  EXPECT_NE(message({{"input_layout", std::string("BSH")}}, x, x, x).find("expected BNSD or BSND"), std::string::npos);
  EXPECT_EQ(message({}, x, x, x), "");
}

}  // namespace
}  // namespace shardplan
