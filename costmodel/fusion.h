#pragma once

namespace shardplan {

/// What the software on the devices makes one kernel of (costmodel/kernel_fusion.h).
enum class Fusion {
  kNone,         // every operator is a kernel of its own
  kLibrary,      // what libraries offer: a contraction with its bias, strided operands, one update of all parameters
  kHandWritten,  // a transformer library's: bias + activation, bias + dropout + add, scale + mask + softmax as well
  kElementwise,  // all chains of elementwise operators as well: a compiler's kernels
};

}  // namespace shardplan
