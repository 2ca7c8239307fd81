#include "cli/commands/tensor_arguments.h"

#include "base/error.h"
#include "base/integer.h"
#include "base/parse_number.h"
#include "base/shortened.h"

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
    const auto value = parse_number<std::int64_t>(item);
    if (!value || *value < least) {
      throw InputError({}, "{} {}: found '{}'; expected whole numbers of at least {}", option, shortened(text),
                       shortened(item), least);
    }
    items.push_back(*value);
    if (end == rest.size()) break;
    rest.remove_prefix(end + 1);
    if (rest.empty()) throw InputError({}, "{} {}: ends in a separator", option, shortened(text));
  }
  return items;
}

}  // namespace

Shape parse_shape(const std::string& option, const std::string& text, Bytes element_bytes) {
  const Shape shape = parse_list(option, text, "x,", 1);
  constexpr Bytes kMostBytes = std::int64_t{1} << 62;
  std::int64_t bytes = element_bytes;
  for (const std::int64_t extent : shape) bytes = checked_multiply(bytes, extent).value_or(kMostBytes);
  if (bytes >= kMostBytes) throw InputError({}, "{} {}: more than 4 EiB", option, shortened(text));
  return shape;
}

std::vector<std::int64_t> parse_integers(const std::string& option, const std::string& text, std::int64_t least) {
  const bool has_brackets = text.size() >= 2 && text.front() == '(' && text.back() == ')';
  return parse_list(option, has_brackets ? text.substr(1, text.size() - 2) : text, ",", least);
}

std::vector<std::int64_t> parse_ranges(const std::string& option, const std::string& text, std::int64_t count) {
  std::vector<std::int64_t> items;
  std::string_view rest = text;
  while (true) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string item(rest.substr(0, comma));
    const std::size_t dash = item.find('-');
    const std::vector<std::int64_t> first = parse_list(option, item.substr(0, dash), ",", 0);
    const std::vector<std::int64_t> last =
        dash == std::string::npos ? first : parse_list(option, item.substr(dash + 1), ",", 0);
    if (first.size() != 1 || last.size() != 1 || last[0] < first[0]) {
      throw InputError({}, "{} {}: found '{}'; expected numbers and ranges such as 0-3,8", option, shortened(text),
                       shortened(item));
    }
    const std::int64_t more = last[0] - first[0];  // beyond the first
    if (more >= count - static_cast<std::int64_t>(items.size())) {
      throw InputError({}, "{} {}: more than {} devices are listed, but the mesh has {} points", option,
                       shortened(text), count, count);
    }
    for (std::int64_t i = 0; i <= more; ++i) items.push_back(first[0] + i);
    if (comma == rest.size()) break;
    rest.remove_prefix(comma + 1);
  }
  return items;
}

}  // namespace shardplan
