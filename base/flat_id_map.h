#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace shardplan {

/// A map from keys to numbers in one open-addressing table: most lookups take one probe, and nothing is allocated per
/// key. A search looks up hundreds of thousands of states and prices, nearly all of them known.
template <class Key, class Hash>
class FlatIdMap {
 public:
  /// The key's number, and whether the key is new; a new key gets `number`.
  std::pair<std::uint32_t, bool> try_emplace(const Key& key, std::uint32_t number) {
    if (entries_.size() * 2 >= slots_.size()) grow();
    std::size_t slot = Hash()(key) & (slots_.size() - 1);
    for (; slots_[slot] != kFree; slot = (slot + 1) & (slots_.size() - 1)) {
      const Entry& entry = entries_[slots_[slot]];
      if (entry.key == key) return {entry.number, false};
    }
    slots_[slot] = static_cast<std::uint32_t>(entries_.size());
    entries_.push_back({key, number});
    return {number, true};
  }

 private:
  static constexpr std::uint32_t kFree = UINT32_MAX;
  struct Entry {
    Key key;
    std::uint32_t number;
  };

  void grow() {
    slots_.assign(slots_.empty() ? 256 : slots_.size() * 2, kFree);
    for (std::uint32_t i = 0; i < entries_.size(); ++i) {
      std::size_t slot = Hash()(entries_[i].key) & (slots_.size() - 1);
      while (slots_[slot] != kFree) slot = (slot + 1) & (slots_.size() - 1);
      slots_[slot] = i;
    }
  }

  std::vector<Entry> entries_;
  std::vector<std::uint32_t> slots_;  // positions in entries_
};

}  // namespace shardplan
