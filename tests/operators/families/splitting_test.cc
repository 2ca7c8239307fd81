#include "operators/families/splitting.h"

#include "tests/operators/family_fixture.h"

namespace shardplan {

std::vector<CaseMaker> splitting_cases() {
  std::vector<CaseMaker> cases;
  add_case(cases, "Split", [](Random& r) -> OperatorCase {
    const Shape s = r.below(2) == 0 ? Shape{some(r), 12, some(r)} : Shape{some(r), 12};
    return {"Split", {{"axis", whole_number(1)}, {"output_num", whole_number(3)}}, {real(s)}};
  });
  add_case(cases, "Split_sizes", [](Random& r) -> OperatorCase {
    return {"Split", {{"axis", whole_number(-1)}, {"size_splits", List{2, 5, 1}}}, {real({some(r), 8})}};
  });
  add_case(cases, "Concat", [](Random& r) -> OperatorCase {
    const Shape s = random_shape(r, 3);
    return {"Concat", {{"axis", whole_number(r.below(3))}}, {real(s), real(s)}};
  });
  add_case(cases, "Concat_unequal", [](Random& r) -> OperatorCase {
    const std::int64_t a = some(r);
    return {"Concat", {{"axis", whole_number(1)}}, {real({a, 2}), real({a, 4}), real({a, 1})}};
  });
  add_case(cases, "Stack", [](Random& r) -> OperatorCase {
    const Shape s = random_shape(r, 2);
    return {"Stack", {{"axis", whole_number(r.below(3))}}, {real(s), real(s), real(s)}};
  });
  return cases;
}

namespace {

class SplittingTest : public FamilyTest {};

TEST_F(SplittingTest, CutsAndJoins) {
  const Values x = real({4, 6, 5}), y = real({4, 2, 5});
  expect(run("Split", {{"axis", std::int64_t{1}}, {"output_num", std::int64_t{3}}}, {x})[1], [&](const Point& p) {
    return at(x, {p[0], p[1] + 2, p[2]});
  });
  expect(run("Split", {{"axis", std::int64_t{1}}, {"size_splits", List{1, 5}}}, {x})[1], [&](const Point& p) {
    return at(x, {p[0], p[1] + 1, p[2]});
  });
  expect(run("Concat", {{"axis", std::int64_t{1}}}, {y, x})[0], [&](const Point& p) {
    return p[1] < 2 ? at(y, p) : at(x, {p[0], p[1] - 2, p[2]});
  });
  expect(run("Stack", {{"axis", std::int64_t{1}}}, {x, x})[0], [&](const Point& p) {
    return at(x, {p[0], p[2], p[3]});
  });
}

}  // namespace
}  // namespace shardplan
