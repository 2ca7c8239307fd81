#pragma once

#include <functional>
#include <span>

#include "operators/operator_type.h"

namespace shardplan {

/// Properties of all operators with phases (tests/operators/sharding_test.cc):
///   - a phase's factors are the operator's, by name and size; one that a phase lacks is repeated work there; a
///     sharded one may count its pieces instead (the maxima of each piece of the keys); a factor that only the phase has
///     is never sharded;
///   - results that do not walk a normalised factor are complete, those that do not walk a reduction are partial, as
///     the operator's own rule says;
///   - no partial operand passes through, since statistics are not linear.

/// The phases of an operation with normalised factors as operations of their own, in order: value types follow
/// `Phase::inputs`.
std::vector<Operation> phase_operations(const Operation& operation, const Phases& phases);

/// Executes an operator on one device: its kernel, or its phases one after the other, so that the phases and the
/// fused form cannot differ. Requires `is_executable`.
///
/// If `between` is given, it is called with each value that a phase leaves to the next (numbered as in
/// `Phase::inputs`) and may change it; it is not called if a kernel runs.
using BetweenPhases =
    std::function<void(const Operation& phase, std::size_t value, DataType dtype, std::span<double> values)>;
void run_operation(const KernelCall& call, const BetweenPhases& between = {});

}  // namespace shardplan
