#include "solver/core/slack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/random.h"

namespace shardplan {
namespace {

TEST(SlackTest, DoesWhatAPlainListDoes) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    // Shorter than a block of 64, several whole ones, and several with a rest.
    const std::size_t sizes[] = {1, 40, 64, 192, 300};
    std::vector<std::int64_t> plain(sizes[seed % 5]);
    for (std::int64_t& item : plain) item = static_cast<std::int64_t>(random.below(1000));
    Slack slack(plain);
    for (int round = 0; round < 40; ++round) {
      const std::size_t begin = random.below(plain.size());
      const std::size_t end = begin + random.below(plain.size() - begin + 1);
      const auto bytes = static_cast<std::int64_t>(random.below(400)) - 250;
      slack.add(begin, end, bytes);
      for (std::size_t time = begin; time < end; ++time) plain[time] += bytes;

      const std::size_t from = random.below(plain.size());
      const std::size_t to = from + random.below(plain.size() - from + 1);
      std::int64_t least = std::numeric_limits<std::int64_t>::max();
      for (std::size_t time = from; time < to; ++time) least = std::min(least, plain[time]);
      ASSERT_EQ(slack.least(from, to), least);
      ASSERT_EQ(slack.at(from), plain[from]);
      ASSERT_EQ(slack.worst(), static_cast<std::size_t>(std::min_element(plain.begin(), plain.end()) - plain.begin()));
      const auto taken = static_cast<std::int64_t>(random.below(200));
      std::vector<std::pair<std::size_t, std::int64_t>> expected, visited;
      for (std::size_t time = from; time < to; ++time) {
        if (plain[time] < taken) expected.emplace_back(time, plain[time] - taken);
      }
      slack.visit_negative(from, to, taken,
                           [&](std::size_t time, std::int64_t left) { visited.emplace_back(time, left); });
      ASSERT_EQ(visited, expected);
    }
  }
}

}  // namespace
}  // namespace shardplan
