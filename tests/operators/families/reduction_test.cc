#include "operators/families/reduction.h"

#include <algorithm>
#include <limits>

#include "tests/operators/family_fixture.h"

namespace shardplan {

std::vector<CaseMaker> reduction_cases() {
  std::vector<CaseMaker> cases;
  for (const std::string name : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"}) {
    add_case(cases, name, [=](Random& r) -> OperatorCase {
      static const std::vector<List> kAxes = {{}, {0}, {-1}, {0, 2}, {1}};
      return {name, {{"axis", kAxes[r.below(5)]}, {"keep_dims", r.below(2) == 0}}, {real(random_shape(r, 3))}};
    });
  }
  add_case(cases, "SquareSum", [](Random& r) -> OperatorCase { return {"SquareSum", {}, {real(random_shape(r, 2))}}; });
  return cases;
}

namespace {

class ReductionTest : public FamilyTest {};

TEST_F(ReductionTest, FoldsTheListedDimensions) {
  const Values x = real({3, 4, 5});
  const auto fold = [&](const std::string& type, double start, const std::function<double(double, double)>& by,
                        double scale) {
    expect(
        run(type, {{"axis", List{0, 2}}, {"keep_dims", true}}, {x})[0],
        [&](const Point& p) {
          double total = start;
          for (std::int64_t i = 0; i < 3; ++i) {
            for (std::int64_t k = 0; k < 5; ++k) total = by(total, at(x, {i, p[1], k}));
          }
          return total * scale;
        },
        type);
  };
  const double infinity = std::numeric_limits<double>::infinity();
  fold(
      "ReduceSum", 0, [](double a, double b) { return a + b; }, 1);
  fold(
      "ReduceMean", 0, [](double a, double b) { return a + b; }, 1.0 / 15);
  fold(
      "ReduceMax", -infinity, [](double a, double b) { return std::max(a, b); }, 1);
  fold(
      "ReduceMin", infinity, [](double a, double b) { return std::min(a, b); }, 1);
  double squares = 0;
  for (const double v : x.data) squares += v * v;
  EXPECT_NEAR(run("SquareSum", {}, {x})[0].data[0], squares, 1e-12);
}

}  // namespace
}  // namespace shardplan
