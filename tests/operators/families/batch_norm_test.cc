#include "operators/families/batch_norm.h"

#include <cmath>

#include "tests/operators/family_fixture.h"

namespace shardplan {

std::vector<CaseMaker> batch_norm_cases() {
  std::vector<CaseMaker> cases;
  add_case(cases, "BatchNorm", [](Random& r) -> OperatorCase {
    const Shape s = r.below(2) == 0 ? random_images(r) : random_shape(r, 2);
    const Shape c = {s[1]};
    return {"BatchNorm", {{"is_training", true}}, {{s, 3, 5}, positive(c), real(c), real(c), positive(c)}};
  });
  add_case(cases, "BatchNormGrad", [](Random& r) -> OperatorCase {
    const Shape s = r.below(2) == 0 ? random_images(r) : random_shape(r, 2);
    const Shape c = {s[1]};
    return {"BatchNormGrad", {}, {real(s), {s, 3, 5}, positive(c), {c, 3, 5}, positive(c)}};
  });
  // In groups, each with its own statistics.
  add_case(cases, "BatchNorm_parts", [](Random& r) -> OperatorCase {
    Shape s = r.below(2) == 0 ? random_images(r) : random_shape(r, 2);
    const std::int64_t parts = any_of(r, {2, 4});
    s[0] *= parts;
    const Shape c = {s[1]}, own = {parts, s[1]};
    return {"BatchNorm",
            {{"is_training", true}, {"parts", parts}},
            {{s, 3, 5}, positive(c), real(c), real(own), positive(own)}};
  });
  add_case(cases, "BatchNormGrad_parts", [](Random& r) -> OperatorCase {
    Shape s = r.below(2) == 0 ? random_images(r) : random_shape(r, 2);
    const std::int64_t parts = any_of(r, {2, 4});
    s[0] *= parts;
    const Shape c = {s[1]}, own = {parts, s[1]};
    return {"BatchNormGrad", {{"parts", parts}}, {real(s), {s, 3, 5}, positive(c), {own, 3, 5}, positive(own)}};
  });
  add_case(cases, "BatchNorm_inference", [](Random& r) -> OperatorCase {
    const Shape s = random_images(r);
    const Shape c = {s[1]};
    return {"BatchNorm", {}, {{s, 3, 5}, positive(c), real(c), real(c), positive(c)}};
  });
  return cases;
}

namespace {

class BatchNormTest : public FamilyTest {};

/// Rows [begin, begin + count) of a tensor.
Values rows_of(const Values& whole, std::int64_t begin, std::int64_t count) {
  Shape shape = whole.shape;
  shape[0] = count;
  return tabulate(shape, [&](const Point& p) {
    Point from = p;
    from[0] += begin;
    return at(whole, from);
  });
}

// Each group gets the result that it gets alone; the weights' gradients are the sums over the groups.
TEST_F(BatchNormTest, PartsAreNormalisedAsIfAlone) {
  const Values x = real({6, 3, 2, 2}), dy = real({6, 3, 2, 2}), gamma = real({3}), beta = real({3});
  const Values mean = real({2, 3}), variance = real({2, 3}, 0.5, 2);
  const Attributes in_parts = {{"is_training", true}, {"parts", std::int64_t{2}}};
  const std::vector<Values> whole = run("BatchNorm", in_parts, {x, gamma, beta, mean, variance});
  const std::vector<Values> gradients =
      run("BatchNormGrad", {{"parts", std::int64_t{2}}}, {dy, x, gamma, whole[3], whole[4]});
  std::vector<std::vector<Values>> alone, gradients_alone;
  for (std::int64_t part = 0; part < 2; ++part) {
    const auto vector_of = [&](const Values& stacked) {
      return tabulate({3}, [&](const Point& p) { return at(stacked, {part, p[0]}); });
    };
    alone.push_back(run("BatchNorm", {{"is_training", true}},
                        {rows_of(x, 3 * part, 3), gamma, beta, vector_of(mean), vector_of(variance)}));
    gradients_alone.push_back(
        run("BatchNormGrad", {},
            {rows_of(dy, 3 * part, 3), rows_of(x, 3 * part, 3), gamma, alone.back()[3], alone.back()[4]}));
  }
  const auto part_of = [](const std::vector<std::vector<Values>>& parts, const Point& p, std::size_t result) {
    return at(parts[static_cast<std::size_t>(p[0] / 3)][result], {p[0] % 3, p[1], p[2], p[3]});
  };
  expect(whole[0], [&](const Point& p) { return part_of(alone, p, 0); });
  for (std::size_t i = 1; i < 5; ++i) {
    expect(whole[i], [&](const Point& p) { return at(alone[static_cast<std::size_t>(p[0])][i], {p[1]}); });
  }
  expect(gradients[0], [&](const Point& p) { return part_of(gradients_alone, p, 0); });
  for (std::size_t i = 1; i < 3; ++i) {
    expect(gradients[i], [&](const Point& p) { return at(gradients_alone[0][i], p) + at(gradients_alone[1][i], p); });
  }
}

TEST_F(BatchNormTest, FollowsTheFormulas) {
  const Values x = real({4, 3, 2, 5}), gamma = real({3}), beta = real({3}), mean = real({3}),
               variance = real({3}, 0.5, 2);
  const auto statistics = [&](std::int64_t c) {
    double sum = 0, squares = 0;
    for (std::int64_t i = 0; i < 4; ++i) {
      for (std::int64_t j = 0; j < 10; ++j) {
        const double v = at(x, {i, c, j / 5, j % 5});
        sum += v;
        squares += v * v;
      }
    }
    return std::pair(sum / 40, squares / 40 - sum / 40 * sum / 40);
  };
  const std::vector<Values> train =
      run("BatchNorm", {{"is_training", true}, {"momentum", 0.1}}, {x, gamma, beta, mean, variance});
  expect(train[0], [&](const Point& p) {
    const auto [m, v] = statistics(p[1]);
    return (at(x, p) - m) / std::sqrt(v + 1e-5) * at(gamma, {p[1]}) + at(beta, {p[1]});
  });
  expect(train[1], [&](const Point& p) { return 0.9 * at(mean, p) + 0.1 * statistics(p[0]).first; });
  expect(train[2], [&](const Point& p) { return 0.9 * at(variance, p) + 0.1 * statistics(p[0]).second * 40 / 39; });
  expect(train[3], [&](const Point& p) { return statistics(p[0]).first; });
  expect(train[4], [&](const Point& p) { return statistics(p[0]).second; });
  expect(run("BatchNorm", {}, {x, gamma, beta, mean, variance})[0], [&](const Point& p) {
    return (at(x, p) - at(mean, {p[1]})) / std::sqrt(at(variance, {p[1]}) + 1e-5) * at(gamma, {p[1]}) +
           at(beta, {p[1]});
  });
}

// Where values are far from 0, near the moving mean, their squares say next to nothing about the variance: a double
// loses nearly all of its digits below that.
TEST_F(BatchNormTest, VarianceOfValuesFarFromZeroIsExact) {
  const double far = 1.5e7;
  const Values near_zero = real({16, 1});
  const Values x = tabulate({16, 1}, [&](const Point& p) { return far + at(near_zero, p); });
  const Values one = tabulate({1}, [](const Point&) { return 1.0; });
  const Values moving_mean = tabulate({1}, [&](const Point&) { return far; });
  const auto variance = [&](const Values& of, const Values& mean) {
    return at(run("BatchNorm", {{"is_training", true}}, {of, one, one, mean, one})[4], {0});
  };
  EXPECT_NEAR(variance(x, moving_mean), variance(near_zero, tabulate({1}, [](const Point&) { return 0.0; })), 1e-8);
}

}  // namespace
}  // namespace shardplan
