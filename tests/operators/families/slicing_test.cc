#include "operators/families/slicing.h"

#include "tests/operators/family_fixture.h"

namespace shardplan {

std::vector<CaseMaker> slicing_cases() {
  std::vector<CaseMaker> cases;
  add_case(cases, "Slice", [](Random& r) -> OperatorCase {
    return {"Slice", {{"begin", List{0, 3}}, {"size", List{-1, 4}}}, {real({some(r), 8, some(r)})}};
  });
  add_case(cases, "StridedSlice", [](Random& r) -> OperatorCase {
    return {"StridedSlice",
            {{"begin", List{0, 1}}, {"end", List{99, -1}}, {"strides", List{1, 2}}},
            {real({some(r), 8, some(r)})}};
  });
  add_case(cases, "SliceGrad", [](Random& r) -> OperatorCase {
    const std::int64_t a = some(r);
    return {"SliceGrad",
            {{"shape", List{a, 8}}, {"begin", List{0, 1}}, {"end", List{a, 7}}, {"strides", List{1, 2}}},
            {real({a, 3})}};
  });
  return cases;
}

namespace {

class SlicingTest : public FamilyTest {};

TEST_F(SlicingTest, TakesParts) {
  const Values x = real({4, 6, 5});
  expect(run("Slice", {{"begin", List{1, 2}}, {"size", List{2, -1}}}, {x})[0], [&](const Point& p) {
    return at(x, {p[0] + 1, p[1] + 2, p[2]});
  });
  expect(run("StridedSlice", {{"begin", List{-3, 0}}, {"end", List{4, -1}}, {"strides", List{2, 3}}}, {x})[0],
         [&](const Point& p) {
           return at(x, {1 + 2 * p[0], 3 * p[1], p[2]});
         });
}

}  // namespace
}  // namespace shardplan
