#include "simulator/workers/scheduler.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/parse_number.h"
#include "simulator/execute/reference.h"
#include "simulator/workers/transport.h"

// A state machine over messages: gather (hello from every worker), welcome (ranks and addresses), watch (ready, done,
// failed or lost). It waits in short slices, so that it notices interrupts and time limits. If a job ends early, the
// reason is sent to every worker that is still connected.

namespace shardplan {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSliceSeconds = 0.1;  // between checks whether to stop
constexpr double kFarewellSeconds = 3;
constexpr double kSecondsForTheLast = 0.5;  // a job that fails still answers workers that arrive within this time
constexpr int kMostRefusals = 100;          // of workers that come too late; further ones get no answer
constexpr int kMostNamedWorkers = 8;        // of missing workers

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

class Scheduler {
 public:
  Scheduler(const JobOptions& options, const std::function<void(const std::string&)>& progress)
      : options_(options),
        progress_(progress),
        transport_({.host = options.host,
                    .port = options.port,
                    .silence = options.timeout,
                    .key = Transport::Key::kOfSchedulers}) {}

  void run() {
    progress_(
        fmt::format("scheduler at {}: waiting for {} workers", shown_address(transport_.address()), options_.workers));
    try {
      gather();
      welcome();
      watch();
    } catch (const InputError& error) {
      dismiss(job_word::kStop, error.what());
      throw;
    } catch (const Stopped&) {
      dismiss(job_word::kStop, "the scheduler was interrupted");
      throw;
    }
    dismiss(job_word::kBye, "");
    progress_(fmt::format("all {} workers are done", options_.workers));
  }

 private:
  struct Worker {
    std::size_t peer = 0;
    std::optional<int> rank;
    std::string address;
    bool is_there = true;
    bool is_ready = false;
    bool is_done = false;

    std::string name() const {
      return rank ? fmt::format("worker {}", *rank) : fmt::format("a worker at {}", shown_address(address));
    }
  };

  /// The next event; nothing after a short while. A message has at least one part.
  std::optional<Transport::Event> next() {
    if (options_.stop.stop_requested()) throw Stopped();
    std::optional<Transport::Event> event = transport_.wait(kSliceSeconds);
    if (event && event->lost) {
      for (Worker& worker : workers_) {
        if (worker.peer != *event->lost || !worker.is_there) continue;
        worker.is_there = false;
        throw InputError(SourcePlace{}, "{} is gone", worker.name());
      }
    }
    return event;
  }

  void gather() {
    const Clock::time_point begin = Clock::now();
    while (workers_.size() < static_cast<std::size_t>(options_.workers)) {
      const std::optional<Transport::Event> event = next();
      if (event && is_hello(event->message)) admit(event->message);
      if (seconds_since(begin) > options_.timeout) throw_missing();
    }
    for (Worker& worker : workers_) {
      for (int rank = 0; !worker.rank; ++rank) {
        if (holder_of(rank) == nullptr) worker.rank = rank;
      }
    }
    std::sort(workers_.begin(), workers_.end(), [](const Worker& a, const Worker& b) { return a.rank < b.rank; });
  }

  static bool is_hello(const MessageParts& message) {
    return message.size() == 5 && message[0] == job_word::kHello &&
           (message[1].empty() || parse_number<int>(message[1])) && parse_number<int>(message[2]) &&
           message[3].starts_with("tcp://");
  }

  [[noreturn]] void throw_missing() const {
    if (workers_.size() == static_cast<std::size_t>(options_.workers)) {
      std::vector<std::string> silent;
      for (const Worker& worker : workers_) {
        if (!worker.is_ready) silent.push_back(worker.name());
      }
      throw InputError(SourcePlace{}, "within {:g} seconds, nothing came from {}", options_.timeout,
                       fmt::join(silent, ", "));
    }
    const bool all_said =
        std::all_of(workers_.begin(), workers_.end(), [](const Worker& w) { return w.rank.has_value(); });
    std::string missing;
    int count = 0;
    for (int rank = 0; all_said && !workers_.empty() && rank < options_.workers; ++rank) {
      if (holder_of(rank) != nullptr) continue;
      if (++count <= kMostNamedWorkers) missing += fmt::format("{} worker {}", count == 1 ? ";" : ",", rank);
    }
    if (count > kMostNamedWorkers) missing += fmt::format(" and {} more", count - kMostNamedWorkers);
    throw InputError(SourcePlace{}, "{} of {} workers came within {:g} seconds{}{}", workers_.size(), options_.workers,
                     options_.timeout, missing,
                     count == 0   ? ""
                     : count == 1 ? " is missing"
                                  : " are missing");
  }

  const Worker* holder_of(int rank) const {
    const auto found =
        std::find_if(workers_.begin(), workers_.end(), [&](const Worker& worker) { return worker.rank == rank; });
    return found == workers_.end() ? nullptr : &*found;
  }

  void admit(const MessageParts& hello) {
    Worker worker;
    worker.address = hello[3];
    try {
      worker.peer = transport_.connect(worker.address);
    } catch (const InputError&) {
      return;  // not one of our workers
    }
    const std::optional<int> rank = parse_number<int>(hello[1]);
    const Worker* const other = rank ? holder_of(*rank) : nullptr;
    workers_.push_back(worker);  // so that it also receives the error
    if (const std::optional<int> count = parse_number<int>(hello[2]); count != options_.workers) {
      throw InputError(SourcePlace{}, "a worker comes for a job of {} workers; this one has {}", *count,
                       options_.workers);
    }
    if (other != nullptr || (rank && (*rank < 0 || *rank >= options_.workers))) {
      throw InputError(SourcePlace{}, "a worker asks for rank {}, {}", *rank,
                       other != nullptr ? "which another one has"
                                        : fmt::format("but the workers are 0 to {}", options_.workers - 1));
    }
    workers_.back().rank = rank;
    if (workers_.size() == 1) fingerprint_ = hello[4];
    if (hello[4] != fingerprint_) {
      throw InputError(
          SourcePlace{},
          "{} does not match {}: model, plan, options, seed and the version of shardplan must all be the same",
          workers_.back().name(), workers_.front().name());
    }
    progress_(fmt::format("{} of {} workers are here", workers_.size(), options_.workers));
  }

  /// Sends `why` to a worker that joins too late.
  void refuse(const MessageParts& hello, const std::string& why) {
    if (++refusals_ > kMostRefusals) return;
    try {
      transport_.send(transport_.connect(hello[3]), {job_word::kStop, why});
    } catch (const InputError&) {
      // It gave no valid address.
    }
  }

  void welcome() {
    for (const Worker& worker : workers_) {
      MessageParts message{job_word::kWelcome, std::to_string(*worker.rank)};
      for (const Worker& each : workers_) message.push_back(each.address);
      transport_.send(worker.peer, message);
    }
  }

  void watch() {
    const Clock::time_point begin = Clock::now();
    std::size_t ready = 0;
    std::size_t done = 0;
    while (done < workers_.size()) {
      const std::optional<Transport::Event> event = next();
      if (ready < workers_.size() && seconds_since(begin) > options_.timeout) throw_missing();
      if (!event || event->message.size() < 2) continue;
      const std::string& word = event->message[0];
      if (is_hello(event->message)) {
        refuse(event->message, fmt::format("all {} workers are here already", options_.workers));
        continue;
      }
      const std::optional<int> rank = parse_number<int>(event->message[1]);
      if (!rank || *rank < 0 || *rank >= options_.workers) continue;
      Worker& worker = workers_[static_cast<std::size_t>(*rank)];
      if (word == job_word::kFailed && event->message.size() == 3) {
        throw InputError(SourcePlace{}, "worker {}: {}", *rank, without_prefix(event->message[2]));
      }
      if (word == job_word::kReady && !worker.is_ready) {
        worker.is_ready = true;
        ++ready;
      } else if (word == job_word::kDone && worker.is_ready && !worker.is_done) {
        worker.is_done = true;
        ++done;
      }
    }
  }

  /// Drops the "error: " of another process's error, so that it appears once.
  static std::string without_prefix(const std::string& why) {
    const std::string prefix = "error: ";
    return why.starts_with(prefix) ? why.substr(prefix.size()) : why;
  }

  /// Tells all connected workers that the job is over, and waits a little until they have disconnected.
  void dismiss(const std::string& word, const std::string& why) {
    std::size_t left = 0;
    for (Worker& worker : workers_) {
      if (!worker.is_there) continue;
      try {
        transport_.send(worker.peer, {word, without_prefix(why)});
        ++left;
      } catch (const InputError&) {
        worker.is_there = false;  // it will notice on its own
      }
    }
    const Clock::time_point begin = Clock::now();
    const auto is_waiting = [&] {
      const double seconds = seconds_since(begin);
      return (left > 0 && seconds < kFarewellSeconds) || (word == job_word::kStop && seconds < kSecondsForTheLast);
    };
    while (is_waiting()) {
      const std::optional<Transport::Event> event = transport_.wait(kSliceSeconds);
      if (event && event->lost && left > 0) --left;
      if (event && is_hello(event->message)) refuse(event->message, without_prefix(why));
    }
  }

  const JobOptions& options_;
  const std::function<void(const std::string&)>& progress_;
  Transport transport_;
  std::vector<Worker> workers_;  // in the order of arrival; later by rank
  std::string fingerprint_;
  int refusals_ = 0;
};

}  // namespace

void run_scheduler(const JobOptions& options, const std::function<void(const std::string&)>& progress) {
  Scheduler(options, progress).run();
}

}  // namespace shardplan
