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

/// What there is to be caught. Faults that change nothing by their definition are left out: a maximum taken twice, an
/// all_reduce whose members are swapped.
///   every collective   removed; members swapped; ranks rotated; sums doubled      (slices: swapped and rotated)
///   every halo         removed
///   every send         removed; ranks rotated where it is of pieces
///   every operator     that is cut, but for windows: boxes shifted
///   every given tensor that is cut: two devices' pieces swapped
///   every broadcast before the first step: removed; sent by the group's second device
/// Where layers repeat, one of a class is taken, the last: origins are equal but for the numbers in their names.
std::vector<Mutation> list_mutations(const ParallelProgram& program, const OperatorGraph& graph);

enum class MutationOutcome {
  kCaught,         // a tensor of the graph differs by more than the float64 tolerance
  kWithoutEffect,  // what the wrong instruction leaves behind is, on every device, what the right one does, within the
                   // tolerance; of an instruction between two phases, what the operator leaves behind
  kUncaught,
};
struct MutationResult {
  Mutation mutation;
  MutationOutcome outcome = MutationOutcome::kUncaught;
  std::string caught_in = {};  // the tensor
  /// Set with kWithoutEffect: the value itself is unproven (all zero, constant), so that nothing could have been seen.
  bool is_blind = false;
};

/// Runs one step with each fault in turn. Whether a fault has an effect is decided by arithmetic: the faulty
/// instruction and the right one are given the same inputs, and what they leave behind is compared on all devices. Some
/// have none: a kernel that does not ask where it stands (MatMul) computes the same in any box of the same extent;
/// devices that hold the same piece may swap it. Inside an operator that runs in phases the operator's results decide: a
/// softmax may subtract any number in place of the maximum.
std::vector<MutationResult> test_mutations(const ParallelProgram& program, const OperatorGraph& graph,
                                           const ValidationOptions& options);

}  // namespace shardplan
