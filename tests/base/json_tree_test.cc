#include "base/json_tree.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace shardplan
