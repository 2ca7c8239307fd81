#pragma once

#include <cstdint>
#include <limits>
#include <optional>

namespace shardplan {

/// A std::optional of an index in the four bytes of the index; the largest number means no value. For fields of
/// each of a million operators and tensors.
template <class Id>
class OptionalIndex {
 public:
  constexpr OptionalIndex() = default;
  constexpr OptionalIndex(std::nullopt_t) {}                                            // NOLINT: implicit on purpose
  constexpr OptionalIndex(Id id) : id_(id) {}                                           // NOLINT: implicit on purpose
  constexpr OptionalIndex(const std::optional<Id>& id) : id_(id.value_or(kNothing)) {}  // NOLINT: implicit on purpose

  constexpr operator std::optional<Id>() const {  // NOLINT: implicit on purpose
    return has_value() ? std::optional<Id>(id_) : std::nullopt;
  }
  constexpr bool has_value() const { return id_ != kNothing; }
  constexpr explicit operator bool() const { return has_value(); }
  constexpr const Id& operator*() const { return id_; }
  constexpr const Id* operator->() const { return &id_; }
  constexpr Id value_or(Id other) const { return has_value() ? id_ : other; }
  constexpr void reset() { id_ = kNothing; }

  constexpr bool operator==(const OptionalIndex&) const = default;
  constexpr bool operator==(Id id) const { return id_ == id; }
  constexpr bool operator==(std::nullopt_t) const { return !has_value(); }
  constexpr bool operator==(const std::optional<Id>& other) const { return *this == OptionalIndex(other); }

 private:
  static constexpr Id kNothing{std::numeric_limits<std::uint32_t>::max()};

  Id id_ = kNothing;
};

}  // namespace shardplan
