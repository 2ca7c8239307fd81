#include "cli/commands/tensor_arguments.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/support/text.h"

namespace shardplan {
namespace {

using Integers = std::vector<std::int64_t>;

TEST(TensorArgumentsTest, RangesAreListedNumberByNumber) {
  EXPECT_EQ(parse_ranges("--devices", "0-3", 4), (Integers{0, 1, 2, 3}));
  EXPECT_EQ(parse_ranges("--devices", "7,0-1,4-4", 4), (Integers{7, 0, 1, 4}));
  EXPECT_EQ(parse_ranges("--devices", "5", 8), (Integers{5}));
}

TEST(TensorArgumentsTest, MoreThanTheMeshHasAreRefused) {
  const std::string more = "error: --devices {}: more than 4 devices are listed, but the mesh has 4 points";
  for (const char* text : {"0-4", "0-2,5-6", "0,1,2,3,4", "0-9223372036854775807"}) {
    EXPECT_EQ(error_of([&] { parse_ranges("--devices", text, 4); }), fmt::format(fmt::runtime(more), text));
  }
}

// Incrementing the largest number once overflowed.
TEST(TensorArgumentsTest, TheLargestNumberIsOne) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(parse_ranges("--devices", "9223372036854775807", 4), (Integers{kLargest}));
  EXPECT_EQ(parse_ranges("--devices", "9223372036854775806-9223372036854775807", 4),
            (Integers{kLargest - 1, kLargest}));
}

}  // namespace
}  // namespace shardplan
