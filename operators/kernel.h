#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "operators/operation.h"

namespace shardplan {

/// A device's piece of one operand, row-major. Every number is held as a double, whatever the dtype. `begin` is the
/// global position of its first element in each dimension that walks at most one factor or a window (elsewhere 0): a
/// windowed dimension comes with its halo.
struct OperandView {
  const double* data = nullptr;
  Shape shape;
  Shape begin;
};
struct ResultView {
  double* data = nullptr;  // zeroed before the call
  Shape shape;
};

/// One local computation: the same kernel on a box of the iteration space. It knows no rank and keeps no state.
struct KernelCall {
  const Operation& operation;  // global sizes
  std::span<const Box> boxes;  // by factor of operation.rule
  std::span<const OperandView> operands;
  std::span<const ResultView> results;
  std::uint64_t seed = 0;  // with the global index it decides every draw of random operators

  const Box& box(std::string_view factor) const;
  /// The box of the factor that a dimension walks; the whole dimension if it walks none. Not for windows and products.
  Box operand_box(std::size_t operand, std::size_t dimension) const;
  Box result_box(std::size_t result, std::size_t dimension) const;
};
using Kernel = void (*)(const KernelCall&);

}  // namespace shardplan
