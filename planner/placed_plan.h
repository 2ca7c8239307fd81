#pragma once

#include "costmodel/cluster/cluster.h"
#include "planner/plan.h"

namespace shardplan {

/// Divides the program of a lowered plan among workers on a cluster's links, and updates memory and times.
/// Micro-batches overlap in the fastest order that fits in memory, unless the plan is for least memory or without
/// overlap.
void divide(Plan& plan, const OperatorGraph& graph, const Cluster& cluster, int workers);

/// Sets the cost, the status and the bound of a divided plan. If each worker has one device, only the order is left
/// to choose, which affects only the time of a step (`least_step` bounds it). Otherwise the search did not account
/// for sends and waiting: a step then has the bound `least`, in picoseconds (planner/divided_bound.h), and the
/// objectives of other levels have none.
void judge_divided(Plan& plan, Picoseconds least = 0);

}  // namespace shardplan
