#pragma once

#include <cstdint>
#include <limits>
#include <optional>

namespace shardplan {

/// An index or nothing, as std::optional holds it, in the four bytes of the index: the last number stands for nothing. For what
/// each of a million operators and tensors has.
template <class Id>
class OptionalIndex {
 public:
  constexpr OptionalIndex() = default;
  constexpr OptionalIndex(std::nullopt_t) {}                                            // NOLINT: none is one
  constexpr OptionalIndex(Id id) : id_(id) {}                                           // NOLINT: an index is one
  constexpr OptionalIndex(const std::optional<Id>& id) : id_(id.value_or(kNothing)) {}  // NOLINT: it is one

  constexpr operator std::optional<Id>() const {  // NOLINT: it is one
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
