#pragma once

#include <chrono>
#include <ctime>
#include <functional>

namespace shardplan {

/// How long the call takes. Compare it with generous limits only: they tell a second from an hour on any machine.
inline double seconds_of(const std::function<void()>& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// How long the call computes, in all threads of this program: without the time for which others have the processors.
inline double processor_seconds_of(const std::function<void()>& run) {
  const std::clock_t begin = std::clock();
  run();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

}  // namespace shardplan
