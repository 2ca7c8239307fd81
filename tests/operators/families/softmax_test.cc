#include "operators/families/softmax.h"

#include <cmath>

#include "tests/operators/family_fixture.h"

namespace shardplan {

std::vector<CaseMaker> softmax_cases() {
  std::vector<CaseMaker> cases;
  for (const std::string name : {"Softmax", "LogSoftmax"}) {
    add_case(cases, name, [=](Random& r) -> OperatorCase {
      return {name, {{"axis", whole_number(r.below(3))}}, {{random_shape(r, 3), -4, 4}}};
    });
    add_case(cases, name + "Grad", [=](Random& r) -> OperatorCase {
      const Shape s = random_shape(r, 3);
      return {name + "Grad", {{"axis", whole_number(r.below(3))}}, {real(s), real(s)}};
    });
  }
  return cases;
}

namespace {

class SoftmaxTest : public FamilyTest {};

TEST_F(SoftmaxTest, DividesByTheSumOfExponentials) {
  const Values x = real({3, 4, 5}, -2, 2);
  const auto softmax = [&](const Point& p) {
    double sum = 0;
    for (std::int64_t j = 0; j < 4; ++j) sum += std::exp(at(x, {p[0], j, p[2]}));
    return std::exp(at(x, p)) / sum;
  };
  expect(run("Softmax", {{"axis", std::int64_t{1}}}, {x})[0], softmax);
  expect(run("LogSoftmax", {{"axis", std::int64_t{1}}}, {x})[0], [&](const Point& p) { return std::log(softmax(p)); });
}

}  // namespace
}  // namespace shardplan
