#include "planner/search/bound_beside.h"

#include <utility>

#include "base/side_by_side.h"

namespace shardplan {

BoundBeside::BoundBeside(Seek seek, std::stop_token stop) : seek_(std::move(seek)), stop_(std::move(stop)) {}

BoundBeside::~BoundBeside() { end(); }

void BoundBeside::begin(const Choice& known) {
  if (known_ == known) return;
  end();
  known_ = known;
  own_stop_ = std::stop_source();
  forward_.emplace(stop_, [source = own_stop_]() mutable { source.request_stop(); });
  bound_ = begin_beside([this, known, stop = own_stop_.get_token()] { return seek_(known, stop); });
}

LevelValue BoundBeside::get() { return bound_.get(); }

void BoundBeside::end() {
  if (!bound_.valid()) return;
  own_stop_.request_stop();
  bound_.wait();
}

}  // namespace shardplan
