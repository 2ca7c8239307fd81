#include "operators/families/sorting.h"

#include "tests/operators/family_fixture.h"

namespace shardplan {

std::vector<CaseMaker> sorting_cases() {
  std::vector<CaseMaker> cases;
  add_case(cases, "TopK", [](Random& r) -> OperatorCase {
    return {"TopK", {{"k", whole_number(2)}}, {real(random_shape(r, 3))}};
  });
  add_case(cases, "TopKGrad", [](Random& r) -> OperatorCase {
    const Shape s = random_shape(r, 3);
    return {"TopKGrad", {{"size", whole_number(9)}}, {real(s), index(s, 9)}};
  });
  return cases;
}

namespace {

class SortingTest : public FamilyTest {};

TEST_F(SortingTest, TopKGivesTheLargestFirst) {
  const std::vector<Values> top = run("TopK", {{"k", std::int64_t{2}}}, {{{2, 4}, {1, 7, 3, 7, -1, -2, -3, -4}}});
  EXPECT_EQ(top[0].data, (std::vector<double>{7, 7, -1, -2}));
  EXPECT_EQ(top[1].data, (std::vector<double>{1, 3, 0, 1}));
}

}  // namespace
}  // namespace shardplan
