#pragma once

#include <cstdint>

#include "solver/strategy_problem.h"

namespace shardplan {

/// A problem with the nodes, memory and limits of both of these, which must agree in them, in which a choice costs
/// 100 - `percent` hundredths of what it costs in `a` and `percent` hundredths of what it costs in `b`; forbidden is
/// what either forbids. It has the edges of both.
StrategyProblem blended(StrategyProblem a, const StrategyProblem& b, std::int64_t percent);

}  // namespace shardplan
