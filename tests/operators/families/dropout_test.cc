#include "operators/families/dropout.h"

#include "base/error.h"
#include "operators/catalogue.h"
#include "tests/operators/family_fixture.h"

namespace shardplan {

std::vector<CaseMaker> dropout_cases() {
  std::vector<CaseMaker> cases;
  add_case(cases, "Dropout", [](Random& r) -> OperatorCase {
    return {"Dropout", {{"keep_prob", 0.7}}, {real(random_shape(r, 1 + r.below(3)))}};
  });
  add_case(cases, "DropoutGrad", [](Random& r) -> OperatorCase {
    const Shape s = random_shape(r, 2);
    return {"DropoutGrad", {{"keep_prob", 0.7}}, {real(s), truth(s)}};
  });
  add_case(cases, "DropoutGenMask", [](Random& r) -> OperatorCase {
    return {"DropoutGenMask", {{"shape", random_shape(r, 2)}, {"keep_prob", 0.7}}, {}};
  });
  add_case(cases, "DropoutDoMask", [](Random& r) -> OperatorCase {
    const Shape s = random_shape(r, 2);
    return {"DropoutDoMask", {{"keep_prob", 0.7}}, {real(s), truth(s)}};
  });
  return cases;
}

namespace {

class DropoutTest : public FamilyTest {};

TEST_F(DropoutTest, MaskDependsOnSeedAlone) {
  const Operation operation = make_operation(*find_operator_type("Dropout"), {{"keep_prob", 0.5}}, {{{32, 32}}});
  const std::vector<Values> ones = {make_values({32, 32}, [] { return 1.0; })};
  const std::vector<Values> first = run_whole(operation, ones, 1);
  EXPECT_EQ(first[1].data, run_whole(operation, ones, 1)[1].data);
  EXPECT_NE(first[1].data, run_whole(operation, ones, 2)[1].data);
  double kept = 0;
  for (const double mask : first[1].data) kept += mask;
  EXPECT_NEAR(kept / 1024, 0.5, 0.07);
}

TEST_F(DropoutTest, DrawsOfAPaddedTensorAreThoseWithoutPadding) {
  const Values small = run("DropoutGenMask", {{"shape", List{5, 6, 7}}, {"keep_prob", 0.6}}, {})[0];
  const Values large =
      run("DropoutGenMask", {{"shape", List{8, 6, 9}}, {"keep_prob", 0.6}, {"drawn_shape", List{5, 6, 7}}}, {})[0];
  expect(small, [&](const Point& p) { return at(large, {p[0], p[1], p[2]}); });
  EXPECT_THROW(run("DropoutGenMask", {{"shape", List{8}}, {"drawn_shape", List{8, 1}}}, {}), InputError);
}

TEST_F(DropoutTest, MaskAndItsUseAreDropout) {
  const Values x = real({6, 7});
  const std::vector<Values> whole = run("Dropout", {{"keep_prob", 0.6}}, {x});
  const Values mask = run("DropoutGenMask", {{"shape", List{6, 7}}, {"keep_prob", 0.6}}, {})[0];
  EXPECT_EQ(mask.data, whole[1].data);
  EXPECT_EQ(run("DropoutDoMask", {{"keep_prob", 0.6}}, {x, mask}, {1}, DataType::kBool)[0].data, whole[0].data);
}

}  // namespace
}  // namespace shardplan
