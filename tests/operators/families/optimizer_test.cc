#include "operators/families/optimizer.h"

#include <cmath>

#include "tests/operators/family_fixture.h"

namespace shardplan {

std::vector<CaseMaker> optimizer_cases() {
  std::vector<CaseMaker> cases;
  // Optimizers.
  const Attributes rate = {{"learning_rate", 0.1}, {"weight_decay", 0.01}};
  add_case(cases, "ApplyGradientDescent", [=](Random& r) -> OperatorCase {
    const Shape s = random_shape(r, 2);
    return {"ApplyGradientDescent", rate, {real(s), real(s)}};
  });
  add_case(cases, "ApplyMomentum", [=](Random& r) -> OperatorCase {
    const Shape s = random_shape(r, 2);
    return {"ApplyMomentum", rate, {real(s), real(s), real(s)}};
  });
  for (const std::string name : {"ApplyAdam", "ApplyAdamW"}) {
    add_case(cases, name, [=](Random& r) -> OperatorCase {
      const Shape s = random_shape(r, 2);
      return {name, rate, {real(s), real(s), positive(s), index({}, 5), real(s)}};
    });
  }
  add_case(cases, "ClipScale", [](Random&) -> OperatorCase {
    return {"ClipScale", {{"clip_norm", 1.0}}, {positive({})}};
  });
  return cases;
}

namespace {

class OptimizerTest : public FamilyTest {};

TEST_F(OptimizerTest, FollowsTheFormulas) {
  const Values p{{1}, {2.0}}, g{{1}, {0.5}}, m{{1}, {0.1}}, v{{1}, {0.04}}, step{{}, {1}};
  EXPECT_NEAR(run("ApplyGradientDescent", {{"learning_rate", 0.1}, {"weight_decay", 0.01}}, {p, g})[0].data[0],
              2 - 0.1 * 0.52, 1e-15);
  const std::vector<Values> momentum = run("ApplyMomentum", {{"learning_rate", 0.1}, {"momentum", 0.9}}, {p, m, g});
  EXPECT_NEAR(momentum[1].data[0], 0.59, 1e-15);
  EXPECT_NEAR(momentum[0].data[0], 2 - 0.059, 1e-15);
  // The second update: m = 0.9 * 0.1 + 0.1 * 0.5 = 0.14, v = 0.999 * 0.04 + 0.001 * 0.25 = 0.04021.
  const std::vector<Values> adam =
      run("ApplyAdamW", {{"learning_rate", 0.1}, {"weight_decay", 0.01}}, {p, m, v, step, g});
  EXPECT_NEAR(adam[1].data[0], 0.14, 1e-15);
  EXPECT_NEAR(adam[2].data[0], 0.04021, 1e-15);
  EXPECT_NEAR(adam[0].data[0], 2 - 0.1 * (0.14 / 0.19 / (std::sqrt(0.04021 / 0.001999) + 1e-8) + 0.02), 1e-14);
  EXPECT_EQ(adam[3].data[0], 2);
  const std::vector<Values> coupled =
      run("ApplyAdam", {{"learning_rate", 0.1}, {"weight_decay", 0.01}}, {p, m, v, step, g});
  EXPECT_NEAR(coupled[1].data[0], 0.9 * 0.1 + 0.1 * 0.52, 1e-15);
  EXPECT_NEAR(run("ClipScale", {{"clip_norm", 1.0}}, {{{}, {16}}})[0].data[0], 0.25, 1e-15);
  EXPECT_EQ(run("ClipScale", {{"clip_norm", 1.0}}, {{{}, {0.5}}})[0].data[0], 1);
}

}  // namespace
}  // namespace shardplan
