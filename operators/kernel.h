#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "operators/operation.h"

namespace shardplan {

/// One device's shard of one operand, row-major. Every number is held as a double, whatever the dtype. `begin` is the
/// global position of its first element in each dimension that has at most one factor or a window (otherwise 0); a
/// windowed dimension includes its halo.
struct OperandView {
  const double* data = nullptr;
  Shape shape;
  Shape begin;
};
struct ResultView {
  double* data = nullptr;  // zeroed before the call
  Shape shape;
};

/// One local computation: the same kernel on a box of the iteration space. It does not know its rank and has no
/// state.
struct KernelCall {
  const Operation& operation;  // global sizes
  std::span<const Box> boxes;  // by factor of operation.rule
  std::span<const OperandView> operands;
  std::span<const ResultView> results;
  std::uint64_t seed = 0;  // with the global index it determines every draw of random operators

  const Box& box(std::string_view factor) const;
  /// The box of the factor that indexes a dimension; the whole dimension if there is none. Not for windows and
  /// products.
  Box operand_box(std::size_t operand, std::size_t dimension) const;
  Box result_box(std::size_t result, std::size_t dimension) const;
};
using Kernel = void (*)(const KernelCall&);

}  // namespace shardplan
