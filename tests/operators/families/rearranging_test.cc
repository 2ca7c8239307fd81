#include "operators/families/rearranging.h"

#include "tests/operators/family_fixture.h"

namespace shardplan {

std::vector<CaseMaker> rearranging_cases() {
  std::vector<CaseMaker> cases;
  add_case(cases, "Transpose", [](Random& r) -> OperatorCase {
    return {"Transpose", {{"perm", r.below(2) == 0 ? List{2, 0, 1} : List{0, 2, 1}}}, {real(random_shape(r, 3))}};
  });
  add_case(cases, "Tile", [](Random& r) -> OperatorCase {
    return {"Tile", {{"multiples", List{2, 1, 4}}}, {real(random_shape(r, 2))}};
  });
  add_case(cases, "BroadcastTo", [](Random& r) -> OperatorCase {
    const Shape s = random_shape(r, 3);
    return {"BroadcastTo", {{"shape", s}}, {real({1, s[2]})}};
  });
  return cases;
}

namespace {

class RearrangingTest : public FamilyTest {};

TEST_F(RearrangingTest, MovesElements) {
  const Values x = real({4, 6, 5});
  expect(run("Transpose", {{"perm", List{2, 0, 1}}}, {x})[0], [&](const Point& p) {
    return at(x, {p[1], p[2], p[0]});
  });
  expect(run("Tile", {{"multiples", List{2, 1, 3}}}, {x})[0], [&](const Point& p) {
    return at(x, {p[0] % 4, p[1], p[2] % 5});
  });
  expect(run("BroadcastTo", {{"shape", List{3, 4, 6, 5}}}, {x})[0], [&](const Point& p) {
    return at(x, {p[1], p[2], p[3]});
  });
}

}  // namespace
}  // namespace shardplan
