#pragma once

#include "operators/operator_type.h"

namespace shardplan {

/// The kernel of every operator that has phases: runs them one after the other on one device, so that the phases and
/// the fused form cannot differ.
///
/// What holds of all operators with phases (tests/operators/sharding_test.cc):
///   - a phase's factors are the operator's, by name and size; one that a phase lacks is repeated work there;
///   - results that do not walk a normalised factor are complete, those that do not walk a reduction are partial, as
///     the operator's own rule says;
///   - no partial operand passes through, since statistics are not linear.
void run_phases(const KernelCall& call);

}  // namespace shardplan
