#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "simulator/execute/collectives.h"

namespace shardplan {

/// How one place of a program is made wrong on purpose. Shapes stay the same, so that only the numbers (float64
/// buffers, collectives.h) can reveal it.
enum class FaultKind {
  kRemoved,  // collective, halo: nothing is sent; a device fills missing elements from its own ones; a halo and what a
             // worker receives are zeros
  kSwapped,  // collective: the first two members of each group swap pieces; a given tensor: two devices do
  kRotated,  // collective, send: every device has the next device's data, as if the group listed other ranks
  kDoubled,  // sum: reduced once more, so that it counts as often as the group has members
  kShifted,  // operator: every device computes as if it were the next one
  kUntrimmed,  // padding is taken for numbers: operator: every device treats its buffers as full; gather: keeps the end
               // of the padded row instead of its beginning
};
std::string_view to_string(FaultKind kind);

struct Fault {
  FaultKind kind = FaultKind::kRemoved;
  std::optional<std::size_t> instruction = {};  // position in the program
  std::optional<std::size_t> given = {};        // or a position in `ParallelProgram::given`
  std::optional<std::size_t> broadcast = {};  // or in `ParallelProgram::broadcasts`: removed, or from the wrong device
};

/// `apply`, with a fault. `shape` is the global one.
DeviceBuffers apply_wrongly(FaultKind kind, const CollectiveStep& step, const DeviceMesh& mesh, const Shape& shape,
                            const DeviceBuffers& input);

/// Swaps the buffers of the first device and of the first device that holds something else.
void swap_unlike_buffers(DeviceBuffers& buffers);

}  // namespace shardplan
