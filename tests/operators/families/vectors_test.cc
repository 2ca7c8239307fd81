#include "operators/families/vectors.h"

#include <cmath>

#include "tests/operators/family_fixture.h"

namespace shardplan {

std::vector<CaseMaker> vector_cases() {
  std::vector<CaseMaker> cases;
  for (const std::string name : {"L2Normalize", "L2NormalizeGrad"}) {
    add_case(cases, name, [=](Random& r) -> OperatorCase {
      const Shape s = random_shape(r, 3);
      std::vector<OperandSpec> operands = {{s, -2, 2}};
      if (name == "L2NormalizeGrad") operands.insert(operands.begin(), real(s));
      return {name, {{"axis", r.below(2) == 0 ? List{2} : List{0, 1}}}, operands};
    });
  }
  add_case(cases, "Cross", [](Random& r) -> OperatorCase {
    Shape s = random_shape(r, 3);
    const std::size_t dim = r.below(3);
    s[dim] = 3;
    return {"Cross", {{"dim", whole_number(dim)}}, {real(s), real(s)}};
  });
  add_case(cases, "Outer", [](Random& r) -> OperatorCase { return {"Outer", {}, {real({some(r)}), real({some(r)})}}; });
  return cases;
}

namespace {

class VectorsTest : public FamilyTest {};

TEST_F(VectorsTest, FollowTheFormulas) {
  const Values x = real({3, 4, 5}), a = real({2, 3}), b = real({2, 3}), m = real({4}), n = real({5});
  expect(run("L2Normalize", {{"axis", List{1}}}, {x})[0], [&](const Point& p) {
    double squares = 0;
    for (std::int64_t j = 0; j < 4; ++j) squares += at(x, {p[0], j, p[2]}) * at(x, {p[0], j, p[2]});
    return at(x, p) / std::sqrt(squares);
  });
  EXPECT_EQ(run("L2Normalize", {{"axis", List{0}}, {"epsilon", 4.0}}, {{{2}, {1, 0}}})[0].data,
            (std::vector<double>{0.5, 0}))
      << "below epsilon";
  expect(run("Cross", {}, {a, b})[0], [&](const Point& p) {
    const std::int64_t j = (p[1] + 1) % 3, k = (p[1] + 2) % 3;
    return at(a, {p[0], j}) * at(b, {p[0], k}) - at(a, {p[0], k}) * at(b, {p[0], j});
  });
  expect(run("Outer", {}, {m, n})[0], [&](const Point& p) { return at(m, {p[0]}) * at(n, {p[1]}); });
}

}  // namespace
}  // namespace shardplan
