#include "operators/families/activation.h"

#include <algorithm>
#include <cmath>

#include "tests/operators/family_fixture.h"

namespace shardplan {

std::vector<CaseMaker> activation_cases() {
  std::vector<CaseMaker> cases;
  for (const std::string name : {"ReLU", "SiLU", "Sigmoid", "Tanh", "GeLU"}) {
    add_case(cases, name, [=](Random& r) -> OperatorCase {
      return {name, {}, {real(random_shape(r, 1 + r.below(3)))}};
    });
    add_case(cases, name + "Grad", [=](Random& r) -> OperatorCase {
      const Shape s = random_shape(r, 2);
      return {name + "Grad", {}, {real(s), positive(s)}};
    });
  }
  add_case(cases, "GeLU_erf", [](Random& r) -> OperatorCase {
    return {"GeLU", {{"approximate", false}}, {real(random_shape(r, 2))}};
  });
  return cases;
}

namespace {

class ActivationTest : public FamilyTest {};

TEST_F(ActivationTest, FollowsTheFormulas) {
  const Values x = real({40}, -3, 3);
  const std::pair<std::string, std::function<double(double)>> kFunctions[] = {
      {"ReLU", [](double v) { return std::max(v, 0.0); }},
      {"Tanh", [](double v) { return std::tanh(v); }},
      {"SiLU", [](double v) { return v / (1 + std::exp(-v)); }},
      {"Sigmoid", [](double v) { return std::exp(v) / (1 + std::exp(v)); }}};
  for (const auto& [type, function] : kFunctions) {
    expect(
        run(type, {}, {x})[0], [&](const Point& p) { return function(at(x, p)); }, type);
  }
}

TEST_F(ActivationTest, GeLUHasTwoForms) {
  // MindSpore's documentation: 0.841192 by tanh and 0.841345 exactly.
  EXPECT_NEAR(run("GeLU", {}, {{{1}, {1.0}}})[0].data[0], 0.841192, 1e-6);
  EXPECT_NEAR(run("GeLU", {{"approximate", false}}, {{{1}, {1.0}}})[0].data[0], 0.841345, 1e-6);
}

}  // namespace
}  // namespace shardplan
