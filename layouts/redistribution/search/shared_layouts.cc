#include "layouts/redistribution/search/shared_layouts.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace shardplan {
namespace {

/// The slots of one dimension in a space, each as its number of parts; the last is all the rest.
std::vector<std::int64_t> parts_of_dimension(const LayoutSpace& space, std::size_t dimension, std::int64_t extent) {
  std::vector<std::int64_t> parts;
  for (const Slot& slot : space.slots) {
    if (slot.dimension != dimension) continue;
    parts.push_back(slot.continues ? slot.extent : extent);
    if (slot.continues) extent /= slot.extent;
  }
  return parts;
}

/// Whether pieces of together `shards` can follow each other without a gap from the beginning of slot `first`.
bool can_shard(const std::vector<std::int64_t>& parts, std::size_t first, std::int64_t shards) {
  for (std::size_t slot = first; slot < parts.size(); ++slot) {
    if (parts[slot] % shards == 0) return true;
    if (shards % parts[slot] != 0) return false;
    shards /= parts[slot];
  }
  return false;
}

std::vector<std::int64_t> divisors_of(std::int64_t number) {
  std::vector<std::int64_t> divisors;
  for (std::int64_t i = 1; i * i <= number; ++i) {
    if (number % i != 0) continue;
    divisors.push_back(i);
    if (i * i < number) divisors.push_back(number / i);
  }
  return divisors;
}

std::int64_t power_in(std::int64_t number, std::int64_t prime) {
  std::int64_t power = 1;
  for (; number % prime == 0; number /= prime) power *= prime;
  return power;
}

/// Where slots of both spaces begin in one dimension, ascending.
struct Beginning {
  std::int64_t rows = 1;             // before it
  std::vector<std::int64_t> shards;  // of the stretches of pieces that can follow
};

std::vector<Beginning> common_beginnings(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b,
                                         const std::vector<std::int64_t>& divisors) {
  std::vector<Beginning> result;
  std::size_t in_a = 0, in_b = 0;
  std::int64_t rows_a = 1, rows_b = 1;
  while (in_a < a.size() && in_b < b.size()) {
    if (rows_a == rows_b) {
      Beginning beginning{rows_a, {}};
      for (const std::int64_t shards : divisors) {
        if (can_shard(a, in_a, shards) && can_shard(b, in_b, shards)) beginning.shards.push_back(shards);
      }
      result.push_back(std::move(beginning));
    }
    if (rows_a <= rows_b) {
      rows_a *= a[in_a++];
    } else {
      rows_b *= b[in_b++];
    }
  }
  return result;
}

/// The greatest power of a prime by which stretches that do not overlap can shard the dimension together.
std::int64_t most_power(const std::vector<Beginning>& beginnings, std::int64_t prime) {
  std::vector<std::int64_t> most(beginnings.size() + 1, 1);  // from a beginning on
  for (std::size_t i = beginnings.size(); i-- > 0;) {
    most[i] = most[i + 1];
    for (const std::int64_t shards : beginnings[i].shards) {
      const auto next = std::ranges::lower_bound(beginnings, beginnings[i].rows * shards, {}, &Beginning::rows);
      most[i] = std::max(most[i], power_in(shards, prime) * most[next - beginnings.begin()]);
    }
  }
  return most[0];
}

}  // namespace

std::int64_t most_shards_in_both(const LayoutSpace& a, const LayoutSpace& b, const Shape& shape) {
  const std::int64_t devices = std::gcd(num_devices(a), num_devices(b));
  const std::vector<std::int64_t> divisors = divisors_of(devices);
  std::vector<std::vector<Beginning>> dimensions;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    dimensions.push_back(
        common_beginnings(parts_of_dimension(a, d, shape[d]), parts_of_dimension(b, d, shape[d]), divisors));
  }
  std::int64_t product = 1;
  std::int64_t left = devices;
  for (std::int64_t prime = 2; left > 1; ++prime) {
    const std::int64_t available = power_in(left, prime);
    if (available == 1) continue;
    left /= available;
    std::int64_t used = 1;
    for (const std::vector<Beginning>& beginnings : dimensions) {
      used = std::min(available, used * most_power(beginnings, prime));
    }
    product *= used;
  }
  return product;
}

bool are_spaces_apart(const RedistributionGraph& graph, const Shape& shape, std::uint32_t source, std::uint32_t target,
                      std::int64_t least_shards) {
  const std::vector<LayoutSpace>& spaces = graph.spaces();
  std::vector<char> is_reached(spaces.size(), 0);
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < spaces.size(); ++i) {
    if (graph.placement(source, i) == nullptr) continue;
    is_reached[i] = 1;
    open.push_back(i);
  }
  while (!open.empty()) {
    const std::size_t here = open.back();
    open.pop_back();
    if (graph.placement(target, here) != nullptr) return false;
    for (std::size_t i = 0; i < spaces.size(); ++i) {
      if (is_reached[i] != 0 || most_shards_in_both(spaces[here], spaces[i], shape) < least_shards) continue;
      is_reached[i] = 1;
      open.push_back(i);
    }
  }
  return true;
}

}  // namespace shardplan
