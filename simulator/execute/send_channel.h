#pragma once

#include <cstddef>

#include "simulator/execute/collectives.h"

namespace shardplan {

/// How a worker that runs by itself sends to others and receives from them. Both wait for each other: a send returns when
/// the other worker has taken it. `instruction` is the send's place in the program, which both have.
class SendChannel {
 public:
  virtual ~SendChannel() = default;
  virtual void send(int to, std::size_t instruction, const DeviceBuffers& buffers) = 0;
  virtual DeviceBuffers receive(int from, std::size_t instruction) = 0;
};

}  // namespace shardplan
