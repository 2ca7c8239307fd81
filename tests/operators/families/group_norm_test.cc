#include "operators/families/group_norm.h"

#include <cmath>

#include "base/error.h"
#include "tests/operators/family_fixture.h"

namespace shardplan {

std::vector<CaseMaker> group_norm_cases() {
  std::vector<CaseMaker> cases;
  for (const bool is_gradient : {false, true}) {
    add_case(cases, is_gradient ? "GroupNormGrad" : "GroupNorm", [=](Random& r) -> OperatorCase {
      const std::int64_t groups = any_of(r, {1, 2, 4}), channels = groups * any_of(r, {1, 2, 4});
      Shape x = {any_of(r, {2, 4}), channels, any_of(r, {2, 4, 6}), any_of(r, {2, 3, 4})};
      x.resize(2 + r.below(3));
      const Attributes attributes = {{"num_groups", groups}};
      if (is_gradient) return {"GroupNormGrad", attributes, {real(x), {x, 3, 5}, positive({channels})}};
      return {"GroupNorm", attributes, {{x, 3, 5}, positive({channels}), real({channels})}};
    });
  }
  add_case(cases, "InstanceNorm", [](Random& r) -> OperatorCase {
    const Shape x = random_images(r);
    return {"InstanceNorm", {}, {{x, 3, 5}, positive({x[1]}), real({x[1]})}};
  });
  return cases;
}

namespace {

class GroupNormTest : public FamilyTest {
 protected:
  /// Expects the norm of x [2, 6, 3, 5] with `size` channels per group.
  void expect_normalised(const Values& found, const Values& x, const Values& gamma, const Values& beta,
                         std::int64_t size) {
    expect(found, [&](const Point& p) {
      double sum = 0, squares = 0;
      for (std::int64_t c = p[1] / size * size; c < p[1] / size * size + size; ++c) {
        for (std::int64_t i = 0; i < 15; ++i) {
          const double value = at(x, {p[0], c, i / 5, i % 5});
          sum += value;
          squares += value * value;
        }
      }
      const double count = 15.0 * static_cast<double>(size);
      const double mean = sum / count;
      const double variance = squares / count - mean * mean;
      return (at(x, p) - mean) / std::sqrt(variance + 1e-3) * at(gamma, {p[1]}) + at(beta, {p[1]});
    });
  }
};

TEST_F(GroupNormTest, NormalisesGroupsOfChannels) {
  const Values x = real({2, 6, 3, 5}, -2, 2), gamma = real({6}), beta = real({6});
  for (const std::int64_t groups : {1, 2, 3, 6}) {
    expect_normalised(run("GroupNorm", {{"num_groups", groups}, {"epsilon", 1e-3}}, {x, gamma, beta})[0], x, gamma,
                      beta, 6 / groups);
  }
  expect_normalised(run("InstanceNorm", {{"epsilon", 1e-3}}, {x, gamma, beta})[0], x, gamma, beta, 1);
}

TEST_F(GroupNormTest, RejectsWhatDoesNotFit) {
  const auto message = [&](std::int64_t groups, const Shape& gamma) -> std::string {
    try {
      run("GroupNorm", {{"num_groups", groups}}, {real({2, 6, 4}), real(gamma), real({6})});
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message(4, {6}).find("num_groups is 4; expected a divisor of the 6 channels"), std::string::npos);
  EXPECT_NE(message(0, {6}).find("num_groups is 0"), std::string::npos);
  EXPECT_NE(message(2, {4}).find("gamma is [4]; expected [6]"), std::string::npos) << message(2, {4});
}

}  // namespace
}  // namespace shardplan
