#pragma once

#include <functional>
#include <future>
#include <stop_token>

#include "solver/search.h"

namespace shardplan {

/// A search in another thread, of which the result may turn out not to be needed: it then ends with this object.
class SearchBeside {
 public:
  /// `problem` and `search` must outlive this object. Progress is not reported.
  SearchBeside(const StrategyProblem& problem, const Search& search, SearchOptions options);
  ~SearchBeside();
  SearchBeside(const SearchBeside&) = delete;
  SearchBeside& operator=(const SearchBeside&) = delete;

  /// Waits for the result; only once.
  PlanResult get();

 private:
  std::stop_source stop_;
  std::stop_callback<std::function<void()>> forward_;  // from the caller's token to the own one
  std::future<PlanResult> result_;
};

}  // namespace shardplan
