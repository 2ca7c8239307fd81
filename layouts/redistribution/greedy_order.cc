#include "layouts/redistribution/greedy_order.h"

#include <algorithm>

#include "base/error.h"

namespace shardplan {
namespace {

class GreedyOrder {
 public:
  GreedyOrder(std::vector<std::int64_t> from, const std::vector<std::int64_t>& to) : now_(std::move(from)), to_(to) {}

  std::vector<GreedyMove> run() {
    while (now_ != to_) {
      const std::size_t before = moves_.size();
      for (bool has_moved = true; has_moved;) {
        has_moved = slice_all();
        while (exchange_all()) has_moved = true;
      }
      gather_unwanted();
      if (moves_.size() == before) gather_first();
    }
    return std::move(moves_);
  }

 private:
  /// The digit that an axis currently shards; the number of digits if none.
  std::size_t holder(std::int64_t axis) const {
    return static_cast<std::size_t>(std::find(now_.begin(), now_.end(), axis) - now_.begin());
  }
  bool waits(std::size_t digit) const { return now_[digit] == kNotSharded && to_[digit] != kNotSharded; }

  bool slice_all() {
    const std::size_t before = moves_.size();
    for (std::size_t digit = 0; digit < now_.size(); ++digit) {
      if (!waits(digit) || holder(to_[digit]) < now_.size()) continue;
      moves_.push_back({GreedyMove::Kind::kSlice, digit});
      now_[digit] = to_[digit];
    }
    return moves_.size() > before;
  }
  bool exchange_all() {
    const std::size_t before = moves_.size();
    for (std::size_t digit = 0; digit < now_.size(); ++digit) {
      if (!waits(digit)) continue;
      const std::size_t from = holder(to_[digit]);
      if (from == now_.size()) continue;
      moves_.push_back({GreedyMove::Kind::kExchange, digit, from});
      now_[from] = kNotSharded;
      now_[digit] = to_[digit];
    }
    return moves_.size() > before;
  }
  void gather_unwanted() {
    for (std::size_t digit = 0; digit < now_.size(); ++digit) {
      if (now_[digit] == kNotSharded || now_[digit] == to_[digit]) continue;
      if (std::find(to_.begin(), to_.end(), now_[digit]) == to_.end()) gather(digit);
    }
  }
  void gather_first() {
    std::size_t digit = 0;
    while (now_[digit] == to_[digit]) ++digit;
    SHARDPLAN_CHECK(now_[digit] != kNotSharded);
    gather(digit);
  }
  void gather(std::size_t digit) {
    moves_.push_back({GreedyMove::Kind::kGather, digit});
    now_[digit] = kNotSharded;
  }

  std::vector<std::int64_t> now_;
  const std::vector<std::int64_t>& to_;
  std::vector<GreedyMove> moves_;
};

}  // namespace

std::vector<GreedyMove> greedy_order(std::vector<std::int64_t> from, const std::vector<std::int64_t>& to) {
  SHARDPLAN_CHECK(from.size() == to.size());
  return GreedyOrder(std::move(from), to).run();
}

}  // namespace shardplan
