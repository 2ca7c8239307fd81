#pragma once

#include <stop_token>
#include <string>

namespace shardplan {

/// The processes of a job, and how long to wait for them.
struct JobOptions {
  std::string host = "127.0.0.1";  // of the scheduler
  int port = 0;                    // 0: the scheduler takes a free one
  int workers = 1;
  double timeout = 60;  // seconds until all have joined, and without a sign of life afterwards
  std::stop_token stop = {};
};

/// The first part of each message of a job. The comments list the parts that follow it, in order:
namespace job_word {
inline constexpr char kHello[] =
    "hello";  // worker -> scheduler: wanted rank or "", number of workers, address, fingerprint
inline constexpr char kWelcome[] = "welcome";  // scheduler -> worker: its rank, the addresses of all workers
inline constexpr char kHere[] = "here";        // worker -> worker: rank; both connections between the two must exist
inline constexpr char kReady[] = "ready";      // worker -> scheduler: rank; it has heard of all others
inline constexpr char kData[] = "data";        // worker -> worker: rank, instruction, a buffer for each device
inline constexpr char kTaken[] = "taken";      // worker -> worker: rank, instruction whose data was received
inline constexpr char kDone[] = "done";        // worker -> scheduler: rank
inline constexpr char kFailed[] = "failed";    // worker -> scheduler: rank, why
inline constexpr char kBye[] = "bye";          // scheduler -> worker: all are done
inline constexpr char kStop[] = "stop";        // scheduler -> worker: why the job ends
}  // namespace job_word

}  // namespace shardplan
