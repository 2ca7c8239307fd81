#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <stop_token>
#include <string_view>

namespace shardplan {

/// What ended a search before its answer was proven. If several searches contribute to one answer, the last one in
/// this order counts (`std::max`): a clock or a person can change the answer from run to run, work and gap cannot.
enum class Limit {
  kGap,          // the requested gap was reached
  kWork,         // the work limit was reached
  kTime,         // the time limit was reached
  kInterrupted,  // the caller's stop token: Ctrl-C
};
std::string_view to_string(Limit limit);

/// The end of a search: a point in time, or a request of its caller.
class Deadline {
 public:
  /// `seconds` of wall clock from now on; 0: no limit.
  Deadline(double seconds, std::stop_token stop) : seconds_(seconds), stop_(std::move(stop)) {}

  double elapsed() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  bool is_over() const { return is_stopped() || (seconds_ > 0 && elapsed() >= seconds_); }
  /// Which of the two was reached; nothing if neither.
  std::optional<Limit> reached() const {
    if (is_stopped()) return Limit::kInterrupted;
    return is_over() ? std::optional(Limit::kTime) : std::nullopt;
  }
  /// A deadline at `share` of the remaining time.
  Deadline part(double share) const {
    Deadline result = *this;
    if (seconds_ > 0) result.seconds_ = elapsed() + share * std::max(seconds_ - elapsed(), 1e-9);
    return result;
  }
  /// The same deadline, also reached as soon as `stop` is requested.
  Deadline or_at(std::stop_token stop) const {
    Deadline result = *this;
    result.other_stop_ = std::move(stop);
    return result;
  }

 private:
  bool is_stopped() const { return stop_.stop_requested() || other_stop_.stop_requested(); }

  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double seconds_ = 0;
  std::stop_token stop_, other_stop_;
};

}  // namespace shardplan
