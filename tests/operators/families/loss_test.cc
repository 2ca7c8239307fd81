#include "operators/families/loss.h"

#include <cmath>

#include "tests/operators/family_fixture.h"

namespace shardplan {

std::vector<CaseMaker> loss_cases() {
  std::vector<CaseMaker> cases;
  add_case(cases, "SoftmaxCrossEntropyWithLogits", [](Random& r) -> OperatorCase {
    const Shape s = random_shape(r, 1 + r.below(3));
    return {"SoftmaxCrossEntropyWithLogits", {}, {{s, -4, 4}, positive(s)}};
  });
  add_case(cases, "SoftmaxCrossEntropyGrad", [](Random& r) -> OperatorCase {
    const Shape s = random_shape(r, 2);
    return {"SoftmaxCrossEntropyGrad", {}, {real({s[0]}), {s, -4, 4}, positive(s)}};
  });
  for (const std::string reduction : {"mean", "sum", "none"}) {
    add_case(cases, "SparseSoftmaxCrossEntropyWithLogits_" + reduction, [=](Random& r) -> OperatorCase {
      const Shape s = random_shape(r, 3);
      return {
          "SparseSoftmaxCrossEntropyWithLogits", {{"reduction", reduction}}, {{s, -4, 4}, index({s[0], s[1]}, s[2])}};
    });
    add_case(cases, "SparseSoftmaxCrossEntropyGrad_" + reduction, [=](Random& r) -> OperatorCase {
      const Shape s = random_shape(r, 2);
      return {"SparseSoftmaxCrossEntropyGrad",
              {{"reduction", reduction}},
              {real(reduction == "none" ? Shape{s[0]} : Shape{}), {s, -4, 4}, index({s[0]}, s[1])}};
    });
  }
  return cases;
}

namespace {

class LossTest : public FamilyTest {};

TEST_F(LossTest, FollowsTheFormulas) {
  const Values logits = real({6, 5}, -3, 3), labels = index({6}, 5), soft = real({6, 5}, 0, 1);
  const auto log_probability = [&](std::int64_t row, std::int64_t c) {
    double sum = 0;
    for (std::int64_t j = 0; j < 5; ++j) sum += std::exp(at(logits, {row, j}));
    return at(logits, {row, c}) - std::log(sum);
  };
  expect(run("SoftmaxCrossEntropyWithLogits", {}, {logits, soft})[0], [&](const Point& p) {
    double loss = 0;
    for (std::int64_t c = 0; c < 5; ++c) loss -= at(soft, {p[0], c}) * log_probability(p[0], c);
    return loss;
  });
  const auto sparse = [&](const Point& p) { return -log_probability(p[0], static_cast<std::int64_t>(at(labels, p))); };
  expect(run("SparseSoftmaxCrossEntropyWithLogits", {{"reduction", std::string("none")}}, {logits, labels}, {1})[0],
         sparse);
  double total = 0;
  for (std::int64_t row = 0; row < 6; ++row) total += sparse({row});
  EXPECT_NEAR(run("SparseSoftmaxCrossEntropyWithLogits", {}, {logits, labels}, {1})[0].data[0], total / 6, 1e-12);
  EXPECT_NEAR(
      run("SparseSoftmaxCrossEntropyWithLogits", {{"reduction", std::string("sum")}}, {logits, labels}, {1})[0].data[0],
      total, 1e-12);
  // Large logits do not overflow.
  EXPECT_NEAR(run("SparseSoftmaxCrossEntropyWithLogits", {}, {{{1, 2}, {1000, 0}}, {{1}, {0}}}, {1})[0].data[0], 0,
              1e-12);

  // The expanded form of the source documents: max, subtract, exp, sum, divide, log, multiply by the one-hot labels,
  // sum.
  const Attributes last = {{"axis", List{-1}}, {"keep_dims", true}};
  const Values hot = run("OneHot", {{"depth", std::int64_t{5}}, {"dtype", std::string("f64")}}, {labels}, {0})[0];
  const Values exponentials = run("Exp", {}, run("Sub", {}, {logits, run("ReduceMax", last, {logits})[0]}))[0];
  const Values probabilities = run("RealDiv", {}, {exponentials, run("ReduceSum", last, {exponentials})[0]})[0];
  const Values picked = run("Mul", {}, {run("Log", {}, {probabilities})[0], hot})[0];
  const Values expanded = run("Neg", {}, run("ReduceSum", {{"axis", List{-1}}}, {picked}))[0];
  expect(expanded, sparse);
}

}  // namespace
}  // namespace shardplan
