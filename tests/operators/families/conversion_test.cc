#include "operators/families/conversion.h"

#include "tests/operators/family_fixture.h"

namespace shardplan {

std::vector<CaseMaker> conversion_cases() {
  std::vector<CaseMaker> cases;
  add_case(cases, "Identity", [](Random& r) -> OperatorCase {
    return {"Identity", {}, {real(random_shape(r, 1 + r.below(3)))}};
  });
  add_case(cases, "StopGradient", [](Random& r) -> OperatorCase {
    return {"StopGradient", {}, {real(random_shape(r, 1 + r.below(3)))}};
  });
  add_case(cases, "Accumulate", [](Random& r) -> OperatorCase {
    return {"Accumulate", {{"dtype", std::string("f32")}, {"count", std::int64_t{3}}}, {real(random_shape(r, 2))}};
  });
  add_case(cases, "Cast", [](Random& r) -> OperatorCase {
    return {"Cast", {{"dtype", std::string("f32")}}, {real(random_shape(r, 2))}};
  });
  add_case(cases, "Cast_int", [](Random& r) -> OperatorCase {
    return {"Cast", {{"dtype", std::string("i32")}}, {{random_shape(r, 2), -9, 9}}};
  });
  return cases;
}

namespace {

class ConversionTest : public FamilyTest {};

TEST_F(ConversionTest, CastsTowardsZero) {
  EXPECT_EQ(run("Cast", {{"dtype", std::string("i32")}}, {{{3}, {1.7, -1.7, 0.2}}})[0].data,
            (std::vector<double>{1, -1, 0}));
  EXPECT_EQ(run("Cast", {{"dtype", std::string("bool")}}, {{{3}, {1.7, -1.7, 0}}})[0].data,
            (std::vector<double>{1, 1, 0}));
}

TEST_F(ConversionTest, AccumulatesShares) {
  const Values x = real({3, 4});
  expect(run("Accumulate", {{"dtype", std::string("f32")}, {"count", std::int64_t{4}}}, {x})[0],
         [&](const Point& p) { return at(x, p) / 4; });
  EXPECT_EQ(run("Identity", {}, {x})[0].data, x.data);
  EXPECT_EQ(run("StopGradient", {}, {x})[0].data, x.data);
}

}  // namespace
}  // namespace shardplan
