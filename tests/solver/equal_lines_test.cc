#include "solver/equal_lines.h"

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"

namespace shardplan {
namespace {

TEST(EqualLinesTest, AreOneClassNumberedByItsFirstLine) {
  const std::vector<std::int64_t> lines = {1, 2, /**/ 3, 4, /**/ 1, 2, /**/ 2, 1, /**/ 3, 4};
  const LineClasses classes = equal_lines<std::int64_t>(lines, 5);
  EXPECT_EQ(classes.class_of, (std::vector<std::uint32_t>{0, 1, 0, 2, 1}));
  EXPECT_EQ(classes.first, (std::vector<std::uint32_t>{0, 1, 3}));
}

TEST(EqualLinesTest, LinesOfNothingAreEqualAndNoLinesAreNoClass) {
  EXPECT_EQ(equal_lines<double>({}, 3).class_of, (std::vector<std::uint32_t>{0, 0, 0}));
  EXPECT_TRUE(equal_lines<double>({}, 0).first.empty());
}

TEST(EqualLinesTest, AreThoseOfAMap) {
  constexpr std::uint64_t kSeed = 3;
  Random random(kSeed);
  for (int round = 0; round < 200; ++round) {
    const std::size_t count = random.below(300), length = 1 + random.below(6);
    std::vector<double> lines(count * length);
    for (double& entry : lines) entry = static_cast<double>(random.below(3));
    const LineClasses classes = equal_lines<double>(lines, count);
    std::map<std::vector<double>, std::uint32_t> known;
    std::vector<std::uint32_t> class_of, first;
    for (std::size_t at = 0; at < count; ++at) {
      const auto begin = lines.begin() + static_cast<std::ptrdiff_t>(at * length);
      const auto [place, is_new] = known.try_emplace(std::vector(begin, begin + static_cast<std::ptrdiff_t>(length)),
                                                     static_cast<std::uint32_t>(known.size()));
      if (is_new) first.push_back(static_cast<std::uint32_t>(at));
      class_of.push_back(place->second);
    }
    ASSERT_EQ(classes.class_of, class_of) << "seed " << kSeed << ", round " << round;
    ASSERT_EQ(classes.first, first);
  }
}

}  // namespace
}  // namespace shardplan
