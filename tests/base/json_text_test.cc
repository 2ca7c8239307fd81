#include "base/json_text.h"

#include <gtest/gtest.h>

#include <limits>
#include <utility>

namespace shardplan {
namespace {

TEST(JsonTextTest, ALineHasBlanksBehindCommasAndColons) {
  Json value;
  value["z"] = 1;  // keys stay in the order of insertion
  value["a"] = {1, 2.5, true, nullptr, "x\"y"};
  value["empty"] = Json::object();
  value["list"] = Json::array();
  EXPECT_EQ(json_line(value), R"({"z": 1, "a": [1, 2.5, true, null, "x\"y"], "empty": {}, "list": []})");
  EXPECT_EQ(json_line("text"), "\"text\"");
}

TEST(JsonTextTest, ADocumentHasAKeyALine) {
  Json document;
  document["name"] = "mlp";
  document["shape"] = {2, 3};
  document["steps"] = {{{"kind", "slice"}, {"sent", 0}}, {{"kind", "all_gather"}, {"sent", 360}}};
  document["none"] = Json::array();
  EXPECT_EQ(json_document(document),
            "{\"name\": \"mlp\",\n"
            " \"shape\": [2, 3],\n"
            " \"steps\": [\n"
            "  {\"kind\": \"slice\", \"sent\": 0},\n"
            "  {\"kind\": \"all_gather\", \"sent\": 360}],\n"
            " \"none\": []}\n");
}

TEST(JsonTextTest, ADocumentMayBeEmpty) {
  EXPECT_EQ(json_document(Json::object()), "{}\n");
  EXPECT_EQ(JsonDocument().finish(), "{}\n");
}

// Names in messages may contain any bytes; documents are UTF-8 in any case.
TEST(JsonTextTest, BytesThatAreNotTextAreReplaced) {
  EXPECT_EQ(json_line("a\xff"
                      "b"),
            "\"a\xef\xbf\xbd"
            "b\"");
  EXPECT_EQ(json_line("\n\x01"), "\"\\n\\u0001\"");
  const Json value = {{"\xc3\xa9", "\xc3\xa9"}};
  EXPECT_EQ(json_line(value), "{\"\xc3\xa9\": \"\xc3\xa9\"}");
}

// A list written row by row equals the list written at once.
TEST(JsonTextTest, ADocumentIsMadeMemberByMember) {
  const Json rows = {{{"id", 0}}, {{"id", 1}}};
  JsonDocument document;
  document.add("name", "mlp");
  document.begin_list("none");
  document.begin_list("rows");
  for (const Json& row : rows) document.add_row(row);
  document.add("last", nullptr);
  Json whole;
  whole["name"] = "mlp";
  whole["none"] = Json::array();
  whole["rows"] = rows;
  whole["last"] = nullptr;
  EXPECT_EQ(std::move(document).finish(), json_document(whole));
}

// Rows made on several threads appear in order, together with those added one by one.
TEST(JsonTextTest, RowsAreMadeSideBySide) {
  for (const std::size_t count : {0, 1, 127, 128, 129, 8192, 20'000}) {
    SCOPED_TRACE(count);
    const auto row = [](std::size_t i) { return Json{{"id", i}, {"text", std::string(i % 7, 'x')}}; };
    Json rows = Json::array({{{"first", true}}});
    JsonDocument document;
    document.begin_list("rows");
    document.add_row(rows[0]);
    document.add_rows(count, row);
    for (std::size_t i = 0; i < count; ++i) rows.push_back(row(i));
    EXPECT_EQ(std::move(document).finish(), json_document({{"rows", rows}}));
  }
}

// Every scalar is printed as the library prints it.
TEST(JsonTextTest, ScalarsAreTheLibrarys) {
  for (const char* text :
       {"0", "-1", "18446744073709551615", "-9223372036854775808", "0.1", "1e300", "-0.0", "1.0", "true", "null",
        R"("")", R"("a b~")", R"("a\"b")", R"("a\\b")", R"("\u0000\t\u007f")", R"("é")"}) {
    const Json value = Json::parse(text);
    EXPECT_EQ(json_line(value), value.dump());
  }
  EXPECT_EQ(json_line(std::numeric_limits<double>::infinity()), "null");
}

// The output is read back by the library's own reader.
TEST(JsonTextTest, IsReadBack) {
  const Json value =
      Json::parse(R"({"a": [[], [1, [2]], {"b": {"c": [{"d": "e"}]}}], "f": -1e-7, "g": 12345678901234})");
  EXPECT_EQ(Json::parse(json_line(value)), value);
  EXPECT_EQ(Json::parse(json_document(value)), value);
}

}  // namespace
}  // namespace shardplan
