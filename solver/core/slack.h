#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardplan {

/// Bytes left below the limit at each time, in blocks of 64 with their least and a lazily added change: adding over a
/// range and the least of a range touch two blocks and the list of the blocks between. A segment tree would touch fewer
/// entries of a range of thousands, but the ranges of most moves are short, and a block is eight cache lines.
class Slack {
 public:
  explicit Slack(const std::vector<std::int64_t>& limits);

  /// Adds bytes over the half-open range [begin, end) of times.
  void add(std::size_t begin, std::size_t end, std::int64_t bytes);
  /// The least of [begin, end); the largest number of an empty range.
  std::int64_t least(std::size_t begin, std::size_t end) const;
  std::int64_t at(std::size_t time) const { return raw_[time] + added_[time / kBlock]; }
  /// The first time with the least slack. Requires at least one time.
  std::size_t worst() const;
  /// Calls `visit(time, slack)` for all times of negative slack in [begin, end) if `bytes` are taken away.
  template <class Visit>
  void visit_negative(std::size_t begin, std::size_t end, std::int64_t bytes, Visit visit) const {
    for (std::size_t time = begin; time < end;) {
      const std::size_t block = time / kBlock;
      const std::size_t block_end = block * kBlock + kBlock < end ? block * kBlock + kBlock : end;
      if (least_[block] + added_[block] >= bytes) {
        time = block_end;
        continue;
      }
      for (; time < block_end; ++time) {
        if (at(time) < bytes) visit(time, at(time) - bytes);
      }
    }
  }

 private:
  static constexpr std::size_t kBlock = 64;
  void update(std::size_t block);

  std::vector<std::int64_t> raw_, least_, added_;  // by time; by block, without and with what is added to the block
};

}  // namespace shardplan
