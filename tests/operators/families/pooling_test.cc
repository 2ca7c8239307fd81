#include "operators/families/pooling.h"

#include <algorithm>

#include "tests/operators/family_fixture.h"

namespace shardplan {

std::vector<CaseMaker> pooling_cases() {
  std::vector<CaseMaker> cases;
  struct Geometry {
    std::int64_t kernel, stride;
    std::string mode;
    std::int64_t pad;
  };
  const auto pooling = [](Random& r, const std::string& name) {
    static const std::vector<Geometry> kPools = {{2, 2, "valid", 0}, {3, 2, "same", 0},  {3, 1, "same", 0},
                                                 {3, 2, "pad", 1},   {2, 1, "valid", 0}, {3, 3, "same", 0}};
    const Geometry g = kPools[r.below(kPools.size())];
    const Shape x = {2, any_of(r, {2, 4}), any_of(r, {8, 8, 9}), any_of(r, {4, 8})};
    return OperatorCase{
        name,
        {{"pad_mode", g.mode}, {"pad", List{g.pad}}, {"strides", List{g.stride}}, {"kernel_size", List{g.kernel}}},
        {real(x)}};
  };
  for (const std::string name : {"MaxPool", "AvgPool"})
    add_case(cases, name, [=](Random& r) { return pooling(r, name); });
  add_case(cases, "MaxPoolGrad", [=](Random& r) -> OperatorCase {
    const OperatorCase example = pooling(r, "MaxPool");
    return {"MaxPoolGrad", example.attributes, {real(operation_of(example).results[0].shape), example.operands[0]}};
  });
  add_case(cases, "AvgPoolGrad", [=](Random& r) -> OperatorCase {
    OperatorCase example = pooling(r, "AvgPool");
    const Shape y = operation_of(example).results[0].shape;
    example.attributes["input_size"] = List{example.operands[0].shape[2], example.operands[0].shape[3]};
    return {"AvgPoolGrad", example.attributes, {real(y)}};
  });
  return cases;
}

namespace {

class PoolingTest : public FamilyTest {};

TEST_F(PoolingTest, TakesTheWindowOfTheInput) {
  const Values x = real({2, 3, 9, 8});
  const Attributes attributes = {{"kernel_size", List{3}}, {"strides", List{2}}, {"pad_mode", std::string("same")}};
  // same: 9 -> 5 with padding 1 and 1, 8 -> 4 with 0 and 1.
  for (const std::string type : {"MaxPool", "AvgPool"}) {
    const Values y = run(type, attributes, {x})[0];
    EXPECT_EQ(y.shape, (Shape{2, 3, 5, 4}));
    expect(
        y,
        [&](const Point& p) {
          double sum = 0, most = -1e300, count = 0;
          for (std::int64_t h = std::max<std::int64_t>(0, 2 * p[2] - 1); h < std::min<std::int64_t>(9, 2 * p[2] + 2);
               ++h) {
            for (std::int64_t w = 2 * p[3]; w < std::min<std::int64_t>(8, 2 * p[3] + 3); ++w) {
              sum += at(x, {p[0], p[1], h, w});
              most = std::max(most, at(x, {p[0], p[1], h, w}));
              ++count;
            }
          }
          return type == "MaxPool" ? most : sum / count;
        },
        type);
  }
}

}  // namespace
}  // namespace shardplan
