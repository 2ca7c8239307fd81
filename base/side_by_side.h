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

/// Calls `work(thread, i)` once for each i below `count`, on up to `threads` threads of which the caller's is number 0, fewer
/// where the system gives no more; whichever is free takes the next one. Which thread that is is not to matter: what `work`
/// finds goes to a place of its own, and a thread's number stands for scratch memory. Of what is thrown the exception of the
/// least i arrives, after all calls have ended.
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
    } catch (const std::system_error&) {  // those that there are do all
    }
    take(0);
  }
  for (const std::exception_ptr& one : thrown) {
    if (one) std::rethrow_exception(one);
  }
}

/// Begins `work` on a thread of its own; where the system gives none, the call that asks for the result does it.
template <class Work>
auto begin_beside(const Work& work) {
  try {
    return std::async(std::launch::async, work);
  } catch (const std::system_error&) {
    return std::async(std::launch::deferred, work);
  }
}

/// How many threads run at once here, `most` of them at most.
inline std::size_t num_processors(std::size_t most) {
  return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, most);
}

}  // namespace shardplan
