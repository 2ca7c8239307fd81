#include "base/flat_id_map.h"

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"

namespace shardplan {
namespace {

/// Many keys in few slots, so that probes pass over other keys.
struct PoorHash {
  std::size_t operator()(std::uint64_t key) const { return static_cast<std::size_t>(key % 7); }
};

TEST(FlatIdMapTest, AnswersAsAMapDoes) {
  Random random(1);
  FlatIdMap<std::uint64_t, PoorHash> flat;
  std::map<std::uint64_t, std::uint32_t> map;
  for (std::uint32_t i = 0; i < 3000; ++i) {
    const std::uint64_t key = random.below(1500);
    const auto [known, is_new] = map.try_emplace(key, i);
    EXPECT_EQ(flat.try_emplace(key, i), (std::pair{known->second, is_new})) << "key " << key;
  }
  EXPECT_GT(map.size(), 1000u) << "it has grown several times";
}

}  // namespace
}  // namespace shardplan
