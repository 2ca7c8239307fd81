#include "base/json_text.h"

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
  std::string text;
  for (const auto& [key, value] : document.items()) {
    text += text.empty() ? "{" : ",\n ";
    text += scalar(key) + ": ";
    if (value.is_array() && !value.empty() && value[0].is_object()) {
      text += "[\n";
      for (std::size_t i = 0; i < value.size(); ++i) {
        text += "  ";
        append(text, value[i]);
        text += i + 1 < value.size() ? ",\n" : "]";
      }
    } else {
      append(text, value);
    }
  }
  return text + "}\n";
}

}  // namespace shardplan
