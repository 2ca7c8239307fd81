#include "base/json_tree.h"

#include <gtest/gtest.h>

#include "tests/support/seconds_of.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

TEST(JsonTreeTest, ReadsValuesWithPlacesAndRefusesWhatIsNotJson) {
  const JsonNode root = parse_json("{\"a\": [1, -2.5e+3, true, null,\n \"x\\u00e9\\ud83d\\ude00\\n\"]}", "j.json");
  const JsonNode& list = *root.find("a");
  EXPECT_EQ(list.items[1].text, "-2.5e+3");
  EXPECT_EQ(list.items[4].text, "x\xc3\xa9\xf0\x9f\x98\x80\n");
  EXPECT_EQ(list.items[4].place, (SourcePlace{"j.json", 2, 2}));
  for (const char* text : {"", "{", "[1,]", "{\"a\" 1}", "01", "1.", "+1", "tru", "\"", "\"\\x\"", "\"\\u12\"",
                           "{\"a\":1,\"a\":2}", "1 2", "\"\n\"", "{a: 1}", "'a'", "[1 2]"}) {
    EXPECT_NE(error_of([&] { parse_json(text, "j.json"); }), "no error") << text;
  }
  EXPECT_EQ(error_of([&] { parse_json(std::string(100'000, '['), "j.json"); }),
            "j.json:1:102: error: brackets nest deeper than 100");
}

/// {"key0": 0, "key1": 1, ..., on a line each.
std::string many_keys(int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += fmt::format("\"key{}\": {},\n", i, i);
  return text;
}

/// Comparing each key with all before it would take minutes.
TEST(JsonTreeTest, ManyKeysAreReadInLinearTime) {
  JsonNode root;
  EXPECT_LT(processor_seconds_of([&] { root = parse_json(many_keys(50'000) + "\"last\": 0}", "j.json"); }), 10);
  EXPECT_EQ(root.members.size(), 50'001u);
}

TEST(JsonTreeTest, AKeyIsFoundAgainAmongFewAndMany) {
  for (const int count : {2, 15, 16, 17, 60}) {
    for (const int again : {1, count - 1}) {
      EXPECT_EQ(error_of([&] { parse_json(many_keys(count) + fmt::format("\"key{}\": 0}}", again), "j.json"); }),
                fmt::format("j.json:{}:1: error: key \"key{}\" was given at {}:{}", count + 1, again, again + 1,
                            fmt::format("\"key{}\": ", again).size() + 1));
    }
  }
}

TEST(JsonTreeTest, TextIsUtf8) {
  for (const char* text : {"\x7f", "\xc2\x80", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(parse_json(std::string("\"a") + text + "b\"", "j.json").text, std::string("a") + text + "b");
  }
  for (const char* text : {"\x80", "\xff", "\xc0\x80", "\xc3", "\xe0\x80\x80", "\xe2\x82", "\xed\xa0\x80",
                           "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80"}) {
    EXPECT_TRUE(error_of([&] {
                  parse_json(std::string("[\n \"a") + text + "b\"]", "j.json");
                }).starts_with("j.json:2:4: error: not JSON: the byte 0x"))
        << text;
  }
}

}  // namespace
}  // namespace shardplan
