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
  for (const std::string name : {"ReduceMaxGrad", "ReduceMinGrad"}) {
    add_case(cases, name, [=](Random& r) -> OperatorCase {
      const Shape s = random_shape(r, 3);
      const List axis = r.below(2) == 0 ? List{2} : List{0, 1};
      Shape reduced = s;
      for (const std::int64_t d : axis) reduced[static_cast<std::size_t>(d)] = 1;
      return {name, {{"axis", axis}}, {real(reduced), real(s)}};
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

TEST_F(ReductionTest, ExtremesShareTheirGradient) {
  const Attributes rows = {{"axis", List{1}}};
  const Values dy = {{2, 1}, {6, 8}}, x = {{2, 3}, {5, 1, 5, -2, 0, -2}};
  EXPECT_EQ(run("ReduceMaxGrad", rows, {dy, x})[0].data, (std::vector<double>{3, 0, 3, 0, 8, 0}));
  EXPECT_EQ(run("ReduceMinGrad", rows, {dy, x})[0].data, (std::vector<double>{0, 6, 0, 4, 0, 4}));
}

}  // namespace
}  // namespace shardplan
