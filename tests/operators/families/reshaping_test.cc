#include "operators/families/reshaping.h"

#include "tests/operators/family_fixture.h"

namespace shardplan {

std::vector<CaseMaker> reshaping_cases() {
  std::vector<CaseMaker> cases;
  add_case(cases, "Reshape", [](Random& r) -> OperatorCase {
    switch (r.below(6)) {
      case 0:
        return {"Reshape", {{"shape", List{-1, 8}}}, {real({2, 4, 8})}};
      case 1:
        return {"Reshape", {{"shape", List{4, 4, 12}}}, {real({4, 48})}};
      case 2:
        return {"Reshape", {{"shape", List{8, 6, 2}}}, {real({4, 24})}};
      case 3:
        return {"Reshape", {{"shape", List{4, 5, 3, 2}}}, {real({4, 3, 5, 2})}};
      case 4:
        return {"Reshape", {{"shape", List{8, 12}}}, {real({12, 8})}};
      default:
        return {"Reshape", {{"shape", List{2, 1, 24}}}, {real({6, 8})}};
    }
  });
  add_case(cases, "Flatten", [](Random& r) -> OperatorCase { return {"Flatten", {}, {real(random_shape(r, 3))}}; });
  add_case(cases, "ExpandDims", [](Random& r) -> OperatorCase {
    return {"ExpandDims", {{"axis", whole_number(r.below(3))}}, {real(random_shape(r, 2))}};
  });
  add_case(cases, "Squeeze", [](Random& r) -> OperatorCase { return {"Squeeze", {}, {real({some(r), 1, some(r)})}}; });
  return cases;
}

namespace {

class ReshapingTest : public FamilyTest {};

TEST_F(ReshapingTest, KeepsTheOrderOfElements) {
  const Values x = real({4, 6, 5});
  EXPECT_EQ(run("Reshape", {{"shape", List{-1, 3}}}, {x})[0].data, x.data);
}

}  // namespace
}  // namespace shardplan
