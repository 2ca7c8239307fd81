#include "operators/families/arithmetic.h"

#include <algorithm>
#include <cmath>

#include "tests/operators/family_fixture.h"

namespace shardplan {

std::vector<CaseMaker> arithmetic_cases() {
  std::vector<CaseMaker> cases;
  for (const std::string name :
       {"Exp", "Abs", "Erf", "Square", "Log", "Sqrt", "Rsqrt", "Sin", "Cos", "Reciprocal", "Log1p", "Expm1"}) {
    const bool is_root = name == "Log" || name == "Sqrt" || name == "Rsqrt" || name == "Log1p" || name == "Reciprocal";
    add_case(cases, name, [=](Random& r) -> OperatorCase {
      const Shape s = random_shape(r, 1 + r.below(3));
      return {name, {}, {is_root ? positive(s) : real(s)}};
    });
    add_case(cases, name + "Grad", [=](Random& r) -> OperatorCase {
      const Shape s = random_shape(r, 2);
      return {name + "Grad", {}, {real(s), positive(s)}};
    });
  }
  add_case(cases, "Neg", [](Random& r) -> OperatorCase {
    return {"Neg", {}, {real(random_shape(r, 1 + r.below(3)))}};
  });
  for (const std::string name : {"Add", "Sub", "Mul", "RealDiv", "Div", "Pow", "Maximum", "Minimum"}) {
    add_case(cases, name, [=](Random& r) -> OperatorCase {
      const auto [a, b] = broadcast_pair(r);
      return {name, {}, {name == "Pow" ? positive(a) : real(a), positive(b)}};
    });
  }
  for (const std::string name : {"Sign", "Floor", "Ceil", "Clip"}) {
    const Attributes attributes =
        name == "Clip" ? Attributes{{"clip_value_min", -1.0}, {"clip_value_max", 2.0}} : Attributes{};
    add_case(cases, name, [=](Random& r) -> OperatorCase {
      return {name, attributes, {{random_shape(r, 1 + r.below(3)), -4, 4}}};
    });
    add_case(cases, name + "Grad", [=](Random& r) -> OperatorCase {
      const Shape s = random_shape(r, 2);
      return {name + "Grad", attributes, {real(s), {s, -4, 4}}};
    });
  }
  for (const std::string name : {"Mod", "FloorMod"}) {
    add_case(cases, name, [=](Random& r) -> OperatorCase {
      const auto [a, b] = broadcast_pair(r);
      return {name, {}, {{a, -4, 4}, positive(b)}};
    });
  }
  add_case(cases, "AddN", [](Random& r) -> OperatorCase {
    const Shape s = random_shape(r, 2);
    return {"AddN", {}, {real(s), real(s), real(s)}};
  });
  add_case(cases, "BiasAdd", [](Random& r) -> OperatorCase {
    const Shape s = random_shape(r, 3);
    return {"BiasAdd", {}, {real(s), real({s[2]})}};
  });
  add_case(cases, "BiasAdd_nchw", [](Random& r) -> OperatorCase {
    const Shape s = random_images(r);
    return {"BiasAdd", {{"data_format", std::string("NCHW")}}, {real(s), real({s[1]})}};
  });
  return cases;
}

namespace {

class ArithmeticTest : public FamilyTest {};

TEST_F(ArithmeticTest, FunctionsOfOneOperand) {
  const Values x = real({40}, -3, 3), y = real({40}, 0.2, 3);
  const std::pair<std::string, std::function<double(double)>> kFunctions[] = {
      {"Exp", [](double v) { return std::exp(v); }},
      {"Neg", [](double v) { return -v; }},
      {"Abs", [](double v) { return std::fabs(v); }},
      {"Erf", [](double v) { return std::erf(v); }},
      {"Sin", [](double v) { return std::cos(v - std::acos(0.0)); }},
      {"Cos", [](double v) { return std::sin(v + std::acos(0.0)); }},
      {"Expm1", [](double v) { return std::exp(v) - 1; }},
      {"Square", [](double v) { return v * v; }}};
  for (const auto& [type, function] : kFunctions) {
    expect(
        run(type, {}, {x})[0], [&](const Point& p) { return function(at(x, p)); }, type);
  }
  const std::pair<std::string, std::function<double(double)>> kOfPositive[] = {
      {"Log", [](double v) { return std::log(v); }},
      {"Log1p", [](double v) { return std::log(1 + v); }},
      {"Reciprocal", [](double v) { return 1 / v; }},
      {"Sqrt", [](double v) { return std::sqrt(v); }},
      {"Rsqrt", [](double v) { return std::pow(v, -0.5); }}};
  for (const auto& [type, function] : kOfPositive) {
    expect(
        run(type, {}, {y})[0], [&](const Point& p) { return function(at(y, p)); }, type);
  }
}

TEST_F(ArithmeticTest, OperandsBroadcast) {
  const std::pair<std::string, std::function<double(double, double)>> kFunctions[] = {
      {"Add", [](double a, double b) { return a + b; }},
      {"Sub", [](double a, double b) { return a - b; }},
      {"Mul", [](double a, double b) { return a * b; }},
      {"RealDiv", [](double a, double b) { return a / b; }},
      {"Div", [](double a, double b) { return a / b; }},
      {"Pow", [](double a, double b) { return std::exp(b * std::log(a)); }},
      {"Maximum", [](double a, double b) { return std::max(a, b); }},
      {"Minimum", [](double a, double b) { return std::min(a, b); }}};
  const Values m = real({3, 1, 4}, 0.2, 3), n = real({5, 1}, 1, 3);
  for (const auto& [type, function] : kFunctions) {
    expect(
        run(type, {}, {m, n})[0],
        [&](const Point& p) {
          return function(at(m, {p[0], 0, p[2]}), at(n, {p[1], 0}));
        },
        type);
  }
}

TEST_F(ArithmeticTest, StepsAndRemainders) {
  const Values x = {{5}, {-4, -1.5, 0, 1.5, 5}}, y = {{5}, {3, 1, 2, -1, 3}};
  const auto data = [&](const std::string& type, const std::vector<Values>& operands,
                        const Attributes& attributes = {}) { return run(type, attributes, operands)[0].data; };
  EXPECT_EQ(data("Sign", {x}), (std::vector<double>{-1, -1, 0, 1, 1}));
  EXPECT_EQ(data("Floor", {x}), (std::vector<double>{-4, -2, 0, 1, 5}));
  EXPECT_EQ(data("Ceil", {x}), (std::vector<double>{-4, -1, 0, 2, 5}));
  EXPECT_EQ(data("Clip", {x}, {{"clip_value_min", -2.0}, {"clip_value_max", 1.0}}),
            (std::vector<double>{-2, -1.5, 0, 1, 1}));
  EXPECT_EQ(data("Mod", {x, y}), (std::vector<double>{-1, -0.5, 0, 0.5, 2})) << "the sign of x1";
  EXPECT_EQ(data("FloorMod", {x, y}), (std::vector<double>{2, 0.5, 0, -0.5, 2})) << "the sign of x2";
}

TEST_F(ArithmeticTest, SumsAndBiases) {
  const Values c = real({4, 5});
  expect(run("AddN", {}, {c, c, c})[0], [&](const Point& p) { return 3 * at(c, p); });
  const Values image = real({2, 3, 4, 5}), bias = real({3}), last = real({5});
  expect(run("BiasAdd", {{"data_format", std::string("NCHW")}}, {image, bias})[0],
         [&](const Point& p) { return at(image, p) + at(bias, {p[1]}); });
  expect(run("BiasAdd", {}, {image, last})[0], [&](const Point& p) { return at(image, p) + at(last, {p[3]}); });
}

}  // namespace
}  // namespace shardplan
