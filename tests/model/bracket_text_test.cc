#include "model/syntax/bracket_text.h"

#include <gtest/gtest.h>

namespace shardplan {
namespace {

YamlNode scalar_at(int line, int column, bool is_quoted) {
  YamlNode node;
  node.kind = YamlNode::Kind::kScalar;
  node.line = line;
  node.column = column;
  node.is_quoted = is_quoted;
  return node;
}

/// Lists in [], sets in {}, words unchanged and null as "null".
std::string tree_of(const YamlNode& node) {
  std::string text;
  if (node.is_sequence()) {
    for (const YamlNode& item : node.items) text += (text.empty() ? "" : " ") + tree_of(item);
    return "[" + text + "]";
  }
  if (node.is_map()) {
    for (const YamlEntry& entry : node.entries) text += (text.empty() ? "" : " ") + entry.key.text;
    return "{" + text + "}";
  }
  return node.is_null() ? "null" : node.text;
}

std::string tree_of(const std::string& text) {
  try {
    return tree_of(parse_brackets(text, scalar_at(1, 1, false)));
  } catch (const InputError& error) {
    return error.diagnostics()[0].message;
  }
}

TEST(BracketTextTest, RoundAndSquareBracketsAreListsAndBracesSets) {
  const std::pair<const char*, const char*> cases[] = {
      {"((1, 8),)", "[[1 8]]"},
      {"[[1, 8], None, null, []]", "[[1 8] None null []]"},
      {"([{dp}, {mp, y:(1)2}],)", "[[{dp} {mp y:(1)2}]]"},
      {"('MS_WORKER', \"3\")", "[MS_WORKER 3]"},
      {"( 1 ,\n 2 )", "[1 2]"},
      {"()", "[]"},
      {"((1, 8,)", "')' is missing"},
      {"((1, 8]", "']' was not expected"},
      {"(1, 8) x", "'x' was not expected"},
      {"(1, , 2)", "',' was not expected"},
      {"('a", "' is missing"},
      {"({(1)},)", "'{' is followed by brackets; expected words"},
      {"((((((((((((((((((1))))))))))))))))))", "nested too deeply"},
  };
  for (const auto& [text, tree] : cases) EXPECT_EQ(tree_of(std::string(text)), tree) << text;
}

TEST(BracketTextTest, NodesStandWhereTheyAreInPlainText) {
  const YamlNode plain = parse_brackets("((1, 8),)", scalar_at(7, 10, false));
  EXPECT_EQ(plain.items[0].line, 7);
  EXPECT_EQ(plain.items[0].column, 11);
  EXPECT_EQ(plain.items[0].items[1].column, 15);
  // Escapes in quotes would shift places, and --set has none.
  EXPECT_EQ(parse_brackets("((1, 8),)", scalar_at(7, 10, true)).items[0].column, 10);
  EXPECT_EQ(parse_brackets("((1, 8),)", scalar_at(0, 0, false)).items[0].column, 0);
}

}  // namespace
}  // namespace shardplan
