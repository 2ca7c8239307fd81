#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

namespace shardplan {

/// Finds the position of a name in a list that has it: five to eleven bytes for each name, since the names stay in the
/// list. `name_at` gives the name at a position.
class NameTable {
 public:
  void clear() {
    slots_.clear();
    count_ = 0;
  }

  template <class NameAt>
  std::optional<std::size_t> find(std::string_view name, const NameAt& name_at) const {
    if (slots_.empty()) return std::nullopt;
    const std::uint32_t found = slots_[slot_of(name, name_at)];
    return found == kFree ? std::nullopt : std::optional<std::size_t>(found);
  }

  /// False if the list has the name at another position that was added before.
  template <class NameAt>
  bool add(std::size_t position, const NameAt& name_at) {
    if (4 * (count_ + 1) > 3 * slots_.size()) grow(name_at);
    std::uint32_t& slot = slots_[slot_of(name_at(position), name_at)];
    if (slot != kFree) return false;
    slot = static_cast<std::uint32_t>(position);
    ++count_;
    return true;
  }

 private:
  static constexpr std::uint32_t kFree = std::numeric_limits<std::uint32_t>::max();

  /// Where the name is, or the free slot in which it belongs.
  template <class NameAt>
  std::size_t slot_of(std::string_view name, const NameAt& name_at) const {
    std::size_t slot = std::hash<std::string_view>()(name) & (slots_.size() - 1);
    while (slots_[slot] != kFree && name_at(slots_[slot]) != name) slot = (slot + 1) & (slots_.size() - 1);
    return slot;
  }

  template <class NameAt>
  void grow(const NameAt& name_at) {
    std::vector<std::uint32_t> old(slots_.empty() ? 16 : 2 * slots_.size(), kFree);
    old.swap(slots_);
    for (const std::uint32_t position : old) {
      if (position != kFree) slots_[slot_of(name_at(position), name_at)] = position;
    }
  }

  std::vector<std::uint32_t> slots_;  // open addressing; a power of two
  std::size_t count_ = 0;
};

}  // namespace shardplan
