#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "program/parallel_program.h"
#include "simulator/proof/smaller_mesh.h"

namespace shardplan {

/// A program rewritten for other sizes.
struct Transfer {
  ParallelProgram program;
  std::string fault;  // empty, or why it is not the same program at these sizes
  /// The operator and factor to enlarge to avoid the fault, if known.
  std::optional<std::pair<OperatorId, std::size_t>> culprit;
};

/// Copies `program` (of graph `from`) instruction by instruction to graph `to`, the same model at other sizes, on the
/// smaller mesh: the same operators with the same strategies, the same collectives over the same axes in the same
/// order. Nothing is planned again, since at other sizes another sequence of collectives may be the cheapest, and the
/// proof would be of that sequence.
///
/// Layouts keep their axes. A dimension in parts, (32:{x}, 1024:{}), keeps its parts' meaning: a boundary between parts
/// is either one between factors of an operator that makes or reads the tensor (B and S of a flattened B*S) and becomes
/// the same boundary at the new sizes, or it lies within a factor, after the pieces of axes that shard it, and keeps
/// its distance.
///
/// A program in which two boundaries coincided by chance (8 heads, and an axis of 8) may become invalid where they do
/// not; `fault` is then the message of check_program.
Transfer transfer_program(const ParallelProgram& program, const OperatorGraph& from, const OperatorGraph& to,
                          const SmallerMesh& mesh);

/// Empty, or why the two graphs are not one model at two sizes: other operators, names or tensors.
std::string compare_structure(const OperatorGraph& a, const OperatorGraph& b);

}  // namespace shardplan
