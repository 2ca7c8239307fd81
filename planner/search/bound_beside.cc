#include "planner/search/bound_beside.h"

#include <utility>

namespace shardplan {

BoundBeside::BoundBeside(Seek seek, std::stop_token stop) : seek_(std::move(seek)), stop_(std::move(stop)) {}

void BoundBeside::begin(const Choice& known) {
  if (known_ == known) return;
  bound_.reset();
  known_ = known;
  bound_.emplace([this, known](std::stop_token stop) { return seek_(known, std::move(stop)); }, stop_);
}

LevelValue BoundBeside::get() { return bound_->get(); }

}  // namespace shardplan
