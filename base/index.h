#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <utility>
#include <vector>

namespace shardplan {

/// A position in one particular list. `Index<struct NodeTag>` cannot be mixed with `Index<struct EdgeTag>`. It has no
/// arithmetic: an index is made from a number, compared, and used to look up an `IdVector` of the same tag.
template <class Tag>
class Index {
 public:
  constexpr Index() = default;
  constexpr explicit Index(std::size_t value) : value_(static_cast<std::uint32_t>(value)) {}
  constexpr std::size_t value() const { return value_; }
  constexpr auto operator<=>(const Index&) const = default;

 private:
  std::uint32_t value_ = 0;
};

/// A vector that only its own kind of index can look up.
template <class Id, class T>
class IdVector {
 public:
  IdVector() = default;
  explicit IdVector(std::size_t size, const T& value = T()) : items_(size, value) {}
  IdVector(std::initializer_list<T> items) : items_(items) {}

  T& operator[](Id id) { return items_[id.value()]; }
  const T& operator[](Id id) const { return items_[id.value()]; }
  std::size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  void reserve(std::size_t size) { items_.reserve(size); }
  void resize(std::size_t size) { items_.resize(size); }
  void resize(std::size_t size, const T& value) { items_.resize(size, value); }

  /// Appends and returns the new item's index.
  Id push_back(T item) {
    items_.push_back(std::move(item));
    return Id(items_.size() - 1);
  }

  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

  /// The indices in order, for `for (const NodeId node : nodes.ids())`.
  class Ids {
   public:
    class Iterator {
     public:
      using difference_type = std::ptrdiff_t;
      using value_type = Id;
      explicit Iterator(std::size_t at) : at_(at) {}
      Id operator*() const { return Id(at_); }
      Iterator& operator++() {
        ++at_;
        return *this;
      }
      bool operator==(const Iterator&) const = default;

     private:
      std::size_t at_;
    };
    explicit Ids(std::size_t size) : size_(size) {}
    Iterator begin() const { return Iterator(0); }
    Iterator end() const { return Iterator(size_); }

   private:
    std::size_t size_;
  };
  Ids ids() const { return Ids(items_.size()); }

  bool operator==(const IdVector&) const = default;

 private:
  std::vector<T> items_;
};

}  // namespace shardplan

template <class Tag>
struct std::hash<shardplan::Index<Tag>> {
  std::size_t operator()(shardplan::Index<Tag> index) const noexcept { return index.value(); }
};
