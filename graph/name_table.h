#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "base/random.h"

namespace shardplan {

/// Finds the position of a name in a list of names. Takes five to eleven bytes per name, since the names stay in the
/// list; `name_at` returns the name at a position.
///
/// A slot holds a position, in as many bits as a slot's number has, and a part of the name's hash in the other bits. A
/// name is read only if that part matches, so that a lookup in a large list does not miss the cache for every slot it
/// passes.
class NameTable {
 public:
  void clear() {
    slots_.clear();
    count_ = 0;
  }
  /// Makes room for this many names; the table must be empty.
  void reserve(std::size_t count) {
    std::size_t slots = kFewestSlots;
    while (4 * count > 3 * slots) slots *= 2;
    slots_.assign(slots, kFree);
  }

  template <class NameAt>
  std::optional<std::size_t> find(std::string_view name, const NameAt& name_at) const {
    if (slots_.empty()) return std::nullopt;
    const std::uint32_t found = slots_[slot_of(name, hash(name), name_at)];
    return found == kFree ? std::nullopt : std::optional<std::size_t>(position(found));
  }

  /// Adds the name at a position; false if the name was added before at another position.
  template <class NameAt>
  bool add(std::size_t position, const NameAt& name_at) {
    while (4 * (count_ + 1) > 3 * slots_.size() || position + 1 >= slots_.size()) grow(name_at);
    const std::string_view name = name_at(position);
    const std::uint64_t own = hash(name);
    std::uint32_t& slot = slots_[slot_of(name, own, name_at)];
    if (slot != kFree) return false;
    slot = part(own) | static_cast<std::uint32_t>(position);
    ++count_;
    return true;
  }

 private:
  static constexpr std::size_t kFewestSlots = 16;
  static constexpr std::uint32_t kFree = std::numeric_limits<std::uint32_t>::max();  // never an entry, see `add`

  static std::uint64_t hash(std::string_view name) { return mix(std::hash<std::string_view>()(name)); }
  std::uint32_t position(std::uint32_t slot) const { return slot & static_cast<std::uint32_t>(slots_.size() - 1); }
  /// The bits of a slot that hold a part of the hash.
  std::uint32_t part(std::uint64_t hash) const {
    return static_cast<std::uint32_t>(hash >> 32) & ~static_cast<std::uint32_t>(slots_.size() - 1);
  }

  /// The slot of the name, or the free slot in which it belongs.
  template <class NameAt>
  std::size_t slot_of(std::string_view name, std::uint64_t hash, const NameAt& name_at) const {
    const std::size_t last = slots_.size() - 1;
    const std::uint32_t own = part(hash);
    std::size_t slot = hash & last;
    while (slots_[slot] != kFree &&
           (slots_[slot] - position(slots_[slot]) != own || name_at(position(slots_[slot])) != name)) {
      slot = (slot + 1) & last;
    }
    return slot;
  }

  template <class NameAt>
  void grow(const NameAt& name_at) {
    std::vector<std::uint32_t> positions;
    positions.reserve(count_);
    for (const std::uint32_t slot : slots_) {
      if (slot != kFree) positions.push_back(position(slot));
    }
    std::sort(positions.begin(), positions.end());  // names at neighbouring positions are close in memory
    slots_.assign(slots_.empty() ? kFewestSlots : 2 * slots_.size(), kFree);
    for (const std::uint32_t position : positions) {
      const std::uint64_t own = hash(name_at(position));
      std::size_t slot = own & (slots_.size() - 1);
      while (slots_[slot] != kFree) slot = (slot + 1) & (slots_.size() - 1);  // no name occurs twice
      slots_[slot] = part(own) | position;
    }
  }

  std::vector<std::uint32_t> slots_;  // open addressing; a power of two
  std::size_t count_ = 0;
};

}  // namespace shardplan
