#include "solver/contest/json_scanner.h"

#include <algorithm>
#include <limits>

namespace shardplan {
namespace {

constexpr std::uint64_t kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

}  // namespace

std::string JsonScanner::string() {
  expect('"', "before a name");
  std::string text;
  for (;;) {
    const char c = in_.peek();
    if (c == 0 || c == '\n') in_.fail("a name that does not end");
    in_.advance();
    if (c == '"') return text;
    if (c == '\\') {
      text += c;
      if (in_.peek() == 0) in_.fail("a name that does not end");
      text += in_.peek();
      in_.advance();
    } else {
      text += c;
    }
    if (text.size() > 4096) in_.fail("a name of more than 4096 characters");
  }
}

std::int64_t JsonScanner::number() {
  const char first = peek();
  if (first == '-') in_.fail("a negative number; expected at least 0");
  if (first < '0' || first > '9') in_.fail("{}; expected a number", found());
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

void JsonScanner::numbers(std::vector<std::int64_t>& numbers) {
  numbers.clear();
  list([&] { numbers.push_back(number()); });
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
