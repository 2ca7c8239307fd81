#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "solver/interned.h"

namespace shardplan {

/// Which lines of a matrix (rows, or columns of its transpose) are equal. Classes are numbered in the order of their
/// first lines: lines a b a c give class_of = {0, 1, 0, 2}, first = {0, 1, 3}.
struct LineClasses {
  std::vector<std::uint32_t> class_of;  // by line
  std::vector<std::uint32_t> first;     // by class
};

/// `lines`: `count` of them, one after the other.
template <class Item>
LineClasses equal_lines(std::span<const Item> lines, std::size_t count) {
  constexpr std::uint32_t kNone = 0xffffffff;
  const std::size_t length = count > 0 ? lines.size() / count : 0;
  const auto line = [&](std::size_t at) { return lines.subspan(at * length, length); };
  LineClasses result;
  result.class_of.reserve(count);
  std::vector<std::uint64_t> hashes;                                       // by class
  std::vector<std::uint32_t> places(std::bit_ceil(2 * count + 1), kNone);  // classes, by hash; the next one if taken
  for (std::size_t at = 0; at < count; ++at) {
    const std::uint64_t hash = content_hash(line(at));
    std::size_t place = hash & (places.size() - 1);
    const auto is_other = [&](std::uint32_t known) {
      return hashes[known] != hash || !std::ranges::equal(line(result.first[known]), line(at));
    };
    while (places[place] != kNone && is_other(places[place])) place = (place + 1) & (places.size() - 1);
    if (places[place] == kNone) {
      places[place] = static_cast<std::uint32_t>(result.first.size());
      result.first.push_back(static_cast<std::uint32_t>(at));
      hashes.push_back(hash);
    }
    result.class_of.push_back(places[place]);
  }
  return result;
}

}  // namespace shardplan
