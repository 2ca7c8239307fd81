#pragma once

#include <vector>

#include "base/index.h"
#include "costmodel/fusion.h"
#include "graph/operator_graph.h"

namespace shardplan {

/// What an operator's kernel does not do because it is part of a larger one. The default: it starts a kernel of its own,
/// which reads all operands and writes all results.
struct KernelTraffic {
  std::vector<char> from_registers;  // by operand: the kernel has it already; empty: reads all
  std::vector<char> to_registers;    // by result: no other kernel reads it; empty: writes all
  bool is_started = true;            // false: the first operator of its kernel pays the start
  bool is_free = false;              // other kernels do it on the way

  bool reads(std::size_t operand) const { return from_registers.empty() || from_registers[operand] == 0; }
  bool writes(std::size_t result) const { return to_registers.empty() || to_registers[result] == 0; }
  bool operator==(const KernelTraffic&) const = default;
};

/// Which operators run as one kernel; a function of the graph alone, so that the problem and the program agree about
/// it whatever the layouts are (costmodel/kernel_fusion.cc has the rule).
struct KernelFusion {
  IdVector<OperatorId, KernelTraffic> traffic;
  IdVector<TensorId, char> in_registers;  // never in memory: every reader belongs to the kernel that makes it
};
KernelFusion kernel_fusion(const OperatorGraph& graph, Fusion fusion);

}  // namespace shardplan
