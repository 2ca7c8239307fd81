#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace shardplan {

/// Keys stay in the order in which they are set: same input, same bytes. Include in .cc files only, it is slow to
/// compile.
using Json = nlohmann::ordered_json;

/// A value on one line with blanks behind ',' and ':'; bytes that are not UTF-8 become U+FFFD.
std::string json_line(const Json& value);

/// A document: one key of the outermost object a line, and one element a line of those of its lists that hold objects.
std::string json_document(const Json& document);

/// The same text, made member by member: a list of a million objects is then never a tree at once.
class JsonDocument {
 public:
  void add(std::string_view key, const Json& value);
  /// A list whose elements, objects, `add_row` and `add_rows` add until the next member.
  void begin_list(std::string_view key);
  void add_row(const Json& element);
  /// `row` of each number below `count`, in this order; called from several threads at once.
  void add_rows(std::size_t count, const std::function<Json(std::size_t)>& row);
  std::string finish() &&;

 private:
  void begin_member(std::string_view key);
  void add_row_text(std::string_view line);
  void end_list();

  enum class List { kNone, kEmpty, kBegun };
  std::string text_;
  List list_ = List::kNone;  // the member that is being written, if it is one
};

}  // namespace shardplan
