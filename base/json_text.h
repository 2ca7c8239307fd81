#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace shardplan {

/// Keys stay in the order in which they are set: same input, same bytes. Include in .cc files only, it is slow to
/// compile.
using Json = nlohmann::ordered_json;

/// A value on one line with blanks behind ',' and ':'; bytes that are not UTF-8 become U+FFFD.
std::string json_line(const Json& value);

/// A document: one key of the outermost object a line, and one element a line of those of its lists that hold objects.
std::string json_document(const Json& document);

}  // namespace shardplan
