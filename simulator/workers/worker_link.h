#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "simulator/execute/send_channel.h"
#include "simulator/workers/job.h"
#include "simulator/workers/transport.h"

namespace shardplan {

/// Who a worker is before it has found the others.
struct WorkerIdentity {
  std::optional<int> rank;      // nothing takes any that is left
  std::string address;          // of this machine, as the others reach it
  std::string fingerprint;      // of what it runs; workers with unequal ones are refused
  std::int64_t most_bytes = 0;  // of what the program sends it for one device
};

/// One worker's part in a job of processes: it finds the others through the scheduler, and exchanges with each of them
/// what the program's sends say. A send waits until the other has taken it, as in the program's order of blocking sends,
/// so that at most one message of each worker is on its way.
///
/// All functions throw InputError where the job is over: the scheduler or another worker is gone, or the scheduler says
/// why it ends the job; and Stopped if asked to stop.
class WorkerLink : public SendChannel {
 public:
  /// Joins the job: returns when all workers are there and have heard of each other. Throws InputError too where they do
  /// not come within the time limit. A worker that computes for longer is waited for as long as it is alive.
  WorkerLink(const JobOptions& options, const WorkerIdentity& identity);

  int rank() const { return rank_; }
  int workers() const { return static_cast<int>(peers_.size()); }

  void send(int to, std::size_t instruction, const DeviceBuffers& buffers) override;
  DeviceBuffers receive(int from, std::size_t instruction) override;

  /// Says that this worker is done; returns when all are.
  void finish();
  /// Tells the scheduler why this worker cannot go on, and waits a little until all others know.
  void fail(const std::string& why) noexcept;

 private:
  struct Arrived {
    std::size_t instruction = 0;
    DeviceBuffers buffers;
  };

  template <class Condition>
  void wait_until(const Condition& is_there, double seconds, const std::string& what);
  void take(MessageParts& message);
  void take_welcome(const MessageParts& message);
  /// Somebody is gone or late: the scheduler may know why, which then is thrown.
  void hear_the_reason(double seconds);
  std::string name_of(std::size_t peer) const;
  std::string missing_peers() const;
  std::size_t peer_of(int worker) const;

  const JobOptions& options_;
  Transport transport_;
  std::size_t scheduler_ = 0;
  int rank_ = -1;
  std::vector<std::optional<std::size_t>> peers_;  // by rank; nothing for this worker itself
  std::set<int> here_;                             // workers that have said so
  std::map<int, Arrived> arrived_;                 // what each has sent and nobody has received yet
  std::map<int, std::size_t> taken_;               // instruction whose data each has taken last, until it is seen
  bool is_done_ = false;                           // this worker; the scheduler minds the others then
  bool is_over_ = false;                           // the scheduler said goodbye
};

}  // namespace shardplan
