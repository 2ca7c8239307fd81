#pragma once

#include "costmodel/cluster/cluster.h"
#include "planner/plan.h"

namespace shardplan {

/// Divides a lowered plan's program among workers on a cluster's links: program, memory and times. Micro-batches overlap
/// in the fastest order that fits in memory, unless the plan is for least memory or without overlap.
void divide(Plan& plan, const OperatorGraph& graph, const Cluster& cluster, int workers);

/// What is known of a divided plan that fits, or does not: its cost, and whether there is another one. On workers of one
/// device there is nothing to choose but the order, which decides the time of a step alone (`least_step` bounds it); else
/// the search did not see what workers send and wait for. Then a step has the bound `least`, in picoseconds
/// (planner/divided_bound.h), and what other levels ask for has none.
void judge_divided(Plan& plan, Picoseconds least = 0);

}  // namespace shardplan
