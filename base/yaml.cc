#include "base/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "base/tuple_mask.h"
#include "base/utf8.h"

// The tree is built from the parser's events instead of YAML::Node: events show anchors, tags and quotes, and nothing
// is expanded or guessed implicitly.

namespace shardplan {
namespace {

constexpr std::size_t kMaxDepth = 100;

/// The code of the control character that begins at `at`.
unsigned control_at(std::string_view text, std::size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  return byte == 0xc2 ? static_cast<unsigned char>(text[at + 1]) : byte;
}

class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(const std::string& text, const std::string& file, std::vector<Diagnostic>& faults)
      : file_(file), text_(text), faults_(faults) {
    line_starts_.push_back(text.starts_with("\xef\xbb\xbf") ? 3 : 0);
    for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1)) {
      line_starts_.push_back(at + 1);
    }
  }

  YamlNode take_root() { return std::move(root_); }
  /// The text of the line that the mark is in.
  std::string_view line_of(YAML::Mark mark) const {
    mark.column = 0;
    const std::string_view rest = text_at(mark);
    return rest.substr(0, rest.find('\n'));
  }

  /// Refuses the whole file if a quoted text begins at the mark and does not end: the parser takes the end of the file
  /// for its end, so that all keys behind it would silently be part of it.
  void reject_open_quote(const YAML::Mark& mark) {
    std::string_view text = text_at(mark);
    text.remove_prefix(std::min(text.find_first_not_of("! \t"), text.size()));  // the tag '!' may stand before it
    if (text.empty() || (text[0] != '"' && text[0] != '\'') || is_closed(text)) return;
    fault(mark, fmt::format("a text that begins with {} is not closed by another {}", text[0], text[0]), "");
    throw InputError(faults_);
  }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    YamlNode node = make(YamlNode::Kind::kEmpty, mark);
    // The parser also takes ~, Null and NULL for null; here they are text.
    const std::string_view written = text_at(mark);
    const auto begins = [&](std::string_view word) {
      return written.starts_with(word) &&
             (written.size() == word.size() ||
              std::string_view(" \t\r\n,]}:#").find(written[word.size()]) != std::string_view::npos);
    };
    if (begins("null")) {
      node.kind = YamlNode::Kind::kNull;
    } else {
      for (const std::string_view word : {"~", "Null", "NULL"}) {
        if (!begins(word)) continue;
        node.kind = YamlNode::Kind::kScalar;
        node.text = word;
      }
    }
    reject_anchor(mark, anchor);
    add(std::move(node));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    fault(mark, "aliases ('*name') are not read", "write the value out; blocks and dims serve for what repeats");
    add(make(YamlNode::Kind::kEmpty, mark));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    reject_anchor(mark, anchor);
    reject_tag(mark, tag);
    YamlNode node = make(YamlNode::Kind::kScalar, mark);
    node.is_quoted = tag == "!";
    if (node.is_quoted) reject_open_quote(mark);
    node.text = node.is_quoted ? without_controls(value, mark) : unmask_tuples(value);
    add(std::move(node));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    start(YamlNode::Kind::kSequence, mark, tag, anchor, style);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    start(YamlNode::Kind::kMap, mark, tag, anchor, style);
  }
  void OnMapEnd() override { end(); }

 private:
  struct Open {
    YamlNode node;
    std::optional<YamlNode> key;
    std::set<std::string> keys;
  };

  /// Whether the quote that the text begins with has its counterpart: '\"' and ''' are not the ends they look like.
  static bool is_closed(std::string_view text) {
    const char quote = text[0];
    for (std::size_t at = 1; at < text.size(); ++at) {
      const bool is_doubled = quote == '\'' && text.substr(at).starts_with("''");
      if ((quote == '"' && text[at] == '\\') || is_doubled) {
        ++at;
      } else if (text[at] == quote) {
        return true;
      }
    }
    return false;
  }

  static YamlNode make(YamlNode::Kind kind, const YAML::Mark& mark) {
    YamlNode node;
    node.kind = kind;
    node.line = mark.line + 1;
    node.column = mark.column + 1;
    return node;
  }

  std::string_view text_at(const YAML::Mark& mark) const {
    const auto line = static_cast<std::size_t>(std::max(mark.line, 0));
    if (line >= line_starts_.size()) return {};
    const std::size_t at = line_starts_[line] + static_cast<std::size_t>(std::max(mark.column, 0));
    return at < text_.size() ? std::string_view(text_).substr(at) : std::string_view();
  }

  void fault(const YAML::Mark& mark, std::string message, std::string hint) {
    faults_.push_back({{file_, mark.line + 1, mark.column + 1}, std::move(message), std::move(hint)});
  }
  void reject_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor == 0) return;
    fault(mark, "anchors ('&name') are not read", "write the value out; blocks and dims serve for what repeats");
  }
  void reject_tag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    fault(mark, fmt::format("tags ('{}') are not read", tag), "leave the tag out: the place decides the type");
  }

  /// A text in quotes, in which escapes can stand for control characters; only line breaks and tabs are read.
  std::string without_controls(const std::string& value, const YAML::Mark& mark) {
    std::string result;
    bool is_faulty = false;
    for (std::size_t at = 0, length = 0; at < value.size(); at += length) {
      length = std::max(utf8_length(value, at), std::size_t{1});
      if (!is_control(value, at) || value[at] == '\n' || value[at] == '\t') {
        result.append(value, at, length);
        continue;
      }
      result += '?';  // so that no message has it
      if (!std::exchange(is_faulty, true)) {
        fault(mark, fmt::format("control characters (0x{:02x}) are not read", control_at(value, at)), "");
      }
    }
    return result;
  }

  void start(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
             YAML::EmitterStyle::value style) {
    reject_anchor(mark, anchor);
    reject_tag(mark, tag);
    if (open_.size() >= kMaxDepth) {
      fault(mark, fmt::format("nested deeper than {} levels", kMaxDepth), "");
      throw InputError(faults_);
    }
    open_.push_back({make(kind, mark), std::nullopt, {}});
    open_.back().node.is_flow = style == YAML::EmitterStyle::Flow;
  }

  void end() {
    YamlNode node = std::move(open_.back().node);
    open_.pop_back();
    add(std::move(node));
  }

  void add(YamlNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.is_sequence()) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.key) {
      parent.key = std::move(node);
    } else {
      add_entry(parent, std::move(*parent.key), std::move(node));
      parent.key.reset();
    }
  }

  void add_entry(Open& map, YamlNode key, YamlNode value) {
    const SourcePlace place{file_, key.line, key.column};
    if (key.is_null()) {  // as a key, null is a name
      key.kind = YamlNode::Kind::kScalar;
      key.text = "null";
    }
    if (!key.is_scalar()) {
      faults_.push_back({place, fmt::format("a key must be a word; found {}", describe(key)), ""});
      return;
    }
    if (key.text == "<<" && !key.is_quoted) {
      faults_.push_back({place, "merge keys ('<<') are not read", "write the entries out"});
      return;
    }
    if (!map.keys.insert(key.text).second) {
      const auto first = std::find_if(map.node.entries.begin(), map.node.entries.end(),
                                      [&](const YamlEntry& entry) { return entry.key.text == key.text; });
      faults_.push_back({place, fmt::format("'{}' is given twice; first in line {}", key.text, first->key.line), ""});
      return;
    }
    // What has no text of its own, or begins only on a later line, is said to be at its key.
    const bool is_block = (value.is_map() || value.is_sequence()) && !value.is_flow;
    if (is_block || value.kind == YamlNode::Kind::kEmpty) {
      value.line = key.line;
      value.column = key.column;
    }
    map.node.entries.push_back({std::move(key), std::move(value)});
  }

  const std::string& file_;
  const std::string& text_;
  std::vector<Diagnostic>& faults_;
  std::vector<std::size_t> line_starts_;
  std::vector<Open> open_;
  YamlNode root_;
};

}  // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
  for (const YamlEntry& entry : entries) {
    if (entry.key.text == key) return &entry.value;
  }
  return nullptr;
}

namespace {

/// The parser's message in words that name what is wrong in the text.
std::string in_plain_words(const std::string& message) {
  namespace Said = YAML::ErrorMsg;
  const std::pair<std::string_view, std::string_view> all[] = {
      {Said::END_OF_SEQ_FLOW, "a list that begins with '[' is not closed by ']' before this"},
      {Said::END_OF_MAP_FLOW, "a map that begins with '{' is not closed by '}' before this"},
      {Said::FLOW_END, "this bracket closes none of its kind"},
      {Said::END_OF_SEQ, "this is neither an entry of the list above ('- ...') nor indented like another one"},
      {Said::END_OF_MAP, "this is neither an entry of the map above ('key: ...') nor indented like another one"},
      {Said::MAP_VALUE,
       "no ':' can stand here: the line above may lack one, entries of a map are indented alike, a text "
       "with ': ' is quoted"},
      {Said::MAP_KEY, "no key can stand here: entries of a map are indented alike"},
      {Said::BLOCK_ENTRY, "no '- ' can stand here: entries of a list are indented alike, on lines of their own"},
      {Said::UNKNOWN_TOKEN, "no text begins with this character unless it is quoted"},
  };
  for (const auto& [said, plain] : all) {
    if (message == said) return std::string(plain);
  }
  return message;
}

/// The parser takes no longer text for a key.
constexpr std::size_t kMostKey = 1024;

struct LongKey {
  int column = 0;          // from 1
  std::size_t length = 0;  // 0: there is none
};
/// The key of the line that begins or ends at `column`, counted from 0, if it is too long.
LongKey long_key(std::string_view line, int column) {
  const std::size_t before = line.find_last_of(" \t{,", static_cast<std::size_t>(std::max(column, 0)));
  const std::size_t begin = before + 1;  // npos + 1 is 0
  const std::size_t end = line.find(':', begin);
  if (end == std::string_view::npos || end - begin <= kMostKey) return {};
  return {static_cast<int>(begin) + 1, end - begin};
}

}  // namespace

YamlDocument parse_yaml(const std::string& text, const std::string& file, std::vector<Diagnostic>& faults) {
  const auto refuse = [&](int line, int column, std::string message) {
    faults.push_back({{file, line, column}, std::move(message), ""});
    throw InputError(faults);
  };
  if (text.size() > kMostFileBytes) refuse(0, 0, "the file is above 16 MiB");
  for (std::size_t at = 0, length = 0; at < text.size(); at += length) {
    length = utf8_length(text, at);
    const bool is_blank = text[at] == '\n' || text[at] == '\t' || text[at] == '\r';
    if (length > 0 && (is_blank || !is_control(text, at))) continue;
    const std::string_view before = std::string_view(text).substr(0, at);
    const auto line = static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1;
    const auto column = static_cast<int>(at - (before.rfind('\n') + 1)) + 1;  // npos + 1 is 0
    refuse(line, column,
           length == 0 ? fmt::format("the byte 0x{:02x} is not part of a character in UTF-8; the file must be in UTF-8",
                                     static_cast<unsigned char>(text[at]))
                       : fmt::format("control characters (0x{:02x}) are not read", control_at(text, at)));
  }
  TreeBuilder builder(text, file, faults);
  try {
    // Where the last line is not ended, the parser reports an open quote at the end of the file.
    std::istringstream stream(mask_tuples(text) + (text.ends_with('\n') ? "" : "\n"));
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) refuse(1, 1, "the file is empty");
    YamlDocument document{file, builder.take_root()};
    TreeBuilder rest(text, file, faults);
    if (parser.HandleNextDocument(rest)) {
      const YamlNode second = rest.take_root();
      refuse(second.line, second.column, "a second document ('---') begins here; expected one");
    }
    return document;
  } catch (const YAML::Exception& error) {
    builder.reject_open_quote(error.mark);  // as where a key is expected
    if (const LongKey key = long_key(builder.line_of(error.mark), error.mark.column); key.length > 0) {
      faults.clear();  // they follow from it
      refuse(error.mark.line + 1, key.column,
             fmt::format("a key of {} characters; at most {} are read", key.length, kMostKey));
    }
    const int line = error.mark.line + 1;
    const std::string_view written = builder.line_of(error.mark);
    const std::size_t indented = std::min(written.find_first_not_of(" \t"), written.size());
    const std::size_t tab = written.substr(0, indented).find('\t');
    if (tab == std::string_view::npos) {
      refuse(line, error.mark.column + 1, "not valid YAML: " + in_plain_words(error.msg));
    }
    refuse(line, static_cast<int>(tab) + 1, "not valid YAML: a tab indents this line; only spaces can");
  }
  return {};
}

std::string read_text_file(const std::string& path, std::size_t most) {
  if (path.empty()) throw InputError(SourcePlace{}, "'' is the name of no file");
  const auto cannot_read = [&] { throw InputError({path, 0, 0}, "cannot be read: {}", std::strerror(errno)); };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (file == nullptr) cannot_read();
  std::string text;
  char buffer[1 << 16];
  while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, file.get())) {
    text.append(buffer, count);
    if (text.size() > most) throw InputError({path, 0, 0}, "the file is above {} MiB", most >> 20);
  }
  if (std::ferror(file.get()) != 0) cannot_read();
  return text;
}

std::string describe(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kScalar:
      return node.text.size() <= 60 ? fmt::format("'{}'", node.text) : fmt::format("'{}...'", node.text.substr(0, 57));
    case YamlNode::Kind::kNull:
      return "null";
    case YamlNode::Kind::kEmpty:
      return "nothing";
    case YamlNode::Kind::kSequence:
      return "a list";
    case YamlNode::Kind::kMap:
      return "a map";
  }
  return {};
}

void check_keys(const YamlDocument& document, const YamlNode& node, const std::vector<std::string>& known,
                std::string_view where, std::vector<Diagnostic>& faults) {
  for (const YamlEntry& entry : node.entries) {
    if (std::find(known.begin(), known.end(), entry.key.text) != known.end()) continue;
    const std::string nearest = nearest_name(entry.key.text, known);
    faults.push_back({document.place(entry.key),
                      fmt::format("{}{}unknown key '{}'{}", where, where.empty() ? "" : ": ", entry.key.text,
                                  nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)),
                      ""});
  }
}

}  // namespace shardplan
