#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace shardplan {

/// A text that does not change and of which copies are the same text: the file that a thousand places are in.
class SharedText {
 public:
  SharedText() = default;
  SharedText(std::string text) {  // NOLINT: a text is one
    if (!text.empty()) text_ = std::make_shared<const std::string>(std::move(text));
  }
  SharedText(const char* text) : SharedText(std::string(text)) {}  // NOLINT: a text is one

  const std::string& str() const { return text_ ? *text_ : kEmpty; }
  operator const std::string&() const { return str(); }  // NOLINT: it is one
  bool empty() const { return !text_; }

  bool operator==(const SharedText& other) const { return text_ == other.text_ || str() == other.str(); }
  bool operator==(std::string_view other) const { return str() == other; }
  bool operator==(const std::string& other) const { return str() == other; }
  bool operator==(const char* other) const { return str() == other; }
  auto operator<=>(const SharedText& other) const { return str() <=> other.str(); }

 private:
  static inline const std::string kEmpty;
  std::shared_ptr<const std::string> text_;  // null: empty
};

}  // namespace shardplan

template <>
struct fmt::formatter<shardplan::SharedText> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const shardplan::SharedText& text, Context& context) const {
    return fmt::formatter<std::string_view>::format(text.str(), context);
  }
};
