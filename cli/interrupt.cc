// Ctrl-C, time limits and progress. A signal handler may do very little, so a separate thread waits for signals; all
// others block them. The first signal asks holders of the token to stop with the best so far, the second ends the
// process. A repetition within a second counts as the first one: `timeout` signals a process and then its group. Reading
// a model of a hundred thousand operators, differentiating it and building its problem take seconds without a best so
// far: there the thread ends the process at once, and also at the time limit.

#include "cli/interrupt.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>
#include <mutex>
#include <system_error>
#include <thread>

#include "cli/exit_code.h"
#include "cli/terminal.h"

namespace shardplan {
namespace {

using Clock = std::chrono::steady_clock;
const Clock::time_point kStart = Clock::now();

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

constexpr double kGrace = 1;             // seconds, or a share of the limit if that is more ...
constexpr double kShareOfGrace = 0.2;    // ... in which a phase may end by itself
constexpr double kSameSignal = 1;        // seconds in which a repeated signal counts as the same one
constexpr double kFirstProgress = 1;     // seconds into a phase
constexpr double kBetweenProgress = 10;  // seconds

/// State shared by the thread and the command. Never destroyed, since the thread outlives `main`.
class Watch {
 public:
  static Watch& instance() {
    static Watch* const watch = new Watch;
    return *watch;
  }

  std::stop_source& source() { return source_; }
  std::stop_token limited(double seconds) {
    const std::lock_guard lock(mutex_);
    limited_end_ = seconds > 0 ? seconds_since(kStart) + seconds : 0;
    return limited_.get_token();
  }

  void begin(const std::string& phase, PhaseEnd end) {
    const std::lock_guard lock(mutex_);
    phase_ = phase;
    end_ = end;
    begin_ = Clock::now();
    next_progress_ = kFirstProgress;
  }
  void set_answer() {
    const std::lock_guard lock(mutex_);
    end_ = PhaseEnd::kBySelf;
  }
  void set_limit(double seconds) {
    const std::lock_guard lock(mutex_);
    limit_ = seconds;
  }

  void on_signal() {
    const std::lock_guard lock(mutex_);
    if (source_.stop_requested()) {
      if (seconds_since(first_signal_) < kSameSignal) return;
      notice(fmt::format("interrupted again{}: ended at once, without an answer",
                         phase_.empty() ? "" : " while " + phase_));
      _exit(kInterrupted);
    }
    if (end_ == PhaseEnd::kAtOnce) {
      notice(fmt::format("stopped while {}: there is no plan yet", phase_));
      _exit(kInterrupted);
    }
    first_signal_ = Clock::now();
    source_.request_stop();
    limited_.request_stop();
  }

  void on_tick() {
    const std::lock_guard lock(mutex_);
    const double most = limit_ + std::max(kGrace, kShareOfGrace * limit_);
    if (limit_ > 0 && end_ == PhaseEnd::kAtOnce && seconds_since(kStart) > most) {
      notice(fmt::format("the time limit of {:g} s ended while {}: there is no plan yet; raise --time-limit", limit_,
                         phase_));
      _exit(kNoFeasiblePlan);
    }
    if (limited_end_ > 0 && seconds_since(kStart) > limited_end_) limited_.request_stop();
    const double seconds = seconds_since(begin_);
    if (phase_.empty() || seconds < next_progress_ || !shows_progress()) return;
    notice(next_progress_ == kFirstProgress ? fmt::format("{} ...", phase_)
                                            : fmt::format("{} ... {:.0f} s", phase_, seconds));
    next_progress_ = seconds + kBetweenProgress;
  }

 private:
  std::mutex mutex_;
  std::stop_source source_;
  std::stop_source limited_;
  double limited_end_ = 0;  // seconds since the program began; 0: none
  std::string phase_;
  PhaseEnd end_ = PhaseEnd::kBySelf;
  Clock::time_point begin_ = kStart;
  Clock::time_point first_signal_ = kStart;
  double next_progress_ = kFirstProgress;
  double limit_ = 0;
};

void watch_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  const timespec tick{0, 100'000'000};
  for (;;) {
    if (sigtimedwait(&signals, nullptr, &tick) > 0) {
      Watch::instance().on_signal();
    } else {
      Watch::instance().on_tick();
    }
  }
}

void start_watching() {
  static const bool is_started = [] {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    try {
      std::thread(watch_signals).detach();
    } catch (const std::system_error&) {  // no thread available: signals then have their default effect
      pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
    }
    return true;
  }();
  (void)is_started;
}

}  // namespace

std::stop_token interrupt_token() {
  start_watching();
  return Watch::instance().source().get_token();
}

std::stop_token limited_token(double seconds) {
  start_watching();
  return Watch::instance().limited(seconds);
}

int exit_code(int code) { return Watch::instance().source().stop_requested() ? static_cast<int>(kInterrupted) : code; }

void begin_phase(const std::string& phase, PhaseEnd end) {
  start_watching();
  Watch::instance().begin(phase, end);
}

void answer_found() { Watch::instance().set_answer(); }

void limit_time(double seconds) { Watch::instance().set_limit(seconds); }

double elapsed_seconds() { return seconds_since(kStart); }

}  // namespace shardplan
