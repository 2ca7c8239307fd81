#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <utility>
#include <vector>

#include "planner/overlap/ordered_plan.h"
#include "planner/plan.h"
#include "program/lower.h"
#include "solver/limits.h"

namespace shardplan {

/// The plan with the shortest overlapped step so far. Candidates are scheduled, and replace it if they are better:
///   IncumbentPlan incumbent(plan, scheduled, deadline);
///   incumbent.try_beside(decisions);  // while the caller goes on
///   incumbent.finish();
///   incumbent.try_all(several, step_to_beat);
/// The result does not depend on how fast the threads are: what is scheduled beside counts from `finish` on.
class IncumbentPlan {
 public:
  /// As in OverlapSearch.
  using Schedule = std::function<Plan(const Decisions&, const OrderEffort&)>;
  /// References must outlive the incumbent. Nothing is scheduled once the deadline is over.
  IncumbentPlan(Plan plan, const Schedule& scheduled, const Deadline& deadline)
      : plan_(std::move(plan)), scheduled_(scheduled), deadline_(deadline) {}

  const Plan& plan() const { return plan_; }
  Picoseconds step() const { return plan_.time.step(); }
  /// Whether it is shorter than this by more than 0.5 %. A plan that gains less must not hold more memory.
  bool is_shorter(Picoseconds than) const { return is_shorter(plan_, than); }
  static bool is_shorter(const Plan& plan, Picoseconds than);

  void try_beside(Decisions decisions);
  void finish();
  const Plan& finished() {
    finish();
    return plan_;
  }
  void try_all(const std::vector<Decisions>& decisions, std::optional<Picoseconds> step_to_beat);
  /// Schedules these and takes none; fewer once the deadline is over. `step_to_beat` is that of `OrderEffort`.
  std::vector<Plan> look_at(const std::vector<Decisions>& decisions, std::optional<Picoseconds> step_to_beat);
  /// Takes this plan if it is better.
  void take(Plan trial);
  /// All that were scheduled and fit, with their steps, in the order in which they were.
  const std::vector<std::pair<Picoseconds, Decisions>>& known() const { return known_; }
  /// Takes one of these that holds at least 10 % less memory and takes at most 0.5 % longer than the plan now; of
  /// several the last that holds 10 % less than the one before.
  void try_leaner(const std::vector<Decisions>& decisions);
  /// Schedules the plan once more with full effort, and the plan before it if that took hardly longer. An order that
  /// holds at least 10 % less memory may be 0.5 % longer.
  void refine_order();

  std::int64_t ordered() const { return ordered_; }  // candidates scheduled
  std::int64_t taken() const { return taken_; }      // candidates that replaced the plan
  Plan release() { return std::move(plan_); }

 private:
  Picoseconds hardly_longer() const;
  bool is_leaner(const Plan& trial, Picoseconds longest) const;
  std::vector<std::optional<Plan>> scheduled(const std::vector<Decisions>& decisions, const OrderEffort& effort) const;
  std::vector<std::optional<Plan>> candidates(const std::vector<Decisions>& decisions,
                                              std::optional<Picoseconds> step_to_beat);
  void replace(Plan trial);

  Plan plan_;
  std::optional<Decisions> before_;  // of the plan before that one, if its step is hardly longer
  std::vector<std::pair<Picoseconds, Decisions>> known_;
  const Schedule& scheduled_;
  const Deadline& deadline_;
  std::int64_t ordered_ = 0, taken_ = 0;
  std::future<Plan> beside_;  // the last member, so that it ends first
};

}  // namespace shardplan
