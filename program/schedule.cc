// The order in which the instructions of a program are issued.
//
// Lowering writes every redistribution right before its reader, where it cannot be hidden. The following changes of
// the order hide it, as the runtimes of DDP, FSDP and Megatron-LM do:
//   1. Early issue: collectives whose results are not larger than their operands are issued when these are ready:
//      gradients are reduced during the rest of the backward pass (program/early_issue.h).
//   2. Buckets (program/buckets.h): reductions of gradients over one group, and gathers of updated weights, wait for
//      each other and become one collective. The user can say which (`comm_fusion`); otherwise no buckets, sizes from
//      1 MiB to 1 GiB and the boundaries of `best_buckets` are tried.
//   3. Kernels that wait only for such reductions are issued right before their first reader (program/early_issue.h).
//   4. List scheduling (program/list_order.h), instead of 1 and 3: the longest remaining path first; updates and
//      gradients of weights fill the gaps.
//   5. Yielding: gathers of new weights, which nothing waits for, make way (program/yielding.h).
//   6. Prefetch: an all_gather of a stored tensor is issued before kernels that it can hide behind
//      (program/prefetch.h).
//   7. Justification: the fastest order so far, and every order of a short program, is rescheduled by its own times
//      (program/list_order.h).
//   8. Joining what waits: collectives that are ready when one of their kind starts join it
//      (program/joined_waiting.h).
//   9. Justification by the serial scheme, for the plan that is reported.
//  10. Late issue: a collective that waits for its links is issued only when it starts (program/late_issue.h), so
//      that it holds no memory before.
// Each of 1 to 9 takes memory or delays what is joined. So all are tried on top of each other and the fastest order
// that fits is taken; 10 is applied to that order. For a program of more than fifty thousand instructions every
// sequence is tried without buckets, then a few sizes in the fastest one and, up to half a million, searched
// boundaries; 5, 7 and 9 are omitted.
#include "program/schedule.h"

#include <algorithm>
#include <future>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/side_by_side.h"
#include "program/bucket_rules.h"
#include "program/buckets.h"
#include "program/memory_profile.h"
#include "program/order_maker.h"
#include "program/overlapped_timeline.h"

namespace shardplan {
namespace {

/// For longer programs only a few orders are tried, since each takes the time of a timeline.
constexpr std::size_t kManyInstructions = 50'000;
/// Boundaries of buckets are searched up to this size; it takes as long as ten orders.
constexpr std::size_t kMostSearched = 500'000;
/// This many at a time, and above kMostSearched one after the other: each needs memory for its sequence, its timeline and
/// the live ranges of its values.
constexpr std::size_t kMostLongAtOnce = 2;
/// Shorter programs are scheduled before threads would have started, and each of their orders is justified.
constexpr std::size_t kFewInstructions = 500;
/// Yielding is repeated this many times, each time by the timeline of the previous result.
constexpr int kMostYields = 8;
/// The final order is justified at most this many times.
constexpr int kMostJustifications = 8;
/// Joining what waits is tried with these limits.
constexpr Bytes kLeastJoined = Bytes{4} << 20, kMostJoined = Bytes{256} << 20;
/// Justification and joining usually take memory, so they have to gain some thousandths.
constexpr Picoseconds kThousandthsToGain = 5;
/// List scheduling often takes memory for next to nothing: if it gains less than that, an order without it is taken
/// that holds at most this much of the memory.
constexpr Bytes kLeanerPercent = 90;
/// They gain some per cent, seldom more than ten: an order this much longer than the one to beat cannot win.
constexpr Picoseconds kPercentTooLong = 15;

/// Brings the program's instructions and buckets into this order. They are moved, not copied: there may be a million
/// of them.
void put_in_order(ParallelProgram& program, const IssueOrder& order, const CollectiveCosts& costs) {
  std::vector<Instruction>& instructions = program.instructions;
  // The instruction for each position is at `from`. Along every cycle of positions one instruction makes room for the
  // next.
  std::vector<std::uint32_t> from = order.sequence;
  for (std::uint32_t begin = 0; begin < from.size(); ++begin) {
    if (from[begin] == begin) continue;
    Instruction first = std::move(instructions[begin]);
    std::uint32_t place = begin;
    while (from[place] != begin) {
      const std::uint32_t next = from[place];
      instructions[place] = std::move(instructions[next]);
      from[place] = place;
      place = next;
    }
    instructions[place] = std::move(first);
    from[place] = place;
  }
  std::map<std::uint32_t, std::uint32_t> ids;
  for (std::size_t place = 0; place < order.sequence.size(); ++place) {
    const std::uint32_t bucket = order.buckets[order.sequence[place]];
    const auto next = static_cast<std::uint32_t>(ids.size() + 1);
    instructions[place].fusion = bucket == 0 ? 0 : ids.try_emplace(bucket, next).first->second;
  }
  program.reduces_in_last_run = order.reduces_in_last_run;
  program.buckets.clear();
  describe_buckets(program, &costs);
}

/// Which orders are justified: only the fastest, or that of every sequence and rule.
enum class Justified { kNone, kFastest, kEach };

Justified what_is_justified(const ScheduleOptions& options, std::size_t num_instructions) {
  // Buckets of mode `index` are of gradients in the order in which they are computed.
  const bool counts = options.fusions.all_reduce.mode == CommFusion::Mode::kIndex;
  if (!options.lists_kernels || counts || num_instructions > kManyInstructions) return Justified::kNone;
  return num_instructions < kFewInstructions ? Justified::kEach : Justified::kFastest;
}

/// The orders that were tried, and the fastest of those that fit.
class Trials {
 public:
  /// Only orders that end before `least` are of interest.
  Trials(const OrderMaker& maker, const ScheduleOptions& options, Justified justified, Picoseconds least)
      : maker_(&maker), options_(&options), justified_(justified), least_(least) {}

  const std::optional<IssueOrder>& best() const { return best_; }
  const OrderRule& rule() const { return rule_; }
  Picoseconds least() const { return least_; }
  void take_better(Trials other) {
    if (other.least_ < least_) *this = std::move(other);
  }
  /// Takes the fastest of these orders if it holds much less memory and takes hardly longer.
  void take_leaner(Trials other) {
    if (!best_ || !other.best_ || other.least_ > least_ / 1000 * (1000 + kThousandthsToGain)) return;
    if (other.peak() <= peak() / 100 * kLeanerPercent) *this = std::move(other);
  }
  void take_worthwhile(Trials other) {
    if (other.least_ < least_ / 1000 * (1000 - kThousandthsToGain)) *this = std::move(other);
  }

  /// The end of the step; nothing if the order does not fit. An order that ends at `too_late` or later, and no
  /// earlier than the best, is not checked for fitting.
  std::optional<Picoseconds> try_order(const IssueOrder& order, Picoseconds too_late = 0) {
    const std::optional<Picoseconds> end = try_one(order, too_late);
    if (end || !order.reduces_in_last_run) return end;
    IssueOrder other = order;
    other.reduces_in_last_run = false;  // early reductions would be held together with the last iteration's activations
    return try_one(other, too_late);
  }

  /// Tries the order with the buckets of each rule; the fastest is then tried with prefetch.
  void try_rules(OrderRule::Sequence sequence, IssueOrder order, const std::vector<BucketRules>& rules) {
    const OrderMaker::Base base = maker_->base(std::move(order));
    std::size_t fastest_rule = 0;
    std::optional<IssueOrder> fastest, last;
    std::optional<std::vector<std::uint32_t>> last_buckets;
    Picoseconds least_of_rules = std::numeric_limits<Picoseconds>::max();
    bool fits = true;
    for (const BucketRules& rule : rules) {
      trying_ = {sequence, static_cast<std::size_t>(&rule - rules.data())};
      const bool is_first = &rule == &rules.front();
      if (!fits && !rule.is_searched()) continue;
      IssueOrder tried;
      if (rule.is_searched()) {
        tried = maker_->best_bucketed(base, rule);
      } else {
        // Sizes below the smallest gradient, or above the sum of all, make the same buckets.
        std::vector<std::uint32_t> buckets = maker_->bucket_numbers(base, rule);
        if (last_buckets == buckets) continue;
        tried = maker_->bucketed(base, buckets);
        last_buckets = std::move(buckets);
      }
      if (last && last->buckets == tried.buckets && last->sequence == tried.sequence) continue;
      last = std::move(tried);
      const std::optional<Picoseconds> end = try_order(*last, least_of_rules);
      // Joining, early issue and larger buckets hold values longer: if this does not fit, neither do they.
      fits = end.has_value();
      if (!fits && is_first) return;
      if (is_first) try_prefetched(*last);
      if (justified_ == Justified::kEach) try_justified(*last);
      if (!end || *end >= least_of_rules) continue;
      least_of_rules = *end;
      fastest = last;
      fastest_rule = trying_.buckets;
    }
    last.reset();
    trying_ = {sequence, fastest_rule};
    if (fastest) try_prefetched(*fastest);
    if (justified_ == Justified::kEach && best_) try_justified(*best_);
  }

  /// The buckets of the rule with this number, in a sequence.
  std::optional<Picoseconds> try_buckets(OrderRule of, const OrderMaker::Base& base, const BucketRules& rule) {
    trying_ = of;
    return try_order(rule.is_searched() ? maker_->best_bucketed(base, rule)
                                        : maker_->bucketed(base, maker_->bucket_numbers(base, rule)));
  }

  /// Tries prefetching in the fastest order.
  void prefetch_best() {
    if (!best_) return;
    trying_ = rule_;
    try_prefetched(IssueOrder(*best_));
  }

  /// Tries only that rule's order, with prefetching.
  void try_rule(IssueOrder sequence, const BucketRules& rule) {
    const OrderMaker::Base base = maker_->base(std::move(sequence));
    const IssueOrder order = rule.is_searched() ? maker_->best_bucketed(base, rule)
                                                : maker_->bucketed(base, maker_->bucket_numbers(base, rule));
    try_order(order);
    try_prefetched(order);
  }

  /// Refines the fastest order: justification, yielding, and joining what waits.
  void refine() {
    trying_ = rule_;
    if (justified_ == Justified::kFastest) try_justified(*best_);
    IssueOrder order = *best_;
    for (int i = 0; i < kMostYields; ++i) {
      IssueOrder next = maker_->yielding(order);
      if (next.sequence == order.sequence) break;
      order = std::move(next);
      try_order(order);
    }
    const std::vector<JoinKey> keys = maker_->join_keys(options_->fusions);
    Trials joined = *this;
    int in_vain = 0;
    for (Bytes most = kLeastJoined; most <= kMostJoined && in_vain < 2; most *= 4) {
      if (!joined.join_waiting(keys, most)) ++in_vain;
    }
    take_worthwhile(std::move(joined));
  }

  /// Justifies the fastest order again, as long as that is worthwhile.
  void justify_again() {
    if (!best_ || justified_ == Justified::kNone) return;
    trying_ = rule_;
    for (int i = 0; i < kMostJustifications; ++i) {
      const Picoseconds before = least_;
      try_justified(IssueOrder(*best_));
      if (least_ == before) return;
    }
  }

  /// Applies late issue to the fastest order, which saves memory; kept if it is as fast.
  void issue_late() {
    if (!best_) return;
    const TableOrder trial = maker_->tried(*best_);
    const OverlappedTimeline times = overlapped_timeline(trial);
    const IssueOrder late = maker_->issued_late(*best_, times.spans);
    const TableOrder late_trial = maker_->tried(late);
    const OverlappedTimeline late_times = overlapped_timeline(late_trial);
    if (late_times.end > times.end) return;
    if (memory_peak(late_trial, &late_times) < memory_peak(trial, &times)) best_ = late;
  }

 private:
  /// Joins what waits in the fastest order, which leaves other gaps; returns whether that gains something.
  bool join_waiting(const std::vector<JoinKey>& keys, Bytes most) {
    const IssueOrder order = maker_->joined_waiting(*best_, keys, most);
    if (order.buckets == best_->buckets) return false;
    const Picoseconds before = least_;
    try_order(order);
    if (justified_ != Justified::kNone) try_justified(order);
    return least_ < before;
  }

  void try_justified(const IssueOrder& order) {
    try_justified(order, ScheduleScheme::kParallel);
    if (options_->is_final) try_justified(order, ScheduleScheme::kSerial);
  }

  /// Recomputation may run one block ahead; if that does not fit, in time.
  void try_justified(const IssueOrder& order, ScheduleScheme scheme) {
    for (const Recomputation again : {Recomputation::kOneBlockAhead, Recomputation::kInTime}) {
      Trials justified = *this;
      const IssueOrder to_end = maker_->justified_to_end(order, {again, scheme});
      justified.try_order(to_end);
      const bool fits = justified.try_order(maker_->justified_to_beginning(to_end, {again, scheme})).has_value();
      take_worthwhile(std::move(justified));
      if (fits || !maker_->has_copies()) return;
    }
  }

  Bytes peak() const {
    const TableOrder order = maker_->tried(*best_);
    const OverlappedTimeline times = overlapped_timeline(order);
    return memory_peak(order, &times);
  }

  std::optional<Picoseconds> try_one(const IssueOrder& order, Picoseconds too_late) {
    const TableOrder trial = maker_->tried(order);
    const OverlappedTimeline times = overlapped_timeline(trial);
    if (times.end >= std::max(least_, too_late)) return times.end;
    const bool always_fits = trial.all_bytes() <= options_->most_memory;
    if (!always_fits && memory_peak(trial, &times) > options_->most_memory) return std::nullopt;
    if (times.end < least_) {
      least_ = times.end;
      best_ = order;
      rule_ = trying_;
    }
    return times.end;
  }

  void try_prefetched(const IssueOrder& order) {
    using Mode = CommFusion::Mode;
    const CommFusion& gathers = options_->fusions.all_gather;
    const bool is_free = gathers.mode == Mode::kNone || gathers.mode == Mode::kBest;
    const auto is_same = [](const IssueOrder& a, const IssueOrder& b) {
      return a.sequence == b.sequence && a.buckets == b.buckets;
    };
    std::optional<IssueOrder> free;
    if (is_free) free = maker_->prefetched(order, std::nullopt);
    if (free && !is_same(*free, order)) try_order(*free);
    if (gathers.mode == Mode::kNone) return;
    const IssueOrder joined = maker_->prefetched(order, gathers.size);
    if (!is_same(joined, order) && !(free && is_same(joined, *free))) try_order(joined);
  }

  const OrderMaker* maker_;
  const ScheduleOptions* options_;
  Justified justified_;
  std::optional<IssueOrder> best_;
  Picoseconds least_;
  OrderRule rule_, trying_;  // of the best order, and of the one being tried
};

/// The given order, with collectives joined only where the user asks.
IssueOrder unjoined(const OrderMaker& maker, const CommFusions& fusions) {
  const OrderMaker::Base base = maker.base(maker.as_given());
  return maker.bucketed(base, maker.bucket_numbers(base, decided(fusions, CommFusion::Mode::kNone)));
}

/// A sequence in which buckets are tried, with early issue.
IssueOrder sequence(const OrderMaker& maker, IssueOrder early, OrderRule::Sequence kind) {
  if (kind == OrderRule::Sequence::kDelayed) return maker.delayed(early);
  if (kind == OrderRule::Sequence::kListed) early.sequence = maker.listed();
  if (kind == OrderRule::Sequence::kListedFromEnd) early.sequence = maker.listed_from_end();
  return early;
}

bool is_listed(OrderRule::Sequence kind) {
  return kind == OrderRule::Sequence::kListed || kind == OrderRule::Sequence::kListedFromEnd;
}

/// A few orders of a long program: every sequence without buckets, then bucket sizes in the fastest of each kind.
void try_few(Trials& trials, const OrderMaker& maker, const ScheduleOptions& options, const IssueOrder& early,
             const std::vector<OrderRule::Sequence>& sequences, const std::vector<BucketRules>& rules) {
  const bool is_very_long = early.sequence.size() > kMostSearched;
  // Only the fastest order is kept, at a tie the first one.
  const auto try_beside = [&](std::size_t count, const auto& act) {
    const Picoseconds least = trials.least();
    std::size_t taken = count;  // the position of the fastest
    std::mutex mutex;           // protects it and `trials`
    side_by_side(is_very_long ? 1 : num_processors(kMostLongAtOnce), count, [&](std::size_t, std::size_t i) {
      Trials own(maker, options, Justified::kNone, least);
      act(own, i);
      const std::lock_guard lock(mutex);
      if (!own.best() || std::pair(own.least(), i) > std::pair(trials.least(), taken)) return;
      trials = std::move(own);
      taken = i;
    });
  };
  // The fastest with early issue, and the fastest by list scheduling.
  struct Fastest {
    std::optional<OrderRule::Sequence> sequence;
    Picoseconds step = std::numeric_limits<Picoseconds>::max();
  };
  Fastest fastest[2];
  std::vector<std::optional<Picoseconds>> steps(sequences.size());
  try_beside(sequences.size(), [&](Trials& own, std::size_t i) {
    const OrderMaker::Base base = maker.base(sequence(maker, IssueOrder(early), sequences[i]));
    steps[i] = own.try_buckets({sequences[i], 0}, base, rules.front());
  });
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    Fastest& of_kind = fastest[is_listed(sequences[i]) ? 1 : 0];
    if (steps[i] && *steps[i] < of_kind.step) of_kind = {sequences[i], *steps[i]};
  }
  for (const Fastest& of_kind : fastest) {
    if (!of_kind.sequence) continue;
    const OrderMaker::Base base = maker.base(sequence(maker, IssueOrder(early), *of_kind.sequence));
    const bool leaves_out = rules.back().is_searched() && is_very_long;
    const std::size_t last = leaves_out ? rules.size() - 1 : rules.size();
    try_beside(last - 1, [&](Trials& own, std::size_t i) {
      own.try_buckets({*of_kind.sequence, i + 1}, base, rules[i + 1]);
    });
  }
  trials.prefetch_best();
}

bool is_long(const ParallelProgram& program) { return program.instructions.size() > kManyInstructions; }

}  // namespace

std::optional<OrderRule> schedule(ParallelProgram& program, const OperatorGraph& graph, const CollectiveCosts& costs,
                                  const ScheduleOptions& options) {
  if (program.instructions.empty()) return OrderRule{};
  const OrderMaker maker(program, graph, costs);
  const Justified justified = what_is_justified(options, program.instructions.size());
  Trials trials(maker, options, justified, std::numeric_limits<Picoseconds>::max());
  const auto arrange_best = [&]() -> std::optional<OrderRule> {
    put_in_order(program, trials.best() ? *trials.best() : maker.as_given(), costs);
    if (!trials.best()) return std::nullopt;
    return trials.rule();
  };
  trials.try_order(unjoined(maker, options.fusions));
  if (!options.reorders) return arrange_best();

  const bool lists_kernels = options.lists_kernels;
  const std::vector<BucketRules> rules = rules_to_try(options.fusions, is_long(program));
  using Sequence = OrderRule::Sequence;
  const IssueOrder early = maker.issued_early(maker.as_given());
  std::vector<Sequence> sequences{Sequence::kEarly};
  if (maker.delayed(early).sequence != early.sequence) sequences.push_back(Sequence::kDelayed);
  if (lists_kernels) sequences.insert(sequences.end(), {Sequence::kListed, Sequence::kListedFromEnd});
  // Each is tried separately, so it does not matter which is done first: at a tie the first is taken.
  const bool is_short = program.instructions.size() < kFewInstructions;
  const Picoseconds least = trials.least();
  Trials unlisted = trials;
  const auto take = [&](Sequence kind, Trials own) {
    if (options.prefers_lean && !is_listed(kind)) unlisted.take_better(own);
    trials.take_better(std::move(own));
  };
  if (is_long(program)) {
    try_few(trials, maker, options, early, sequences, rules);
  } else if (is_short) {
    for (const Sequence kind : sequences) {
      Trials own(maker, options, justified, least);
      own.try_rules(kind, sequence(maker, early, kind), rules);
      take(kind, std::move(own));
    }
  } else {
    std::vector<std::future<Trials>> of_sequences;
    for (const Sequence kind : sequences) {
      of_sequences.push_back(begin_beside([&, kind] {
        Trials own(maker, options, justified, least);
        own.try_rules(kind, sequence(maker, early, kind), rules);
        return own;
      }));
    }
    for (std::size_t i = 0; i < sequences.size(); ++i) take(sequences[i], of_sequences[i].get());
  }

  const bool is_hopeless =
      options.step_to_beat && trials.least() > *options.step_to_beat / 100 * (100 + kPercentTooLong);
  if (lists_kernels && !is_long(program) && trials.best() && !is_hopeless) trials.refine();
  if (options.is_final) trials.justify_again();
  trials.issue_late();
  if (options.prefers_lean && lists_kernels) {
    unlisted.issue_late();
    trials.take_leaner(std::move(unlisted));
  }
  return arrange_best();
}

std::optional<Picoseconds> step_by_rule(const ParallelProgram& program, const OperatorGraph& graph,
                                        const CollectiveCosts& costs, const ScheduleOptions& options,
                                        const OrderRule& rule, bool is_refined) {
  const OrderMaker maker(program, graph, costs);
  const Justified justified = what_is_justified(options, program.instructions.size());
  Trials trials(maker, options, justified, std::numeric_limits<Picoseconds>::max());
  const std::vector<BucketRules> rules = rules_to_try(options.fusions, is_long(program));
  if (rule.sequence == OrderRule::Sequence::kGiven) {
    trials.try_order(unjoined(maker, options.fusions));
  } else if (rule.buckets < rules.size()) {
    IssueOrder early = maker.issued_early(maker.as_given());
    trials.try_rule(sequence(maker, std::move(early), rule.sequence), rules[rule.buckets]);
  }
  if (!trials.best()) return std::nullopt;
  if (is_refined && options.lists_kernels && !is_long(program)) trials.refine();
  return trials.least();
}

}  // namespace shardplan
