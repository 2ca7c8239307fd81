#include "layouts/shape.h"

#include <gtest/gtest.h>

namespace shardplan {
namespace {

struct ShapeCase {
  Shape shape;
  std::int64_t elements;
  Bytes bytes;  // at 2 bytes per element
  const char* text;
};
const ShapeCase kShapes[] = {
    // the table of shape.h
    {{}, 1, 2, "[]"},
    {{8}, 8, 16, "[8]"},
    {{512, 4}, 2048, 4096, "[512, 4]"},
    {{0, 4}, 0, 0, "[0, 4]"},
};
TEST(ShapeTest, CountsAndWritesItself) {
  for (const ShapeCase& c : kShapes) {
    EXPECT_EQ(num_elements(c.shape), c.elements) << c.text;
    EXPECT_EQ(num_bytes(c.shape, 2), c.bytes) << c.text;
    EXPECT_EQ(to_string(c.shape), c.text);
  }
}

TEST(ShapeTest, StaysAtTheLargestNumber) {
  constexpr std::int64_t kHalf = std::int64_t{1} << 62;
  EXPECT_EQ(num_elements({kHalf}), kHalf);
  EXPECT_EQ(num_elements({kHalf, 2}), INT64_MAX);
  EXPECT_EQ(num_bytes({kHalf}, 2), INT64_MAX);
  EXPECT_EQ(num_bytes({kHalf, 4, 4}, 8), INT64_MAX);
}

}  // namespace
}  // namespace shardplan
