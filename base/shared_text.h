#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "base/shared_value.h"

namespace shardplan {

/// A text that does not change and of which copies are the same text: the file that a thousand places are in, the name of
/// an operator, which its result, its instruction and the value that this makes have as well. It takes eight bytes.
class SharedText {
 public:
  SharedText() = default;
  SharedText(std::string text) {  // NOLINT: a text is one
    if (!text.empty()) text_ = std::move(text);
  }
  SharedText(const char* text) : SharedText(std::string(text)) {}       // NOLINT: a text is one
  SharedText(std::string_view text) : SharedText(std::string(text)) {}  // NOLINT: a text is one

  SharedText& operator+=(std::string_view text) { return *this = SharedText(std::string(str()).append(text)); }

  const std::string& str() const { return *text_; }
  operator const std::string&() const { return str(); }  // NOLINT: it is one
  operator std::string_view() const { return str(); }    // NOLINT: it is one
  bool empty() const { return str().empty(); }
  std::size_t size() const { return str().size(); }
  const char* c_str() const { return str().c_str(); }
  bool starts_with(std::string_view text) const { return str().starts_with(text); }
  bool ends_with(std::string_view text) const { return str().ends_with(text); }
  std::size_t find(std::string_view text, std::size_t from = 0) const { return str().find(text, from); }
  std::size_t rfind(std::string_view text) const { return str().rfind(text); }
  std::size_t find(char sign, std::size_t from = 0) const { return str().find(sign, from); }
  std::size_t rfind(char sign) const { return str().rfind(sign); }
  std::string substr(std::size_t from, std::size_t count = std::string::npos) const {
    return str().substr(from, count);
  }

  bool operator==(const SharedText& other) const { return text_ == other.text_; }
  bool operator==(std::string_view other) const { return str() == other; }
  bool operator==(const std::string& other) const { return str() == other; }
  bool operator==(const char* other) const { return str() == other; }
  auto operator<=>(const SharedText& other) const { return str() <=> other.str(); }
  auto operator<=>(const std::string& other) const { return str() <=> other; }

  friend std::string operator+(const SharedText& a, const SharedText& b) { return a.str() + b.str(); }
  friend std::string operator+(const SharedText& a, const std::string& b) { return a.str() + b; }
  friend std::string operator+(const std::string& a, const SharedText& b) { return a + b.str(); }
  friend std::string operator+(std::string&& a, const SharedText& b) { return std::move(a) + b.str(); }
  friend std::string operator+(const SharedText& a, const char* b) { return a.str() + b; }
  friend std::string operator+(const char* a, const SharedText& b) { return a + b.str(); }
  friend std::string operator+(const SharedText& a, char b) { return a.str() + b; }
  friend std::ostream& operator<<(std::ostream& out, const SharedText& text) { return out << text.str(); }

 private:
  SharedValue<std::string> text_;
};

}  // namespace shardplan

template <>
struct std::hash<shardplan::SharedText> {
  std::size_t operator()(const shardplan::SharedText& text) const noexcept {
    return std::hash<std::string_view>()(text.str());
  }
};

template <>
struct fmt::formatter<shardplan::SharedText> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const shardplan::SharedText& text, Context& context) const {
    return fmt::formatter<std::string_view>::format(text.str(), context);
  }
};
