#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace shardplan {

/// A value whose copies are one object until one of them is changed. It takes eight bytes, and T() allocates nothing:
/// for large parts of a struct that most of its objects do not have, or have in common.
template <class T>
class SharedValue {
 public:
  SharedValue() = default;
  SharedValue(T value) : block_(new Block{{1}, std::move(value)}) {}  // NOLINT: implicit on purpose
  SharedValue(const SharedValue& other) : block_(other.block_) {
    if (block_ != nullptr) block_->uses.fetch_add(1, std::memory_order_relaxed);
  }
  SharedValue(SharedValue&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  SharedValue& operator=(SharedValue other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~SharedValue() {
    if (block_ != nullptr && block_->uses.fetch_sub(1, std::memory_order_acq_rel) == 1) delete block_;
  }

  const T& operator*() const { return block_ == nullptr ? kDefault : block_->value; }
  const T* operator->() const { return &**this; }
  operator const T&() const { return **this; }  // NOLINT: implicit on purpose

  /// For changes. The reference is valid until the value is copied; later changes through it would affect the copy too.
  T& edit() {
    if (block_ == nullptr || block_->uses.load(std::memory_order_acquire) > 1) *this = SharedValue(T(**this));
    return block_->value;
  }

  bool operator==(const SharedValue& other) const { return block_ == other.block_ || **this == *other; }
  bool operator==(const T& other) const { return **this == other; }

 private:
  struct Block {
    std::atomic<std::uint32_t> uses;
    T value;
  };

  static inline const T kDefault{};
  Block* block_ = nullptr;  // null: T()
};

}  // namespace shardplan
