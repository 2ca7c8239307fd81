#include "solver/contest/json_scanner.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string_view>

#include "base/utf8.h"

// Nearly all of a contest's file are numbers, so `number` is the loop to keep short: it multiplies by ten, and whatever
// else JSON allows (a fraction, an exponent, a sign) leaves it for a function of its own. Names are rare and take their
// time: escapes are replaced, and bytes that are not UTF-8 refused, since no output could hold them.

namespace shardplan {
namespace {

constexpr std::ptrdiff_t kLongCopy = std::ptrdiff_t{1} << 20;  // numbers, in some milliseconds
constexpr std::uint64_t kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

}  // namespace

std::string JsonScanner::string() {
  expect('"', "before a name");
  const SourcePlace place = in_.place();
  std::string text;
  for (char c = in_.peek(); c != '"'; c = in_.peek()) {
    if (c == 0 || c == '\n') in_.fail("a name that does not end");
    in_.advance();
    if (c == '\\') {
      append_escape(text);
    } else {
      text += c;
    }
    if (text.size() > 4096) in_.fail("a name of more than 4096 characters");
  }
  in_.advance();
  for (std::size_t at = 0, length = 0; at < text.size(); at += length) {
    length = utf8_length(text, at);
    if (length == 0) {
      throw InputError(place, "the byte 0x{:02x} in a name is not part of a character in UTF-8",
                       static_cast<unsigned char>(text[at]));
    }
  }
  return text;
}

void JsonScanner::append_escape(std::string& text) {
  constexpr std::string_view kEscapes = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  const char c = in_.peek();
  const std::size_t which = c == 0 ? kEscapes.npos : kEscapes.find(c);
  if (c != 'u' && which == kEscapes.npos) in_.fail("{}; expected an escape after '\\'", found());
  in_.advance();
  if (c == 'u') {
    append_code_point(text);
  } else {
    text += kMeanings[which];
  }
}

void JsonScanner::append_code_point(std::string& text) {
  const std::uint32_t code = four_digits();
  const bool is_first_half = code >= 0xd800 && code < 0xdc00;
  if (!is_first_half || in_.peek() != '\\') return append_utf8(text, code);
  in_.advance();
  if (in_.peek() != 'u') {
    append_utf8(text, code);
    return append_escape(text);
  }
  in_.advance();
  const std::uint32_t second = four_digits();
  const bool is_second_half = second >= 0xdc00 && second < 0xe000;
  append_utf8(text, is_second_half ? 0x10000 + ((code - 0xd800) << 10) + (second - 0xdc00) : code);
  if (!is_second_half) append_utf8(text, second);
}

std::uint32_t JsonScanner::four_digits() {
  std::uint32_t code = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = in_.peek();
    const std::size_t digit = std::string_view("0123456789abcdef").find(c >= 'A' && c <= 'F' ? c + 32 : c);
    if (c == 0 || digit == std::string_view::npos) in_.fail("{}; expected four hexadecimal digits", found());
    code = code * 16 + static_cast<std::uint32_t>(digit);
    in_.advance();
  }
  return code;
}

std::int64_t JsonScanner::number() {
  const char first = peek();
  if (first == '-') return negative_zero();
  if (first < '0' || first > '9') in_.fail("{}; expected a number", found());
  if (first == '0') {
    in_.advance();
    if (in_.peek() >= '0' && in_.peek() <= '9') in_.fail("a number with a zero in front");
  }
  std::uint64_t value = 0;
  for (;;) {
    const char c = in_.peek();
    const unsigned digit = static_cast<unsigned char>(c) - unsigned{'0'};
    if (digit > 9) {
      if (c == '.' || c == 'e' || c == 'E') return decimal(value);
      return static_cast<std::int64_t>(value);
    }
    if (value > kLargest / 10 || (value == kLargest / 10 && digit > kLargest % 10)) too_large();
    value = value * 10 + digit;
    in_.advance();
  }
}

std::int64_t JsonScanner::negative_zero() {
  const SourcePlace place = in_.place();
  in_.advance();
  if (in_.peek() < '0' || in_.peek() > '9') in_.fail("{}; expected a digit after '-'", found());
  if (number() != 0) throw InputError(place, "a negative number; expected at least 0");
  return 0;
}

void JsonScanner::numbers(std::vector<std::int64_t>& numbers) {
  numbers.clear();
  list([&] {
    if (numbers.size() == numbers.capacity() && numbers.size() >= static_cast<std::size_t>(kLongCopy)) grow(numbers);
    numbers.push_back(number());
  });
}

void JsonScanner::grow(std::vector<std::int64_t>& numbers) {
  std::vector<std::int64_t> larger;
  larger.reserve(2 * numbers.size());
  for (auto begin = numbers.begin(); begin != numbers.end();) {
    in_.check_time();
    const auto end = begin + std::min<std::ptrdiff_t>(kLongCopy, numbers.end() - begin);
    larger.insert(larger.end(), begin, end);
    begin = end;
  }
  numbers.swap(larger);
}

void JsonScanner::skip_value(int depth) {
  if (depth > 64) in_.fail("values nested more than 64 deep");
  const char c = peek();
  if (c == '{') {
    object([&](const std::string&) { skip_value(depth + 1); });
  } else if (c == '[') {
    list([&] { skip_value(depth + 1); });
  } else if (c == '"') {
    string();
  } else {
    std::size_t length = 0;
    for (char d = c; d == '-' || d == '+' || d == '.' || (d >= '0' && d <= '9') || (d >= 'a' && d <= 'z') || d == 'E';
         d = in_.peek()) {
      in_.advance();
      if (++length > 64) break;
    }
    if (length == 0 || length > 64) in_.fail("{}; expected a value", found());
  }
}

std::string JsonScanner::found() {
  const char c = in_.peek();
  if (c == 0) return "the file ends";
  if (c < 32 || c > 126) return fmt::format("character 0x{:02x}", static_cast<unsigned char>(c));
  return fmt::format("'{}'", c);
}

void JsonScanner::too_large() { in_.fail("a number that does not fit in 64 bits"); }

std::int64_t JsonScanner::decimal(std::uint64_t digits) {
  int exponent = 0;
  const auto append = [&](unsigned digit) {
    if (digits > (kLargest - digit) / 10) too_large();
    digits = digits * 10 + digit;
  };
  if (in_.peek() == '.') {
    in_.advance();
    int zeros = 0;  // not appended until a digit other than zero follows
    bool any = false;
    for (char c = in_.peek(); c >= '0' && c <= '9'; in_.advance(), c = in_.peek()) {
      any = true;
      if (c == '0') {
        if (++zeros > 4096) in_.fail("a number of more than 4096 digits");
        continue;
      }
      for (; zeros > 0; --zeros, --exponent) append(0);
      append(static_cast<unsigned>(c - '0'));
      --exponent;
    }
    if (!any) in_.fail("{}; expected digits after '.'", found());
  }
  if (in_.peek() == 'e' || in_.peek() == 'E') {
    in_.advance();
    const bool is_negative = in_.peek() == '-';
    if (is_negative || in_.peek() == '+') in_.advance();
    int shift = 0;
    bool any = false;
    for (char c = in_.peek(); c >= '0' && c <= '9'; in_.advance(), c = in_.peek()) {
      any = true;
      shift = std::min(shift * 10 + (c - '0'), 100000);
    }
    if (!any) in_.fail("{}; expected digits after 'e'", found());
    exponent += is_negative ? -shift : shift;
  }
  if (digits == 0) return 0;
  for (; exponent > 0; --exponent) append(0);
  for (; exponent < 0; ++exponent) {
    if (digits % 10 != 0) in_.fail("a number with a fraction; expected a whole number");
    digits /= 10;
  }
  return static_cast<std::int64_t>(digits);
}

}  // namespace shardplan
