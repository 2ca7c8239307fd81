#include "layouts/redistribution/redistribution.h"

#include <algorithm>

namespace shardplan {

void add_up(Redistribution& redistribution, Bytes tensor_bytes) {
  redistribution.time = 0;
  redistribution.sent = 0;
  redistribution.peak = tensor_bytes / num_shards(redistribution.from);
  for (const CollectiveStep& step : redistribution.steps) {
    redistribution.time += step.time;
    redistribution.sent += step.sent;
    redistribution.peak =
        std::max(redistribution.peak, tensor_bytes / num_shards(step.before) + tensor_bytes / num_shards(step.after));
  }
}

std::int64_t least_shards(const Redistribution& redistribution) {
  std::int64_t least = INT64_MAX;
  for (const CollectiveStep& step : redistribution.steps) least = std::min(least, num_shards(step.after));
  return least;
}

bool exceeds_larger_end(const Redistribution& redistribution) {
  return least_shards(redistribution) < std::min(num_shards(redistribution.from), num_shards(redistribution.to));
}

}  // namespace shardplan
