#include "program/order_maker.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "program/best_buckets.h"
#include "program/early_issue.h"
#include "program/late_issue.h"
#include "program/prefetch.h"
#include "program/yielding.h"

namespace shardplan {
namespace {

constexpr std::uint32_t kNowhere = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t kNotJoinable = std::numeric_limits<std::uint32_t>::max();

}  // namespace

OrderMaker::OrderMaker(const ParallelProgram& program, const OperatorGraph& graph, const CollectiveCosts& costs)
    : program_(program),
      graph_(graph),
      costs_(costs),
      table_(program),
      num_instructions_(program.instructions.size()),
      reads_(program) {
  joinable_ = joinable_collectives(program, graph, as_given().sequence);
  joinable_at_.resize(program.instructions.size(), kNotJoinable);
  for (std::size_t j = 0; j < joinable_.size(); ++j) {
    num_keys_ = std::max<std::size_t>(num_keys_, joinable_[j].key + 1);
    joinable_at_[joinable_[j].instruction] = static_cast<std::uint32_t>(j);
  }
}

IssueOrder OrderMaker::as_given() const {
  IssueOrder order;
  order.sequence.resize(num_instructions_);
  std::iota(order.sequence.begin(), order.sequence.end(), std::uint32_t{0});
  order.buckets.resize(order.sequence.size(), 0);
  return order;
}

IssueOrder OrderMaker::issued_early(const IssueOrder& order) const { return shardplan::issued_early(table_, order); }

IssueOrder OrderMaker::delayed(const IssueOrder& order) const { return shardplan::delayed(table_, order); }

std::vector<std::uint32_t> OrderMaker::listed() const { return list_order(table_); }

std::vector<std::uint32_t> OrderMaker::listed_from_end() const { return list_order_from_end(table_); }

template <class List>
IssueOrder OrderMaker::listed_again(const List& list, IssueOrder order, Justification how) const {
  const OverlappedTimeline times = overlapped_timeline(tried(order));
  order.sequence = list(table_, TimedOrder{order, times.spans}, how);
  return order;
}

IssueOrder OrderMaker::justified_to_end(IssueOrder order, Justification how) const {
  return listed_again(shardplan::justified_to_end, std::move(order), how);
}

IssueOrder OrderMaker::justified_to_beginning(IssueOrder order, Justification how) const {
  return listed_again(shardplan::justified_to_beginning, std::move(order), how);
}

bool OrderMaker::has_copies() const {
  return std::any_of(program_.instructions.begin(), program_.instructions.end(),
                     [](const Instruction& instruction) { return instruction.is_copy; });
}

IssueOrder OrderMaker::yielding(const IssueOrder& order) const {
  return shardplan::yielding(table_, order, overlapped_timeline(tried(order)).spans);
}

IssueOrder OrderMaker::prefetched(const IssueOrder& order, std::optional<Bytes> joins) const {
  return shardplan::prefetched(table_, graph_, order, joins);
}

IssueOrder OrderMaker::issued_late(const IssueOrder& order, std::span<const OverlappedTimeline::Span> spans) const {
  return shardplan::issued_late(table_, order, spans);
}

IssueOrder OrderMaker::joined_waiting(const IssueOrder& order, const std::vector<JoinKey>& keys, Bytes most) const {
  const TableOrder trial = tried(order);
  const OverlappedTimeline times = overlapped_timeline(trial);
  return with_buckets(reads_, shardplan::joined_waiting(trial, times.spans, order, keys, most));
}

std::vector<JoinKey> OrderMaker::join_keys(const CommFusions& fusions) const {
  return shardplan::join_keys(table_, graph_, fusions, joinable_);
}

OrderMaker::Base OrderMaker::base(IssueOrder order) const {
  std::vector<JoinableCollective> found = joinable(order);
  return {std::move(order), std::move(found)};
}

std::vector<std::uint32_t> OrderMaker::bucket_numbers(const Base& base, const BucketRules& rules) const {
  std::map<std::tuple<bool, std::int64_t, std::size_t>, std::uint32_t> numbers;
  std::map<std::size_t, std::pair<std::int64_t, Bytes>>
      open;  // by key: the number of full buckets, and the bytes of the last
  std::int64_t all_reduces = 0, segment = 0;
  std::vector<std::uint32_t> buckets(base.joinable.size(), 0);
  std::vector<std::size_t> members(1, 0);  // by bucket
  for (std::size_t j = 0; j < buckets.size(); ++j) {
    const JoinableCollective& one = base.joinable[j];
    const std::optional<int> id = fusion_id(one);
    const CommFusion& rule = rules.of(one.kind);
    std::int64_t number = 0;
    if (id) {
      if (*id == 0) continue;
      number = *id;
    } else if (rule.mode == CommFusion::Mode::kSize) {
      auto& [full, bytes] = open[one.key];
      if (bytes > 0 && bytes + one.bytes > rule.size) {
        ++full;
        bytes = 0;
      }
      bytes += one.bytes;
      number = full;
    } else if (rule.mode == CommFusion::Mode::kIndex) {
      const auto& begins = rule.config;
      segment = std::upper_bound(begins.begin(), begins.end(), all_reduces++) - begins.begin();
      number = segment;
    } else {
      continue;
    }
    const auto [known, is_new] =
        numbers.try_emplace({id.has_value(), number, one.key}, static_cast<std::uint32_t>(members.size()));
    if (is_new) members.push_back(0);
    buckets[j] = known->second;
    ++members[buckets[j]];
  }
  for (std::uint32_t& bucket : buckets) bucket = members[bucket] > 1 ? bucket : 0;
  return buckets;
}

IssueOrder OrderMaker::bucketed(const Base& base, const std::vector<std::uint32_t>& buckets) const {
  IssueOrder order = base.order;
  for (std::size_t j = 0; j < buckets.size(); ++j) order.buckets[base.joinable[j].instruction] = buckets[j];
  return with_buckets(reads_, std::move(order));
}

IssueOrder OrderMaker::best_bucketed(const Base& base, const BucketRules& rules) const {
  IssueOrder order = bucketed(base, bucket_numbers(base, rules));
  std::map<std::size_t, std::vector<JoinableCollective>> by_key;
  for (const JoinableCollective& one : base.joinable) {
    if (rules.of(one.kind).mode == CommFusion::Mode::kBest && !fusion_id(one)) by_key[one.key].push_back(one);
  }
  for (auto& [key, members] : by_key) {
    if (members.size() > 1) set_best_buckets(order, std::move(members));
  }
  return order;
}

/// `joinable_collectives` of that order: keys are numbered by first appearance.
std::vector<JoinableCollective> OrderMaker::joinable(const IssueOrder& order) const {
  std::vector<JoinableCollective> result;
  result.reserve(joinable_.size());
  std::vector<std::uint32_t> numbers(num_keys_, kNowhere);
  std::uint32_t next = 0;
  for (const std::size_t i : order.sequence) {
    if (joinable_at_[i] == kNotJoinable) continue;
    result.push_back(joinable_[joinable_at_[i]]);
    std::uint32_t& number = numbers[result.back().key];
    if (number == kNowhere) number = next++;
    result.back().key = number;
  }
  return result;
}

void OrderMaker::set_best_buckets(IssueOrder& order, std::vector<JoinableCollective> members) const {
  const OverlappedTimeline times = overlapped_timeline(tried(order));
  IdVector<ValueId, Picoseconds> ready(program_.values.size(), 0);
  IdVector<ValueId, Picoseconds> tails(program_.values.size(),
                                       0);  // by value: the time from when it is ready to the end of the step
  Picoseconds kernels = 0;
  for (std::size_t place = order.sequence.size(); place-- > 0;) {
    const std::size_t i = order.sequence[place];
    const bool is_kernel = table_[i].kind == InstructionKind::kOperator;
    const Picoseconds time = table_[i].time;
    if (is_kernel) kernels += time;
    Picoseconds tail = is_kernel ? kernels : time;
    for (const ValueId output : table_.outputs(i)) {
      ready[output] = times.spans[place].end;
      tail = std::max(tail, tails[output] + (is_kernel ? 0 : time));
    }
    for (const ValueId input : table_.inputs(i)) tails[input] = std::max(tails[input], tail);
  }
  const auto ready_at = [&](const JoinableCollective& one) { return ready[table_.inputs(one.instruction)[0]]; };
  std::stable_sort(members.begin(), members.end(),
                   [&](const auto& a, const auto& b) { return ready_at(a) < ready_at(b); });
  std::vector<WaitingCollective> waiting;
  for (const JoinableCollective& one : members) {
    waiting.push_back({ready_at(one), one.bytes, tails[table_.outputs(one.instruction)[0]]});
  }
  const CollectiveStep& step = at(members[0].instruction).step;
  const std::vector<std::size_t> begins =
      best_buckets(waiting, [&](Bytes bytes) { return costs_.time(step.kind, step.axes, bytes); });
  std::uint32_t last = *std::max_element(order.buckets.begin(), order.buckets.end());
  std::size_t next = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (next < begins.size() && begins[next] == i) {
      ++next;
      ++last;
    }
    order.buckets[members[i].instruction] = last;
  }
  order = with_buckets(reads_, std::move(order));
}

}  // namespace shardplan
