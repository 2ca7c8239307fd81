#include "operators/families/convolution.h"

#include "tests/operators/family_fixture.h"

namespace shardplan {

std::vector<CaseMaker> convolution_cases() {
  std::vector<CaseMaker> cases;
  // Windows.
  struct Geometry {
    std::int64_t kernel, stride;
    std::string mode;
    std::int64_t pad, dilation;
  };
  static const std::vector<Geometry> kGeometries = {{3, 1, "same", 0, 1},  {2, 2, "valid", 0, 1}, {3, 2, "same", 0, 1},
                                                    {1, 1, "valid", 0, 1}, {3, 1, "valid", 0, 1}, {1, 2, "valid", 0, 1},
                                                    {3, 1, "pad", 1, 1},   {2, 1, "same", 0, 1},  {3, 1, "pad", 2, 2},
                                                    {3, 2, "pad", 1, 1},   {5, 2, "pad", 2, 1}};
  const auto convolution = [](Random& r) {
    const Geometry g = kGeometries[r.below(kGeometries.size())];
    const std::int64_t group = any_of(r, {1, 1, 2, 4});
    const Shape x = {any_of(r, {2, 4}), group * any_of(r, {1, 2}), any_of(r, {8, 8, 9}), any_of(r, {4, 8})};
    const Shape w = {group * any_of(r, {1, 2}), x[1] / group, g.kernel, std::min<std::int64_t>(g.kernel, 3)};
    OperatorCase example{"Conv2D",
                         {{"pad_mode", g.mode},
                          {"pad", List{g.pad}},
                          {"stride", List{g.stride}},
                          {"dilation", List{g.dilation}},
                          {"group", group}},
                         {real(x), real(w)}};
    return example;
  };
  add_case(cases, "Conv2D", convolution);
  add_case(cases, "Conv2DBackpropInput", [=](Random& r) -> OperatorCase {
    OperatorCase example = convolution(r);
    const Shape x = example.operands[0].shape, w = example.operands[1].shape;
    const Shape y = operation_of(example).results[0].shape;
    example.attributes["input_size"] = List{x[2], x[3]};
    return {"Conv2DBackpropInput", example.attributes, {real(y), real(w)}};
  });
  add_case(cases, "Conv2DBackpropFilter", [=](Random& r) -> OperatorCase {
    OperatorCase example = convolution(r);
    const Shape x = example.operands[0].shape, w = example.operands[1].shape;
    const Shape y = operation_of(example).results[0].shape;
    example.attributes["kernel_size"] = List{w[2], w[3]};
    return {"Conv2DBackpropFilter", example.attributes, {real(y), real(x)}};
  });
  return cases;
}

namespace {

class ConvolutionTest : public FamilyTest {};

TEST_F(ConvolutionTest, SumsOverTheWindow) {
  struct Case {
    std::int64_t kernel, stride, pad, dilation, group;
  };
  for (const Case& c : {Case{3, 1, 1, 1, 1}, Case{2, 2, 0, 1, 2}, Case{3, 2, 2, 2, 1}, Case{1, 3, 0, 1, 4}}) {
    const Values x = real({2, 4, 9, 8}), w = real({8, 4 / c.group, c.kernel, c.kernel});
    const Attributes attributes = {{"pad_mode", std::string("pad")},
                                   {"pad", List{c.pad}},
                                   {"stride", List{c.stride}},
                                   {"dilation", List{c.dilation}},
                                   {"group", c.group}};
    const Values y = run("Conv2D", attributes, {x, w})[0];
    EXPECT_EQ(y.shape[2], (9 + 2 * c.pad - c.dilation * (c.kernel - 1) - 1) / c.stride + 1);
    expect(y, [&](const Point& p) {
      double sum = 0;
      const std::int64_t out_per_group = 8 / c.group, in_per_group = 4 / c.group;
      for (std::int64_t i = 0; i < in_per_group; ++i) {
        for (std::int64_t r = 0; r < c.kernel; ++r) {
          for (std::int64_t s = 0; s < c.kernel; ++s) {
            const std::int64_t h = p[2] * c.stride + r * c.dilation - c.pad,
                               v = p[3] * c.stride + s * c.dilation - c.pad;
            if (h < 0 || h >= 9 || v < 0 || v >= 8) continue;
            sum += at(x, {p[0], p[1] / out_per_group * in_per_group + i, h, v}) * at(w, {p[1], i, r, s});
          }
        }
      }
      return sum;
    });
  }
}

}  // namespace
}  // namespace shardplan
