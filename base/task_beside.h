#pragma once

#include <functional>
#include <future>
#include <stop_token>
#include <utility>

#include "base/side_by_side.h"

namespace shardplan {

/// Work in another thread, of which the result may turn out not to be needed: it then ends with this object.
template <class Result>
class TaskBeside {
 public:
  /// `work` should end soon after its token, which follows `stop`, requests it.
  TaskBeside(std::function<Result(std::stop_token)> work, std::stop_token stop)
      : forward_(std::move(stop), [source = stop_]() mutable { source.request_stop(); }),
        result_(begin_beside([work = std::move(work), token = stop_.get_token()] { return work(token); })) {}
  ~TaskBeside() {
    stop_.request_stop();
    if (result_.valid()) result_.wait();
  }
  TaskBeside(const TaskBeside&) = delete;
  TaskBeside& operator=(const TaskBeside&) = delete;

  /// Waits for the result; only once.
  Result get() { return result_.get(); }

 private:
  std::stop_source stop_;
  std::stop_callback<std::function<void()>> forward_;  // from the caller's token to the own one
  std::future<Result> result_;
};

}  // namespace shardplan
