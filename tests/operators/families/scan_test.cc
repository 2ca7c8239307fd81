#include "operators/families/scan.h"

#include "tests/operators/family_fixture.h"

namespace shardplan {

std::vector<CaseMaker> scan_cases() {
  std::vector<CaseMaker> cases;
  add_case(cases, "CumSum", [](Random& r) -> OperatorCase {
    return {"CumSum",
            {{"axis", whole_number(r.below(3))}, {"exclusive", r.below(2) == 0}, {"reverse", r.below(2) == 0}},
            {real(random_shape(r, 3))}};
  });
  return cases;
}

namespace {

class ScanTest : public FamilyTest {};

TEST_F(ScanTest, CumSumRunsEitherWay) {
  const Values x = real({3, 4, 5});
  for (const bool reverse : {false, true}) {
    for (const bool exclusive : {false, true}) {
      expect(run("CumSum", {{"axis", std::int64_t{1}}, {"reverse", reverse}, {"exclusive", exclusive}}, {x})[0],
             [&](const Point& p) {
               double sum = 0;
               for (std::int64_t j = 0; j < 4; ++j) {
                 const bool is_before = reverse ? j > p[1] : j < p[1];
                 if (is_before || (j == p[1] && !exclusive)) sum += at(x, {p[0], j, p[2]});
               }
               return sum;
             });
    }
  }
}

}  // namespace
}  // namespace shardplan
