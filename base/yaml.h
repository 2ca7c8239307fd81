#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace shardplan {

struct YamlEntry;

/// One node of a YAML file as written: scalars are text, whose type depends on where they are used (`no`, `1e3`, `010`
/// are just text here). Aliases are refused, so a tree is never larger than its file.
struct YamlNode {
  enum class Kind {
    kScalar,    // `text`
    kNull,      // the word null, unquoted
    kEmpty,     // no value: `key:` or the value in `{key}`
    kSequence,  // `items`
    kMap,       // `entries`, in the file's order
  };
  Kind kind = Kind::kEmpty;
  std::string text;
  bool is_quoted = false;
  bool is_flow = false;  // a sequence or map in brackets
  std::vector<YamlNode> items;
  std::vector<YamlEntry> entries;
  int line = 0;    // from 1
  int column = 0;  // from 1, in bytes

  bool is_scalar() const { return kind == Kind::kScalar; }
  bool is_null() const { return kind == Kind::kNull; }
  bool is_sequence() const { return kind == Kind::kSequence; }
  bool is_map() const { return kind == Kind::kMap; }
  /// The value under `key` of a map; null if there is none or this node is not a map.
  const YamlNode* find(std::string_view key) const;
};

struct YamlEntry {
  YamlNode key;  // always a scalar
  YamlNode value;
};

/// A file's tree together with the name that diagnostics show.
struct YamlDocument {
  SharedText file;
  YamlNode root;

  SourcePlace place(const YamlNode& node) const { return {file, node.line, node.column}; }
};

/// Parses one YAML document. Duplicate keys (the second is dropped), keys that are not scalars, anchors, aliases, `<<`
/// and tags are added to `faults`, and parsing continues. A value that begins with a parenthesis is one scalar up to
/// the matching parenthesis: Python tuples may appear anywhere (base/tuple_mask.h). Throws InputError, with `faults` in
/// it, if no tree can be built: at a syntax error, a byte that is not UTF-8, a control character, several documents, above
/// 16 MiB, or nesting deeper than 100.
YamlDocument parse_yaml(const std::string& text, const std::string& file, std::vector<Diagnostic>& faults);

/// Limit for files that people write.
inline constexpr std::size_t kMostFileBytes = std::size_t{16} << 20;
/// Limit for files that the program has written: the plan of a hundred thousand operators.
inline constexpr std::size_t kMostWrittenBytes = std::size_t{256} << 20;

/// The text of a file; throws InputError if it cannot be read or has more than `most` bytes.
std::string read_text_file(const std::string& path, std::size_t most = kMostFileBytes);

/// Describes a node for messages: "a list", "a map", "nothing", "'text'" (cut if long).
std::string describe(const YamlNode& node);

/// Adds one fault for every key of the map `node` that is not in `known`: "parallel: unknown key 'paralel_mode'; did
/// you mean 'parallel_mode'?". `where` names the map; it is empty for the file itself.
void check_keys(const YamlDocument& document, const YamlNode& node, const std::vector<std::string>& known,
                std::string_view where, std::vector<Diagnostic>& faults);

}  // namespace shardplan
