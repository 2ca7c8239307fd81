#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

namespace shardplan {

/// A vector of a few plain items: the operands of an operator, the readers of a tensor. It takes 24 bytes, like
/// std::vector, and stores up to sixteen bytes of items inside: four indices, or two pairs of indices. Only longer ones
/// allocate memory, and hardly any of a graph's millions is longer. (With `bytes` = 8: half as many, in sixteen bytes.)
///
/// References and iterators are valid until the vector grows, like those of std::vector, or is moved, unlike those.
template <class T, std::size_t bytes = 16>
class ShortVector {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= bytes && alignof(T) <= 8 && bytes >= sizeof(T*));

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  ShortVector() = default;
  ShortVector(std::initializer_list<T> items) : ShortVector(items.begin(), items.end()) {}
  ShortVector(const std::vector<T>& items) : ShortVector(items.begin(), items.end()) {}  // NOLINT: implicit on purpose
  explicit ShortVector(std::size_t size, const T& item = T()) { resize(size, item); }
  template <std::forward_iterator Iterator>
  ShortVector(Iterator begin, Iterator end) {
    reserve(static_cast<std::size_t>(std::distance(begin, end)));
    for (; begin != end; ++begin) push_back(*begin);
  }
  ShortVector(const ShortVector& other) { append(other.begin(), other.size_); }
  ShortVector(ShortVector&& other) noexcept { take(other); }
  ShortVector& operator=(const ShortVector& other) {
    if (this == &other) return *this;
    size_ = 0;
    append(other.begin(), other.size_);
    return *this;
  }
  ShortVector& operator=(ShortVector&& other) noexcept {
    if (this == &other) return *this;
    release();
    take(other);
    return *this;
  }
  ~ShortVector() { release(); }

  operator std::vector<T>() const { return std::vector<T>(begin(), end()); }  // NOLINT: implicit on purpose

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return is_inside() ? reinterpret_cast<T*>(inside_) : outside(); }
  const T* data() const { return is_inside() ? reinterpret_cast<const T*>(inside_) : outside(); }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }
  T& front() { return data()[0]; }
  const T& front() const { return data()[0]; }
  T& back() { return data()[size_ - 1]; }
  const T& back() const { return data()[size_ - 1]; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }

  void clear() { size_ = 0; }
  void reserve(std::size_t count) {
    if (count <= capacity_) return;
    auto* const moved = static_cast<T*>(::operator new(count * sizeof(T)));
    std::memcpy(static_cast<void*>(moved), static_cast<const void*>(data()), size_ * sizeof(T));
    release();
    std::memcpy(inside_, &moved, sizeof(moved));
    capacity_ = static_cast<std::uint32_t>(count);
  }
  void resize(std::size_t count, const T& item = T()) {
    const T copy = item;
    reserve(count);
    for (std::size_t i = size_; i < count; ++i) new (data() + i) T(copy);
    size_ = static_cast<std::uint32_t>(count);
  }
  void assign(std::size_t count, const T& item) { *this = ShortVector(count, item); }
  void push_back(const T& item) {
    const T copy = item;
    if (size_ == capacity_) reserve(std::size_t{2} * capacity_);
    new (data() + size_) T(copy);
    ++size_;
  }
  template <class... Args>
  T& emplace_back(Args&&... args) {
    push_back(T(std::forward<Args>(args)...));
    return back();
  }
  void pop_back() { --size_; }
  iterator erase(const_iterator at) { return erase(at, at + 1); }
  iterator erase(const_iterator first, const_iterator last) {
    T* const from = data() + (first - data());
    std::memmove(static_cast<void*>(from), static_cast<const void*>(last),
                 static_cast<std::size_t>(end() - last) * sizeof(T));
    size_ -= static_cast<std::uint32_t>(last - first);
    return from;
  }
  iterator insert(const_iterator at, const T& item) {
    const std::ptrdiff_t place = at - data();
    push_back(item);
    std::rotate(begin() + place, end() - 1, end());
    return begin() + place;
  }

  bool operator==(const ShortVector& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }
  bool operator==(const std::vector<T>& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

 private:
  static constexpr std::uint32_t kInside = bytes / sizeof(T);

  bool is_inside() const { return capacity_ <= kInside; }
  T* outside() const {
    T* items = nullptr;
    std::memcpy(&items, inside_, sizeof(items));
    return items;
  }
  void release() {
    if (!is_inside()) ::operator delete(outside());
    capacity_ = kInside;
  }
  /// Takes over the items of `other`; this vector must not own memory.
  void take(ShortVector& other) {
    std::memcpy(inside_, other.inside_, sizeof(inside_));
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, kInside);
  }
  void append(const T* items, std::size_t count) {
    reserve(size_ + count);
    if (count > 0) std::memcpy(static_cast<void*>(data() + size_), static_cast<const void*>(items), count * sizeof(T));
    size_ += static_cast<std::uint32_t>(count);
  }

  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = kInside;             // kInside: the items are stored inside
  alignas(8) unsigned char inside_[bytes] = {};  // the items, or a pointer to them
};

}  // namespace shardplan
