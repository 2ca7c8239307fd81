#include "solver/core/slack.h"

#include <algorithm>
#include <limits>

namespace shardplan {

Slack::Slack(const std::vector<std::int64_t>& limits)
    : raw_(limits), least_((limits.size() + kBlock - 1) / kBlock), added_(least_.size(), 0) {
  for (std::size_t block = 0; block < least_.size(); ++block) update(block);
}

void Slack::update(std::size_t block) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  const std::size_t end = std::min(block * kBlock + kBlock, raw_.size());
  for (std::size_t time = block * kBlock; time < end; ++time) least = std::min(least, raw_[time]);
  least_[block] = least;
}

void Slack::add(std::size_t begin, std::size_t end, std::int64_t bytes) {
  while (begin < end) {
    const std::size_t block = begin / kBlock;
    const std::size_t block_end = std::min(block * kBlock + kBlock, raw_.size());
    if (begin == block * kBlock && block_end <= end) {
      added_[block] += bytes;
      begin = block_end;
      continue;
    }
    const std::size_t stop = std::min(block_end, end);
    for (; begin < stop; ++begin) raw_[begin] += bytes;
    update(block);
  }
}

std::int64_t Slack::least(std::size_t begin, std::size_t end) const {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  while (begin < end) {
    const std::size_t block = begin / kBlock;
    const std::size_t block_end = std::min(block * kBlock + kBlock, raw_.size());
    if (begin == block * kBlock && block_end <= end) {
      least = std::min(least, least_[block] + added_[block]);
      begin = block_end;
      continue;
    }
    const std::size_t stop = std::min(block_end, end);
    std::int64_t part = std::numeric_limits<std::int64_t>::max();
    for (; begin < stop; ++begin) part = std::min(part, raw_[begin]);
    least = std::min(least, part + added_[block]);
  }
  return least;
}

std::size_t Slack::worst() const {
  std::size_t worst = 0;
  for (std::size_t block = 1; block < least_.size(); ++block) {
    if (least_[block] + added_[block] < least_[worst] + added_[worst]) worst = block;
  }
  std::size_t time = worst * kBlock;
  while (raw_[time] != least_[worst]) ++time;
  return time;
}

}  // namespace shardplan
