#include "operators/families/resampling.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "tests/operators/family_fixture.h"

namespace shardplan {
namespace {

/// A case of the operator, or of its gradient: dy with the result's shape, and the shape of x.
OperatorCase resampling(const std::string& type, Attributes attributes, const Shape& x, bool is_gradient) {
  const OperatorCase forward{type, attributes, {real(x)}};
  if (!is_gradient) return forward;
  attributes["input_shape"] = x;
  return {type + "Grad", attributes, {real(operation_of(forward).results[0].shape)}};
}

}  // namespace

std::vector<CaseMaker> resampling_cases() {
  std::vector<CaseMaker> cases;
  for (const bool is_gradient : {false, true}) {
    const std::string suffix = is_gradient ? "Grad" : "";
    for (const std::string mode : {"constant", "reflect", "edge"}) {
      add_case(cases, "Pad" + suffix + "_" + mode, [=](Random& r) {
        return resampling("Pad", {{"paddings", List{0, 0, 1, whole_number(r.below(2)), 0, 0}}, {"mode", mode}},
                          random_shape(r, 3), is_gradient);
      });
    }
    add_case(cases, "Roll" + suffix, [=](Random& r) {
      return resampling("Roll", {{"shifts", List{-1, 5}}, {"axis", List{0, 2}}}, random_shape(r, 3), is_gradient);
    });
    for (const std::string mode : {"nearest", "bilinear"}) {
      add_case(cases, "Resize" + suffix + "_" + mode, [=](Random& r) {
        const std::uint64_t form = r.below(3);
        return resampling("Resize",
                          {{"size", List{any_of(r, {1, 3, 8, 16}), any_of(r, {4, 7, 8})}},
                           {"mode", mode},
                           {"align_corners", form == 1},
                           {"half_pixel_centers", form == 2}},
                          random_images(r), is_gradient);
      });
    }
    for (const std::int64_t rank : {3, 4, 5}) {
      const std::string name = "AdaptiveAvgPool" + std::to_string(rank - 2) + "D";
      add_case(cases, name + suffix, [=](Random& r) {
        return resampling(name, {{"output_size", List{any_of(r, {1, 2, 3})}}},
                          random_shape(r, static_cast<std::size_t>(rank)), is_gradient);
      });
      if (rank == 4) continue;
      const std::string pool = "AvgPool" + std::to_string(rank - 2) + "D";
      add_case(cases, pool + suffix, [=](Random& r) {
        const std::int64_t kernel = any_of(r, {2, 2, 3});
        const bool has_bins = r.below(3) == 0;
        Shape x = {2, 2};
        while (x.size() < static_cast<std::size_t>(rank)) x.push_back(any_of(r, {4, 6}));
        return resampling(pool,
                          {{"kernel_size", List{kernel}},
                           {"strides", List{has_bins ? kernel : any_of(r, {1, 2})}},
                           {"pad", List{has_bins ? 0 : 1}}},
                          x, is_gradient);
      });
    }
  }
  add_case(cases, "Pad_value", [](Random& r) {
    return resampling("Pad", {{"paddings", List{0, 0, 2, 1}}, {"value", 3.5}}, random_shape(r, 2), false);
  });
  return cases;
}

namespace {

class ResamplingTest : public FamilyTest {
 protected:
  std::vector<double> row(const std::string& type, const Attributes& attributes, const std::vector<double>& x) {
    return run(type, attributes, {{{static_cast<std::int64_t>(x.size())}, x}})[0].data;
  }
};

TEST_F(ResamplingTest, PadsAndRolls) {
  const Attributes two_and_one = {{"paddings", List{2, 1}}};
  const auto with = [&](const std::string& mode, double value) {
    Attributes attributes = two_and_one;
    attributes["mode"] = mode;
    attributes["value"] = value;
    return attributes;
  };
  EXPECT_EQ(row("Pad", with("constant", 9), {1, 2, 3}), (std::vector<double>{9, 9, 1, 2, 3, 9}));
  EXPECT_EQ(row("Pad", with("reflect", 0), {1, 2, 3}), (std::vector<double>{3, 2, 1, 2, 3, 2}));
  EXPECT_EQ(row("Pad", with("edge", 0), {1, 2, 3}), (std::vector<double>{1, 1, 1, 2, 3, 3}));
  EXPECT_EQ(row("Roll", {{"shifts", List{1}}, {"axis", List{0}}}, {1, 2, 3}), (std::vector<double>{3, 1, 2}));
  EXPECT_EQ(row("Roll", {{"shifts", List{-4}}, {"axis", List{0}}}, {1, 2, 3}), (std::vector<double>{2, 3, 1}));
}

TEST_F(ResamplingTest, Resizes) {
  const auto widened = [&](const std::string& mode, bool corners, bool centres, std::int64_t to) {
    return run("Resize",
               {{"size", List{1, to}}, {"mode", mode}, {"align_corners", corners}, {"half_pixel_centers", centres}},
               {{{1, 1, 1, 3}, {0, 3, 6}}})[0]
        .data;
  };
  EXPECT_EQ(widened("nearest", false, false, 6), (std::vector<double>{0, 0, 3, 3, 6, 6}));
  EXPECT_EQ(widened("bilinear", true, false, 5), (std::vector<double>{0, 1.5, 3, 4.5, 6}));
  EXPECT_EQ(widened("bilinear", false, true, 6), (std::vector<double>{0, 0.75, 2.25, 3.75, 5.25, 6}));
  EXPECT_EQ(widened("bilinear", false, false, 6), (std::vector<double>{0, 1.5, 3, 4.5, 6, 6}));
}

TEST_F(ResamplingTest, PoolsByMeans) {
  const Values line = {{1, 1, 5}, {1, 2, 3, 4, 5}};
  const auto expect_row = [&](const Values& found, const std::vector<double>& row) {
    expect(found, [&](const Point& p) { return row[static_cast<std::size_t>(p[2])]; });
  };
  expect_row(run("AdaptiveAvgPool1D", {{"output_size", List{2}}}, {line})[0], {2, 4});
  // Padding is not counted.
  expect_row(run("AvgPool1D", {{"kernel_size", List{3}}, {"strides", List{2}}, {"pad", List{1}}}, {line})[0],
             {1.5, 3, 4.5});
  const Values image = real({2, 3, 4, 6});
  expect(run("AdaptiveAvgPool2D", {{"output_size", List{2, 3}}}, {image})[0], [&](const Point& p) {
    double sum = 0;
    for (std::int64_t i = 0; i < 4; ++i) sum += at(image, {p[0], p[1], 2 * p[2] + i / 2, 2 * p[3] + i % 2});
    return sum / 4;
  });
}

TEST_F(ResamplingTest, RejectsWhatDoesNotFit) {
  const auto message = [&](const std::string& type, const Attributes& attributes, const Shape& x) -> std::string {
    try {
      run(type, attributes, {real(x)});
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message("Pad", {{"paddings", List{1}}}, {4}).find("has 1 numbers"), std::string::npos);
  EXPECT_NE(message("Pad", {{"paddings", List{4, 0}}, {"mode", std::string("reflect")}}, {4}).find("expected 0 to 3"),
            std::string::npos);
  EXPECT_NE(message("Roll", {{"shifts", List{1, 2}}, {"axis", List{0}}}, {4}).find("as many shifts"),
            std::string::npos);
  EXPECT_NE(message("Resize", {{"size", List{0, 2}}}, {1, 1, 2, 2}).find("size"), std::string::npos);
  EXPECT_NE(message("AvgPool1D", {{"kernel_size", List{9}}}, {1, 1, 4}).find("do not fit"), std::string::npos);
}

}  // namespace
}  // namespace shardplan
