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
  for (const std::string name : {"HardSigmoid", "HardSwish", "Softplus", "Mish", "LeakyReLU", "ELU"}) {
    add_case(cases, name, [=](Random& r) -> OperatorCase {
      return {name, {}, {{random_shape(r, 1 + r.below(3)), -5, 5}}};
    });
    add_case(cases, name + "Grad", [=](Random& r) -> OperatorCase {
      const Shape s = random_shape(r, 2);
      return {name + "Grad", {}, {real(s), {s, -5, 5}}};
    });
  }
  add_case(cases, "PReLU", [](Random& r) -> OperatorCase {
    const Shape s = random_shape(r, 2 + r.below(2));
    return {"PReLU", {}, {real(s), real({r.below(3) == 0 ? 1 : s[1]})}};
  });
  add_case(cases, "PReLUGrad", [](Random& r) -> OperatorCase {
    const Shape s = random_shape(r, 2 + r.below(2));
    return {"PReLUGrad", {}, {real(s), real(s), real({r.below(3) == 0 ? 1 : s[1]})}};
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

TEST_F(ActivationTest, FollowsTheFormulasOfMobileAndDetectionNetworks) {
  const Values x = real({60}, -5, 5);
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  const std::pair<std::string, std::function<double(double)>> kFunctions[] = {
      {"HardSigmoid", [](double v) { return std::min(std::max(v + 3, 0.0), 6.0) / 6; }},
      {"HardSwish", [](double v) { return v * std::min(std::max(v + 3, 0.0), 6.0) / 6; }},
      {"Softplus", [&](double v) { return -std::log(sigmoid(-v)); }},
      {"Mish", [](double v) { return v * std::tanh(std::log(1 + std::exp(v))); }},
      {"LeakyReLU", [](double v) { return std::max(v, 0.2 * v); }},
      {"ELU", [](double v) { return v > 0 ? v : std::exp(v) - 1; }}};
  for (const auto& [type, function] : kFunctions) {
    expect(
        run(type, {}, {x})[0], [&](const Point& p) { return function(at(x, p)); }, type);
  }
  EXPECT_EQ(run("Softplus", {}, {{{2}, {800, -800}}})[0].data, (std::vector<double>{800, 0})) << "no overflow";
  const Values image = real({2, 3, 4}), weight = real({3}), one = real({1});
  const auto leaky = [](double v, double slope) { return v > 0 ? v : slope * v; };
  expect(run("PReLU", {}, {image, weight})[0], [&](const Point& p) { return leaky(at(image, p), at(weight, {p[1]})); });
  expect(run("PReLU", {}, {image, one})[0], [&](const Point& p) { return leaky(at(image, p), at(one, {0})); });
}

TEST_F(ActivationTest, GeLUHasTwoForms) {
  // MindSpore's documentation: 0.841192 by tanh, and 0.841345 exactly.
  EXPECT_NEAR(run("GeLU", {}, {{{1}, {1.0}}})[0].data[0], 0.841192, 1e-6);
  EXPECT_NEAR(run("GeLU", {{"approximate", false}}, {{{1}, {1.0}}})[0].data[0], 0.841345, 1e-6);
}

}  // namespace
}  // namespace shardplan
