#pragma once

#include <optional>
#include <utility>

#include "base/shared_value.h"

namespace shardplan {

/// A std::optional of eight bytes that allocates memory only if it has a value. For fields that one in a hundred of a
/// million tensors has.
template <class T>
class RareValue {
 public:
  RareValue() = default;
  RareValue(std::nullopt_t) {}                                        // NOLINT: implicit on purpose
  RareValue(T value) : value_(std::optional<T>(std::move(value))) {}  // NOLINT: implicit on purpose
  RareValue(const SharedValue<T>& value) : RareValue(*value) {}       // NOLINT: implicit on purpose
  RareValue(std::optional<T> value) {                                 // NOLINT: implicit on purpose
    if (value) value_ = std::move(value);
  }

  operator const std::optional<T>&() const { return *value_; }  // NOLINT: implicit on purpose
  bool has_value() const { return value_->has_value(); }
  explicit operator bool() const { return has_value(); }
  const T& operator*() const { return **value_; }
  const T* operator->() const { return &**value_; }
  T value_or(T other) const { return value_->value_or(std::move(other)); }
  void reset() { *this = {}; }

  bool operator==(const RareValue& other) const { return value_ == other.value_; }

 private:
  SharedValue<std::optional<T>> value_;
};

}  // namespace shardplan
