#include "report/export/python_text.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/support/python.h"

namespace shardplan {
namespace {

TEST(PythonTextTest, StringsAreEscaped) {
  EXPECT_EQ(python_text("layers.0.up"), "\"layers.0.up\"");
  EXPECT_EQ(python_text("a\"b\\c\n"), "\"a\\\"b\\\\c\\x0a\"");
  EXPECT_EQ(python_comment("one\ntwo\x7f"), "# one two \n");
}

TEST(PythonTextTest, TuplesOfOneHaveTheirComma) {
  using List = std::vector<std::int64_t>;
  EXPECT_EQ(python_tuple(List{}), "()");
  EXPECT_EQ(python_tuple(List{8}), "(8,)");
  EXPECT_EQ(python_tuple(List{2, 4}), "(2, 4)");
  EXPECT_EQ(python_tuple(std::vector<std::string>{"None", "'x'"}), "(None, 'x')");
}

TEST(PythonTextTest, DenseIndicesAreARange) {
  EXPECT_EQ(python_indices({0}), "range(1)");
  EXPECT_EQ(python_indices({0, 1, 2}), "range(3)");
  EXPECT_EQ(python_indices({1, 2, 3}), "range(1, 4)");
  EXPECT_EQ(python_indices({0, 3, 4}), "(0, 3, 4)");
  EXPECT_EQ(python_index(0), 'i');
  EXPECT_EQ(python_index(2), 'k');
}

const std::vector<ExportedEntry> kEntries = {{"layers.0.up", "(1, 2)", ""},
                                             {"layers.1.up", "(1, 2)", ""},
                                             {"head{0}", "'x'", ""},
                                             {"quoted\"name", "'y'", ""},
                                             {"bad", "", "bad [{b, a}]; nests left to right"},
                                             {"near", "(0, 1)", "near [{c}]; the nearest"}};

TEST(PythonTextTest, DictionariesFoldCopiesAndCommentWhatCannotBeSaid) {
  std::vector<std::string> cannot_say;
  EXPECT_EQ(python_dictionary("plan", kEntries, cannot_say),
            "plan = {\n"
            "    **{f\"layers.{i}.up\": (1, 2) for i in range(2)},\n"
            "    \"head{0}\": 'x',\n"
            "    \"quoted\\\"name\": 'y',\n"
            "    # cannot be expressed: bad [{b, a}]; nests left to right\n"
            "    # cannot be expressed: near [{c}]; the nearest\n"
            "    \"near\": (0, 1),\n"
            "}\n");
  EXPECT_EQ(cannot_say, (std::vector<std::string>{"bad [{b, a}]; nests left to right", "near [{c}]; the nearest"}));
  EXPECT_EQ(python_dictionary("none", {}, cannot_say), "none = {}\n");
}

}  // namespace
}  // namespace shardplan
