#include "operators/building/sliding_window.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "base/random.h"
#include "tests/support/operations.h"

namespace shardplan {
namespace {

/// MaxPool over one image of these extents.
Operation max_pool(const Shape& input, std::int64_t kernel, std::int64_t stride, const std::string& mode) {
  return operation_of("MaxPool",
                      {{"kernel_size", std::vector<std::int64_t>{kernel}},
                       {"strides", std::vector<std::int64_t>{stride}},
                       {"pad_mode", mode}},
                      {{1, 1, input[0], input[1]}});
}

/// Conv2D, which has its own padding, and dilation.
Operation conv2d(const Shape& input, std::int64_t kernel, std::int64_t stride, std::int64_t dilation,
                 const std::string& mode, std::int64_t pad) {
  return operation_of("Conv2D",
                      {{"stride", std::vector<std::int64_t>{stride}},
                       {"dilation", std::vector<std::int64_t>{dilation}},
                       {"pad_mode", mode},
                       {"pad", std::vector<std::int64_t>{pad}}},
                      {{1, 1, input[0], input[1]}, {1, 1, kernel, kernel}});
}

struct WindowCase {
  std::int64_t input, kernel, stride, dilation;
  const char* mode;
  std::int64_t pad;
  std::int64_t output, pad_before, pad_after;
};
const WindowCase kWindows[] = {
    {7, 3, 1, 1, "valid", 0, 5, 0, 0}, {7, 3, 2, 1, "valid", 0, 3, 0, 0},
    {8, 3, 2, 1, "valid", 0, 3, 0, 0},                                    // no window reads the last position
    {7, 3, 1, 1, "same", 0, 7, 1, 1},  {8, 3, 2, 1, "same", 0, 4, 0, 1},  // an odd one goes to the end
    {8, 2, 3, 1, "same", 0, 3, 0, 0},  {7, 3, 1, 1, "pad", 2, 9, 2, 2},
    {7, 3, 1, 2, "valid", 0, 3, 0, 0},  // reads i, i+2, i+4
    {1, 3, 2, 1, "pad", 1, 1, 1, 1},
};
TEST(SlidingWindowTest, OutputsAreThoseThatFit) {
  for (const WindowCase& c : kWindows) {
    const Operation operation = conv2d({c.input, c.input}, c.kernel, c.stride, c.dilation, c.mode, c.pad);
    const SpatialWindows windows = spatial_windows(operation, {c.input, c.input}, {c.kernel, c.kernel});
    ASSERT_EQ(windows.size(), 2u);
    for (const SlidingWindow& window : windows) {
      EXPECT_EQ(window.output, c.output) << c.input << " by " << c.kernel << " " << c.mode;
      EXPECT_EQ(window.pad_before, c.pad_before) << c.input << " by " << c.kernel << " " << c.mode;
      EXPECT_EQ(window.pad_after, c.pad_after) << c.input << " by " << c.kernel << " " << c.mode;
    }
    if (std::string(c.mode) == "pad") continue;
    EXPECT_EQ(operation.results[0].shape, (Shape{1, 1, c.output, c.output}));
  }
}

SlidingWindow random_window(Random& random) {
  while (true) {
    SlidingWindow window;
    window.input = static_cast<std::int64_t>(1 + random.below(20));
    window.kernel = static_cast<std::int64_t>(1 + random.below(5));
    window.stride = static_cast<std::int64_t>(1 + random.below(4));
    window.dilation = static_cast<std::int64_t>(1 + random.below(3));
    window.pad_before = static_cast<std::int64_t>(random.below(3));
    window.pad_after = static_cast<std::int64_t>(random.below(3));
    const std::int64_t room =
        window.input + window.pad_before + window.pad_after - (window.dilation * (window.kernel - 1) + 1);
    if (room < 0) continue;
    window.output = room / window.stride + 1;
    return window;
  }
}

// The outputs for which an offset falls into a part of the input, by trying all of them.
TEST(SlidingWindowTest, FindsTheOutputsThatReadAnInterval) {
  constexpr std::uint64_t kSeed = 37;
  Random random(kSeed);
  for (int i = 0; i < 1000; ++i) {
    const SlidingWindow window = random_window(random);
    const auto begin = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(window.input)));
    const std::int64_t end =
        begin + 1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(window.input - begin)));
    for (std::int64_t r = 0; r < window.kernel; ++r) {
      std::set<std::int64_t> expected;
      for (std::int64_t output = 0; output < window.output; ++output) {
        const std::int64_t position = window.stride * output + window.dilation * r - window.pad_before;
        EXPECT_EQ(window.position(output, r), position);
        if (position >= begin && position < end) expected.insert(output);
      }
      const Interval found = window.outputs_reading(r, {begin, end}, {0, window.output});
      std::set<std::int64_t> outputs;
      for (std::int64_t output = found.begin; output < found.end; ++output) outputs.insert(output);
      ASSERT_EQ(outputs, expected) << "seed " << kSeed << ", case " << i;
    }
  }
}

/// The positions of a windowed dimension that a box of its output factor reads, by the definition of Window.
std::set<std::int64_t> read_by(const ShardingRule& rule, const Window& window, std::int64_t output,
                               std::int64_t extent) {
  std::set<std::int64_t> positions;
  for (std::int64_t r = 0; r < rule.factors[window.offset].size; ++r) {
    const std::int64_t position = window.stride * output + window.dilation * r - window.pad_before;
    if (position >= 0 && position < extent) positions.insert(position);
  }
  return positions;
}

// A device that computes dx at h = 0, 1, ... of its part needs all outputs whose windows contain these positions, and
// all inputs that those outputs read.
TEST(SlidingWindowTest, BackwardWalksReachAllThatIsNeeded) {
  constexpr std::uint64_t kSeed = 41;
  Random random(kSeed);
  std::size_t cut = 0;
  for (int i = 0; i < 1000; ++i) {
    const SlidingWindow window = random_window(random);
    RuleBuilder builder;
    const BackwardWalk walk = backward_walk(builder, window, "h", true);
    builder.operand({walk.output});
    const ShardingRule rule = builder.build();
    if (window.input % window.stride != 0) {
      ASSERT_EQ(walk.input.factors.size(), 1u);
      EXPECT_EQ(rule.factors[walk.input.factors[0]].size, window.input);
      EXPECT_EQ(rule.factors[walk.input.factors[0]].kind, FactorKind::kNeedReplication) << "it cannot be sharded";
      EXPECT_EQ(walk.output, whole());
      continue;
    }
    ++cut;
    const std::int64_t count = window.input / window.stride;
    ASSERT_EQ(rule.factors[walk.input.factors[0]].size, count);
    for (std::int64_t h = 0; h < count; ++h) {
      const std::set<std::int64_t> outputs =
          walk.output.window ? read_by(rule, *walk.output.window, h, window.output) : std::set<std::int64_t>{h};
      const std::set<std::int64_t> inputs = read_by(rule, *walk.input_window.window, h, window.input);
      for (std::int64_t output = 0; output < window.output; ++output) {
        bool touches = false;
        for (std::int64_t r = 0; r < window.kernel; ++r) {
          touches = touches || (window.position(output, r) >= 0 && window.position(output, r) / window.stride == h &&
                                window.position(output, r) < window.input);
        }
        if (!touches) continue;
        ASSERT_TRUE(outputs.contains(output)) << "seed " << kSeed << ", case " << i;
        for (std::int64_t r = 0; r < window.kernel; ++r) {
          const std::int64_t position = window.position(output, r);
          if (position < 0 || position >= window.input) continue;
          ASSERT_TRUE(inputs.contains(position)) << "seed " << kSeed << ", case " << i;
        }
      }
    }
  }
  EXPECT_GT(cut, 300u);
}

TEST(SlidingWindowTest, WhatDoesNotSlideIsAPlainFactor) {
  RuleBuilder builder;
  SlidingWindow window;
  window.input = window.output = 6;
  const ForwardWalk plain = forward_walk(builder, window, "h");
  EXPECT_EQ(plain.input, plain.output);
  window.kernel = 3;
  window.pad_before = window.pad_after = 1;
  const ForwardWalk slides = forward_walk(builder, window, "w");
  builder.operand({plain.input, slides.input});
  builder.result({plain.output, slides.output});
  EXPECT_EQ(to_string(builder.build()), "h w+kw -> h w; kh: whole; kw: whole");
}

// A conv2d of the result of a transposed one has the original outputs.
TEST(SlidingWindowTest, TransposedExtentsAreThoseOfWindowsWithTheseOutputs) {
  constexpr std::uint64_t kSeed = 43;
  Random random(kSeed);
  for (int i = 0; i < 300; ++i) {
    const auto outputs = static_cast<std::int64_t>(2 + random.below(8));
    const auto kernel = static_cast<std::int64_t>(1 + random.below(4));
    const auto stride = static_cast<std::int64_t>(1 + random.below(3));
    const auto dilation = static_cast<std::int64_t>(1 + random.below(2));
    const auto extra = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(stride)));
    const Attributes attributes = {{"stride", std::vector<std::int64_t>{stride}},
                                   {"dilation", std::vector<std::int64_t>{dilation}},
                                   {"pad_mode", std::string("valid")},
                                   {"output_padding", std::vector<std::int64_t>{extra}}};
    const Operation transposed =
        operation_of("Conv2DTranspose", attributes, {{1, 1, outputs, outputs}, {1, 1, kernel, kernel}});
    const Shape extents = transposed_extents(transposed, {outputs, outputs}, {kernel, kernel});
    const Operation back = conv2d(extents, kernel, stride, dilation, "valid", 0);
    EXPECT_EQ(back.results[0].shape, (Shape{1, 1, outputs, outputs})) << "seed " << kSeed << ", case " << i;
    // One position less gives one output less, unless there were some to spare.
    if (extra == 0 && extents[0] > dilation * (kernel - 1) + 1) {
      EXPECT_LT(conv2d({extents[0] - 1, extents[1]}, kernel, stride, dilation, "valid", 0).results[0].shape[2],
                outputs);
    }
  }
}

TEST(SlidingWindowTest, SaysWhatDoesNotFit) {
  const auto fault = [](const std::function<Operation()>& make) -> std::string {
    try {
      make();
    } catch (const InputError& error) {
      return error.diagnostics().at(0).message;
    }
    return "";
  };
  EXPECT_EQ(fault([] {
              return max_pool({4, 4}, 5, 1, "valid");
            }),
            "MaxPool: a window of 5 does not fit in 4 positions (input 4, padding 0 and 0)");
  EXPECT_EQ(fault([] {
              return max_pool({4, 4}, 2, 1, "full");
            }),
            "MaxPool: pad_mode is full and pad [0]; expected valid, same, or pad with one or four numbers");
  EXPECT_EQ(fault([] {
              return max_pool({4, 4}, 2, 0, "same");
            }),
            "MaxPool: strides is [0]; expected one or two positive numbers");
  EXPECT_EQ(fault([] {
              return conv2d({4, 4}, 2, 1, 1, "same", 1);
            }),
            "Conv2D: pad is [1], which pad_mode same does not use");
}

}  // namespace
}  // namespace shardplan
