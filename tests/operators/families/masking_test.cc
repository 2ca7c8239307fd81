#include "operators/families/masking.h"

#include "base/error.h"
#include "operators/catalogue.h"
#include "tests/operators/family_fixture.h"

namespace shardplan {

std::vector<CaseMaker> masking_cases() {
  std::vector<CaseMaker> cases;
  add_case(cases, "MaskPadding", [](Random& r) -> OperatorCase {
    const Shape shape = random_shape(r, 2);
    const std::int64_t kept = 1 + whole_number(r.below(static_cast<std::uint64_t>(shape[1])));
    const double value = r.below(2) == 0 ? 0 : -1e3;
    return {"MaskPadding",
            {{"dims", List{1}}, {"padded", List{shape[1]}}, {"real", List{kept}}, {"value", value}},
            {real(shape)}};
  });
  // A dimension of 3 * 8 columns, of which 5 in each 8 are real, and rows.
  add_case(cases, "MaskPadding parts", [](Random& r) -> OperatorCase {
    const Shape shape = {some(r), 24, some(r)};
    return {"MaskPadding",
            {{"dims", List{0, 1, 1}}, {"padded", List{shape[0], 3, 8}}, {"real", List{1, 3, 5}}},
            {real(shape)}};
  });
  return cases;
}

namespace {

class MaskingTest : public FamilyTest {};

TEST_F(MaskingTest, PutsAValueInThePadding) {
  const Values x = real({4, 24});
  const Attributes attributes = {
      {"dims", List{0, 1, 1}}, {"padded", List{4, 3, 8}}, {"real", List{3, 3, 5}}, {"value", -7.0}};
  expect(run("MaskPadding", attributes, {x})[0], [&](const Point& p) {
    return p[0] < 3 && p[1] % 8 < 5 ? at(x, {p[0], p[1]}) : -7;
  });
}

TEST_F(MaskingTest, IsLinearOnlyWithZero) {
  const auto rule = [](double value) {
    return make_operation(*find_operator_type("MaskPadding"),
                          {{"dims", List{0}}, {"padded", List{4}}, {"real", List{3}}, {"value", value}}, {{{4}, {}}})
        .rule;
  };
  EXPECT_EQ(rule(0).linear.size(), 1u);
  EXPECT_TRUE(rule(-1e30).linear.empty());
}

TEST_F(MaskingTest, RefusesPartsThatAreNotTheDimension) {
  const auto make = [](const Attributes& attributes) {
    (void)make_operation(*find_operator_type("MaskPadding"), attributes, {{{4, 6}, {}}});
  };
  EXPECT_THROW(make({{"dims", List{1}}, {"padded", List{4}}, {"real", List{3}}}), InputError);
  EXPECT_THROW(make({{"dims", List{1}}, {"padded", List{6}}, {"real", List{7}}}), InputError);
  EXPECT_THROW(make({{"dims", List{2}}, {"padded", List{6}}, {"real", List{5}}}), InputError);
  EXPECT_THROW(make({{"dims", List{1}}, {"padded", List{6}}, {"real", List{}}}), InputError);
}

}  // namespace
}  // namespace shardplan
