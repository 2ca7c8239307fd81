#pragma once

#include <cstddef>

#include "simulator/execute/collectives.h"

namespace shardplan {

/// How a worker in its own process sends to and receives from others. Both wait for each other: a send returns when the
/// other worker has received it. `instruction` is the send's position in the program that both have.
class SendChannel {
 public:
  virtual ~SendChannel() = default;
  virtual void send(int to, std::size_t instruction, const DeviceBuffers& buffers) = 0;
  virtual DeviceBuffers receive(int from, std::size_t instruction) = 0;
};

}  // namespace shardplan
