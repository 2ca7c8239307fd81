#include "operators/families/comparison.h"

#include "tests/operators/family_fixture.h"

namespace shardplan {

std::vector<CaseMaker> comparison_cases() {
  std::vector<CaseMaker> cases;
  for (const std::string name : {"Less", "LessEqual", "Greater", "GreaterEqual"}) {
    add_case(cases, name, [=](Random& r) -> OperatorCase {
      const auto [a, b] = broadcast_pair(r);
      return {name, {}, {real(a), positive(b)}};
    });
  }
  for (const std::string name : {"Equal", "NotEqual"}) {
    add_case(cases, name, [=](Random& r) -> OperatorCase {
      const auto [a, b] = broadcast_pair(r);
      return {name, {}, {index(a, 3), index(b, 3)}};
    });
  }
  for (const std::string name : {"LogicalAnd", "LogicalOr"}) {
    add_case(cases, name, [=](Random& r) -> OperatorCase {
      const Shape s = random_shape(r, 2);
      return {name, {}, {truth(s), truth({s[1]})}};
    });
  }
  add_case(cases, "LogicalNot", [](Random& r) -> OperatorCase {
    return {"LogicalNot", {}, {truth(random_shape(r, 2))}};
  });
  add_case(cases, "Select", [](Random& r) -> OperatorCase {
    const Shape s = random_shape(r, 2);
    return {"Select", {}, {truth(s), real(s), real({s[1]})}};
  });
  return cases;
}

namespace {

class ComparisonTest : public FamilyTest {};

TEST_F(ComparisonTest, ComparesNumbers) {
  const std::pair<std::string, std::function<double(double, double)>> kFunctions[] = {
      {"Less", [](double a, double b) { return a < b; }},
      {"LessEqual", [](double a, double b) { return a <= b; }},
      {"Greater", [](double a, double b) { return a > b; }},
      {"GreaterEqual", [](double a, double b) { return a >= b; }},
      {"Equal", [](double a, double b) { return a == b; }},
      {"NotEqual", [](double a, double b) { return a != b; }}};
  const Values m = index({3, 1, 4}, 3), n = index({5, 1}, 3);
  for (const auto& [type, function] : kFunctions) {
    expect(
        run(type, {}, {m, n})[0],
        [&](const Point& p) {
          return function(at(m, {p[0], 0, p[2]}), at(n, {p[1], 0}));
        },
        type);
  }
}

TEST_F(ComparisonTest, CombinesTruths) {
  const Values truths = index({4, 5}, 2), others = index({5}, 2), c = real({4, 5}), d = real({5});
  expect(run("LogicalAnd", {}, {truths, others}, {0, 1}, DataType::kBool)[0],
         [&](const Point& p) { return at(truths, p) != 0 && at(others, {p[1]}) != 0; });
  expect(run("LogicalOr", {}, {truths, others}, {0, 1}, DataType::kBool)[0],
         [&](const Point& p) { return at(truths, p) != 0 || at(others, {p[1]}) != 0; });
  expect(run("LogicalNot", {}, {truths}, {0}, DataType::kBool)[0], [&](const Point& p) { return at(truths, p) == 0; });
  expect(run("Select", {}, {truths, c, d}, {0}, DataType::kBool)[0],
         [&](const Point& p) { return at(truths, p) != 0 ? at(c, p) : at(d, {p[1]}); });
}

}  // namespace
}  // namespace shardplan
