#include "planner/search/search_beside.h"

#include <utility>

#include "base/side_by_side.h"

namespace shardplan {

SearchBeside::SearchBeside(const StrategyProblem& problem, const Search& search, SearchOptions options)
    : forward_(options.limits.stop, [source = stop_]() mutable { source.request_stop(); }) {
  options.limits.stop = stop_.get_token();
  options.limits.progress = {};
  result_ = begin_beside([&problem, &search, options = std::move(options)] { return search.search(problem, options); });
}

SearchBeside::~SearchBeside() {
  stop_.request_stop();
  if (result_.valid()) result_.wait();
}

PlanResult SearchBeside::get() { return result_.get(); }

}  // namespace shardplan
