#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/random.h"

namespace shardplan {

/// Costs of pairs, row-major; kForbidden marks a pair that may not be.
struct Table {
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
  std::vector<std::int64_t> costs;

  std::int64_t at(std::size_t row, std::size_t column) const { return costs[row * columns + column]; }
  bool operator==(const Table&) const = default;
};

/// A list or table of which equal ones are the same object: comparing addresses compares contents, and what was once
/// computed from some operands need not be computed again for equal operands elsewhere in the problem (`Memo`). A
/// problem of 960 equal layers is thereby reduced with the work of a few.
template <class T>
using Interned = std::shared_ptr<const T>;
using Positions = Interned<std::vector<std::uint32_t>>;
using Numbers = Interned<std::vector<std::int64_t>>;
using TableRef = Interned<Table>;

inline std::uint64_t content_hash(std::span<const std::uint32_t> items) {
  std::uint64_t hash = items.size();
  for (const std::uint32_t item : items) hash = mix(hash ^ item);
  return hash;
}
/// Tables are hashed often, so four at a time, with one multiplication each.
inline std::uint64_t content_hash(std::span<const std::int64_t> items) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
  std::uint64_t hashes[4] = {items.size(), 1, 2, 3};
  for (std::size_t i = 0; i < items.size(); ++i) {
    std::uint64_t& hash = hashes[i % 4];
    hash = (std::rotl(hash, 29) ^ static_cast<std::uint64_t>(items[i])) * kOdd;
  }
  return mix(hashes[0] ^ mix(hashes[1] ^ mix(hashes[2] ^ mix(hashes[3]))));
}
inline std::uint64_t content_hash(const std::vector<std::uint32_t>& items) { return content_hash(std::span(items)); }
inline std::uint64_t content_hash(const std::vector<std::int64_t>& items) { return content_hash(std::span(items)); }
inline std::uint64_t content_hash(const Table& table) {
  return mix(content_hash(std::span(table.costs)) + table.rows * std::uint64_t{0x10001});
}

/// Finds the one object of some content; forgets objects that nobody holds any more.
template <class T>
class InternPool {
 public:
  Interned<T> intern(T&& item) {
    const std::uint64_t hash = content_hash(item);
    for (auto [at, end] = known_.equal_range(hash); at != end;) {
      if (auto object = at->second.lock()) {
        if (*object == item) return object;
        ++at;
      } else {
        at = known_.erase(at);
      }
    }
    auto object = std::make_shared<const T>(std::move(item));
    known_.emplace(hash, object);
    return object;
  }

 private:
  std::unordered_multimap<std::uint64_t, std::weak_ptr<const T>> known_;  // looked up, never walked
};

/// Results by the addresses of their (interned) operands. Entries keep their operands alive, so that no address comes
/// back with other contents; `clear` lets go of them.
template <class Result>
class Memo {
 public:
  using Key = std::vector<std::shared_ptr<const void>>;

  template <class Compute>
  const Result& get(Key key, Compute compute) {
    std::uint64_t hash = key.size();
    for (const auto& operand : key) hash = mix(hash ^ reinterpret_cast<std::uintptr_t>(operand.get()));
    for (auto [at, end] = known_.equal_range(hash); at != end; ++at) {
      if (at->second.first == key) return at->second.second;
    }
    return known_.emplace(hash, std::pair(std::move(key), compute()))->second.second;
  }
  void clear() { known_.clear(); }

 private:
  std::unordered_multimap<std::uint64_t, std::pair<Key, Result>> known_;  // looked up, never walked
};

}  // namespace shardplan
