// An event-driven simulation. At any time at most one kernel runs, and on every level of links the first of the
// collectives issued there. Between two events all speeds are constant, so the remaining times decrease linearly;
// they are rounded up once per event.
//
// The micro-batch loop is simulated until two consecutive iterations leave the same collectives equally far behind
// the kernels. From then on every iteration takes as long as the last one, since an iteration depends on the previous
// one through nothing else. This happens after two or three iterations.
//
// A product and a collective in pieces that feeds it or takes its result form a pipeline of p pieces: the first piece
// needs no collective, since every device has its own, and neither does the last one that is scattered. So the
// product starts with the gather, and its last p-th part with the gather's end; a scatter starts when the first p-th
// part of the product is done, and ends no earlier than the product. For a product of time m and a collective of time
// g alone that is m / p + max(g, m (p - 1) / p).
#include "program/overlapped_timeline.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <limits>
#include <span>

#include "base/error.h"
#include "program/instruction_table.h"
#include "program/last_run.h"
#include "program/timeline_log.h"

namespace shardplan {
namespace {

constexpr std::size_t kLevels = 32;
constexpr std::uint32_t kNobody = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t kFullSpeed = 1'000'000;
/// Maximal number of iterations that are simulated; further ones take as long as the last one.
constexpr std::int64_t kMostRuns = 256;

/// work * kFullSpeed / speed, rounded up; no product exceeds 64 bits.
Picoseconds time_needed(Picoseconds work, std::int64_t speed) {
  if (speed == kFullSpeed) return work;
  return work / speed * kFullSpeed + (work % speed * kFullSpeed + speed - 1) / speed;
}

/// time * speed / kFullSpeed, rounded down; no product exceeds 64 bits.
Picoseconds work_done(Picoseconds time, std::int64_t speed) {
  if (speed == kFullSpeed) return time;
  return time / kFullSpeed * speed + time % kFullSpeed * speed / kFullSpeed;
}

class Streams {
 public:
  /// `log`: receives everything that runs; null: no log.
  explicit Streams(const TableOrder& order, TimelineLog* log = nullptr)
      : order_(order),
        log_(log),
        loop_(order.table->loop()),
        micro_batches_(order.table->program().micro_batches),
        speeds_together_(order.table->program().speeds_together),
        early_(issued_in_last_run(order)),
        ready_(order.num_values()),
        pending_(order.num_values(), kNobody),
        queues_(kLevels),
        links_(kLevels) {
    result_.spans.resize(order.size());
    result_.link_busy.resize(kLevels, 0);
    was_issued_.resize(order.size(), 0);
  }

  OverlappedTimeline run() {
    const std::int64_t last_runs = early_.empty() ? 0 : 1;
    std::int64_t left = loop_ > 0 ? micro_batches_ - last_runs : 0;
    std::vector<Picoseconds> lags;
    const auto run_loop = [&] {
      if (log_ != nullptr) log_->runs.push_back(log_->stretches.size());
      run(0, loop_);
      --left;
    };
    for (std::int64_t number = 0; left > 0; ++number) {
      const Picoseconds began = now_;
      run_loop();
      std::vector<Picoseconds> behind = work_behind();
      if ((behind == lags && number > 0) || number + 1 == kMostRuns) {
        const Picoseconds time = now_ - began;
        if (log_ != nullptr) {
          log_->typical = log_->runs.size() - 1;
          const std::size_t end_of_typical = log_->stretches.size();
          while (left > 0 && behind == lags && is_under_way_before(end_of_typical)) run_loop();
          log_->skipped = left;
        }
        skip(left * time);
        left = 0;
      }
      lags = std::move(behind);
    }
    if (log_ != nullptr) log_->runs.push_back(log_->stretches.size());
    is_last_run_ = true;
    if (!early_.empty()) {
      result_.last_run.resize(loop_, 0);
      run(0, loop_);
    }
    run(early_.empty() ? loop_ : early_.back().end, order_.size());
    while (advance(nullptr)) {
    }
    result_.end = kernels_;
    for (const Picoseconds link : links_) result_.end = std::max(result_.end, link);
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const InstructionTable::Row& row = order_[i];
      const bool is_computed = row.kind == InstructionKind::kOperator || row.kind == InstructionKind::kConstant;
      if (is_computed) result_.computation += row.time * row.runs;
    }
    while (!result_.link_busy.empty() && result_.link_busy.back() == 0) result_.link_busy.pop_back();
    if (log_ != nullptr) log_->end = result_.end;
    return std::move(result_);
  }

 private:
  /// A collective that was issued, or an instruction without duration that waits for one (no links, no time left).
  struct Flight {
    std::size_t begin = 0, end = 0;  // instructions
    Picoseconds left = 0;
    std::uint32_t links = 0;
    std::int64_t speed = kFullSpeed;  // beside a kernel
    Picoseconds needed = 0;           // scratch of `advance`: time until it ends
    std::size_t waits = 0;            // inputs that are not ready yet
    std::vector<std::uint32_t> dependents;
    std::uint32_t logged = 0;  // its position in the log
    Picoseconds after = 0;     // when the last of what it waited for ended
    bool has_spans = false;    // the first run of its instructions
    bool has_begun = false;
  };

  /// A gather in pieces that a product reads while it runs: the rest of the product that needs its last piece.
  struct LastPiece {
    Picoseconds rest = 0;
    ValueId input;
  };

  void run(std::size_t begin, std::size_t end) {
    std::size_t early = is_last_run_ && begin < loop_ ? 0 : early_.size();
    for (std::size_t i = begin; i < end;) {
      std::size_t next = i + 1;
      const InstructionTable::Row& row = order_[i];
      if (row.is_communication) {
        next = std::min(order_.end_of_bucket(i), end);
        communicate(i, next, kernels_);
      } else if (row.is_timed_kernel()) {
        const bool scatters = order_.scatters_pieces_behind(i) && next < end;
        compute(i, scatters);
        if (scatters) ++next;
      } else {
        issue(i, next, row.time, 0, 0);
      }
      i = next;
      for (; early < early_.size() && early_[early].after <= i; ++early)
        communicate(early_[early].begin, early_[early].end, kernels_);
    }
  }

  /// `scatters`: the next instruction scatters the result in pieces.
  void compute(std::size_t i, bool scatters) {
    const std::span<const ValueId> inputs = order_.inputs(i);
    const auto begins_with = [&](ValueId input) {
      const std::uint32_t flight = pending_[input];
      const InstructionTable::Row& gather = order_[flights_[flight].begin];
      return order_[i].is_product && gather.pieces > 1 && gather.is_collective(CollectiveKind::kAllGather) &&
             flights_[flight].has_begun;
    };
    for (const ValueId input : inputs) {
      while (pending_[input] != kNobody && !begins_with(input)) SHARDPLAN_CHECK(advance(nullptr));
    }
    const Picoseconds time = order_[i].time;
    gathers_.clear();
    for (const ValueId input : inputs) {
      const std::uint32_t flight = pending_[input];
      if (flight != kNobody) gathers_.push_back({time / order_[flights_[flight].begin].pieces, input});
    }
    std::stable_sort(gathers_.begin(), gathers_.end(),
                     [](const LastPiece& a, const LastPiece& b) { return a.rest > b.rest; });
    const Picoseconds began = now_;
    Picoseconds left = time;
    const auto run_until = [&](Picoseconds rest) {
      const Picoseconds from = now_, all = left - rest;
      for (Picoseconds work = all; work > 0;) advance(&work);
      left = rest;
      if (log_ != nullptr) log_->stretches.push_back({logged(from), logged(now_), all, static_cast<std::uint32_t>(i)});
    };
    if (scatters) {
      run_until(time - time / order_[i + 1].pieces);
      communicate(i + 1, i + 2, now_);
    }
    run_until(gathers_.empty() ? 0 : gathers_.front().rest);
    bool waits = false;
    for (const LastPiece& piece : gathers_) {
      if (piece.rest < left) run_until(piece.rest);
      for (; pending_[piece.input] != kNobody; waits = true) SHARDPLAN_CHECK(advance(nullptr));
    }
    if (waits || left > 0) run_until(0);
    if (i < result_.last_run.size()) result_.last_run[i] = began;
    if (!was_issued_[i]) {
      result_.spans[i] = {began, now_};
      was_issued_[i] = 1;
    }
    kernels_ = now_;
    for (const ValueId output : order_.outputs(i)) {
      ready_[output] = kernels_;
      pending_[output] = kNobody;
    }
    if (!scatters) return;
    for (const ValueId output : order_.outputs(i + 1)) {
      if (pending_[output] == kNobody) ready_[output] = std::max(ready_[output], now_);
    }
    // Its span may still grow if it continues.
    result_.spans[i + 1].end = std::max(result_.spans[i + 1].end, result_.spans[i].end);
  }

  void communicate(std::size_t begin, std::size_t end, Picoseconds after) {
    const InstructionTable::Row& first = order_[begin];
    const std::uint32_t bucket = order_.fusion[begin];
    std::uint32_t links = 0;
    for (std::size_t i = begin; i < end; ++i) links |= order_[i].links;
    SHARDPLAN_CHECK(bucket <= order_.buckets.size());
    const Picoseconds time = bucket > 0 ? order_.buckets[bucket - 1].time : first.time;
    if (!was_issued_[begin]) {
      result_.communication += time * first.runs;
      for_each_level(links, [&](std::size_t level) { result_.link_busy[level] += time * first.runs; });
    }
    issue(begin, end, time, links, after);
  }

  void issue(std::size_t begin, std::size_t end, Picoseconds time, std::uint32_t links, Picoseconds after) {
    auto number = static_cast<std::uint32_t>(flights_.size());
    if (free_.empty()) {
      flights_.emplace_back();
    } else {
      number = free_.back();
      free_.pop_back();
    }
    Flight& flight = flights_[number];  // its list of dependents is empty
    flight.begin = begin;
    flight.end = end;
    flight.left = time;
    flight.links = links;
    flight.speed = speed_of(links, &SpeedsTogether::collectives_ppm);
    flight.waits = 0;
    flight.after = after;
    flight.has_spans = was_issued_[begin] == 0;
    flight.has_begun = false;
    if (log_ != nullptr) {
      flight.logged = static_cast<std::uint32_t>(log_->stretches.size());
      log_->stretches.push_back({0, 0, time, static_cast<std::uint32_t>(begin)});
    }
    for (std::size_t i = begin; i < end; ++i) {
      was_issued_[i] = 1;
      for (const ValueId input : order_.inputs(i)) {
        if (pending_[input] == kNobody) {
          flight.after = std::max(flight.after, ready_[input]);
        } else {
          ++flight.waits;
          flights_[pending_[input]].dependents.push_back(number);
        }
      }
    }
    for (std::size_t i = begin; i < end; ++i) {
      for (const ValueId output : order_.outputs(i)) pending_[output] = number;
    }
    for_each_level(links, [&](std::size_t level) { queues_[level].push_back(number); });
    begin_if_possible(number);
  }

  /// Starts it if its inputs are ready and its links are free; ends it at once if it takes no time.
  void begin_if_possible(std::uint32_t first) {
    tried_.push_back(first);
    while (!tried_.empty()) {
      const std::uint32_t number = tried_.back();
      tried_.pop_back();
      Flight& flight = flights_[number];
      if (flight.waits > 0 || flight.has_begun) continue;
      bool is_free = true;
      for_each_level(flight.links, [&](std::size_t level) {
        is_free = is_free && queues_[level].front() == number;
        flight.after = std::max(flight.after, links_[level]);
      });
      if (!is_free) continue;
      flight.has_begun = true;
      if (log_ != nullptr) log_->stretches[flight.logged].begin = logged(flight.after);
      for (std::size_t i = flight.begin; flight.has_spans && i < flight.end; ++i) {
        result_.spans[i] = {flight.after, flight.after};
      }
      if (flight.left > 0) {
        active_.push_back(number);
      } else {
        end(number, flight.after, tried_);
      }
    }
  }

  /// `tried` receives the flights that may start now.
  void end(std::uint32_t number, Picoseconds time, std::vector<std::uint32_t>& tried) {
    Flight& flight = flights_[number];
    if (log_ != nullptr) log_->stretches[flight.logged].end = logged(time);
    for (std::size_t i = flight.begin; i < flight.end; ++i) {
      if (flight.has_spans) result_.spans[i].end = time;
      for (const ValueId output : order_.outputs(i)) {
        if (pending_[output] != number) continue;
        ready_[output] = time;
        pending_[output] = kNobody;
      }
    }
    for_each_level(flight.links, [&](std::size_t level) {
      links_[level] = time;
      queues_[level].pop_front();
      if (!queues_[level].empty()) tried.push_back(queues_[level].front());
    });
    for (const std::uint32_t dependent : flight.dependents) {
      flights_[dependent].after = std::max(flights_[dependent].after, time);
      if (--flights_[dependent].waits == 0) tried.push_back(dependent);
    }
    flight.dependents.clear();
    free_.push_back(number);
  }

  /// Advances to the next end of a kernel or collective; false if nothing runs. `kernel` is the remaining time of the
  /// running kernel.
  bool advance(Picoseconds* kernel) {
    if (kernel == nullptr && active_.empty()) return false;
    std::uint32_t busy = 0;
    for (const std::uint32_t number : active_) busy |= flights_[number].links;
    const std::int64_t kernel_speed = speed_of(busy, &SpeedsTogether::kernels_ppm);
    const Picoseconds of_kernel =
        kernel == nullptr ? std::numeric_limits<Picoseconds>::max() : time_needed(*kernel, kernel_speed);
    Picoseconds step = of_kernel;
    for (const std::uint32_t number : active_) {
      Flight& flight = flights_[number];
      flight.needed = kernel == nullptr ? flight.left : time_needed(flight.left, flight.speed);
      step = std::min(step, flight.needed);
    }
    now_ += step;
    if (kernel != nullptr) *kernel = of_kernel == step ? 0 : *kernel - work_done(step, kernel_speed);
    ended_.clear();
    for (const std::uint32_t number : active_) {
      Flight& flight = flights_[number];
      const bool is_over = flight.needed == step;
      flight.left = is_over ? 0 : flight.left - (kernel == nullptr ? step : work_done(step, flight.speed));
      if (is_over) ended_.push_back(number);
    }
    if (ended_.empty()) return true;
    std::erase_if(active_, [&](std::uint32_t number) { return flights_[number].left == 0; });
    for (const std::uint32_t number : ended_) {
      freed_.clear();
      end(number, now_, freed_);
      for (const std::uint32_t other : freed_) begin_if_possible(other);
    }
    return true;
  }

  /// The minimum over the levels in use.
  std::int64_t speed_of(std::uint32_t links, std::int64_t SpeedsTogether::*which) const {
    std::int64_t least = kFullSpeed;
    for (std::size_t level = 0; level < speeds_together_.size(); ++level) {
      if ((links >> level & 1) != 0) least = std::min(least, speeds_together_[level].*which);
    }
    return least;
  }

  template <class Do>
  static void for_each_level(std::uint32_t links, const Do& act) {
    for (; links != 0; links &= links - 1) act(static_cast<std::size_t>(std::countr_zero(links)));
  }

  /// Whether something before that position of the log is issued and not finished.
  bool is_under_way_before(std::size_t end) const {
    return std::any_of(queues_.begin(), queues_.end(), [&](const std::deque<std::uint32_t>& queue) {
      return !queue.empty() && flights_[queue.front()].logged < end;
    });
  }

  /// The remaining time of the flights issued and not finished, by level.
  std::vector<Picoseconds> work_behind() const {
    std::vector<Picoseconds> work;
    for (const std::deque<std::uint32_t>& queue : queues_) {
      for (const std::uint32_t number : queue) work.push_back(flights_[number].left);
      work.push_back(-1);
    }
    return work;
  }

  /// Advances time by the iterations that are not simulated.
  void skip(Picoseconds time) {
    skipped_ += time;
    now_ += time;
    kernels_ += time;
    for (Picoseconds& link : links_) link += time;
    for (Picoseconds& value : ready_) value += time;
    for (Flight& flight : flights_) flight.after += time;
  }

  /// A time without the iterations that are not simulated.
  Picoseconds logged(Picoseconds time) const { return std::max<Picoseconds>(0, time - skipped_); }

  const TableOrder& order_;
  TimelineLog* const log_;
  const std::size_t loop_;
  const std::int64_t micro_batches_;
  const std::vector<SpeedsTogether>& speeds_together_;
  std::vector<LastRunCollective> early_;
  bool is_last_run_ = false;
  Picoseconds now_ = 0;                       // clock of the kernel stream
  Picoseconds skipped_ = 0;                   // part of `now_` that was not simulated
  IdVector<ValueId, Picoseconds> ready_;      // when the value is ready
  IdVector<ValueId, std::uint32_t> pending_;  // the flight that computes the value; kNobody: it is ready
  std::vector<Flight> flights_;
  std::vector<std::uint32_t> free_;                   // free positions in `flights_`
  std::vector<std::uint32_t> active_;                 // flights that run
  std::vector<std::uint32_t> tried_, ended_, freed_;  // scratch of `begin_if_possible` and `advance`
  std::vector<LastPiece> gathers_;                    // scratch of `compute`: longest rest first
  std::vector<std::deque<std::uint32_t>> queues_;     // by level: flights that are issued and not finished
  Picoseconds kernels_ = 0;                           // when the last kernel ended
  std::vector<Picoseconds> links_;                    // by level: when the last flight that used it ended
  std::vector<char> was_issued_;                      // by instruction
  OverlappedTimeline result_;
};

}  // namespace

OverlappedTimeline overlapped_timeline(const TableOrder& order) { return Streams(order).run(); }

TimelineLog timeline_log(const TableOrder& order) {
  TimelineLog log;
  log.stretches.reserve(order.size());
  Streams(order, &log).run();
  return log;
}

OverlappedTimeline overlapped_timeline(const ParallelProgram& program) {
  const InstructionTable table(program);
  return overlapped_timeline(TableOrder(table));
}

}  // namespace shardplan
