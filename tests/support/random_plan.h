#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "planner/plan.h"
#include "program/program_checker.h"
#include "tests/support/planned_model.h"

namespace shardplan {

/// A plan without a search: a random candidate for every operator and every version of a tensor.
inline Plan random_plan(const PlannedModel& planned, std::uint64_t seed) {
  Random random(seed);
  const Choice choice = planned.random_choice(random);
  Plan plan;
  plan.model = std::make_shared<const Model>(planned.model);
  plan.graph = std::make_shared<const OperatorGraph>(planned.graph);
  plan.mesh = planned.costs->mesh();
  for (const OperatorId op : planned.graph.operators().ids()) {
    plan.strategies.push_back(planned.problem.strategy(op, choice));
  }
  plan.program = planned.lowered(choice);
  EXPECT_EQ(check_program(plan.program, *plan.graph), "");
  return plan;
}

}  // namespace shardplan
