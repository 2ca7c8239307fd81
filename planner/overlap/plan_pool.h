#pragma once

#include <cstddef>
#include <list>

#include "planner/plan.h"
#include "solver/strategy_problem.h"

namespace shardplan {

/// Plans around which a local search looks for shorter ones, best first. One that was looked around in vain waits
/// longer for its next turn, so the search leaves plans around which nothing is shorter:
///
///     priority = step * (1 + 0.3 % * how often it was looked around)
class PlanPool {
 public:
  struct Member {
    Plan plan;
    Choice choice;
    std::size_t looked = 0;  // how often it was looked around
  };

  /// `most_looks`: how often one plan is looked around.
  explicit PlanPool(std::size_t most_looks) : most_looks_(most_looks) {}

  /// Only two plans are kept whose steps differ by less than a thousandth: most of these differ in nothing that
  /// matters.
  void add(Plan plan, Choice choice);
  /// The next plan to look around; none if all were looked around often enough, or take 5 % longer than the shortest.
  /// Valid until the next `add`.
  Member* next();

 private:
  Picoseconds priority(const Member& member) const;

  std::size_t most_looks_;
  std::list<Member> members_;
};

}  // namespace shardplan
