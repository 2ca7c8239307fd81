#pragma once

#include "operators/operator_type.h"

namespace shardplan {

/// The kernel of every operator that has phases: runs them one after the other on one device, so that the phases and
/// the fused form cannot differ.
void run_phases(const KernelCall& call);

}  // namespace shardplan
