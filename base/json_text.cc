#include "base/json_text.h"

#include <utility>

namespace shardplan {
namespace {

std::string scalar(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

void append(std::string& text, const Json& value) {
  if (value.is_object()) {
    text += '{';
    bool is_first = true;
    for (const auto& [key, item] : value.items()) {
      if (!is_first) text += ", ";
      is_first = false;
      text += scalar(key) + ": ";
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
    text += scalar(value);
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

void JsonDocument::add_row(const Json& element) {
  text_ += list_ == List::kEmpty ? "\n  " : ",\n  ";
  append(text_, element);
  list_ = List::kBegun;
}

std::string JsonDocument::finish() && {
  end_list();
  return std::move(text_) + "}\n";
}

void JsonDocument::begin_member(std::string_view key) {
  end_list();
  text_ += text_.empty() ? "{" : ",\n ";
  text_ += scalar(key) + ": ";
}

void JsonDocument::end_list() {
  if (list_ != List::kNone) text_ += ']';
  list_ = List::kNone;
}

}  // namespace shardplan
