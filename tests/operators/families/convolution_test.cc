#include "operators/families/convolution.h"

#include <algorithm>

#include "base/error.h"
#include "tests/operators/family_fixture.h"

namespace shardplan {

namespace {

struct Geometry {
  std::int64_t kernel, stride;
  std::string mode;
  std::int64_t pad, dilation;
};

Shape spatial_part(const Shape& shape) { return {shape.begin() + 2, shape.end()}; }

/// A convolution over the given number of spatial dimensions.
OperatorCase convolution(Random& r, std::size_t spatial) {
  static const std::vector<Geometry> kGeometries = {{3, 1, "same", 0, 1},  {2, 2, "valid", 0, 1}, {3, 2, "same", 0, 1},
                                                    {1, 1, "valid", 0, 1}, {3, 1, "valid", 0, 1}, {1, 2, "valid", 0, 1},
                                                    {3, 1, "pad", 1, 1},   {2, 1, "same", 0, 1},  {3, 1, "pad", 2, 2},
                                                    {3, 2, "pad", 1, 1},   {5, 2, "pad", 2, 1}};
  const Geometry g = kGeometries[r.below(kGeometries.size())];
  const std::int64_t group = any_of(r, {1, 1, 2, 4});
  Shape x = {any_of(r, {2, 4}), group * any_of(r, {1, 2}), any_of(r, {8, 8, 9})};
  Shape w = {group * any_of(r, {1, 2}), x[1] / group, g.kernel};
  if (spatial == 3) x = {2, x[1], any_of(r, {6, 8})};
  while (x.size() < spatial + 2) {
    x.push_back(spatial == 3 ? 6 : any_of(r, {4, 8}));
    w.push_back(std::min<std::int64_t>(g.kernel, 3));
  }
  return {"Conv" + std::to_string(spatial) + "D",
          {{"pad_mode", g.mode},
           {"pad", List{g.pad}},
           {"stride", List{g.stride}},
           {"dilation", List{g.dilation}},
           {"group", group}},
          {real(x), real(w)}};
}

/// A transposed one; its result is stride times as large as x wherever that can be sharded.
OperatorCase transposed_convolution(Random& r, std::size_t spatial) {
  struct Transposed {
    Geometry geometry;
    std::int64_t output_padding;
  };
  static const std::vector<Transposed> kTransposed = {{{4, 2, "pad", 1, 1}, 0}, {{2, 2, "valid", 0, 1}, 0},
                                                      {{3, 2, "pad", 1, 1}, 1}, {{3, 2, "same", 0, 1}, 0},
                                                      {{3, 1, "pad", 1, 1}, 0}, {{3, 2, "valid", 0, 1}, 0}};
  const auto& [g, output_padding] = kTransposed[r.below(kTransposed.size())];
  const std::int64_t group = any_of(r, {1, 2});
  Shape x = {2, group * any_of(r, {1, 2})}, w = {x[1], any_of(r, {1, 2})};
  while (x.size() < spatial + 2) {
    x.push_back(spatial == 3 ? any_of(r, {3, 4}) : any_of(r, {4, 6}));
    w.push_back(g.kernel);
  }
  return {"Conv" + std::to_string(spatial) + "DTranspose",
          {{"pad_mode", g.mode},
           {"pad", List{g.pad}},
           {"stride", List{g.stride}},
           {"group", group},
           {"output_padding", List{output_padding}}},
          {real(x), real(w)}};
}

}  // namespace

std::vector<CaseMaker> convolution_cases() {
  std::vector<CaseMaker> cases;
  for (const std::size_t spatial : {1, 2, 3}) {
    const std::string name = "Conv" + std::to_string(spatial) + "D";
    add_case(cases, name, [=](Random& r) { return convolution(r, spatial); });
    add_case(cases, name + "BackpropInput", [=](Random& r) -> OperatorCase {
      OperatorCase example = convolution(r, spatial);
      const Shape y = operation_of(example).results[0].shape;
      example.attributes["input_size"] = spatial_part(example.operands[0].shape);
      return {name + "BackpropInput", example.attributes, {real(y), example.operands[1]}};
    });
    add_case(cases, name + "BackpropFilter", [=](Random& r) -> OperatorCase {
      OperatorCase example = convolution(r, spatial);
      const Shape y = operation_of(example).results[0].shape;
      example.attributes["kernel_size"] = spatial_part(example.operands[1].shape);
      return {name + "BackpropFilter", example.attributes, {real(y), example.operands[0]}};
    });
    add_case(cases, name + "Transpose", [=](Random& r) { return transposed_convolution(r, spatial); });
  }
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

/// Over one dimension and over three, as over two.
TEST_F(ConvolutionTest, SlidesOverEachSpatialDimension) {
  const Values x = real({2, 3, 5, 6, 7}), w = real({4, 3, 2, 3, 1});
  const Attributes attributes = {{"pad_mode", std::string("pad")},
                                 {"pad", List{1, 0, 2, 1, 0, 0}},
                                 {"stride", List{1, 2, 3}},
                                 {"dilation", List{2, 1, 1}}};
  const Values y = run("Conv3D", attributes, {x, w})[0];
  EXPECT_EQ(y.shape, (Shape{2, 4, 4, 4, 3}));
  expect(y, [&](const Point& p) {
    double sum = 0;
    for (std::int64_t i = 0; i < 3; ++i) {
      for (std::int64_t r = 0; r < 2; ++r) {
        for (std::int64_t s = 0; s < 3; ++s) {
          const std::int64_t d = p[2] + 2 * r - 1, h = 2 * p[3] + s - 2;
          if (d >= 0 && d < 5 && h >= 0 && h < 6) sum += at(x, {p[0], i, d, h, 3 * p[4]}) * at(w, {p[1], i, r, s, 0});
        }
      }
    }
    return sum;
  });
  const Values line = real({2, 3, 9}), taps = real({4, 3, 3});
  expect(run("Conv1D", {{"stride", List{2}}}, {line, taps})[0], [&](const Point& p) {
    double sum = 0;
    for (std::int64_t i = 0; i < 3; ++i) {
      for (std::int64_t r = 0; r < 3; ++r) sum += at(line, {p[0], i, 2 * p[2] + r}) * at(taps, {p[1], i, r});
    }
    return sum;
  });
}

/// Every position of x, times the weight, is added to a window of y.
TEST_F(ConvolutionTest, TransposedSpreadsOverTheWindow) {
  const Values x = real({2, 4, 5}), w = real({4, 3, 4});
  const Attributes attributes = {{"pad_mode", std::string("pad")},
                                 {"pad", List{1, 2}},
                                 {"stride", List{3}},
                                 {"group", std::int64_t{2}},
                                 {"output_padding", List{2}}};
  const Values y = run("Conv1DTranspose", attributes, {x, w})[0];
  ASSERT_EQ(y.shape, (Shape{2, 6, 15}));  // 4 * 3 + 4 - 3 + 2
  Values sums = tabulate(y.shape, [](const Point&) { return 0.0; });
  for (std::int64_t n = 0; n < 2; ++n) {
    for (std::int64_t c = 0; c < 4; ++c) {
      for (std::int64_t o = 0; o < 3; ++o) {
        for (std::int64_t l = 0; l < 5; ++l) {
          for (std::int64_t r = 0; r < 4; ++r) {
            const std::int64_t to = 3 * l + r - 1;
            if (to < 0 || to >= 15) continue;
            sums.data[static_cast<std::size_t>((n * 6 + c / 2 * 3 + o) * 15 + to)] +=
                at(x, {n, c, l}) * at(w, {c, o, r});
          }
        }
      }
    }
  }
  expect(y, [&](const Point& p) { return at(sums, p); });
}

TEST_F(ConvolutionTest, TransposedHasTheSizeThatItsModeSays) {
  const auto size = [&](const Attributes& attributes, std::int64_t kernel) {
    return run("Conv2DTranspose", attributes, {real({1, 1, 5, 5}), real({1, 1, kernel, kernel})})[0].shape[2];
  };
  const std::string same = "same", pad = "pad";
  EXPECT_EQ(size({{"stride", List{2}}}, 3), 11);
  EXPECT_EQ(size({{"stride", List{2}}, {"pad_mode", same}}, 3), 10);
  EXPECT_EQ(size({{"stride", List{2}}, {"pad_mode", pad}, {"pad", List{1}}}, 3), 9);
  EXPECT_EQ(size({{"stride", List{2}}, {"pad_mode", pad}, {"pad", List{1}}, {"output_padding", List{1}}}, 3), 10);
  EXPECT_EQ(size({{"stride", List{2}}, {"dilation", List{2}}}, 3), 13);
}

TEST_F(ConvolutionTest, RejectsWhatDoesNotFit) {
  const auto message = [&](const std::string& type, const Attributes& attributes, const Shape& x,
                           const Shape& w) -> std::string {
    try {
      run(type, attributes, {real(x), real(w)});
    } catch (const InputError& error) {
      return error.diagnostics().front().message;
    }
    return "";
  };
  EXPECT_EQ(message("Conv1D", {}, {2, 3, 8, 8}, {4, 3, 3}),
            "Conv1D: needs x [n, c, l] and weight [out, c, kl], found [2, 3, 8, 8] and [4, 3, 3]");
  EXPECT_EQ(message("Conv3D", {{"stride", List{1, 2}}}, {2, 3, 8, 8, 8}, {4, 3, 3, 3, 3}),
            "Conv3D: stride is [1, 2]; expected one or three positive numbers");
  EXPECT_EQ(message("Conv2DTranspose", {{"output_padding", List{2}}, {"stride", List{2}}}, {1, 1, 4, 4}, {1, 1, 3, 3}),
            "Conv2DTranspose: output_padding is [2]; expected 0 to 1, less than stride");
  EXPECT_EQ(
      message("Conv2DTranspose", {{"pad_mode", std::string("pad")}, {"pad", List{4}}}, {1, 1, 2, 2}, {1, 1, 3, 3}),
      "Conv2DTranspose: padding leaves -4 positions");
  EXPECT_EQ(message("Conv2DTranspose", {{"group", std::int64_t{0}}}, {1, 1, 4, 4}, {1, 1, 3, 3}),
            "Conv2DTranspose: group is not positive");
}

}  // namespace
}  // namespace shardplan
