#include "solver/periodic_times.h"

#include <cstddef>

namespace shardplan {
namespace {

/// The times from `begin` to `end` repeat with this period.
struct Stretch {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t period = 0;
};

class Stretches {
 public:
  explicit Stretches(std::span<const std::uint32_t> changes) : changes_(changes), is_taken_(changes.size(), 0) {}

  /// Those of at least three periods that do not touch any found before.
  void find(std::size_t period) {
    const std::size_t count = changes_.size();
    for (std::size_t begin = 0; begin + period < count;) {
      std::size_t end = begin;  // end of the times that equal those one period later
      while (end + period < count && changes_[end] == changes_[end + period] && is_taken_[end + period] == 0 &&
             is_taken_[end] == 0) {
        ++end;
      }
      if (end - begin > 2 * period) {
        found_.push_back({begin, end + period, period});
        for (std::size_t time = begin; time < end + period; ++time) is_taken_[time] = 1;
        end += period;
      }
      begin = end + 1;
    }
  }

  const std::vector<Stretch>& found() const { return found_; }

 private:
  std::span<const std::uint32_t> changes_;
  std::vector<char> is_taken_;
  std::vector<Stretch> found_;
};

}  // namespace

PeriodicTimes periodic_times(std::span<const std::uint32_t> changes, std::span<const std::uint32_t> periods) {
  Stretches stretches(changes);
  for (const std::uint32_t period : periods) {
    if (period > 0) stretches.find(period);
  }
  constexpr std::uint32_t kLeftOut = UINT32_MAX;
  std::vector<std::uint32_t> position(changes.size(), 0);
  for (const Stretch& stretch : stretches.found()) {
    for (std::size_t time = stretch.begin + stretch.period; time + stretch.period < stretch.end; ++time) {
      position[time] = kLeftOut;
    }
  }
  PeriodicTimes result;
  for (std::size_t time = 0; time < changes.size(); ++time) {
    if (position[time] == kLeftOut) continue;
    position[time] = static_cast<std::uint32_t>(result.kept.size());
    result.kept.push_back(static_cast<std::uint32_t>(time));
  }
  for (const std::uint32_t at : position) result.between.emplace_back(at, at);
  for (const Stretch& stretch : stretches.found()) {
    const std::size_t last = stretch.end - stretch.period;
    for (std::size_t time = stretch.begin + stretch.period; time < last; ++time) {
      const std::size_t phase = (time - stretch.begin) % stretch.period;
      const std::size_t phase_of_last = (last - stretch.begin) % stretch.period;
      const std::size_t before = stretch.begin + phase;
      const std::size_t after = last + (phase + stretch.period - phase_of_last) % stretch.period;
      result.between[time] = {position[before], position[after]};
    }
  }
  return result;
}

}  // namespace shardplan
