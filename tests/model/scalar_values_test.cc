#include "model/syntax/scalar_values.h"

#include <gtest/gtest.h>

namespace shardplan {
namespace {

YamlNode node_of(const std::string& text) {
  std::vector<Diagnostic> faults;
  return *parse_yaml("x: " + text, "m.yaml", faults).root.find("x");
}

TEST(ScalarValuesTest, NothingHasTwoSpellings) {
  for (const char* none : {"null", "None"}) EXPECT_TRUE(is_none(node_of(none))) << none;
  for (const char* some : {"none", "'null'", "0", "[]", "{}", "nil"}) EXPECT_FALSE(is_none(node_of(some))) << some;
}

TEST(ScalarValuesTest, FlagsAreTrueAndFalse) {
  const struct {
    const char* text;
    std::optional<bool> value;
  } cases[] = {{"true", true}, {"True", true}, {"false", false}, {"False", false}, {"yes", {}},
               {"1", {}},      {"TRUE", {}},   {"[true]", {}},   {"", {}}};
  for (const auto& c : cases) EXPECT_EQ(flag_value(node_of(c.text)), c.value) << c.text;
}

TEST(ScalarValuesTest, WholeNumbersAreDecimalAndNoExpressions) {
  const struct {
    const char* text;
    std::optional<std::int64_t> value;
  } cases[] = {{"0", 0},
               {"7", 7},
               {"-7", -7},
               {"9223372036854775807", INT64_MAX},
               {"9223372036854775808", {}},
               {"1.0", {}},
               {"1e3", {}},
               {"2*3", {}},
               {"B", {}},
               {"[1]", {}},
               {"0x10", {}}};
  for (const auto& c : cases) EXPECT_EQ(whole_value(node_of(c.text)), c.value) << c.text;
}

TEST(ScalarValuesTest, WordsAreTakenAsPythonWritesThem) {
  const std::vector<std::string> words = {"auto_parallel", "momentum", "f16", "GPU"};
  const struct {
    const char* text;
    std::optional<std::string> word;
  } cases[] = {{"auto_parallel", "auto_parallel"},
               {"AUTO_PARALLEL", "auto_parallel"},
               {"ParallelMode.AUTO_PARALLEL", "auto_parallel"},
               {"nn.Momentum", "momentum"},
               {"float16", "f16"},
               {"mstype.float16", "f16"},
               {"np.Float16", "f16"},
               {"gpu", "GPU"},
               {"GPU", "GPU"},
               {"float32", {}},  // a type, but not one of the words
               {"momentum.nn", {}},
               {"auto parallel", {}},
               {"[momentum]", {}}};
  for (const auto& c : cases) EXPECT_EQ(choice_value(node_of(c.text), words), c.word) << c.text;
}

TEST(ScalarValuesTest, TypesHaveTheNamesOfFilesAndOfMindSpore) {
  const struct {
    const char* text;
    std::optional<DataType> type;
  } cases[] = {{"f32", DataType::kF32},
               {"float32", DataType::kF32},
               {"mstype.bfloat16", DataType::kBF16},
               {"ms.int64", DataType::kI64},
               {"uint8", DataType::kU8},
               {"np.bool_", DataType::kBool},
               {"bool", DataType::kBool},
               {"float8e4m3fn", DataType::kF8E4M3},
               {"F32", {}},
               {"float", {}},
               {"", {}},
               {"float32.", {}}};
  for (const auto& c : cases) EXPECT_EQ(data_type_value(c.text), c.type) << c.text;
}

TEST(ScalarValuesTest, ListsAreWrittenAsInASentence) {
  EXPECT_EQ(either({}), "");
  EXPECT_EQ(either({"sgd"}), "sgd");
  EXPECT_EQ(either({"sgd", "adam"}), "sgd or adam");
  EXPECT_EQ(either({"sgd", "adam", "adamw"}), "sgd, adam or adamw");
}

}  // namespace
}  // namespace shardplan
