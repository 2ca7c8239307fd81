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

/// A worker's properties before it has found the others.
struct WorkerIdentity {
  std::optional<int> rank;      // nothing: any that is left
  std::string address;          // of this machine, as others reach it
  std::string fingerprint;      // of the program it runs; workers with different ones are refused
  std::int64_t most_bytes = 0;  // the most that the program sends it for one device
};

/// One worker's part in a job of processes: it finds the others through the scheduler and exchanges the data of the
/// program's sends with them. A send waits until the other worker has received it, as in the program's order of
/// blocking sends, so that at most one message of each worker is on its way.
///
/// All functions throw InputError if the job is over: the scheduler or another worker is gone, or the scheduler gives
/// the reason for ending it; and Stopped if asked to stop.
class WorkerLink : public SendChannel {
 public:
  /// Joins the job: returns when all workers have joined and found each other. Also throws InputError if they do not
  /// within the time limit. Later, a worker that computes for longer is waited for as long as it is alive.
  WorkerLink(const JobOptions& options, const WorkerIdentity& identity);

  int rank() const { return rank_; }
  int workers() const { return static_cast<int>(peers_.size()); }

  void send(int to, std::size_t instruction, const DeviceBuffers& buffers) override;
  DeviceBuffers receive(int from, std::size_t instruction) override;

  /// Reports that this worker is done; returns when all are.
  void finish();
  /// Tells the scheduler why this worker cannot continue, and waits a little until all others know.
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
  /// Another process is gone or late: waits for the scheduler's reason, and throws it if there is one.
  void hear_the_reason(double seconds);
  std::string name_of(std::size_t peer) const;
  std::string missing_peers() const;
  std::size_t peer_of(int worker) const;

  const JobOptions& options_;
  Transport transport_;
  std::size_t scheduler_ = 0;
  int rank_ = -1;
  std::vector<std::optional<std::size_t>> peers_;  // by rank; nothing for this worker itself
  std::set<int> here_;                             // workers that sent `kHere`
  std::map<int, Arrived> arrived_;                 // received from each worker and not yet read
  std::map<int, std::size_t> taken_;               // instruction whose data each has received last, until it is noticed
  bool is_done_ = false;                           // this worker is; the scheduler then watches the others
  bool is_over_ = false;                           // the scheduler said goodbye
};

}  // namespace shardplan
