#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "simulator/execute/collectives.h"

namespace shardplan {

/// How one place of a program is made wrong on purpose. Shapes stay as they are, so that only the numbers (float64
/// buffers, collectives.h) can show it.
enum class FaultKind {
  kRemoved,  // collective, halo: nothing is sent; what a device does not hold it makes up from what it holds, a halo
             // and what a worker receives are zeros
  kSwapped,  // collective: the first two members of each group have each other's piece; a given tensor: two devices
  kRotated,  // collective, send: every device has the next device's data, as if the group listed other ranks
  kDoubled,  // sum: reduced once more, so that it counts as often as the group has members
  kShifted,  // operator: every device takes itself for the next one
  kUntrimmed,  // padding is taken for numbers: operator: every device takes its buffers for full; gather: what stands at the
               // end of the padded row is kept, not at its beginning
};
std::string_view to_string(FaultKind kind);

struct Fault {
  FaultKind kind = FaultKind::kRemoved;
  std::optional<std::size_t> instruction = {};  // its place in the program
  std::optional<std::size_t> given = {};        // or a position in `ParallelProgram::given`
  std::optional<std::size_t> broadcast = {};  // or in `ParallelProgram::broadcasts`: removed, or from the wrong device
};

/// `apply`, with a fault. `shape` is the global one.
DeviceBuffers apply_wrongly(FaultKind kind, const CollectiveStep& step, const DeviceMesh& mesh, const Shape& shape,
                            const DeviceBuffers& input);

/// The first device and the first one that holds something else exchange what they hold.
void swap_unlike_buffers(DeviceBuffers& buffers);

}  // namespace shardplan
