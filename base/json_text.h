#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace shardplan {

/// Keys keep the order in which they are set: same input, same bytes. Include this header in .cc files only; it is slow
/// to compile.
using Json = nlohmann::ordered_json;

/// A value on one line with blanks after ',' and ':'; bytes that are not UTF-8 become U+FFFD.
std::string json_line(const Json& value);

/// A document with one line per key of the outermost object, and one line per element of its lists of objects.
std::string json_document(const Json& document);

/// Writes the same text member by member, so that a list of a million objects never exists as a tree.
class JsonDocument {
 public:
  void add(std::string_view key, const Json& value);
  /// Begins a list of objects; `add_row` and `add_rows` append to it until the next member begins.
  void begin_list(std::string_view key);
  void add_row(const Json& element);
  /// Appends `row(i)` for every i below `count`, in this order; `row` is called from several threads at once.
  void add_rows(std::size_t count, const std::function<Json(std::size_t)>& row);
  std::string finish() &&;

 private:
  void begin_member(std::string_view key);
  void add_row_text(std::string_view line);
  void end_list();

  enum class List { kNone, kEmpty, kBegun };
  std::string text_;
  List list_ = List::kNone;  // the list that is being written, if the current member is one
};

}  // namespace shardplan
