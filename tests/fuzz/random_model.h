#pragma once

#include <cstdint>
#include <string>

#include "base/random.h"

namespace shardplan {

/// A model file that nobody would write but that is right: a graph of up to `most_operators` operators of most families
/// on small tensors of one to four dimensions, whose sizes are dims, numbers and products of both; some of them trained.
/// Sizes are small and many of them odd, so that cuts are uneven and dimensions of size 1 stand anywhere.
std::string random_model(Random& random, std::size_t most_operators = 10);

/// The same model with some of its dims padded, by chance; it may be one of those that cannot be.
std::string with_random_padding(const std::string& model, Random& random);

}  // namespace shardplan
