#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <future>
#include <system_error>
#include <thread>
#include <vector>

namespace shardplan {

/// Calls `work(thread, i)` once for each i below `count`, on up to `threads` threads (fewer if the system provides no
/// more); the caller's thread is number 0. A free thread takes the next i. Results must not depend on which thread that
/// is: `work` writes its result to a separate place per i, and uses the thread number to select scratch memory. If
/// calls throw, the exception of the least i is rethrown after all calls have ended.
template <class Work>
void side_by_side(std::size_t threads, std::size_t count, const Work& work) {
  std::vector<std::exception_ptr> thrown(count);
  std::atomic<std::size_t> next = 0;
  const auto take = [&](std::size_t thread) {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(thread, i);
      } catch (...) {
        thrown[i] = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> others;
    try {
      for (std::size_t thread = 1; thread < std::min(threads, count); ++thread) others.emplace_back(take, thread);
    } catch (const std::system_error&) {  // the threads started so far do all the work
    }
    take(0);
  }
  for (const std::exception_ptr& one : thrown) {
    if (one) std::rethrow_exception(one);
  }
}

/// Starts `work` on its own thread; if the system provides none, the call that asks for the result runs it.
template <class Work>
auto begin_beside(const Work& work) {
  try {
    return std::async(std::launch::async, work);
  } catch (const std::system_error&) {
    return std::async(std::launch::deferred, work);
  }
}

/// The number of threads that run at once on this machine, at most `most`.
inline std::size_t num_processors(std::size_t most) {
  return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, most);
}

}  // namespace shardplan
