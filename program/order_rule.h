#pragma once

#include <cstddef>
#include <cstdint>

namespace shardplan {

/// How an order is made, before its own times refine it: which sequence and which buckets. Steps of like
/// programs are compared by one rule's orders in a small part of the time that looking for the fastest takes.
struct OrderRule {
  enum class Sequence : std::uint8_t {
    kGiven,          // but for what the user joins
    kEarly,          // communication is issued early
    kDelayed,        // and kernels that wait for it late
    kListed,         // list scheduling from the beginning
    kListedFromEnd,  // and from the end
  };
  Sequence sequence = Sequence::kGiven;
  std::size_t buckets = 0;  // a position in `rules_to_try` (program/bucket_rules.h)
};

}  // namespace shardplan
