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
  add_case(cases, "Sort", [](Random& r) -> OperatorCase {
    return {"Sort", {{"axis", whole_number(r.below(3))}, {"descending", r.below(2) == 0}}, {real(random_shape(r, 3))}};
  });
  add_case(cases, "ArgMax", [](Random& r) -> OperatorCase {
    return {"ArgMax", {{"axis", whole_number(r.below(3))}}, {real(random_shape(r, 3))}};
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

TEST_F(SortingTest, OrdersLines) {
  const Values x = {{2, 3}, {2, 5, 1, 2, 4, 3}};
  const std::vector<Values> rows = run("Sort", {}, {x});
  EXPECT_EQ(rows[0].data, (std::vector<double>{1, 2, 5, 2, 3, 4}));
  EXPECT_EQ(rows[1].data, (std::vector<double>{2, 0, 1, 0, 2, 1}));
  const std::vector<Values> columns = run("Sort", {{"axis", std::int64_t{0}}, {"descending", true}}, {x});
  EXPECT_EQ(columns[0].data, (std::vector<double>{2, 5, 3, 2, 4, 1}));
  EXPECT_EQ(columns[1].data, (std::vector<double>{0, 0, 1, 1, 1, 0})) << "equal ones keep their order";
  EXPECT_EQ(run("ArgMax", {}, {x})[0].data, (std::vector<double>{1, 1}));
  EXPECT_EQ(run("ArgMax", {{"axis", std::int64_t{0}}}, {x})[0].data, (std::vector<double>{0, 0, 1}));
}

}  // namespace
}  // namespace shardplan
