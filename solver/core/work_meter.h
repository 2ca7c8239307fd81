#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <stop_token>

namespace shardplan {

/// When a search must end: by the clock or because it was told to.
class Deadline {
 public:
  Deadline(double seconds, std::stop_token stop) : seconds_(seconds), stop_(std::move(stop)) {}

  double elapsed() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  bool is_over() const { return stop_.stop_requested() || (seconds_ > 0 && elapsed() >= seconds_); }
  /// An earlier end: `share` of the time that is left.
  Deadline part(double share) const {
    Deadline result = *this;
    if (seconds_ > 0) result.seconds_ = elapsed() + share * std::max(seconds_ - elapsed(), 1e-9);
    return result;
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double seconds_ = 0;  // 0: none
  std::stop_token stop_;
};

/// What one thread may do in one go, in units of work: entries of tables touched, about a nanosecond each. Work decides
/// what is found, so results do not depend on the machine's speed; the deadline is looked at every millisecond or so.
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
  std::uint64_t used() const { return used_; }
  /// A meter for a part of the work left; `merge` adds what it used.
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
