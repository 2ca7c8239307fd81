#include "model/syntax/bracket_text.h"

#include <string>
#include <utility>

namespace shardplan {
namespace {

constexpr int kDeepestBrackets = 16;

class BracketParser {
 public:
  BracketParser(std::string_view text, const YamlNode& at) : text_(text), origin_(at) {}

  YamlNode parse() {
    YamlNode node = value(0, "");
    skip_blanks();
    if (at_ < text_.size()) fail_here();
    return node;
  }

 private:
  [[noreturn]] void fail_here() const { throw InputError({}, "'{}' was not expected", text_[at_]); }

  void skip_blanks() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool accept(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  YamlNode node_here(YamlNode::Kind kind) const {
    YamlNode node;
    node.kind = kind;
    node.line = origin_.line;
    const bool is_written_so = origin_.line > 0 && !origin_.is_quoted;
    node.column = origin_.column + (is_written_so ? static_cast<int>(at_) : 0);
    return node;
  }

  YamlNode value(int depth, std::string_view closers) {
    skip_blanks();
    if (depth > kDeepestBrackets) throw InputError(SourcePlace{}, "nested too deeply");
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    if (c == '(') return list(depth, ')');
    if (c == '[') return list(depth, ']');
    if (c == '{') return set(depth);
    return word(closers);
  }

  /// Items up to `closer`, separated by commas, of which one may follow the last.
  template <class AddItem>
  void items(char closer, AddItem add) {
    ++at_;
    while (!accept(closer)) {
      if (at_ >= text_.size()) throw InputError({}, "'{}' is missing", closer);
      add();
      if (accept(',')) continue;
      if (accept(closer)) return;
      if (at_ >= text_.size()) throw InputError({}, "'{}' is missing", closer);
      fail_here();
    }
  }

  YamlNode list(int depth, char closer) {
    YamlNode node = node_here(YamlNode::Kind::kSequence);
    node.is_flow = true;
    const std::string ends = {',', closer};
    items(closer, [&] { node.items.push_back(value(depth + 1, ends)); });
    return node;
  }

  YamlNode set(int depth) {
    YamlNode node = node_here(YamlNode::Kind::kMap);
    node.is_flow = true;
    items('}', [&] {
      YamlEntry entry;
      entry.key = value(depth + 1, ",}");
      if (!entry.key.is_scalar()) throw InputError(SourcePlace{}, "'{{' is followed by brackets; expected words");
      entry.value = node_here(YamlNode::Kind::kEmpty);
      node.entries.push_back(std::move(entry));
    });
    return node;
  }

  /// A word ends at one of `closers` outside of parentheses of its own, as in "y:(1)2".
  YamlNode word(std::string_view closers) {
    YamlNode node = node_here(YamlNode::Kind::kScalar);
    if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) {
      const std::size_t end = text_.find(text_[at_], at_ + 1);
      if (end == std::string_view::npos) throw InputError({}, "{} is missing", text_[at_]);
      node.text = text_.substr(at_ + 1, end - at_ - 1);
      node.is_quoted = true;
      at_ = end + 1;
      return node;
    }
    const std::size_t begin = at_;
    for (int open = 0; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      const bool is_bracket = c == ')' || c == ']' || c == '}';
      if (open == 0 && (is_bracket || closers.find(c) != std::string_view::npos)) break;
      if (c == '(') ++open;
      if (c == ')' && open > 0) --open;
    }
    std::size_t end = at_;
    while (end > begin && (text_[end - 1] == ' ' || text_[end - 1] == '\t')) --end;
    if (end == begin) {
      if (at_ < text_.size()) fail_here();
      throw InputError(SourcePlace{}, "it ends too early");
    }
    node.text = text_.substr(begin, end - begin);
    if (node.text == "null") node.kind = YamlNode::Kind::kNull;
    return node;
  }

  const std::string_view text_;
  const YamlNode& origin_;
  std::size_t at_ = 0;
};

}  // namespace

bool is_in_brackets(std::string_view text) {
  return !text.empty() && (text[0] == '(' || text[0] == '[' || text[0] == '{');
}

YamlNode parse_brackets(std::string_view text, const YamlNode& at) { return BracketParser(text, at).parse(); }

std::optional<YamlNode> bracket_list(const YamlNode& node) {
  if (!node.is_scalar() || !is_in_brackets(node.text)) return std::nullopt;
  try {
    YamlNode list = parse_brackets(node.text, node);
    return list.is_sequence() ? std::optional(std::move(list)) : std::nullopt;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

}  // namespace shardplan
