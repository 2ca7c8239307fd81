#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace shardplan {

/// The number that the whole text is, in decimal and independent of the locale; nothing if it is anything else, also
/// with space around it or a plus sign before it, or out of the type's range. Real numbers may be "inf" and "nan".
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace shardplan
