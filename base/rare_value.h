#pragma once

#include <optional>
#include <utility>

#include "base/shared_value.h"

namespace shardplan {

/// A std::optional that takes eight bytes, and memory beside them only where there is a value: for what one in a hundred of a
/// million tensors has.
template <class T>
class RareValue {
 public:
  RareValue() = default;
  RareValue(std::nullopt_t) {}                                        // NOLINT: none is one
  RareValue(T value) : value_(std::optional<T>(std::move(value))) {}  // NOLINT: a value is one
  RareValue(std::optional<T> value) {                                 // NOLINT: it is one
    if (value) value_ = std::move(value);
  }

  operator const std::optional<T>&() const { return *value_; }  // NOLINT: it is one
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
