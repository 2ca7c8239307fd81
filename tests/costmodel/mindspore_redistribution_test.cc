// Numbers that MindSpore's tests assert of layouts and edges (reference figures X1 to X19).
#include "costmodel/mindspore/mindspore_redistribution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "costmodel/mindspore/mindspore_costs.h"

namespace shardplan {
namespace {

TEST(MindSporeRedistributionTest, LayoutsUnify) {
  const MindSporeTensorLayout a = {mindspore_layout({8, 4}, {1, 0}), {512, 1024}};
  const MindSporeTensorLayout b = {mindspore_layout({2, 16}, {1, 0}), {512, 1024}};
  EXPECT_EQ(unify(a, b), (UnifiedLayouts{{mindspore_layout({2, 4, 4}, {2, 1, 0, -1}), {2, 256, 4, 256}},
                                         {mindspore_layout({2, 4, 4}, {2, -1, 1, 0}), {2, 256, 4, 256}}}));
  EXPECT_EQ(unify({mindspore_layout({8}, {0, -1}), {512, 1024}}, {mindspore_layout({2, 2, 2}, {2, 1}), {512, 1024}}),
            (UnifiedLayouts{{mindspore_layout({2, 2, 2}, {2, 1, 0, -1}), {2, 2, 128, 1024}},
                            {mindspore_layout({2, 2, 2}, {2, -1, -1, 1}), {2, 2, 128, 1024}}}));
  EXPECT_EQ(
      unify({mindspore_layout({16}, {0, -1}), {512, 1024}}, {mindspore_layout({16}, {-1, 0}), {512, 1024}}),
      (UnifiedLayouts{{mindspore_layout({16}, {0, -1}), {512, 1024}}, {mindspore_layout({16}, {-1, 0}), {512, 1024}}}));
  // Through a reshape.
  EXPECT_EQ(unify({mindspore_layout({8, 4}, {1, 0}), {512, 1024}}, {mindspore_layout({8, 4}, {1, 0}), {128, 4096}}),
            (UnifiedLayouts{{mindspore_layout({8, 4}, {1, -1, 0}), {128, 4, 1024}},
                            {mindspore_layout({8, 4}, {1, 0, -1}), {128, 4, 1024}}}));
  EXPECT_EQ(unify({mindspore_layout({2, 3}, {1, 0}), {6, 6}}, {mindspore_layout({3, 2}, {1, 0}), {6, 6}}),
            std::nullopt);
}

/// All powers of two: device matrices of 2^k devices, tensors of 2^t elements, every map. Every pair of equal shape
/// unifies, and there are as many layouts and pairs as in MindSpore's exhaustive test.
TEST(MindSporeRedistributionTest, EveryPairOfPowersOfTwoUnifies) {
  const std::function<std::vector<std::vector<std::int64_t>>(int)> compositions = [&](int exponent) {
    std::vector<std::vector<std::int64_t>> result;
    if (exponent == 0) return std::vector<std::vector<std::int64_t>>{{}};
    for (int first = 1; first <= exponent; ++first) {
      for (std::vector<std::int64_t> rest : compositions(exponent - first)) {
        rest.insert(rest.begin(), std::int64_t{1} << first);
        result.push_back(rest);
      }
    }
    return result;
  };
  const struct {
    int devices;
    int tensor;
    std::size_t layouts;
    std::size_t pairs;
  } kCounts[] = {{1, 1, 2, 4},   {1, 2, 5, 13},   {1, 3, 12, 38},  {2, 1, 4, 16},
                 {2, 2, 13, 89}, {2, 3, 37, 383}, {3, 2, 31, 521}, {3, 3, 103, 3145}};
  for (const auto& count : kCounts) {
    std::vector<MindSporeTensorLayout> layouts;
    for (const auto& matrix : compositions(count.devices)) {
      for (const auto& shape : compositions(count.tensor)) {
        std::vector<std::int64_t> map(shape.size(), -1);
        const std::function<void(std::size_t)> fill = [&](std::size_t d) {
          if (d == shape.size()) {
            layouts.push_back({mindspore_layout(matrix, map), shape});
            return;
          }
          for (std::int64_t entry = -1; entry < static_cast<std::int64_t>(matrix.size()); ++entry) {
            const bool is_used = entry >= 0 && std::find(map.begin(), map.begin() + static_cast<std::ptrdiff_t>(d),
                                                         entry) != map.begin() + static_cast<std::ptrdiff_t>(d);
            if (is_used) continue;
            if (entry >= 0 && shape[d] % matrix[matrix.size() - 1 - static_cast<std::size_t>(entry)] != 0) continue;
            map[d] = entry;
            fill(d + 1);
          }
          map[d] = -1;
        };
        fill(0);
      }
    }
    EXPECT_EQ(layouts.size(), count.layouts);
    std::size_t pairs = 0;
    for (const MindSporeTensorLayout& from : layouts) {
      for (const MindSporeTensorLayout& to : layouts) {
        if (from.shape != to.shape) continue;
        ++pairs;
        const auto unified = unify(from, to);
        ASSERT_TRUE(unified);
        EXPECT_EQ(unified->from.shape, unified->to.shape);
        EXPECT_EQ(unified->from.layout.device_matrix, unified->to.layout.device_matrix);
        EXPECT_EQ(unified->from.slice_elements(), from.slice_elements());
        EXPECT_EQ(unified->to.slice_elements(), to.slice_elements());
      }
    }
    EXPECT_EQ(pairs, count.pairs);
  }
}

struct EdgeCase {
  const char* name;
  MindSporeTensorLayout from, to;
  double forward, backward, computation, memory;
  double refined;  // bytes of f32 communication that is counted; 0: not known
};

TEST(MindSporeRedistributionTest, EdgesCostAsInTheReference) {
  const EdgeCase kCases[] = {
      {"X1",
       {mindspore_layout({8}, {0, -1}), {512, 1024}},
       {mindspore_layout({8}, {-1, -1}), {512, 1024}},
       262144,
       32768,
       131072,
       589824,
       1181696},
      {"X3",
       {mindspore_layout({8}, {-1, -1}), {512, 1024}},
       {mindspore_layout({8}, {0, -1}), {512, 1024}},
       0,
       0,
       524288,
       524288,
       0},
      {"X5",
       {mindspore_layout({8}, {0, -1}), {512, 1024}},
       {mindspore_layout({8}, {-1, 0}), {512, 1024}},
       131072,
       131072,
       131072,
       131072,
       1050624},
      {"X7",
       {mindspore_layout({2, 4}, {1, 0}), {64, 64}},
       {mindspore_layout({2, 4}, {1, -1}), {64, 64}},
       1024,
       256,
       5120,
       5120,
       8192},
      {"X9",
       {mindspore_layout({2, 4}, {1, -1}), {64, 64}},
       {mindspore_layout({2, 4}, {1, 0}), {64, 64}},
       0,
       0,
       2048,
       2048,
       0},
      {"X11",
       {mindspore_layout({8}, {0, -1}), {64, 64}},
       {mindspore_layout({2, 4}, {1, 0}), {64, 64}},
       1024,
       1024,
       6144,
       6144,
       10240},
      {"X13",
       {mindspore_layout({8, 4}, {1, 0}), {512, 1024}},
       {mindspore_layout({2, 16}, {1, 0}), {512, 1024}},
       65536,
       65536,
       360448,
       360448,
       526336},
      {"X15",
       {mindspore_layout({8}, {0, -1}), {512, 1024}},
       {mindspore_layout({2, 2, 2}, {2, 1}), {512, 1024}},
       196608,
       163840,
       917504,
       917504,
       1443840},
      {"X17",
       {mindspore_layout({16, 1, 1}, {2, 0}), {512, 1024}},
       {mindspore_layout({1, 16, 1}, {2, 1}), {512, 1024}},
       65536,
       65536,
       65536,
       65536,
       0},
      {"X19",
       {mindspore_layout({2, 2, 2}, {2, 1, -1}), {8, 8, 8}},
       {mindspore_layout({2, 2, 2}, {-1, 2, 1}), {8, 8, 8}},
       512,
       512,
       1024,
       1024,
       6144},
  };
  for (const EdgeCase& test : kCases) {
    EXPECT_EQ(mindspore_edge_cost(test.from, test.to),
              (MindSporeRedistributionCost{test.forward, test.backward, test.computation, test.memory}))
        << test.name;
    const auto cost = mindspore_edge_cost(test.from, test.to, 4, false, {});
    ASSERT_TRUE(cost);
    if (test.refined > 0) {
      EXPECT_EQ(cost->communication, test.refined) << test.name;
    }
    EXPECT_EQ(mindspore_edge_cost(test.from, test.to, 1, true, {}).has_value(), test.forward == 0) << test.name;
  }
}

}  // namespace
}  // namespace shardplan
