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
  add_case(cases, "BatchNorm_inference", [](Random& r) -> OperatorCase {
    const Shape s = random_images(r);
    const Shape c = {s[1]};
    return {"BatchNorm", {}, {{s, 3, 5}, positive(c), real(c), real(c), positive(c)}};
  });
  return cases;
}

namespace {

class BatchNormTest : public FamilyTest {};

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

}  // namespace
}  // namespace shardplan
