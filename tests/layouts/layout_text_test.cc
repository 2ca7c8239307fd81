// The text of layouts (layouts/layout_text.cc): Shardy's notation, parsed and printed.

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/layouts/all_layouts.h"

namespace shardplan {
namespace {

const DeviceMesh kTextMesh = DeviceMesh::parse("x=2,y=4");

struct TextCase {
  const char* text;
  const char* read;  // as printed
  const char* note = "";
};
const TextCase kTexts[] = {
    {"[ {\"x\"},{'y'} ]", "[{x}, {y}]"},
    {"[{x,y:(1)2},{}] unreduced={y:(2)2}", "[{x, y:(1)2}, {}] unreduced={y:(2)2}"},
    {"[{}] unreduced={x} unreduced_kind=max", "[{}] unreduced={x} unreduced_kind=max"},
    {"[{\"x\", ?}p0, {?}p1]", "[{x}, {}]",
     "layout '[{\"x\", ?}p0, {?}p1]': '?', priorities read and dropped; they place nothing"},
    {"[{x}] replicated={y}", "[{x}]",
     "layout '[{x}] replicated={y}': replicated={...} read and dropped; they place nothing"},
    {"[(2:{}, 4:{x})]", "[(2:{}, 4:{x})]"},
    {"[{y:(1)4}]", "[{y}]"},
};
TEST(LayoutTextTest, ReadsShardysNotation) {
  for (const TextCase& c : kTexts) {
    std::string note;
    const TensorLayout layout = parse_layout(c.text, kTextMesh, &note);
    EXPECT_EQ(to_string(layout, kTextMesh), c.read);
    EXPECT_EQ(note, c.note);
    EXPECT_EQ(parse_layout(to_string(layout, kTextMesh), kTextMesh), layout);
  }
}

struct FaultCase {
  const char* text;
  const char* fault;
};
const FaultCase kTextFaults[] = {
    {"", "layout '', character 1: found the end; expected '['"},
    {"[{x}", "layout '[{x}', character 5: found the end; expected ']'"},
    {"[{z}]", "layout '[{z}]', character 3: unknown axis 'z'; the mesh is x=2, y=4"},
    {"[{x}, {x}]", "layout '[{x}, {x}]': axis x is used twice"},
    {"[{y:(1)2}, {y}]", "layout '[{y:(1)2}, {y}]': y:(1)2 and y overlap"},
    {"[{y:(1)3}]", "layout '[{y:(1)3}]', character 3: y:(1)3 is not part of axis y of size 4; 1 * 3 must divide it"},
    {"[{y:(0)2}]", "layout '[{y:(0)2}]', character 6: found '0'; expected a number of at least 1"},
    {"[{x}] unreduced", "layout '[{x}] unreduced', character 16: found the end; expected '='"},
    {"[{x}] partial={y}",
     "layout '[{x}] partial={y}', character 7: found 'partial'; expected 'unreduced={...}', 'unreduced_kind=max' or "
     "the "
     "end"},
    {"[{x}] unreduced={y} unreduced_kind=avg",
     "layout '[{x}] unreduced={y} unreduced_kind=avg', character 36: found 'avg'; expected sum, max or min"},
    {"[{x}] unreduced_kind=max",
     "layout '[{x}] unreduced_kind=max', character 25: 'unreduced_kind' is given without 'unreduced={...}'"},
    {"[(99999999999999999999:{})]",
     "layout '[(99999999999999999999:{})]', character 3: found '99999999999999999999'; expected a whole number"},
};
TEST(LayoutTextTest, SaysWhereTheTextIsWrong) {
  for (const FaultCase& c : kTextFaults) {
    try {
      parse_layout(c.text, kTextMesh);
      ADD_FAILURE() << c.text;
    } catch (const InputError& error) {
      EXPECT_STREQ(error.diagnostics().at(0).message.c_str(), c.fault);
    }
  }
}

// All layouts that can be made are parsed as they were printed.
TEST(LayoutTextTest, TextsOfLayoutsAreReadBack) {
  const DeviceMesh mesh = DeviceMesh::parse("a=2,b=12,c=2");
  constexpr std::uint64_t kSeed = 21;
  Random random(kSeed);
  for (int i = 0; i < 500; ++i) {
    TensorLayout layout = random_layout(mesh, {24, 36}, random, true, true);
    if (layout.partial.empty()) layout.reduction = Reduction::kSum;  // is not printed
    const std::string text = to_string(layout, mesh);
    ASSERT_EQ(parse_layout(text, mesh), layout) << text << ", seed " << kSeed;
  }
}

TEST(LayoutTextTest, SurvivesAnyText) {
  Random random(3);
  const std::string letters = "[]{}(),:=\"'?xyz0123456789 unreduced_kindmaxp";
  for (int i = 0; i < 5000; ++i) {
    std::string text = random.below(2) == 0 ? "[{x}, {y}] unreduced={y}" : "[(2:{}, 4:{x})]";
    for (std::uint64_t n = random.below(4) + 1; n-- > 0;) {
      const std::size_t at = random.below(text.size());
      text[at] = letters[random.below(letters.size())];
    }
    try {
      const TensorLayout layout = parse_layout(text, kTextMesh);
      EXPECT_EQ(parse_layout(to_string(layout, kTextMesh), kTextMesh), layout);
    } catch (const InputError&) {
    }
  }
}

}  // namespace
}  // namespace shardplan
