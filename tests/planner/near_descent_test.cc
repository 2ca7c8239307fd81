#include "planner/overlap/near_descent.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/read_model.h"
#include "solver/searches/search_list.h"
#include "tests/fuzz/random_model.h"
#include "tests/support/planned_model.h"

namespace shardplan {
namespace {

/// A descent in which a plan takes as long as its choice costs.
class Descent {
 public:
  Descent(const PlannedModel& planned, const Choice& start)
      : planned_(planned),
        model_{planned.graph, planned.versions, planned.problem, planned.costs->mesh(), std::nullopt},
        start_(plan_of(planned.decided(start))),
        incumbent_(start_, scheduled_, deadline_),
        near_({model_, step_by_rule_, [this](const Choice& choice) { return cost(choice); }, deadline_}) {}

  /// The cost of the best plan on the way, if `known` are the choices to cross plans with.
  Picoseconds run(const std::vector<Choice>& known, int most_turns) {
    NearDescent descent({model_, incumbent_, near_, [&] { return known; }, [] { return false; }});
    int turns = 0;
    descent.from(start_, [&] { return turns++ == most_turns; });
    return incumbent_.step();
  }
  const IncumbentPlan& incumbent() const { return incumbent_; }
  Picoseconds cost(const Choice& choice) const { return evaluate(planned_.problem.problem, choice).value({}); }

 private:
  Plan plan_of(const Decisions& decisions) const {
    Plan plan;
    plan.options.level = Level::kSpeed;
    plan.is_overlapped = true;
    plan.usable = kUnlimitedBytes;
    plan.strategies = decisions.strategies;
    plan.versions = decisions.versions;
    plan.program.instructions.resize(1);
    plan.time.computation = cost(*model_.choice_of(decisions));
    return plan;
  }

  const PlannedModel& planned_;
  SearchedModel model_;
  Deadline deadline_{0, {}};
  IncumbentPlan::Schedule scheduled_ = [this](const Decisions& decisions, const OrderEffort&) {
    return plan_of(decisions);
  };
  std::function<std::optional<Picoseconds>(const Decisions&, const Plan&, bool)> step_by_rule_ =
      [this](const Decisions& decisions, const Plan&, bool) { return cost(*model_.choice_of(decisions)); };
  Plan start_;
  IncumbentPlan incumbent_;
  NearSearch near_;
};

TEST(NearDescentTest, EndsNearerToTheBestChoiceThanItBegins) {
  int shorter = 0, best_found = 0, cases = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Random random(seed);
    const std::string text = random_model(random, 2 + random.below(6));
    SCOPED_TRACE(text);
    const PlannedModel planned(read_model_text(text, "m.yaml"), "ascend-910", {});
    const Choice start = planned.random_choice(random);
    const std::optional<Choice> best =
        make_search(kDefaultSearch)->search(planned.problem.problem, SearchOptions{}).choice;
    Descent descent(planned, start);
    if (!best || descent.cost(start) >= kForbidden || descent.cost(start) == descent.cost(*best)) continue;
    ++cases;
    const Picoseconds found = descent.run({}, 100);
    EXPECT_LE(found, descent.cost(start));
    EXPECT_GE(found, descent.cost(*best));
    shorter += found < descent.cost(start) ? 1 : 0;
    Descent crossed(planned, start);
    best_found += crossed.run({*best}, 100) <= descent.cost(*best) + descent.cost(*best) / 100 ? 1 : 0;
  }
  EXPECT_GT(cases, 10);
  EXPECT_GT(shorter, cases / 2);
  EXPECT_GT(best_found, cases / 2);
}

TEST(NearDescentTest, SchedulesNothingOnceItIsDone) {
  Random random(1);
  const PlannedModel planned(read_model_text(random_model(random, 6), "m.yaml"), "ascend-910", {});
  Descent descent(planned, planned.random_choice(random));
  descent.run({}, 0);
  EXPECT_EQ(descent.incumbent().ordered(), 0);
}

}  // namespace
}  // namespace shardplan
