#include "base/json_tree.h"

#include <cstdint>
#include <unordered_set>

#include "base/utf8.h"

// A recursive-descent parser of strict JSON (RFC 8259) that records the place of every value, which common libraries do
// not. It stops at the first fault, since no text after that could be trusted. Depth is limited, so that the brackets
// of a hostile file cannot exhaust the stack.

namespace shardplan {
namespace {

constexpr int kMostDepth = 100;
constexpr std::size_t kFewKeys = 16;

class Parser {
 public:
  Parser(const std::string& text, const std::string& file) : text_(text), place_{file, 1, 1} {}

  JsonNode parse() {
    JsonNode root = value(0);
    skip_blanks();
    if (at_ < text_.size()) fail("expected the end of the file");
    return root;
  }

 private:
  char here() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void advance() {
    if (text_[at_] == '\n') {
      ++place_.line;
      place_.column = 0;
    }
    ++place_.column;
    ++at_;
  }
  void skip_blanks() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) advance();
  }
  [[noreturn]] void fail(std::string_view expected) const {
    const std::string found = at_ >= text_.size()                                        ? "the end of the file"
                              : here() < ' ' || static_cast<unsigned char>(here()) > '~' ? "an odd character"
                                                                                         : fmt::format("'{}'", here());
    throw InputError(place_, "not JSON: found {}; {}", found, expected);
  }
  bool take(char c) {
    skip_blanks();
    if (at_ >= text_.size() || here() != c) return false;
    advance();
    return true;
  }
  void take_word(std::string_view word) {
    for (const char c : word) {
      if (here() != c) fail(fmt::format("expected {}", word));
      advance();
    }
  }

  JsonNode value(int depth) {
    skip_blanks();
    JsonNode node;
    node.place = place_;
    if (depth > kMostDepth) throw InputError(place_, "brackets nest deeper than {}", kMostDepth);
    if (here() == '{') {
      object(node, depth);
    } else if (here() == '[') {
      array(node, depth);
    } else if (here() == '"') {
      node.kind = JsonNode::Kind::kString;
      node.text = string();
    } else if (here() == 't' || here() == 'f') {
      node.kind = JsonNode::Kind::kTruth;
      node.text = here() == 't' ? "true" : "false";
      take_word(node.text);
    } else if (here() == 'n') {
      take_word("null");
    } else {
      node.kind = JsonNode::Kind::kNumber;
      node.text = number();
    }
    return node;
  }

  void object(JsonNode& node, int depth) {
    node.kind = JsonNode::Kind::kObject;
    advance();
    if (take('}')) return;
    // Few keys are compared one by one. An object with a key per operator would take quadratic time, so its keys are
    // hashed: they are only looked up, never iterated.
    std::unordered_set<std::string> keys;
    const auto is_known = [&](const std::string& key) {
      if (node.members.size() < kFewKeys) return node.find(key) != nullptr;
      if (keys.empty()) {
        for (const JsonMember& member : node.members) keys.insert(member.key.text);
      }
      return !keys.insert(key).second;
    };
    do {
      skip_blanks();
      if (here() != '"') fail("expected a key in quotes");
      JsonMember member;
      member.key.kind = JsonNode::Kind::kString;
      member.key.place = place_;
      member.key.text = string();
      if (is_known(member.key.text)) {
        const JsonNode* const before = node.find(member.key.text);
        throw InputError(member.key.place, "key \"{}\" was given at {}:{}", member.key.text, before->place.line,
                         before->place.column);
      }
      if (!take(':')) fail("expected ':'");
      member.value = value(depth + 1);
      node.members.push_back(std::move(member));
    } while (take(','));
    if (!take('}')) fail("expected ',' or '}'");
  }

  void array(JsonNode& node, int depth) {
    node.kind = JsonNode::Kind::kArray;
    advance();
    if (take(']')) return;
    do {
      node.items.push_back(value(depth + 1));
    } while (take(','));
    if (!take(']')) fail("expected ',' or ']'");
  }

  std::string number() {
    const std::size_t begin = at_;
    const auto digits = [&] {
      if (here() < '0' || here() > '9') fail("expected a value");
      while (here() >= '0' && here() <= '9') advance();
    };
    if (here() == '-') advance();
    if (here() == '0') {
      advance();
    } else {
      digits();
    }
    if (here() == '.') {
      advance();
      digits();
    }
    if (here() == 'e' || here() == 'E') {
      advance();
      if (here() == '+' || here() == '-') advance();
      digits();
    }
    return text_.substr(begin, at_ - begin);
  }

  std::string string() {
    std::string result;
    advance();
    while (here() != '"') {
      if (at_ >= text_.size() || static_cast<unsigned char>(here()) < 0x20) fail("expected the end of the string");
      if (here() != '\\') {
        take_character(result);
        continue;
      }
      advance();
      constexpr std::string_view kEscapes = "\"\\/bfnrt";
      constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
      if (here() == 'u') {
        append_code_point(result);
      } else if (const std::size_t which = kEscapes.find(here()); at_ < text_.size() && which != kEscapes.npos) {
        result += kMeanings[which];
        advance();
      } else {
        fail("expected an escape");
      }
    }
    advance();
    return result;
  }

  /// One UTF-8 character.
  void take_character(std::string& result) {
    const std::size_t length = utf8_length(text_, at_);
    if (length == 0) {
      throw InputError(place_, "not JSON: the byte 0x{:02x} is not part of a character in UTF-8",
                       at_ < text_.size() ? static_cast<unsigned char>(text_[at_]) : 0);
    }
    for (std::size_t i = 0; i < length; ++i) {
      result += here();
      advance();
    }
  }

  std::uint32_t four_digits() {
    advance();  // the u
    std::uint32_t code = 0;
    for (int i = 0; i < 4; ++i) {
      const std::size_t digit =
          std::string_view("0123456789abcdef").find(here() >= 'A' && here() <= 'F' ? here() + 32 : here());
      if (at_ >= text_.size() || digit == std::string_view::npos) fail("expected four hexadecimal digits");
      code = code * 16 + static_cast<std::uint32_t>(digit);
      advance();
    }
    return code;
  }
  /// Appends the code point as UTF-8; an unpaired surrogate becomes U+FFFD.
  void append_code_point(std::string& result) {
    std::uint32_t code = four_digits();
    if (code >= 0xd800 && code < 0xdc00 && here() == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == 'u') {
      advance();
      const std::uint32_t low = four_digits();
      code = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00) : 0xfffd;
    }
    append_utf8(result, code);
  }

  const std::string& text_;
  SourcePlace place_;
  std::size_t at_ = 0;
};

}  // namespace

const JsonNode* JsonNode::find(std::string_view key) const {
  for (const JsonMember& member : members) {
    if (member.key.text == key) return &member.value;
  }
  return nullptr;
}

JsonNode parse_json(const std::string& text, const std::string& file) { return Parser(text, file).parse(); }

std::string describe(const JsonNode& node) {
  switch (node.kind) {
    case JsonNode::Kind::kNull:
      return "nothing (null)";
    case JsonNode::Kind::kTruth:
      return node.text;
    case JsonNode::Kind::kNumber:
      return "the number " + node.text;
    case JsonNode::Kind::kString:
      return fmt::format("the string \"{}\"", node.text);
    case JsonNode::Kind::kArray:
      return "a list";
    case JsonNode::Kind::kObject:
      break;
  }
  return "an object";
}

}  // namespace shardplan
