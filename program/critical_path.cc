// Two passes over the log of the simulation. The forward pass determines for every stretch which of those it had to
// wait for ended last. Its start is known, so nothing is simulated again; it is checked that it started when that one
// ended. The backward pass follows these links from the stretch that ends last.
//
// The log omits iterations of the loop that equal one it contains, the typical one. When the path goes from that
// iteration to the previous one, it first has to pass through the omitted iterations: it continues at the same
// instruction of the typical iteration. If it enters an iteration where it entered the following one, it passes
// through both in the same way, and so through all omitted ones at once.
//
// Linear in what is simulated, two or three iterations of the loop. It is computed for a plan that is reported, not
// for those that are tried.
#include "program/critical_path.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>

#include "base/error.h"
#include "program/instruction_table.h"
#include "program/timeline_log.h"

namespace shardplan {
namespace {

using Stretch = TimelineLog::Stretch;

constexpr std::uint32_t kNoStretch = std::numeric_limits<std::uint32_t>::max();

/// By stretch, the one that it waited for; kNoStretch if it waited for none.
class Causes {
 public:
  Causes(const TableOrder& order, const TimelineLog& log)
      : order_(order), log_(log), makers_(order.num_values(), kNoStretch), levels_(32, kNoStretch) {
    causes_.reserve(log.stretches.size());
    for (std::uint32_t number = 0; number < log.stretches.size(); ++number) {
      const Stretch& stretch = log.stretches[number];
      last_ = kNoStretch;
      const InstructionTable::Row& row = order[stretch.place];
      if (row.is_communication) {
        begin_collective(number);
      } else {
        const bool is_kernel = row.is_timed_kernel();
        if (is_kernel) wait_for(kernel_, stretch.begin);
        wait_for_inputs(stretch.place, stretch.begin);
        if (is_kernel) kernel_ = number;
        make_outputs(stretch.place, number);
        if (is_kernel && order.scatters_pieces_behind(stretch.place)) end_scatter(number);
      }
      SHARDPLAN_CHECK(stretch.begin == (last_ == kNoStretch ? 0 : log.stretches[last_].end));
      causes_.push_back(last_);
    }
  }

  std::uint32_t operator[](std::uint32_t stretch) const { return causes_[stretch]; }

 private:
  void begin_collective(std::uint32_t number) {
    const Stretch& stretch = log_.stretches[number];
    const std::size_t end = order_.end_of_bucket(stretch.place);
    wait_for(kernel_, stretch.begin);
    std::uint32_t links = 0;
    for (std::size_t i = stretch.place; i < end; ++i) {
      wait_for_inputs(i, stretch.begin);
      links |= order_[i].links;
    }
    for (; links != 0; links &= links - 1) {
      std::uint32_t& level = levels_[static_cast<std::size_t>(std::countr_zero(links))];
      wait_for(level, stretch.begin);
      level = number;
    }
    for (std::size_t i = stretch.place; i < end; ++i) make_outputs(i, number);
  }

  void wait_for_inputs(std::size_t place, Picoseconds begin) {
    for (const ValueId input : order_.inputs(place)) wait_for(makers_[input], begin);
  }

  /// What still runs is a gather in pieces that starts together with a product; the product then waits for what the
  /// gather waited for.
  void wait_for(std::uint32_t other, Picoseconds begin) {
    if (other != kNoStretch && log_.stretches[other].end > begin) other = causes_[other];
    if (other == kNoStretch) return;
    if (last_ == kNoStretch || log_.stretches[other].end > log_.stretches[last_].end) last_ = other;
  }

  void make_outputs(std::size_t place, std::uint32_t number) {
    for (const ValueId output : order_.outputs(place)) makers_[output] = number;
  }

  /// The result of a product's scatter in pieces is not ready before the product is done.
  void end_scatter(std::uint32_t number) {
    for (const ValueId output : order_.outputs(log_.stretches[number].place + 1)) {
      std::uint32_t& maker = makers_[output];
      if (maker == kNoStretch || log_.stretches[maker].end < log_.stretches[number].end) maker = number;
    }
  }

  const TableOrder& order_;
  const TimelineLog& log_;
  IdVector<ValueId, std::uint32_t> makers_;
  std::vector<std::uint32_t> levels_;  // by level of links: what was issued there last
  std::uint32_t kernel_ = kNoStretch;  // the last one, or its last part
  std::uint32_t last_ = kNoStretch;    // of those that the current stretch waits for
  std::vector<std::uint32_t> causes_;
};

class WalkBack {
 public:
  WalkBack(const TableOrder& order, const TimelineLog& log)
      : order_(order), log_(log), causes_(order, log), time_(log.end), left_out_(log.skipped) {
    path_.shares.resize(order.size());
    if (left_out_ > 0) typical_ = log.runs[log.typical];
  }

  CriticalPath run() {
    std::uint32_t at = last_stretch();
    while (at != kNoStretch && time_ > 0) {
      pass_through(at);
      const std::uint32_t before = causes_[at];
      if (before == kNoStretch) break;
      at = left_out_ > 0 && before < typical_ ? enter_left_out(before) : before;
    }
    if (at != kNoStretch) share_of(at).time += time_;  // of a loop that does not become periodic
    return std::move(path_);
  }

 private:
  /// One stretch in one iteration.
  struct Step {
    std::uint32_t stretch = 0;
    Picoseconds time = 0;
    Picoseconds slowed = 0;
  };

  CriticalPath::Share& share_of(std::uint32_t stretch) {
    return path_.shares[order_.sequence[log_.stretches[stretch].place]];
  }

  /// The stretch that ends last; at a tie a kernel.
  std::uint32_t last_stretch() const {
    std::uint32_t last = kNoStretch;
    for (std::uint32_t number = 0; number < log_.stretches.size(); ++number) {
      const Stretch& stretch = log_.stretches[number];
      const bool is_later = last == kNoStretch || stretch.end > log_.stretches[last].end;
      const bool is_kernel = order_[stretch.place].is_timed_kernel();
      if (is_later || (is_kernel && stretch.end == log_.stretches[last].end)) last = number;
    }
    return last;
  }

  void pass_through(std::uint32_t number) {
    const Stretch& stretch = log_.stretches[number];
    const Picoseconds time = std::min(time_, stretch.end - stretch.begin);
    const Step step{number, time, std::max<Picoseconds>(0, time - stretch.alone)};
    add(step, 1);
    if (left_out_ > 0) steps_.push_back(step);
  }

  void add(const Step& step, std::int64_t times) {
    CriticalPath::Share& share = share_of(step.stretch);
    share.time += times * step.time;
    share.slowed += times * step.slowed;
    time_ -= times * step.time;
  }

  /// Continues in the omitted iterations instead of the previous one; returns the stretch.
  std::uint32_t enter_left_out(std::uint32_t before) {
    while (left_out_ > 0 && before < typical_) {
      before = in_next_run(before);
      --left_out_;
    }
    if (before == entered_) {
      Picoseconds together = 0;
      for (const Step& step : steps_) together += step.time;
      const std::int64_t times = together > 0 ? std::min(left_out_, time_ / together) : 0;
      for (const Step& step : steps_) add(step, times);
      left_out_ -= times;
    }
    entered_ = before;
    steps_.clear();
    return before;
  }

  /// The last stretch of the same instruction in the following iteration.
  std::uint32_t in_next_run(std::uint32_t number) const {
    const auto next = std::upper_bound(log_.runs.begin(), log_.runs.end(), number);
    std::size_t end = next[1];
    while (end > *next && log_.stretches[end - 1].place != log_.stretches[number].place) --end;
    SHARDPLAN_CHECK(end > *next);
    return static_cast<std::uint32_t>(end - 1);
  }

  const TableOrder& order_;
  const TimelineLog& log_;
  const Causes causes_;
  Picoseconds time_;                    // of the step, before the omitted iterations
  std::int64_t left_out_;               // omitted iterations still to be passed through
  std::size_t typical_ = 0;             // where the typical run begins in the log
  std::uint32_t entered_ = kNoStretch;  // the stretch at which the current iteration was entered
  std::vector<Step> steps_;             // in the current iteration
  CriticalPath path_;
};

}  // namespace

CriticalPath critical_path(const ParallelProgram& program) {
  SHARDPLAN_CHECK(program.workers == 1);
  const InstructionTable table(program);
  const TableOrder order(table);
  const TimelineLog log = timeline_log(order);
  return WalkBack(order, log).run();
}

}  // namespace shardplan
