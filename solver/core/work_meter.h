#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "solver/limits.h"

namespace shardplan {

/// The work limit of a search that is only limited by time, the gap or its own end.
inline constexpr std::uint64_t kInfiniteWork = std::numeric_limits<std::uint64_t>::max();

/// The work that one thread may do in one go, in units: entries of tables touched, about a nanosecond each. Work
/// limits make results independent of the machine's speed; the deadline is checked every millisecond or so.
class WorkMeter {
 public:
  WorkMeter(const Deadline& deadline, std::uint64_t limit) : deadline_(&deadline), limit_(limit) {}

  /// Counts work; false once the limit or the deadline is reached.
  bool spend(std::uint64_t units) {
    used_ += units;
    if (used_ >= next_look_) {
      next_look_ = used_ + 1'000'000;
      is_stopped_ = is_stopped_ || deadline_->is_over();
    }
    return !is_spent();
  }
  bool is_spent() const { return is_stopped_ || used_ >= limit_; }
  bool is_stopped() const { return is_stopped_; }
  /// Which of the two it was; nothing while work may continue.
  std::optional<Limit> stopped_by() const {
    if (is_stopped_) return deadline_->reached();
    return is_spent() ? std::optional(Limit::kWork) : std::nullopt;
  }
  std::uint64_t used() const { return used_; }
  /// A meter for a part of the remaining work; `merge` adds what it used.
  WorkMeter part(std::uint64_t limit) const {
    WorkMeter result(*deadline_, std::min(limit, limit_ > used_ ? limit_ - used_ : 0));
    result.is_stopped_ = is_stopped_;
    return result;
  }
  void merge(const WorkMeter& part) {
    used_ += part.used_;
    is_stopped_ = is_stopped_ || part.is_stopped_;
  }

 private:
  const Deadline* deadline_;
  std::uint64_t limit_;
  std::uint64_t used_ = 0;
  std::uint64_t next_look_ = 0;
  bool is_stopped_ = false;
};

}  // namespace shardplan
