#pragma once

#include <vector>

#include "base/index.h"
#include "base/shared_value.h"
#include "costmodel/fusion.h"
#include "graph/operator_graph.h"

namespace shardplan {

/// What an operator's kernel does not do because it is part of a larger one. By default it starts a separate kernel,
/// which reads all operands and writes all results.
struct KernelTraffic {
  std::vector<char> from_registers;  // by operand: the kernel has it already; empty: reads all
  std::vector<char> to_registers;    // by result: no other kernel reads it; empty: writes all
  bool is_started = true;            // false: the first operator of its kernel pays the start
  bool is_free = false;              // done by other kernels on the way
  /// By operand: the stored type of a weight that the kernel widens before it computes; else its own. Empty: widens none.
  std::vector<DataType> widened_from = {};

  bool reads(std::size_t operand) const { return from_registers.empty() || from_registers[operand] == 0; }
  bool widens(std::size_t operand, const TensorType& own) const {
    return !widened_from.empty() && widened_from[operand] != own.dtype;
  }
  bool writes(std::size_t result) const { return to_registers.empty() || to_registers[result] == 0; }
  bool operator==(const KernelTraffic&) const = default;
};

/// Which operators run as one kernel. This depends on the graph only, so that the problem and the program agree for
/// any layouts (costmodel/kernel_fusion.cc has the rule).
struct KernelFusion {
  IdVector<OperatorId, SharedValue<KernelTraffic>> traffic;  // copies of a layer share theirs
  IdVector<TensorId, char> in_registers;  // never in memory: every reader is in the kernel that produces it
};
KernelFusion kernel_fusion(const OperatorGraph& graph, Fusion fusion);

}  // namespace shardplan
