#include "program/buckets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/random.h"

namespace shardplan {
namespace {

/// Instructions that only consist of dependencies: each reads outputs of earlier ones and produces one value.
ParallelProgram program_of(const std::vector<std::vector<std::size_t>>& reads) {
  ParallelProgram program;
  for (const std::vector<std::size_t>& inputs : reads) {
    Instruction instruction;
    for (const std::size_t input : inputs) instruction.inputs.push_back(ValueId(input));
    instruction.outputs = {program.values.push_back({})};
    program.instructions.push_back(std::move(instruction));
  }
  return program;
}

using Sequence = std::vector<std::uint32_t>;
using Buckets = std::vector<std::uint32_t>;

IssueOrder in_given_order(Buckets buckets) {
  IssueOrder order;
  order.sequence.resize(buckets.size());
  std::iota(order.sequence.begin(), order.sequence.end(), std::uint32_t{0});
  order.buckets = std::move(buckets);
  return order;
}

TEST(BucketsTest, ABucketStandsBehindItsLastProducerAndItsReadersBehindIt) {
  // 1 and 3 reduce the results of 0 and 2; 4 reads the first sum, 5 reads neither.
  const ParallelProgram program = program_of({{}, {0}, {}, {2}, {1}, {}});
  const IssueOrder order = with_buckets(InstructionReads(program), in_given_order({0, 7, 0, 7, 0, 0}));
  EXPECT_EQ(order.sequence, (Sequence{0, 2, 1, 3, 4, 5}));
  EXPECT_EQ(order.buckets, (Buckets{0, 1, 0, 1, 0, 0}));
}

TEST(BucketsTest, ABucketIsSplitWhereOneMemberNeedsAnother) {
  // 1 and 4 reduce 0; 2 needs 1; 3 reduces 2.
  const ParallelProgram program = program_of({{}, {0}, {1}, {2}, {0}});
  const IssueOrder order = with_buckets(InstructionReads(program), in_given_order({0, 1, 0, 1, 1}));
  EXPECT_EQ(order.sequence, (Sequence{0, 1, 4, 2, 3}));
  EXPECT_EQ(order.buckets, (Buckets{0, 1, 0, 0, 1}));
}

TEST(BucketsTest, TwoBucketsThatNeedEachOtherAreSplit) {
  // Bucket 1 is {1, 5}, bucket 2 is {3, 4}: 3 needs 1, 5 needs 4.
  const ParallelProgram program = program_of({{}, {0}, {}, {1}, {2}, {4}});
  const IssueOrder order = with_buckets(InstructionReads(program), in_given_order({0, 1, 0, 2, 2, 1}));
  EXPECT_EQ(order.sequence, (Sequence{0, 2, 1, 3, 4, 5}));
  EXPECT_EQ(order.buckets, (Buckets{0, 0, 0, 1, 1, 0}));
}

// In programs of some thousand instructions, compared with a search through all of them each time: of those that can be
// issued, the first in the given order goes next; a bucket counts at the place of its last member.
TEST(BucketsTest, WhatStandsFirstGoesFirst) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::size_t count = seed <= 4 ? 40 * seed : 5000;
    // Members of buckets read nothing that depends on a bucket, so no bucket has to be split.
    std::vector<std::vector<std::size_t>> reads(count);
    std::vector<std::size_t> plain;
    Buckets wanted(count, 0);
    std::vector<std::size_t> last(8, 0), members(8, 0);  // by bucket
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t kind = random.below(3);
      for (std::uint64_t k = random.below(3); !plain.empty() && kind < 2 && k > 0; --k) {
        reads[i].push_back(plain[random.below(plain.size())]);
      }
      if (kind == 0) plain.push_back(i);
      if (kind == 1) wanted[i] = static_cast<std::uint32_t>(random.below(8));
      if (kind == 1 && wanted[i] == 0) plain.push_back(i);
      if (kind == 2 && i > 0) reads[i].push_back(random.below(i));
      last[wanted[i]] = i;
      ++members[wanted[i]];
    }
    std::vector<char> is_issued(count, 0);
    Sequence expected;
    const auto can_run = [&](std::size_t i) {
      return std::all_of(reads[i].begin(), reads[i].end(), [&](std::size_t input) { return is_issued[input] != 0; });
    };
    const auto issue = [&](std::size_t i) {
      expected.push_back(static_cast<std::uint32_t>(i));
      is_issued[i] = 1;
    };
    while (expected.size() < count) {
      std::vector<std::size_t> missing(8, 0);
      for (std::size_t i = 0; i < count; ++i) missing[wanted[i]] += wanted[i] != 0 && !can_run(i) ? 1 : 0;
      for (std::size_t i = 0; i < count; ++i) {
        if (is_issued[i] != 0 || !can_run(i) || missing[wanted[i]] > 0) continue;
        if (wanted[i] == 0) {
          issue(i);
          break;
        }
        if (last[wanted[i]] != i) continue;
        for (std::size_t member = 0; member < count; ++member) {
          if (wanted[member] == wanted[i]) issue(member);
        }
        break;
      }
    }
    const ParallelProgram program = program_of(reads);
    EXPECT_EQ(with_buckets(InstructionReads(program), in_given_order(wanted)).sequence, expected);
  }
}

// For any request: every instruction occurs once, after what it reads, and each bucket is contiguous and consists of
// members that do not depend on each other.
TEST(BucketsTest, AnyRequestGivesAnOrderThatCanRun) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::size_t count = 1 + random.below(24);
    std::vector<std::vector<std::size_t>> reads(count);
    Buckets wanted(count, 0);
    for (std::size_t i = 0; i < count; ++i) {
      for (std::uint64_t k = random.below(3); i > 0 && k > 0; --k) reads[i].push_back(random.below(i));
      wanted[i] = static_cast<std::uint32_t>(random.below(4));
    }
    const ParallelProgram program = program_of(reads);
    const IssueOrder order = with_buckets(InstructionReads(program), in_given_order(wanted));
    ASSERT_EQ(std::set<std::size_t>(order.sequence.begin(), order.sequence.end()).size(), count);
    std::vector<std::size_t> places(count);
    for (std::size_t place = 0; place < count; ++place) places[order.sequence[place]] = place;
    std::map<std::uint32_t, std::vector<std::size_t>> members;  // places, by bucket
    for (const std::size_t i : order.sequence) {
      if (order.buckets[i] != 0) members[order.buckets[i]].push_back(places[i]);
    }
    for (std::size_t i = 0; i < count; ++i) {
      for (const std::size_t input : reads[i]) EXPECT_LT(places[input], places[i]);
    }
    for (const auto& [bucket, at] : members) {
      ASSERT_GT(at.size(), 1u);
      EXPECT_EQ(at.back() - at.front() + 1, at.size());
      std::set<std::size_t> made;
      for (const std::size_t place : at) {
        const std::size_t i = order.sequence[place];
        EXPECT_NE(wanted[i], 0u);
        EXPECT_EQ(wanted[i], wanted[order.sequence[at.front()]]);
        for (const std::size_t input : reads[i]) EXPECT_FALSE(made.contains(input));
        made.insert(i);
      }
    }
  }
}

}  // namespace
}  // namespace shardplan
