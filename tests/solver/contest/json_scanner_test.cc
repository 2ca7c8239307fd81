#include "solver/contest/json_scanner.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>

namespace shardplan {
namespace {

/// What `read` makes of a text: its answer, or the fault without its place.
std::string scanned(const std::string& text, const std::function<std::string(JsonScanner&)>& read) {
  const Deadline deadline(0, {});
  try {
    CharacterStream stream(text, "t", deadline);
    JsonScanner scanner(stream);
    return read(scanner);
  } catch (const InputError& error) {
    return error.diagnostics()[0].message;
  }
}

struct NumberCase {
  const char* text;
  const char* answer;
};
const NumberCase kNumbers[] = {
    {"0", "0"},
    {" \t\n 42,", "42"},
    {"9223372036854775807", "9223372036854775807"},
    {"9223372036854775808", "a number that does not fit in 64 bits"},
    {"4.0", "4"},
    {"4.20e1", "42"},
    {"1e18", "1000000000000000000"},
    {"1e19", "a number that does not fit in 64 bits"},
    {"1200e-2", "12"},
    {"0e999999", "0"},
    {"0.000", "0"},
    {"1.5", "a number with a fraction; expected a whole number"},
    {"15e-2", "a number with a fraction; expected a whole number"},
    {"-1", "a negative number; expected at least 0"},
    {"-0", "0"},
    {"-0.0", "0"},
    {"- 0", "' '; expected a digit after '-'"},
    {"01", "a number with a zero in front"},
    {"00", "a number with a zero in front"},
    {"0.5e1", "5"},
    {"1.", "the file ends; expected digits after '.'"},
    {"1ex", "'x'; expected digits after 'e'"},
    {"x", "'x'; expected a number"},
    {"\x01", "character 0x01; expected a number"},
    {"", "the file ends; expected a number"},
};

TEST(JsonScannerTest, NumbersAreReadExactlyOrRefused) {
  for (const NumberCase& item : kNumbers) {
    EXPECT_EQ(scanned(item.text, [](JsonScanner& scanner) { return std::to_string(scanner.number()); }), item.answer)
        << item.text;
  }
}

struct TextCase {
  const char* text;
  const char* answer;
};
const TextCase kTexts[] = {
    {R"("plain")", "plain"},
    {R"("a\"b\\c\/")", "a\"b\\c/"},
    {R"("\u0070roblem")", "problem"},
    {R"("\u00e9\u20AC")", "\xc3\xa9\xe2\x82\xac"},
    {R"("\ud83d\ude00")", "\xf0\x9f\x98\x80"},
    {R"("\ud83d")", "\xef\xbf\xbd"},  // one half alone
    {R"("\ud83d\n")", "\xef\xbf\xbd\n"},
    {R"("\ud83d\u0041")", "\xef\xbf\xbd\x41"},
    {"\"\xc3\xa9\"", "\xc3\xa9"},
    {"\"\xff\"", "the byte 0xff in a name is not part of a character in UTF-8"},
    {R"("\x")", "'x'; expected an escape after '\\'"},
    {R"("\u00g0")", "'g'; expected four hexadecimal digits"},
    {R"("\u00)", "the file ends; expected four hexadecimal digits"},
};

TEST(JsonScannerTest, TextsAreReadAsWhatTheyMean) {
  for (const TextCase& item : kTexts) {
    EXPECT_EQ(scanned(item.text, [](JsonScanner& scanner) { return scanner.string(); }), item.answer) << item.text;
  }
}

TEST(JsonScannerTest, ListsAndObjectsComeAsTheirParts) {
  EXPECT_EQ(scanned(R"({"a": [1, 2], "b" : [], "c":[ [3] ]})",
                    [](JsonScanner& scanner) {
                      std::string text;
                      scanner.object([&](const std::string& key) {
                        text += key + ":";
                        scanner.list([&] {
                          if (scanner.peek() != '[') {
                            text += std::to_string(scanner.number());
                          } else {
                            std::vector<std::int64_t> numbers = {9};
                            scanner.numbers(numbers);
                            text += fmt::format("{}", numbers.size());
                          }
                        });
                        text += ";";
                      });
                      return text;
                    }),
            "a:12;b:;c:1;");
}

TEST(JsonScannerTest, ALongListIsReadInGrowingParts) {
  constexpr std::size_t kCount = (std::size_t{1} << 21) + 3;
  std::string text = "[0";
  for (std::size_t i = 1; i < kCount; ++i) text += i % 7 == 0 ? ",7" : ",1";
  text += "]";
  const Deadline deadline(0, {});
  CharacterStream stream(text, "t", deadline);
  JsonScanner scanner(stream);
  std::vector<std::int64_t> numbers;
  scanner.numbers(numbers);
  ASSERT_EQ(numbers.size(), kCount);
  for (std::size_t i = 1; i < kCount; ++i) ASSERT_EQ(numbers[i], i % 7 == 0 ? 7 : 1) << i;
}

TEST(JsonScannerTest, AnyValueCanBeSkipped) {
  const auto skip = [](JsonScanner& scanner) {
    scanner.skip_value();
    return scanner.found();
  };
  for (const char* text :
       {"1", "-1.5e+3", "true", "null", R"("a\"]b")", "[]", "{}", R"([1, {"a": [null, "x"]}, -2])"}) {
    EXPECT_EQ(scanned(std::string(text) + "|", skip), "'|'") << text;
  }
  EXPECT_EQ(scanned(std::string(65, '[') + "1" + std::string(65, ']'), skip), "values nested more than 64 deep");
  EXPECT_EQ(scanned("?", skip), "'?'; expected a value");
  EXPECT_EQ(scanned("\"open", skip), "a name that does not end");
  EXPECT_EQ(scanned("\"" + std::string(5000, 'a') + "\"", skip), "a name of more than 4096 characters");
}

}  // namespace
}  // namespace shardplan
