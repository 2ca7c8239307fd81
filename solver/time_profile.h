#pragma once

#include <cstddef>
#include <vector>

#include "base/integer.h"
#include "base/units.h"

namespace shardplan {

/// Bytes over schedule times, accumulated from live ranges: additions over half-open ranges [begin, end), summed once
/// at the end. Sums have 128 bits, so no problem can overflow them.
class TimeProfile {
 public:
  explicit TimeProfile(std::size_t num_times) : changes_(num_times + 1, 0) {}

  /// Requires begin <= end <= num_times.
  void add(std::size_t begin, std::size_t end, Bytes bytes) {
    changes_[begin] += bytes;
    changes_[end] -= bytes;
  }
  /// By time.
  std::vector<Int128> sums() const {
    std::vector<Int128> result(changes_.size() - 1);
    Int128 sum = 0;
    for (std::size_t time = 0; time < result.size(); ++time) result[time] = sum += changes_[time];
    return result;
  }

 private:
  std::vector<Int128> changes_;
};

}  // namespace shardplan
