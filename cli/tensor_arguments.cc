#include "cli/tensor_arguments.h"

#include <charconv>

#include "base/error.h"
#include "base/integer.h"

namespace shardplan {
namespace {

std::vector<std::int64_t> parse_list(const std::string& option, const std::string& text, std::string_view separators,
                                     std::int64_t least) {
  std::vector<std::int64_t> items;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find_first_of(separators), rest.size());
    std::string_view item = rest.substr(0, end);
    while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
    while (!item.empty() && item.back() == ' ') item.remove_suffix(1);
    std::int64_t value = 0;
    const auto [stop, fault] = std::from_chars(item.data(), item.data() + item.size(), value);
    if (item.empty() || fault != std::errc() || stop != item.data() + item.size() || value < least) {
      throw InputError({}, "{} {}: found '{}'; expected whole numbers of at least {}", option, text, item, least);
    }
    items.push_back(value);
    if (end == rest.size()) break;
    rest.remove_prefix(end + 1);
    if (rest.empty()) throw InputError({}, "{} {}: ends in a separator", option, text);
  }
  return items;
}

}  // namespace

Shape parse_shape(const std::string& option, const std::string& text, Bytes element_bytes) {
  const Shape shape = parse_list(option, text, "x,", 1);
  constexpr Bytes kMostBytes = std::int64_t{1} << 62;
  std::int64_t bytes = element_bytes;
  for (const std::int64_t extent : shape) bytes = checked_multiply(bytes, extent).value_or(kMostBytes);
  if (bytes >= kMostBytes) throw InputError({}, "{} {}: more than 4 EiB", option, text);
  return shape;
}

std::vector<std::int64_t> parse_integers(const std::string& option, const std::string& text, std::int64_t least) {
  const bool has_brackets = text.size() >= 2 && text.front() == '(' && text.back() == ')';
  return parse_list(option, has_brackets ? text.substr(1, text.size() - 2) : text, ",", least);
}

}  // namespace shardplan
