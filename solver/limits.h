#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <stop_token>
#include <string_view>

namespace shardplan {

/// What ended a search before its answer was proven. Of several searches that make one answer together the last in this
/// order counts (`std::max`): a clock or a person may lead to another answer in another run, work and gap do not.
enum class Limit {
  kGap,          // the cost is as near to the bound as was asked for
  kWork,         // the units of work are spent
  kTime,         // the wall clock
  kInterrupted,  // the caller's stop token: Ctrl-C
};
std::string_view to_string(Limit limit);

/// When a search must end: by the clock or because its caller asks it to.
class Deadline {
 public:
  /// `seconds` of wall clock from now on; 0: no limit.
  Deadline(double seconds, std::stop_token stop) : seconds_(seconds), stop_(std::move(stop)) {}

  double elapsed() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  bool is_over() const { return is_stopped() || (seconds_ > 0 && elapsed() >= seconds_); }
  /// Which of the two it was; nothing if neither is over.
  std::optional<Limit> reached() const {
    if (is_stopped()) return Limit::kInterrupted;
    return is_over() ? std::optional(Limit::kTime) : std::nullopt;
  }
  /// An earlier end: `share` of the time that is left.
  Deadline part(double share) const {
    Deadline result = *this;
    if (seconds_ > 0) result.seconds_ = elapsed() + share * std::max(seconds_ - elapsed(), 1e-9);
    return result;
  }
  /// The same, over as soon as `stop` is requested, too.
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
