#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan.h"

namespace shardplan {

/// A factor of an operator that is sharded into pieces of unequal sizes (layouts/uneven.h).
struct UnevenCut {
  OperatorId op;
  std::string factor;
  std::int64_t size = 0;
  std::int64_t pieces = 1;
  std::int64_t largest = 0;  // size of the largest piece, for which buffers have room

  /// The share of the buffers that is padding.
  double waste() const;
};

std::vector<UnevenCut> uneven_cuts(const Plan& plan, OperatorId op);

/// "k of 50257 in 8 pieces of 6283, 0.0 % of them padding".
std::string to_string(const UnevenCut& cut);

/// Factors whose size alone prevents sharding over all devices: attention heads, and others with more positions than
/// devices. "g of 12, attention heads, in 8 pieces: pieces of 2 would leave 2 of them empty".
std::vector<std::string> cuts_that_do_not_fit(const Plan& plan, OperatorId op);

/// The summary's line: the operators that are sharded into pieces of unequal sizes, and the largest share of padding in
/// the buffers of one. Empty if there are none.
std::string uneven_line(const Plan& plan);

}  // namespace shardplan
