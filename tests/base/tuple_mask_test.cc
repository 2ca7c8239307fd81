#include "base/tuple_mask.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/yaml.h"

namespace shardplan {
namespace {

/// The tree of a text, scalars in quotes: {a: "x", b: ["y"]}.
std::string tree_of(const YamlNode& node) {
  if (node.is_sequence()) {
    std::string text;
    for (const YamlNode& item : node.items) text += (text.empty() ? "" : ", ") + tree_of(item);
    return "[" + text + "]";
  }
  if (node.is_map()) {
    std::string text;
    for (const YamlEntry& entry : node.entries) {
      text += (text.empty() ? "" : ", ") + entry.key.text + ": " + tree_of(entry.value);
    }
    return "{" + text + "}";
  }
  return node.is_scalar() ? "'" + node.text + "'" : describe(node);
}

std::string tree_of(const std::string& text) {
  std::vector<Diagnostic> faults;
  try {
    return tree_of(parse_yaml(text, "t.yaml", faults).root);
  } catch (const InputError& error) {
    return error.what();
  }
}

struct TupleCase {
  const char* name;
  const char* text;
  const char* tree;
};

const TupleCase kTuples[] = {
    {"in_braces", "{a: ((1, 8),), b: x}", "{a: '((1, 8),)', b: 'x'}"},
    {"in_a_list", "[(1, 2), (None,), ()]", "['(1, 2)', '(None,)', '()']"},
    {"below_a_key", "a: (1, (2, 3))\nb: x\n", "{a: '(1, (2, 3))', b: 'x'}"},
    {"an_item_of_its_own", "- (1, 2)\n- x\n", "['(1, 2)', 'x']"},
    {"quotes_and_brackets_inside", R"({place: ("MS_WORKER", 3), s: ([1], {dp}), t: ('a, )', 2)})",
     R"({place: '("MS_WORKER", 3)', s: '([1], {dp})', t: '('a, )', 2)'})"},
    {"over_two_lines", "{a: ((1, 8),\n  (8, 1)), b: x}", "{a: '((1, 8), (8, 1))', b: 'x'}"},
    {"an_expression", "{B: (2+3)*4, C: 1}", "{B: '(2+3)*4', C: '1'}"},
    {"not_where_a_value_goes_on", "{a: f(1, b: 2}", "{a: 'f(1', b: '2'}"},
    {"not_in_quotes", R"({a: "(1, 2", b: '(3, 4)'})", "{a: '(1, 2', b: '(3, 4)'}"},
    {"not_in_comments", "{a: 1, # (1, 2\n b: 2}", "{a: '1', b: '2'}"},
    {"not_in_plain_text", "a: sizes (1, 2) and [3]\n", "{a: 'sizes (1, 2) and [3]'}"},
    {"without_its_end", "{a: ((1, 8,), b: x}", "{a: '((1, 8,), b: x'}"},
    {"without_its_end_in_a_block", "a: ((1, 8),\nb: x\n", "{a: '((1, 8),', b: 'x'}"},
};

class TupleMaskTest : public testing::TestWithParam<TupleCase> {};

TEST_P(TupleMaskTest, TuplesAreOneScalarEachAndAllElseIsAsWritten) {
  EXPECT_EQ(tree_of(GetParam().text), GetParam().tree);
}

INSTANTIATE_TEST_SUITE_P(Texts, TupleMaskTest, testing::ValuesIn(kTuples),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(TupleMaskTest, PlacesBehindATupleStay) {
  std::vector<Diagnostic> faults;
  const YamlDocument document = parse_yaml("{a: ((1, 8),), b: x}", "t.yaml", faults);
  EXPECT_EQ(document.root.find("a")->column, 5);
  EXPECT_EQ(document.root.find("b")->column, 19);
}

TEST(TupleMaskTest, MasksInTheTextItselfAreLeftAlone) {
  const std::string text = "{a: (1, \x01), b: x}";
  EXPECT_EQ(mask_tuples(text), text);
}

}  // namespace
}  // namespace shardplan
