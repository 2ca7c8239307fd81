#pragma once

namespace shardplan {

/// What the software on the devices fuses into one kernel (costmodel/kernel_fusion.h).
enum class Fusion {
  kNone,         // every operator is a separate kernel
  kLibrary,      // as libraries do: a contraction with its bias, strided operands, one update of all parameters
  kHandWritten,  // as a transformer library does: also bias + activation, bias + dropout + add, scale + mask + softmax
  kElementwise,  // as a compiler does: also all chains of elementwise operators
};

}  // namespace shardplan
