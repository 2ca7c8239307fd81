#include "planner/overlap/plan_pool.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "solver/strategy_problem.h"

namespace shardplan {
namespace {

/// When there are more, that with the last turn is dropped.
constexpr std::size_t kMostMembers = 40;
constexpr std::ptrdiff_t kMostAlike = 2;
constexpr Picoseconds kPartsAlike = 1000, kThousandthsOfLook = 3, kPercentToLeave = 5;

}  // namespace

Picoseconds PlanPool::priority(const Member& member) const {
  return member.plan.time.step() / 1000 * (1000 + kThousandthsOfLook * static_cast<Picoseconds>(member.looked));
}

void PlanPool::add(Plan plan, Choice choice) {
  const Picoseconds step = plan.time.step();
  const auto is_like = [&](const Member& other) {
    return std::abs(other.plan.time.step() - step) < step / kPartsAlike;
  };
  if (std::ranges::count_if(members_, is_like) >= kMostAlike) return;
  members_.push_back({std::move(plan), std::move(choice)});
  if (members_.size() <= kMostMembers) return;
  const auto is_before = [&](const Member& a, const Member& b) { return priority(a) < priority(b); };
  members_.erase(std::max_element(members_.begin(), members_.end(), is_before));
}

PlanPool::Member* PlanPool::next() {
  Picoseconds shortest = kForbidden;
  for (const Member& member : members_) shortest = std::min(shortest, member.plan.time.step());
  const Picoseconds too_long = shortest / 100 * (100 + kPercentToLeave);
  Member* best = nullptr;
  for (Member& member : members_) {
    if (member.looked >= most_looks_ || member.plan.time.step() > too_long) continue;
    if (best == nullptr || priority(member) < priority(*best)) best = &member;
  }
  return best;
}

}  // namespace shardplan
