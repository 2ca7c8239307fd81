#pragma once

#include <cstdint>
#include <string>

#include "base/random.h"

namespace shardplan {

/// A valid model file that nobody would write: a graph of up to `most_operators` operators of most families on small
/// tensors of one to four dimensions, whose sizes are dims, numbers and products of both; some models are trained.
/// Sizes are small and many of them odd, so shards are uneven, and any dimension may have size 1.
std::string random_model(Random& random, std::size_t most_operators = 10);

/// The same model with some randomly chosen dims padded; it may be a model that cannot be padded.
std::string with_random_padding(const std::string& model, Random& random);

}  // namespace shardplan
