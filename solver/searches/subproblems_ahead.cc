#include "solver/searches/subproblems_ahead.h"

#include <system_error>
#include <utility>

#include "solver/core/work_meter.h"

namespace shardplan {

SubproblemsAhead::SubproblemsAhead(const BranchAndBound& exact, const CoreProblem& core, const Deadline& deadline,
                                   std::size_t threads)
    : exact_(exact), core_(core), deadline_(deadline.or_at(end_.get_token())) {
  try {
    for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {  // the search does without threads that the system does not provide
  }
}

SubproblemsAhead::~SubproblemsAhead() {
  {
    const std::lock_guard lock(mutex_);
    end_.request_stop();
  }
  changed_.notify_all();
  threads_.clear();
}

void SubproblemsAhead::expect(std::vector<BranchAndBound::Subproblem> next, double best_cost) {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(items_, [&](const auto& entry) {
      const Item& item = entry.second;
      return item.state == State::kExpected || (item.state == State::kDone && item.best_cost != best_cost);
    });
    order_.clear();
    for (BranchAndBound::Subproblem& subproblem : next) {
      const std::uint64_t number = subproblem.number;
      const bool is_new = items_.try_emplace(number, Item{std::move(subproblem), best_cost}).second;
      if (is_new) order_.push_back(number);
    }
  }
  changed_.notify_all();
}

SubproblemsAhead::Processed SubproblemsAhead::process(BranchAndBound::Subproblem subproblem, double best_cost,
                                                      DualBound& dual) {
  std::unique_lock lock(mutex_);
  const auto at = items_.find(subproblem.number);
  const bool is_of_use =
      at != items_.end() && at->second.state != State::kExpected && at->second.best_cost == best_cost;
  if (!is_of_use) {
    order_.remove(subproblem.number);
    lock.unlock();
    return processed(std::move(subproblem), best_cost, dual);
  }
  while (at->second.state != State::kDone) {
    if (!process_next(lock, dual)) changed_.wait(lock);
  }
  Processed result = std::move(at->second.processed);
  items_.erase(at);
  return result;
}

SubproblemsAhead::Processed SubproblemsAhead::processed(BranchAndBound::Subproblem subproblem, double best_cost,
                                                        DualBound& dual) const {
  // Only the deadline ends it early.
  WorkMeter meter(deadline_, kInfiniteWork);
  Processed result;
  result.outcome = exact_.process(std::move(subproblem), dual, best_cost, meter);
  result.work = meter.used();
  return result;
}

bool SubproblemsAhead::process_next(std::unique_lock<std::mutex>& lock, DualBound& dual) {
  if (order_.empty()) return false;
  Item& item = items_.at(order_.front());
  order_.pop_front();
  item.state = State::kBegun;
  lock.unlock();
  Processed result = processed(std::move(item.subproblem), item.best_cost, dual);
  lock.lock();
  item.processed = std::move(result);
  item.state = State::kDone;
  changed_.notify_all();
  return true;
}

void SubproblemsAhead::work() {
  DualBound dual(core_);
  std::unique_lock lock(mutex_);
  while (!end_.stop_requested()) {
    if (!process_next(lock, dual)) changed_.wait(lock);
  }
}

}  // namespace shardplan
