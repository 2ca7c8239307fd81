#pragma once

#include <cstddef>
#include <cstdint>

namespace shardplan {

/// How an order is made before it is refined by its own times: which sequence and which buckets. Steps of similar
/// programs are compared by the orders of one rule, which takes a small part of the time of searching for the fastest
/// order.
struct OrderRule {
  enum class Sequence : std::uint8_t {
    kGiven,          // the given order, except for what the user joins
    kEarly,          // communication is issued early
    kDelayed,        // as kEarly, with kernels that wait for communication placed late
    kListed,         // list scheduling from the beginning
    kListedFromEnd,  // list scheduling from the end
  };
  Sequence sequence = Sequence::kGiven;
  std::size_t buckets = 0;  // a position in `rules_to_try` (program/bucket_rules.h)
};

}  // namespace shardplan
