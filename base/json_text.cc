#include "base/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "base/side_by_side.h"

namespace shardplan {
namespace {

// Rows are formatted on several threads: in batches of kRowsAtOnce, in which a thread takes kRowsOfPart at a time.
constexpr std::size_t kRowsAtOnce = 8192, kRowsOfPart = 128, kMostThreads = 8;

/// Whether JSON needs no escapes for any of the characters.
bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
}

void append_text(std::string& text, std::string_view value) {
  if (is_plain(value)) {
    text += '"';
    text += value;
    text += '"';
  } else {
    text += Json(value).dump(-1, ' ', false, Json::error_handler_t::replace);
  }
}

/// Avoids the library's `dump` for most scalars, since each call creates a stream.
void append_scalar(std::string& text, const Json& value) {
  if (value.is_string()) {
    append_text(text, value.get_ref<const std::string&>());
  } else if (value.is_number_unsigned()) {
    fmt::format_to(std::back_inserter(text), "{}", value.get<std::uint64_t>());
  } else if (value.is_number_integer()) {
    fmt::format_to(std::back_inserter(text), "{}", value.get<std::int64_t>());
  } else {
    text += value.dump();
  }
}

void append(std::string& text, const Json& value) {
  if (value.is_object()) {
    text += '{';
    bool is_first = true;
    for (const auto& [key, item] : value.items()) {
      if (!is_first) text += ", ";
      is_first = false;
      append_text(text, key);
      text += ": ";
      append(text, item);
    }
    text += '}';
  } else if (value.is_array()) {
    text += '[';
    bool is_first = true;
    for (const Json& item : value) {
      if (!is_first) text += ", ";
      is_first = false;
      append(text, item);
    }
    text += ']';
  } else {
    append_scalar(text, value);
  }
}

}  // namespace

std::string json_line(const Json& value) {
  std::string text;
  append(text, value);
  return text;
}

std::string json_document(const Json& document) {
  JsonDocument result;
  for (const auto& [key, value] : document.items()) result.add(key, value);
  return std::move(result).finish();
}

void JsonDocument::add(std::string_view key, const Json& value) {
  if (value.is_array() && !value.empty() && value[0].is_object()) {
    begin_list(key);
    for (const Json& element : value) add_row(element);
    return;
  }
  begin_member(key);
  append(text_, value);
}

void JsonDocument::begin_list(std::string_view key) {
  begin_member(key);
  text_ += '[';
  list_ = List::kEmpty;
}

void JsonDocument::add_row(const Json& element) { add_row_text(json_line(element)); }

void JsonDocument::add_rows(std::size_t count, const std::function<Json(std::size_t)>& row) {
  std::vector<std::string> lines(std::min(count, kRowsAtOnce));
  for (std::size_t first = 0; first < count; first += kRowsAtOnce) {
    const std::size_t num_lines = std::min(kRowsAtOnce, count - first);
    const std::size_t parts = (num_lines + kRowsOfPart - 1) / kRowsOfPart;
    side_by_side(num_processors(kMostThreads), parts, [&](std::size_t, std::size_t part) {
      const std::size_t end = std::min(num_lines, (part + 1) * kRowsOfPart);
      for (std::size_t i = part * kRowsOfPart; i < end; ++i) lines[i] = json_line(row(first + i));
    });
    for (std::size_t i = 0; i < num_lines; ++i) add_row_text(lines[i]);
  }
}

void JsonDocument::add_row_text(std::string_view line) {
  text_ += list_ == List::kEmpty ? "\n  " : ",\n  ";
  text_ += line;
  list_ = List::kBegun;
}

std::string JsonDocument::finish() && {
  end_list();
  return text_.empty() ? "{}\n" : std::move(text_) + "}\n";
}

void JsonDocument::begin_member(std::string_view key) {
  end_list();
  text_ += text_.empty() ? "{" : ",\n ";
  append_text(text_, key);
  text_ += ": ";
}

void JsonDocument::end_list() {
  if (list_ != List::kNone) text_ += ']';
  list_ = List::kNone;
}

}  // namespace shardplan
