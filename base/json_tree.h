#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace shardplan {

struct JsonMember;

/// One value of a JSON file with its place, so that messages can point to a faulty value.
struct JsonNode {
  enum class Kind { kNull, kTruth, kNumber, kString, kArray, kObject };
  Kind kind = Kind::kNull;
  std::string text;  // a decoded string; a number, true or false as written
  std::vector<JsonNode> items;
  std::vector<JsonMember> members;  // in the file's order
  SourcePlace place;

  /// Compares the keys one by one: to look up many of them, iterate over `members`.
  const JsonNode* find(std::string_view key) const;
};

struct JsonMember {
  JsonNode key;  // a string
  JsonNode value;
};

/// Parses one strict JSON text. Throws InputError at the first place that is not JSON, at a duplicate key, and where
/// brackets nest deeper than 100.
JsonNode parse_json(const std::string& text, const std::string& file);

/// "the number 0", "the string \"x\"", "a list", "nothing (null)", ... for messages.
std::string describe(const JsonNode& node);

}  // namespace shardplan
