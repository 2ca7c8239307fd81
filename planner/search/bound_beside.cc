#include "planner/search/bound_beside.h"

#include <utility>

namespace shardplan {

BoundBeside::BoundBeside(Seek seek, std::stop_token stop) : seek_(std::move(seek)), stop_(std::move(stop)) {}

BoundBeside::~BoundBeside() { end(); }

void BoundBeside::begin(const Choice& known) {
  if (known_ == known) return;
  end();
  known_ = known;
  own_stop_ = std::stop_source();
  forward_.emplace(stop_, [source = own_stop_]() mutable { source.request_stop(); });
  bound_ = std::async(std::launch::async, seek_, *known_, own_stop_.get_token());
}

LevelValue BoundBeside::get() { return bound_.get(); }

void BoundBeside::end() {
  if (!bound_.valid()) return;
  own_stop_.request_stop();
  bound_.wait();
}

}  // namespace shardplan
