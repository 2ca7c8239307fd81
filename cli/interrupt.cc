// Ctrl-C. A signal handler may do next to nothing, so a thread of its own waits for the signal: all others have it
// blocked. The first one asks whoever holds the token to stop with the best so far, the second ends the process.

#include "cli/interrupt.h"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "cli/exit_code.h"

namespace shardplan {
namespace {

std::stop_source& source() {
  static std::stop_source instance;
  return instance;
}

void wait_for_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  int received = 0;
  sigwait(&signals, &received);
  source().request_stop();
  sigwait(&signals, &received);
  _exit(kInterrupted);
}

}  // namespace

std::stop_token interrupt_token() {
  static const bool is_started = [] {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    source();
    std::thread(wait_for_signals).detach();
    return true;
  }();
  (void)is_started;
  return source().get_token();
}

int exit_code(int code) { return source().stop_requested() ? static_cast<int>(kInterrupted) : code; }

}  // namespace shardplan
