#pragma once

#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// Writes to stored keys and values of earlier tokens, which inference keeps from step to step: KVCacheScatterUpdate.
std::vector<OperatorType> key_value_cache_operators();

}  // namespace shardplan
