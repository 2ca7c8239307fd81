#include "program/joined_waiting.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/random.h"
#include "tests/support/time_sketch.h"

namespace shardplan {
namespace {

using Numbers = std::vector<std::uint32_t>;

/// Buckets by instruction.
Numbers joined(const ParallelProgram& program, const std::vector<JoinKey>& keys, Bytes most) {
  const InstructionTable table(program);
  const TableOrder order(table);
  return joined_waiting(order, overlapped_timeline(order).spans, given_order(program), keys, most).buckets;
}

/// Kernel 0 until 10; collective 1 from 10 to 40; kernel 2 until 20, then its collective 3; kernel 4 until 35, then
/// collective 5.
TimeSketch three_reductions() {
  TimeSketch sketch;
  const ValueId a = sketch.kernel(10, {});
  sketch.collective(30, a);
  const ValueId b = sketch.kernel(10, {a});
  sketch.collective(30, b);
  sketch.collective(30, sketch.kernel(15, {b}));
  return sketch;
}

std::vector<JoinKey> keys_of(const Numbers& keys) {
  std::vector<JoinKey> result;
  for (const std::uint32_t key : keys) result.push_back({key, key > 0 ? Bytes{10} : Bytes{0}});
  return result;
}

TEST(JoinedWaitingTest, WhatIsReadyWhenOneBeginsGoesWithIt) {
  EXPECT_EQ(joined(three_reductions().program, keys_of({0, 1, 0, 1, 0, 1}), 100), (Numbers{0, 0, 0, 1, 0, 1}));
}

TEST(JoinedWaitingTest, OnlyOfOneKeyAndUpToTheSize) {
  EXPECT_EQ(joined(three_reductions().program, keys_of({0, 1, 0, 1, 0, 2}), 100), (Numbers{0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(joined(three_reductions().program, keys_of({0, 1, 0, 1, 0, 0}), 100), (Numbers{0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(joined(three_reductions().program, keys_of({0, 1, 0, 1, 0, 1}), 20), (Numbers{0, 0, 0, 1, 0, 1}));
  EXPECT_EQ(joined(three_reductions().program, keys_of({0, 1, 0, 1, 0, 1}), 19), (Numbers{0, 0, 0, 0, 0, 0}));
}

TEST(JoinedWaitingTest, BucketsAreJoinedWhole) {
  TimeSketch sketch;
  const ValueId a = sketch.kernel(10, {});
  sketch.collective(30, a);        // 1: from 10 to 40
  sketch.collective(20, a, 1, 1);  // 2, 3: one of 30
  sketch.collective(20, a, 1, 1);
  sketch.collective(30, sketch.kernel(10, {a}));  // 4, 5: ready at 20
  sketch.program.buckets = {{CollectiveKind::kAllReduce, {}, 30, 0, 2, ValueId(0)}};
  const Numbers buckets = joined(sketch.program, keys_of({0, 0, 1, 1, 0, 1}), 30);
  EXPECT_EQ(buckets[2], buckets[3]);
  EXPECT_EQ(buckets[2], buckets[5]);
  EXPECT_NE(buckets[2], 0U);
  EXPECT_EQ(buckets[1], 0U);
}

TEST(JoinedWaitingTest, NoMemberOfARandomProgramIsReadyLaterThanItsBucketBegan) {
  std::size_t joins = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    TimeSketch sketch;
    std::vector<ValueId> values{sketch.kernel(5, {})};
    std::vector<JoinKey> keys(1);
    for (int i = 0; i < 40; ++i) {
      const auto time = static_cast<Picoseconds>(1 + random.below(30));
      const ValueId input = values[random.below(values.size())];
      const bool is_kernel = random.below(2) == 0;
      values.push_back(is_kernel ? sketch.kernel(time, {input}) : sketch.collective(time, input));
      keys.push_back(
          is_kernel ? JoinKey{}
                    : JoinKey{static_cast<std::uint32_t>(random.below(3)), static_cast<Bytes>(1 + random.below(5))});
    }
    const InstructionTable table(sketch.program);
    const TableOrder order(table);
    const OverlappedTimeline times = overlapped_timeline(order);
    const Bytes most = 6;
    const IssueOrder result = joined_waiting(order, times.spans, given_order(sketch.program), keys, most);
    struct Bucket {
      Picoseconds begins = Picoseconds{1} << 60, ready = 0;
      Bytes bytes = 0;
      std::uint32_t key = 0;
    };
    std::map<std::uint32_t, Bucket> buckets;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (result.buckets[i] == 0) continue;
      const auto [found, is_new] = buckets.try_emplace(result.buckets[i]);
      Bucket& bucket = found->second;
      if (is_new) bucket.key = keys[i].key;
      EXPECT_EQ(keys[i].key, bucket.key);
      bucket.begins = std::min(bucket.begins, times.spans[i].begin);
      bucket.bytes += keys[i].bytes;
      for (const ValueId input : table.inputs(i)) {
        const auto made = std::find(values.begin(), values.end(), input) - values.begin();
        bucket.ready = std::max(bucket.ready, times.spans[static_cast<std::size_t>(made)].end);
      }
    }
    for (const auto& [id, bucket] : buckets) {
      EXPECT_GT(bucket.key, 0U);
      EXPECT_LE(bucket.ready, bucket.begins);
      EXPECT_LE(bucket.bytes, most);
      ++joins;
    }
    const Numbers sequence = with_buckets(InstructionReads(sketch.program), result).sequence;
    EXPECT_EQ(sequence.size(), keys.size());
  }
  EXPECT_GT(joins, 300U);
}

}  // namespace
}  // namespace shardplan
