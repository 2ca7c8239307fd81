#include "operators/families/normalisation.h"

#include <cmath>

#include "tests/operators/family_fixture.h"

namespace shardplan {

std::vector<CaseMaker> normalisation_cases() {
  std::vector<CaseMaker> cases;
  for (const bool is_gradient : {false, true}) {
    add_case(cases, is_gradient ? "LayerNormGrad" : "LayerNorm", [=](Random& r) -> OperatorCase {
      const Shape s = random_shape(r, 3);
      const std::int64_t norm = whole_number(1 + r.below(2));
      const std::int64_t params = norm == 2 ? 1 + whole_number(r.below(2)) : 1;
      const Shape p(s.begin() + params, s.end());
      const Attributes attributes = {{"begin_norm_axis", norm}, {"begin_params_axis", params}};
      if (is_gradient) return {"LayerNormGrad", attributes, {real(s), {s, 3, 5}, positive(p)}};
      return {"LayerNorm", attributes, {{s, 3, 5}, positive(p), real(p)}};
    });
    add_case(cases, is_gradient ? "RmsNormGrad" : "RmsNorm", [=](Random& r) -> OperatorCase {
      const Shape s = random_shape(r, 3);
      const Shape p(s.begin() + 1 + static_cast<std::ptrdiff_t>(r.below(2)), s.end());
      if (is_gradient) return {"RmsNormGrad", {}, {real(s), real(s), positive(p)}};
      return {"RmsNorm", {}, {real(s), positive(p)}};
    });
  }
  return cases;
}

namespace {

class NormalisationTest : public FamilyTest {};

TEST_F(NormalisationTest, NormalisesTheLastDimensions) {
  const Values x = real({3, 4, 5}, -2, 2), gamma = real({4, 5}), beta = real({4, 5}), scale = real({5});
  expect(run("LayerNorm",
             {{"begin_norm_axis", std::int64_t{1}}, {"begin_params_axis", std::int64_t{1}}, {"epsilon", 1e-3}},
             {x, gamma, beta})[0],
         [&](const Point& p) {
           double sum = 0, squares = 0;
           for (std::int64_t j = 0; j < 4; ++j) {
             for (std::int64_t k = 0; k < 5; ++k) {
               sum += at(x, {p[0], j, k});
               squares += at(x, {p[0], j, k}) * at(x, {p[0], j, k});
             }
           }
           const double mean = sum / 20, variance = squares / 20 - mean * mean;
           return (at(x, p) - mean) / std::sqrt(variance + 1e-3) * at(gamma, {p[1], p[2]}) + at(beta, {p[1], p[2]});
         });
  expect(run("RmsNorm", {{"epsilon", 1e-3}}, {x, scale})[0], [&](const Point& p) {
    double squares = 0;
    for (std::int64_t k = 0; k < 5; ++k) squares += at(x, {p[0], p[1], k}) * at(x, {p[0], p[1], k});
    return at(x, p) / std::sqrt(squares / 5 + 1e-3) * at(scale, {p[2]});
  });
}

}  // namespace
}  // namespace shardplan
