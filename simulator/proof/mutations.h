#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/execute/fault.h"
#include "simulator/proof/validate.h"

namespace shardplan {

/// One way to make a program wrong: a fault and the places it stands for.
struct Mutation {
  Fault fault;
  std::string description;     // "all_reduce {mp} after layers.*.attn.proj.matmul removed"
  std::size_t num_places = 1;  // collectives of the same kind, axes and origin, repeats folded
};

/// The faults that must be caught. Faults without effect by definition are left out: a maximum taken twice, an
/// all_reduce with swapped members.
///   every collective   removed; members swapped; ranks rotated; sums doubled      (slices: swapped and rotated)
///   every halo         removed
///   every send         removed; ranks rotated if it sends pieces
///   every operator     that is sharded, except with windows: boxes shifted
///   every given tensor that is sharded: two devices' pieces swapped
///   every broadcast before the first step: removed; sent by the group's second device
/// Of repeated layers only the last is taken: origins that differ only in the numbers in their names form a class.
std::vector<Mutation> list_mutations(const ParallelProgram& program, const OperatorGraph& graph);

enum class MutationOutcome {
  kCaught,         // a tensor of the graph differs by more than the float64 tolerance
  kWithoutEffect,  // on every device, the wrong instruction's results equal the correct ones within the tolerance; for
                   // an instruction between two phases, the operator's results do
  kUncaught,
};
struct MutationResult {
  Mutation mutation;
  MutationOutcome outcome = MutationOutcome::kUncaught;
  std::string caught_in = {};  // the tensor
  /// Set with kWithoutEffect: the value itself is unproven (all zero, constant), so that no fault could show in it.
  bool is_blind = false;
};

/// Runs one step with each fault in turn. Whether a fault has an effect is computed: the faulty and the correct
/// instruction get the same inputs, and their results are compared on all devices. Some faults have none: a kernel that
/// does not use its position (MatMul) computes the same in any box of the same extent; devices with the same piece may
/// swap it. Within an operator that runs in phases the operator's results decide: a softmax may subtract any number in
/// place of the maximum.
std::vector<MutationResult> test_mutations(const ParallelProgram& program, const OperatorGraph& graph,
                                           const ValidationOptions& options);

}  // namespace shardplan
