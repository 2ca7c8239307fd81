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

/// Equal contents are stored once and compared by their address or number. The layers of a model are equal, so a
/// problem of 960 layers is read, reduced and eliminated with the memory and work of a few. There are two pools, for
/// two lifetimes: an `InternPool` forgets contents that nobody holds any more, a `NumberedPool` keeps all and numbers
/// them.

/// Four items at a time, with one multiplication each: tables are hashed often.
template <class Item>
std::uint64_t content_hash(std::span<const Item> items) {
  const auto bits = [](Item item) -> std::uint64_t {
    if constexpr (sizeof(Item) == sizeof(std::uint64_t)) return std::bit_cast<std::uint64_t>(item);
    return static_cast<std::uint64_t>(item);
  };
  const auto add = [&](std::uint64_t& hash, Item item) {
    constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
    hash = (std::rotl(hash, 29) ^ bits(item)) * kOdd;
  };
  std::uint64_t a = items.size(), b = 1, c = 2, d = 3;  // in registers: an array would stay in memory
  std::size_t i = 0;
  for (; i + 4 <= items.size(); i += 4) {
    add(a, items[i]);
    add(b, items[i + 1]);
    add(c, items[i + 2]);
    add(d, items[i + 3]);
  }
  if (i < items.size()) add(a, items[i]);
  if (i + 1 < items.size()) add(b, items[i + 1]);
  if (i + 2 < items.size()) add(c, items[i + 2]);
  return mix(a ^ mix(b ^ mix(c ^ mix(d))));
}
/// The hash of a list; another kind of content declares an overload of its own beside its type.
template <class Item>
std::uint64_t content_hash(const std::vector<Item>& items) {
  return content_hash(std::span<const Item>(items));
}

/// A content of which there is only one object: comparing addresses compares contents, and results computed from some
/// operands can be reused for equal operands elsewhere in the problem (`Memo`).
template <class T>
using Interned = std::shared_ptr<const T>;

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
  std::unordered_multimap<std::uint64_t, std::weak_ptr<const T>> known_;  // never iterated over
};

/// Numbers contents from 0 on in the order of their first appearance; equal ones have one number.
template <class T>
class NumberedPool {
 public:
  /// The content is copied (or moved) only if it is new.
  std::uint32_t number(const T& item) { return find_or_add(item); }
  std::uint32_t number(T&& item) { return find_or_add(std::move(item)); }
  const T& operator[](std::uint32_t number) const { return items_[number]; }
  std::size_t size() const { return items_.size(); }
  /// All contents, by number; the pool is empty afterwards.
  std::vector<T> release() {
    known_.clear();
    return std::exchange(items_, {});
  }

 private:
  template <class Item>
  std::uint32_t find_or_add(Item&& item) {
    const std::uint64_t hash = content_hash(item);
    for (auto [at, end] = known_.equal_range(hash); at != end; ++at) {
      if (items_[at->second] == item) return at->second;
    }
    const auto number = static_cast<std::uint32_t>(items_.size());
    items_.push_back(std::forward<Item>(item));
    known_.emplace(hash, number);
    return number;
  }

  std::vector<T> items_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> known_;  // never iterated over
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
  std::unordered_multimap<std::uint64_t, std::pair<Key, Result>> known_;  // never iterated over
};

}  // namespace shardplan
