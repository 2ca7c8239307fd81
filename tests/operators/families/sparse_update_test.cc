#include "operators/families/sparse_update.h"

#include "tests/operators/family_fixture.h"

namespace shardplan {

std::vector<CaseMaker> sparse_update_cases() {
  std::vector<CaseMaker> cases;
  add_case(cases, "SparseApplyGradientDescent", [](Random& r) -> OperatorCase {
    const std::int64_t h = some(r), b = some(r);
    return {"SparseApplyGradientDescent", {{"learning_rate", 0.5}}, {real({8, h}), index({b}, 9), real({b, h})}};
  });
  add_case(cases, "SparseApplyAdam", [](Random& r) -> OperatorCase {
    const std::int64_t h = some(r), b = some(r);
    const Shape table = {8, h};
    return {"SparseApplyAdam",
            {{"learning_rate", 0.5}},
            {real(table), real(table), positive(table), positive({}), index({b}, 9), real({b, h})}};
  });
  return cases;
}

namespace {

class SparseUpdateTest : public FamilyTest {};

TEST_F(SparseUpdateTest, DescentIsThatOfTheWholeGradient) {
  const Values table = real({7, 3}), indices = index({6}, 7), rows = real({6, 3});
  const Values whole =
      run("GatherGrad", {{"axis", std::int64_t{0}}, {"size", std::int64_t{7}}}, {rows, indices}, {1})[0];
  const Values dense = run("ApplyGradientDescent", {{"learning_rate", 0.1}}, {table, whole})[0];
  expect(run("SparseApplyGradientDescent", {{"learning_rate", 0.1}}, {table, indices, rows}, {1})[0],
         [&](const Point& p) { return at(dense, p); });
}

TEST_F(SparseUpdateTest, AdamChangesTheRowsThatWereLookedUp) {
  const Values table = real({5, 2}), m = real({5, 2}), v = real({5, 2}, 0, 1), step{{}, {3}};
  const Values indices{{3}, {1, 4, 1}}, rows = real({3, 2});
  const Values whole =
      run("GatherGrad", {{"axis", std::int64_t{0}}, {"size", std::int64_t{5}}}, {rows, indices}, {1})[0];
  const std::vector<Values> dense = run("ApplyAdam", {{"learning_rate", 0.1}}, {table, m, v, step, whole});
  const std::vector<Values> sparse =
      run("SparseApplyAdam", {{"learning_rate", 0.1}}, {table, m, v, step, indices, rows}, {4});
  const Values* before[] = {&table, &m, &v};
  for (std::size_t k = 0; k < 3; ++k) {
    expect(sparse[k], [&](const Point& p) { return p[0] == 1 || p[0] == 4 ? at(dense[k], p) : at(*before[k], p); });
  }
  EXPECT_EQ(sparse[3].data, std::vector<double>{4});
}

}  // namespace
}  // namespace shardplan
