#pragma once

namespace shardplan {

/// Which f32 products the software computes in TF32 (the range of f32 with a 10-bit mantissa, accumulated in f32), at
/// the device's rate for it.
enum class Tf32 {
  kNone,          // torch.set_float32_matmul_precision('highest') without cudnn's TF32
  kConvolutions,  // PyTorch's default: torch.backends.cudnn.allow_tf32
  kAll,           // set_float32_matmul_precision('high'); JAX's default on these devices
};

}  // namespace shardplan
