#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace shardplan {

/// A vector whose copies share their items until one of them is changed: most of a graph's hundred thousand layouts and
/// strategies equal one of a few hundred. It takes eight bytes, and a copy allocates nothing.
///
/// Code that holds a mutable reference or iterator may change the items at any time. A vector that has given one out is
/// therefore copied item by item, like std::vector; the copy is shared from then on. (A reference to a constant item is
/// valid until the vector is changed, even at another position.)
template <class T>
class SharedVector {
 public:
  using value_type = T;
  using const_iterator = typename std::vector<T>::const_iterator;
  using iterator = typename std::vector<T>::iterator;

  SharedVector() = default;
  SharedVector(std::initializer_list<T> items) {
    if (items.size() > 0) block_ = new Block{{1}, false, std::vector<T>(items)};
  }
  SharedVector(std::vector<T> items) {  // NOLINT: implicit on purpose
    if (!items.empty()) block_ = new Block{{1}, false, std::move(items)};
  }
  explicit SharedVector(std::size_t size) : SharedVector(size, T()) {}
  SharedVector(std::size_t size, const T& item) {
    if (size > 0) block_ = new Block{{1}, false, std::vector<T>(size, item)};
  }
  template <class Iterator>
  SharedVector(Iterator begin, Iterator end) {
    if (begin != end) block_ = new Block{{1}, false, std::vector<T>(begin, end)};
  }

  SharedVector(const SharedVector& other) : block_(other.block_) {
    if (block_ == nullptr) return;
    if (block_->is_open) {
      block_ = new Block{{1}, false, other.block_->items};
    } else {
      block_->uses.fetch_add(1, std::memory_order_relaxed);
    }
  }
  SharedVector(SharedVector&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  /// Like std::vector, keeps references to items valid that were given out before.
  SharedVector& operator=(const SharedVector& other) {
    if (block_ == nullptr || !block_->is_open) return *this = SharedVector(other);
    if (block_ != other.block_) block_->items = other.items();
    return *this;
  }
  SharedVector& operator=(SharedVector&& other) noexcept {
    SharedVector taken(std::move(other));
    std::swap(block_, taken.block_);
    return *this;
  }
  ~SharedVector() {
    if (block_ != nullptr && block_->uses.fetch_sub(1, std::memory_order_acq_rel) == 1) delete block_;
  }

  const std::vector<T>& items() const { return block_ == nullptr ? kNone : block_->items; }
  operator const std::vector<T>&() const { return items(); }  // NOLINT: implicit on purpose

  std::size_t size() const { return items().size(); }
  bool empty() const { return items().empty(); }
  const T& operator[](std::size_t i) const { return items()[i]; }
  const T& front() const { return items().front(); }
  const T& back() const { return items().back(); }
  const_iterator begin() const { return items().begin(); }
  const_iterator end() const { return items().end(); }

  T& operator[](std::size_t i) { return opened()[i]; }
  T& front() { return opened().front(); }
  T& back() { return opened().back(); }
  iterator begin() { return block_ == nullptr ? iterator() : opened().begin(); }
  iterator end() { return block_ == nullptr ? iterator() : opened().end(); }
  const T* data() const { return items().data(); }
  T* data() { return block_ == nullptr ? nullptr : opened().data(); }

  void push_back(T item) { own().push_back(std::move(item)); }
  template <class... Args>
  T& emplace_back(Args&&... args) {
    return opened().emplace_back(std::forward<Args>(args)...);
  }
  void pop_back() { own().pop_back(); }
  void clear() { *this = SharedVector(); }
  void reserve(std::size_t size) { own().reserve(size); }
  void resize(std::size_t size) { own().resize(size); }
  void resize(std::size_t size, const T& item) { own().resize(size, item); }
  void assign(std::size_t size, const T& item) { *this = SharedVector(size, item); }
  iterator erase(const_iterator at) { return opened().erase(at); }
  iterator insert(const_iterator at, T item) {
    const std::ptrdiff_t place = at - std::as_const(*this).begin();
    return opened().insert(opened().begin() + place, std::move(item));
  }
  template <class Iterator>
  void insert(const_iterator at, Iterator first, Iterator last) {
    const std::ptrdiff_t place = at - std::as_const(*this).begin();
    opened().insert(opened().begin() + place, first, last);
  }

  bool operator==(const SharedVector& other) const { return block_ == other.block_ || items() == other.items(); }
  bool operator==(const std::vector<T>& other) const { return items() == other; }
  auto operator<=>(const SharedVector& other) const { return items() <=> other.items(); }

 private:
  struct Block {
    std::atomic<std::uint32_t> uses;
    bool is_open = false;  // a mutable reference was given out; the block then has one use
    std::vector<T> items;
  };

  /// The items, copied first if another vector shares them.
  std::vector<T>& own() {
    if (block_ == nullptr) {
      block_ = new Block{{1}, false, {}};
    } else if (block_->uses.load(std::memory_order_acquire) > 1) {
      *this = SharedVector(block_->items);
      if (block_ == nullptr) block_ = new Block{{1}, false, {}};
    }
    return block_->items;
  }
  std::vector<T>& opened() {
    std::vector<T>& items = own();
    block_->is_open = true;
    return items;
  }

  static inline const std::vector<T> kNone;
  Block* block_ = nullptr;
};

}  // namespace shardplan
