#pragma once

#include <fmt/format.h>

#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

namespace shardplan {

/// An immutable text whose copies share one allocation: the file of a thousand places, or an operator's name, which its
/// result, its instruction and the value the instruction makes have as well. It takes eight bytes; the characters are
/// in one piece of memory behind a head of eight bytes.
class SharedText {
 public:
  SharedText() = default;
  SharedText(std::string_view text) {  // NOLINT: implicit on purpose
    if (text.empty()) return;
    void* const memory = ::operator new(sizeof(Head) + text.size() + 1);
    head_ = new (memory) Head{{1}, static_cast<std::uint32_t>(text.size())};
    char* const characters = static_cast<char*>(memory) + sizeof(Head);
    std::memcpy(characters, text.data(), text.size());
    characters[text.size()] = '\0';
  }
  SharedText(const std::string& text) : SharedText(std::string_view(text)) {}  // NOLINT: implicit on purpose
  SharedText(const char* text) : SharedText(std::string_view(text)) {}         // NOLINT: implicit on purpose
  SharedText(const SharedText& other) : head_(other.head_) {
    if (head_ != nullptr) head_->uses.fetch_add(1, std::memory_order_relaxed);
  }
  SharedText(SharedText&& other) noexcept : head_(std::exchange(other.head_, nullptr)) {}
  SharedText& operator=(SharedText other) noexcept {
    std::swap(head_, other.head_);
    return *this;
  }
  ~SharedText() {
    if (head_ != nullptr && head_->uses.fetch_sub(1, std::memory_order_acq_rel) == 1) ::operator delete(head_);
  }

  SharedText& operator+=(std::string_view text) { return *this = SharedText(str().append(text)); }

  /// Valid as long as a copy of the text exists.
  std::string_view view() const { return {c_str(), size()}; }
  /// A copy of the characters.
  std::string str() const { return std::string(view()); }
  operator std::string_view() const { return view(); }  // NOLINT: implicit on purpose
  operator std::string() const { return str(); }        // NOLINT: implicit on purpose
  bool empty() const { return head_ == nullptr; }
  std::size_t size() const { return head_ == nullptr ? 0 : head_->size; }
  const char* c_str() const { return head_ == nullptr ? "" : reinterpret_cast<const char*>(head_ + 1); }
  bool starts_with(std::string_view text) const { return view().starts_with(text); }
  bool ends_with(std::string_view text) const { return view().ends_with(text); }
  std::size_t find(std::string_view text, std::size_t from = 0) const { return view().find(text, from); }
  std::size_t rfind(std::string_view text) const { return view().rfind(text); }
  std::size_t find(char sign, std::size_t from = 0) const { return view().find(sign, from); }
  std::size_t rfind(char sign) const { return view().rfind(sign); }
  std::string substr(std::size_t from, std::size_t count = std::string::npos) const {
    return std::string(view().substr(from, count));
  }

  bool operator==(const SharedText& other) const { return head_ == other.head_ || view() == other.view(); }
  bool operator==(std::string_view other) const { return view() == other; }
  bool operator==(const std::string& other) const { return view() == other; }
  bool operator==(const char* other) const { return view() == other; }
  auto operator<=>(const SharedText& other) const { return view() <=> other.view(); }
  auto operator<=>(const std::string& other) const { return view() <=> std::string_view(other); }

  friend std::string operator+(const SharedText& a, const SharedText& b) { return a.str().append(b.view()); }
  friend std::string operator+(const SharedText& a, const std::string& b) { return a.str().append(b); }
  friend std::string operator+(const std::string& a, const SharedText& b) { return std::string(a).append(b.view()); }
  friend std::string operator+(std::string&& a, const SharedText& b) { return std::move(a.append(b.view())); }
  friend std::string operator+(const SharedText& a, const char* b) { return a.str().append(b); }
  friend std::string operator+(const char* a, const SharedText& b) { return std::string(a).append(b.view()); }
  friend std::string operator+(const SharedText& a, char b) { return a.str().append(1, b); }
  friend std::ostream& operator<<(std::ostream& out, const SharedText& text) { return out << text.view(); }

 private:
  /// Precedes the characters, which are terminated by a zero.
  struct Head {
    std::atomic<std::uint32_t> uses;
    std::uint32_t size;
  };

  Head* head_ = nullptr;  // null: no characters
};

}  // namespace shardplan

template <>
struct std::hash<shardplan::SharedText> {
  std::size_t operator()(const shardplan::SharedText& text) const noexcept {
    return std::hash<std::string_view>()(text.view());
  }
};

template <>
struct fmt::formatter<shardplan::SharedText> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const shardplan::SharedText& text, Context& context) const {
    return fmt::formatter<std::string_view>::format(text.view(), context);
  }
};
