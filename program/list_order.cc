// List scheduling is simulated: whenever a kernel or a collective ends, instructions that no longer wait for anything
// are added to the list of their stream, and every free stream takes the first of its list. Scheduling backwards from
// the end of the step does the same with all dependencies reversed. The result then starts everything as late as
// possible, so only the order of the kernels and of each link is kept, and everything is issued as early as these
// orders allow.
//
// An order whose times are known is rescheduled in the same way, with these times as priorities instead of longest
// paths; or by the serial scheme, which places one instruction after the other into the gaps that are left. A parallel
// schedule starts a long gather on links that are idle for a moment, and an activation that kernels wait for then
// comes after it; a serial one does not, but may leave links idle. Neither is better in general.
#include "program/list_order.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <queue>
#include <set>
#include <utility>

#include "base/short_vector.h"
#include "program/busy_intervals.h"

namespace shardplan {
namespace {

constexpr std::uint32_t kGiven = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t kNoMember = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t kFirstCollective = std::uint32_t{1} << 31;  // programs are shorter than that
constexpr std::size_t kNumLinkLevels = 32;

enum class Direction { kForwards, kBackwards };

/// Lists of instructions, one per instruction, in two flat tables.
class Lists {
 public:
  Lists() = default;
  /// For each `key` of the pairs its `value`s, in the order of the pairs.
  Lists(std::size_t count, const std::vector<std::array<std::uint32_t, 2>>& pairs, std::size_t key, std::size_t value)
      : first_(count + 1, 0), items_(pairs.size()) {
    for (const auto& pair : pairs) ++first_[pair[key] + 1];
    for (std::size_t i = 0; i < count; ++i) first_[i + 1] += first_[i];
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    for (const auto& pair : pairs) items_[next[pair[key]]++] = pair[value];
  }
  std::span<const std::uint32_t> operator[](std::size_t i) const {
    return std::span(items_).subspan(first_[i], first_[i + 1] - first_[i]);
  }

 private:
  std::vector<std::uint32_t> first_, items_;
};

class ListScheduling {
 public:
  ListScheduling(const InstructionTable& table, Direction direction)
      : table_(table), is_backwards_(direction == Direction::kBackwards) {
    const std::size_t count = table.size();
    first_member_.resize(count);
    std::iota(first_member_.begin(), first_member_.end(), std::uint32_t{0});
    next_member_.resize(count, kNoMember);
    time_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) time_.push_back(table[i].time);
    add_orders();
    // Producers come before their readers.
    urgency_.resize(count, 0);
    for (std::size_t n = 0; n < count; ++n) {
      const std::size_t i = is_backwards_ ? n : count - 1 - n;
      for (const std::size_t next : nexts(i)) urgency_[i] = std::max(urgency_[i], urgency_[next]);
      urgency_[i] += time_[i];
    }
  }

  ListScheduling(const InstructionTable& table, Direction direction, Justification how, const TimedOrder& timed)
      : table_(table),
        is_backwards_(direction == Direction::kBackwards),
        recomputation_(how.recomputation),
        scheme_(how.scheme),
        places_gathers_(true) {
    const std::size_t count = table.size();
    first_member_.resize(count);
    next_member_.resize(count, kNoMember);
    time_.resize(count);
    urgency_.resize(count);
    struct Bucket {
      std::uint32_t first = kNoMember, last = kNoMember;
    };
    std::vector<Bucket> buckets(*std::max_element(timed.order.buckets.begin(), timed.order.buckets.end()) + 1);
    for (std::size_t place = 0; place < count; ++place) {
      const std::uint32_t i = timed.order.sequence[place];
      const OverlappedTimeline::Span& span = timed.spans[place];
      time_[i] = table[i].time > 0 ? span.end - span.begin : 0;
      urgency_[i] = is_backwards_ ? span.end : -span.begin;
      first_member_[i] = i;
      if (timed.order.buckets[i] == 0) continue;
      Bucket& bucket = buckets[timed.order.buckets[i]];
      if (bucket.first == kNoMember) {
        bucket.first = i;
      } else {
        next_member_[bucket.last] = i;
      }
      bucket.last = i;
      first_member_[i] = bucket.first;
    }
    add_orders();
  }

  std::vector<std::uint32_t> run() {
    sequence_.reserve(table_.size());
    run(0, table_.loop());
    run(table_.loop(), table_.size());
    return std::move(sequence_);
  }

 private:
  /// Most urgent first, then in the given order.
  struct MoreUrgent {
    const std::vector<Picoseconds>* urgency = nullptr;
    bool operator()(std::size_t a, std::size_t b) const {
      const Picoseconds of_a = (*urgency)[a], of_b = (*urgency)[b];
      return of_a != of_b ? of_a > of_b : a < b;
    }
  };
  struct LessUrgent {
    MoreUrgent more;
    bool operator()(std::size_t a, std::size_t b) const { return more(b, a); }
  };
  /// The most urgent on top.
  using Ready = std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, LessUrgent>;
  using End = std::pair<Picoseconds, std::uint32_t>;

  bool is_kernel(std::size_t i) const { return table_[i].is_timed_kernel(); }
  bool is_timed_collective(std::size_t i) const { return table_[i].is_communication && table_[i].time > 0; }

  void add_orders() {
    const std::size_t count = table_.size();
    producer_ = IdVector<ValueId, std::uint32_t>(table_.num_values(), kGiven);
    std::size_t num_inputs = 0;
    for (std::size_t i = 0; i < count; ++i) {
      for (const ValueId output : table_.outputs(i)) producer_[output] = static_cast<std::uint32_t>(i);
      num_inputs += table_.inputs(i).size();
    }
    orders_.reserve(num_inputs);
    is_lazy_.resize(count, 0);
    is_emitted_.resize(count, 0);
    for (std::size_t i = 0; i < count; ++i) {
      const bool is_placed = is_kernel(i) || (places_gathers_ && is_timed_collective(i));
      bool all_given = true;
      for (const ValueId input : table_.inputs(i)) {
        const std::uint32_t producer = producer_[input];
        if (producer == kGiven) continue;
        add_order(producer, i);
        all_given = all_given && is_lazy_[producer] != 0;
      }
      is_lazy_[i] = !is_placed && all_given;
    }
    for (const auto& [before, after] : overwrites()) add_order(before, after);
    delay_copies();
    before_ = Lists(count, orders_, 1, 0);
    behind_ = Lists(count, orders_, 0, 1);
    orders_ = {};
  }

  void add_order(std::size_t one, std::size_t other) { orders_.push_back({first_member_[one], first_member_[other]}); }
  /// What is scheduled after it: the instructions that wait for it; backwards, those it waits for.
  std::span<const std::uint32_t> nexts(std::size_t i) const { return is_backwards_ ? before_[i] : behind_[i]; }
  std::span<const std::uint32_t> previous(std::size_t i) const { return is_backwards_ ? behind_[i] : before_[i]; }

  /// The readers of a stored value, directly or gathered, and the instruction that overwrites it.
  std::vector<std::array<std::uint32_t, 2>> overwrites() const {
    // Only given values and what is made of them are followed: a tenth of all values.
    IdVector<ValueId, std::uint32_t> place(table_.num_values(), kGiven);
    std::vector<ShortVector<std::uint32_t>> readers;
    for (std::size_t i = table_.size(); i-- > 0;) {
      for (const ValueId input : table_.inputs(i)) {
        if (producer_[input] != kGiven && is_lazy_[producer_[input]] == 0) continue;
        if (place[input] == kGiven) {
          place[input] = static_cast<std::uint32_t>(readers.size());
          readers.emplace_back();
        }
        ShortVector<std::uint32_t>& known = readers[place[input]];
        if (is_lazy_[i] == 0) {
          known.push_back(static_cast<std::uint32_t>(i));
          continue;
        }
        for (const ValueId output : table_.outputs(i)) {
          if (place[output] == kGiven) continue;
          for (const std::uint32_t reader : readers[place[output]]) known.push_back(reader);
        }
      }
    }
    const std::size_t loop = table_.loop();
    std::vector<std::array<std::uint32_t, 2>> result;
    for (const Binding& update : table_.program().updates) {
      const std::uint32_t writer = producer_[update.value];
      const std::optional<ValueId> old = table_.old_value(update.value);
      if (writer == kGiven || is_lazy_[writer] != 0 || !old || place[*old] == kGiven) continue;
      for (const std::uint32_t reader : readers[place[*old]]) {
        if (reader < writer && (reader < loop) == (writer < loop)) result.push_back({reader, writer});
      }
    }
    return result;
  }

  /// A copy waits for the gradient that the backward pass brings to its block, or to the previous block: for the last
  /// kernels before the first one that reads both. It may overlap with the collectives after these, but not start
  /// earlier: otherwise all blocks could be recomputed, and held, at the same time.
  void delay_copies() {
    std::vector<char> is_again(table_.size(), 0);  // a copy, or a view or collective result of one
    std::vector<std::size_t> first_copies;         // of one block: copies that read no other copy
    std::vector<std::size_t> of_block_before;      // what the gradient of the previous block waits for
    bool is_read = false;
    for (std::size_t i = 0; i < table_.size(); ++i) {
      bool reads_copy = false;
      for (const ValueId input : table_.inputs(i)) {
        reads_copy |= producer_[input] != kGiven && is_again[producer_[input]] != 0;
      }
      is_again[i] = table_.program().instructions[i].is_copy || (reads_copy && !is_kernel(i));
      if (is_again[i] != 0 && !reads_copy && is_lazy_[i] == 0) {
        if (std::exchange(is_read, false)) first_copies.clear();
        first_copies.push_back(i);
      } else if (is_again[i] == 0 && reads_copy && !std::exchange(is_read, true)) {
        std::vector<std::size_t> waited_for = last_kernels_before(i, is_again);
        if (recomputation_ == Recomputation::kOneBlockAhead && !waited_for.empty()) {
          const bool is_first = of_block_before.empty();
          std::swap(waited_for, of_block_before);
          if (is_first) waited_for = of_block_before;
        }
        for (const std::size_t before : waited_for) {
          for (const std::size_t copy : first_copies) {
            if (before < copy) add_order(before, copy);
          }
        }
      }
    }
  }

  /// The backward kernels that `reader` waits for, through collectives and views, without recomputation.
  std::vector<std::size_t> last_kernels_before(std::size_t reader, const std::vector<char>& is_again) const {
    std::vector<std::size_t> found, open{reader};
    std::set<std::size_t> seen;
    while (!open.empty()) {
      const std::size_t i = open.back();
      open.pop_back();
      for (const ValueId input : table_.inputs(i)) {
        const std::uint32_t producer = producer_[input];
        if (producer == kGiven || is_again[producer] != 0) continue;
        if (table_.program().instructions[producer].pass != Pass::kBackward) continue;
        if (is_lazy_[producer] != 0 || !seen.insert(producer).second) continue;
        (is_kernel(producer) ? found : open).push_back(producer);
      }
    }
    return found;
  }

  void run(std::size_t begin, std::size_t end) {
    missing_.assign(table_.size(), 0);
    placed_.clear();
    placed_.reserve(end - begin);
    begin_ = begin;
    end_ = end;
    std::vector<std::uint32_t> first;  // that wait for nothing
    for (std::size_t i = begin; i < end; ++i) {
      if (!is_scheduled(i)) continue;
      for (const std::size_t one : previous(i)) missing_[i] += is_scheduled(one) ? 1 : 0;
      if (missing_[i] == 0) first.push_back(static_cast<std::uint32_t>(i));
    }
    if (scheme_ == ScheduleScheme::kSerial) {
      place_in_gaps(first);
    } else {
      place_when_free(first);
    }
    std::sort(placed_.begin(), placed_.end());
    if (is_backwards_) {
      emit_early();
    } else {
      for (const Placed& one : placed_) emit(one.instruction);
    }
    for (std::size_t i = begin; i < end; ++i) emit(i);
  }

  /// The parallel scheme.
  void place_when_free(const std::vector<std::uint32_t>& first) {
    kernels_ = no_ready();
    collectives_.clear();
    std::array<Picoseconds, kNumLinkLevels> free_at{};
    now_ = 0;
    for (const std::uint32_t i : first) make_ready(i);
    std::priority_queue<End, std::vector<End>, std::greater<>> ends;
    Picoseconds kernel_ends = 0;
    for (;;) {
      while (Ready* ready = first_that_can_begin(free_at, now_)) {
        const std::uint32_t next = ready->top();
        ready->pop();
        const Picoseconds over = now_ + time_[next];
        for_each_link(next, [&](std::size_t link) { free_at[link] = over; });
        ends.emplace(over, next);
        place(next, now_);
      }
      if (kernel_ends <= now_ && !kernels_.empty()) {
        const std::uint32_t next = kernels_.top();
        kernels_.pop();
        kernel_ends = now_ + time_[next];
        ends.emplace(kernel_ends, next);
        place(next, now_);
      }
      if (ends.empty()) break;
      now_ = ends.top().first;
      while (!ends.empty() && ends.top().first == now_) {
        const std::uint32_t ended = ends.top().second;
        ends.pop();
        end_of(ended);
      }
    }
  }

  /// The serial scheme.
  void place_in_gaps(const std::vector<std::uint32_t>& first) {
    Ready ready = no_ready();
    for (const std::uint32_t i : first) ready.push(i);
    std::vector<Picoseconds> over(table_.size(), 0);
    BusyIntervals kernels;
    std::array<BusyIntervals, kNumLinkLevels> links;
    while (!ready.empty()) {
      const std::uint32_t i = ready.top();
      ready.pop();
      Picoseconds begin = 0;
      for (const std::size_t one : previous(i)) {
        if (is_scheduled(one)) begin = std::max(begin, over[one]);
      }
      if (is_kernel(i)) {
        begin = kernels.first_gap(begin, time_[i]);
        kernels.add(begin, begin + time_[i]);
      } else if (is_timed_collective(i)) {
        for (Picoseconds before = -1; before != begin;) {
          before = begin;
          for_each_link(i, [&](std::size_t link) { begin = links[link].first_gap(begin, time_[i]); });
        }
        for_each_link(i, [&](std::size_t link) { links[link].add(begin, begin + time_[i]); });
      }
      over[i] = begin + (is_kernel(i) || is_timed_collective(i) ? time_[i] : 0);
      place(i, begin);
      for (const std::uint32_t next : nexts(i)) {
        if (is_scheduled(next) && missing_[next] > 0 && --missing_[next] == 0) ready.push(next);
      }
    }
  }

  template <class Act>
  void for_each_link(std::size_t i, const Act& act) const {
    for (std::uint32_t links = table_[i].links; links != 0; links &= links - 1) {
      act(static_cast<std::size_t>(std::countr_zero(links)));
    }
  }

  /// A collective is issued when it starts, before the kernel that runs at that time; a kernel is placed at its end.
  void place(std::uint32_t i, Picoseconds begin) {
    const bool is_collective = is_timed_collective(i);
    const bool takes_time = is_collective || is_kernel(i);
    const Picoseconds end = begin + (takes_time ? time_[i] : 0);
    const Picoseconds time = is_backwards_ ? -(is_collective ? end : begin) : (is_collective ? begin : end);
    const auto number = static_cast<std::uint32_t>(placed_.size());
    placed_.push_back({time, is_collective ? kFirstCollective + number : number, i});
  }

  /// Counted from the end, everything starts as late as possible. Kernels keep their order. A collective is issued
  /// once its inputs are ready and those before it on its links are issued; instructions that take no time at once.
  /// Gathers of stored tensors, whose inputs are always ready, are issued before the kernel during which they start.
  void emit_early() {
    missing_.assign(table_.size(), 0);
    for (std::size_t i = begin_; i < end_; ++i) {
      for (const std::size_t one : before_[i]) missing_[i] += is_scheduled(one) ? 1 : 0;
    }
    std::vector<std::size_t> waiting;  // collectives, in the order of their links
    std::uint32_t all_links = 0;
    for (const Placed& one : placed_) {
      if (!one.is_collective()) continue;
      waiting.push_back(one.instruction);
      all_links |= table_[one.instruction].links;
    }
    std::vector<char> is_held(table_.size(), 0);
    for (const std::size_t i : waiting) is_held[i] = reads_given(i);
    std::size_t first_waiting = 0;
    std::size_t seen = sequence_.size();
    const auto emit_what_can = [&] {
      for (bool goes_on = true; goes_on;) {
        for (; seen < sequence_.size(); ++seen) {
          for (const std::size_t next : behind_[sequence_[seen]]) {
            if (!is_scheduled(next) || !is_scheduled(sequence_[seen])) continue;
            if (--missing_[next] == 0 && !is_kernel(next) && !is_timed_collective(next)) emit(next);
          }
        }
        goes_on = false;
        std::uint32_t blocked = 0;
        for (std::size_t w = first_waiting; w < waiting.size() && blocked != all_links; ++w) {
          const std::size_t i = waiting[w];
          if (is_emitted_[i] != 0) continue;
          if (missing_[i] == 0 && is_held[i] == 0 && (table_[i].links & blocked) == 0) {
            emit(i);
            goes_on = true;
          } else {
            blocked |= table_[i].links;
          }
        }
        while (first_waiting < waiting.size() && is_emitted_[waiting[first_waiting]] != 0) ++first_waiting;
      }
    };
    for (const Placed& one : placed_) {
      is_held[one.instruction] = 0;
      if (!is_kernel(one.instruction)) continue;
      emit_what_can();
      emit(one.instruction);
    }
    emit_what_can();
    for (const std::size_t i : waiting) emit(i);
  }

  /// The collectives whose first one comes before all others with free links; null if there are none.
  Ready* first_that_can_begin(const std::array<Picoseconds, kNumLinkLevels>& free_at, Picoseconds now) {
    Ready* first = nullptr;
    for (auto& [links, ready] : collectives_) {
      bool is_free = !ready.empty();
      for (std::uint32_t left = links; is_free && left != 0; left &= left - 1) {
        is_free = free_at[static_cast<std::size_t>(std::countr_zero(left))] <= now;
      }
      if (!is_free) continue;
      if (first == nullptr || MoreUrgent{&urgency_}(ready.top(), first->top())) first = &ready;
    }
    return first;
  }
  Ready no_ready() const { return Ready(LessUrgent{{&urgency_}}); }

  /// Whether its operands are given, or computed from given values only.
  bool reads_given(std::size_t i) const {
    return std::all_of(before_[i].begin(), before_[i].end(), [&](std::size_t one) { return is_lazy_[one] != 0; });
  }

  bool is_scheduled(std::size_t i) const {
    return i >= begin_ && i < end_ && is_lazy_[i] == 0 && first_member_[i] == i;
  }

  void make_ready(std::uint32_t first) {
    open_.push_back(first);
    while (!open_.empty()) {
      const std::uint32_t i = open_.back();
      open_.pop_back();
      if (is_kernel(i)) {
        kernels_.push(i);
      } else if (is_timed_collective(i)) {
        collectives_.try_emplace(table_[i].links, no_ready()).first->second.push(i);
      } else {  // takes no time
        place(i, now_);
        add_unblocked(i, open_);
      }
    }
  }

  void end_of(std::size_t i) {
    unblocked_.clear();
    add_unblocked(i, unblocked_);
    for (const std::uint32_t next : unblocked_) make_ready(next);
  }

  /// Adds instructions that waited only for this one.
  void add_unblocked(std::size_t done, std::vector<std::uint32_t>& ready) {
    for (const std::uint32_t next : nexts(done)) {
      if (is_scheduled(next) && missing_[next] > 0 && --missing_[next] == 0) ready.push_back(next);
    }
  }

  /// Emits an instruction after those it waits for, unless it is already emitted; a bucket's members together.
  void emit(std::size_t first) {
    const auto push = [&](std::size_t member) {
      const std::uint32_t i = first_member_[member];
      if (is_emitted_[i] != 0) return;
      is_emitted_[i] = 1;
      emitted_.push_back({i, 0});
    };
    push(first);
    while (!emitted_.empty()) {
      auto& [i, done] = emitted_.back();
      if (done == before_[i].size()) {
        for (std::uint32_t member = i; member != kNoMember; member = next_member_[member]) sequence_.push_back(member);
        emitted_.pop_back();
      } else {
        push(before_[i][done++]);
      }
    }
  }

  /// The time of issue; what ends at some time comes before what starts then.
  struct Placed {
    Picoseconds time = 0;
    std::uint32_t turn = 0;  // at one time: the number of the placement, of collectives from kFirstCollective on
    std::uint32_t instruction = 0;
    bool is_collective() const { return turn >= kFirstCollective; }
    auto operator<=>(const Placed&) const = default;
  };

  const InstructionTable& table_;
  const bool is_backwards_;
  const Recomputation recomputation_ = Recomputation::kOneBlockAhead;
  const ScheduleScheme scheme_ = ScheduleScheme::kParallel;
  const bool places_gathers_ = false;  // of stored tensors; otherwise each is issued right before its first reader
  // A bucket is scheduled as its first member.
  std::vector<std::uint32_t> first_member_;  // by instruction
  std::vector<std::uint32_t> next_member_;   // of the same bucket; kNoMember: it is the last
  std::vector<Picoseconds> time_;            // of an instruction
  IdVector<ValueId, std::uint32_t> producer_;
  std::vector<std::array<std::uint32_t, 2>> orders_;  // pairs (before, after), until they are turned into lists
  Lists before_, behind_;                             // by instruction: what must come there; once per input
  std::vector<char> is_lazy_;                         // depends only on given values
  std::vector<Picoseconds> urgency_;                  // priority among instructions that can start
  std::vector<std::uint32_t> missing_;                // number of instructions it still waits for
  std::vector<char> is_emitted_;
  std::vector<Placed> placed_;
  std::vector<std::uint32_t> sequence_;
  std::size_t begin_ = 0, end_ = 0;              // of the region
  Picoseconds now_ = 0;                          // the start of the region
  Ready kernels_;                                // waiting for nothing
  std::map<std::uint32_t, Ready> collectives_;   // likewise, by the levels of links that they use
  std::vector<std::uint32_t> open_, unblocked_;  // scratch of `make_ready` and `end_of`
  std::vector<std::pair<std::uint32_t, std::size_t>>
      emitted_;  // scratch: how many of the instructions it waits for are done
};

}  // namespace

std::vector<std::uint32_t> list_order(const InstructionTable& table) {
  return ListScheduling(table, Direction::kForwards).run();
}

std::vector<std::uint32_t> list_order_from_end(const InstructionTable& table) {
  return ListScheduling(table, Direction::kBackwards).run();
}

std::vector<std::uint32_t> justified_to_end(const InstructionTable& table, const TimedOrder& timed, Justification how) {
  return ListScheduling(table, Direction::kBackwards, how, timed).run();
}

std::vector<std::uint32_t> justified_to_beginning(const InstructionTable& table, const TimedOrder& timed,
                                                  Justification how) {
  return ListScheduling(table, Direction::kForwards, how, timed).run();
}

}  // namespace shardplan
