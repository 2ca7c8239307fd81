#include "model/option_reader.h"

#include <gtest/gtest.h>

namespace shardplan {
namespace {

const KeySpecs kKeys = {{"mode", ValueForm::kText, "", {"fast", "f32"}},
                        {"on", ValueForm::kText, "", {}},
                        {"rate", ValueForm::kText, "", {}},
                        {"count", ValueForm::kText, "", {}},
                        {"file", ValueForm::kText, "", {}},
                        {"names", ValueForm::kText, "", {}}};

/// A section of a file, and the errors that its reader reports.
class Section {
 public:
  explicit Section(const std::string& text)
      : document_(parse_yaml(text, "m.yaml", faults_)), reader(document_, document_.root, "training", kKeys, faults_) {}
  std::string faults() const { return faults_.empty() ? "" : InputError(faults_).what(); }

 private:
  std::vector<Diagnostic> faults_;
  YamlDocument document_;

 public:
  OptionReader reader;
};

TEST(OptionReaderTest, ReadsEachKindOfValue) {
  const Section section("{mode: Mode.FAST, on: True, rate: 1/8, count: 7, file: a b, names: [x, y]}");
  EXPECT_EQ(section.reader.choice("mode"), "fast");
  bool on = false;
  section.reader.flag("on", on);
  EXPECT_TRUE(on);
  double rate = 0;
  section.reader.number("rate", rate, 0, 1);
  EXPECT_EQ(rate, 0.125);
  EXPECT_EQ(section.reader.whole("count", 0, 7), 7);
  EXPECT_EQ(section.reader.text("file"), "a b");
  EXPECT_EQ(section.reader.names("names"), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(Section("{names: x}").reader.names("names"), std::vector<std::string>{"x"});
  EXPECT_EQ(Section("{mode: float32}").reader.choice("mode"), "f32");
  EXPECT_EQ(section.faults(), "");
}

TEST(OptionReaderTest, WhatIsNotThereLeavesTheDefault) {
  const Section section("{}");
  bool on = true;
  double rate = 0.5;
  section.reader.flag("on", on);
  section.reader.number("rate", rate, 0, 1);
  EXPECT_TRUE(on);
  EXPECT_EQ(rate, 0.5);
  EXPECT_EQ(section.reader.choice("mode"), std::nullopt);
  EXPECT_EQ(section.reader.whole("count", 0, 7), std::nullopt);
  EXPECT_EQ(section.reader.text("file"), "");
  EXPECT_EQ(section.reader.names("names"), std::vector<std::string>{});
  EXPECT_EQ(section.reader.find("mode"), nullptr);
  EXPECT_EQ(section.faults(), "");
}

TEST(OptionReaderTest, WrongValuesAreFaultsAndLeaveTheDefault) {
  const auto faults = [](const std::string& text, const std::function<void(const OptionReader&)>& ask) {
    const Section section(text);
    ask(section.reader);
    return section.faults();
  };
  EXPECT_EQ(faults("{mode: slow}", [](const OptionReader& reader) { EXPECT_FALSE(reader.choice("mode")); }),
            "m.yaml:1:8: error: training: mode is 'slow'; expected fast or f32");
  EXPECT_EQ(faults("{on: 1}",
                   [](const OptionReader& reader) {
                     bool on = true;
                     reader.flag("on", on);
                     EXPECT_TRUE(on);
                   }),
            "m.yaml:1:6: error: training: on is '1'; expected true or false");
  const auto rate = [&](const std::string& text, double high) {
    return faults("{rate: " + text + "}", [&](const OptionReader& reader) {
      double value = 0.5;
      reader.number("rate", value, 0, high);
      EXPECT_EQ(value, 0.5);
    });
  };
  EXPECT_EQ(rate("1.5", 1), "m.yaml:1:8: error: training: rate is '1.5'; expected a number from 0 to 1");
  EXPECT_EQ(rate("-1", 1e301), "m.yaml:1:8: error: training: rate is '-1'; expected a number, at least 0");
  EXPECT_EQ(rate("N", 1), "m.yaml:1:8: error: training: rate is 'N'; expected a number from 0 to 1");
  EXPECT_EQ(rate("[1]", 1), "m.yaml:1:8: error: training: rate is a list; expected a number from 0 to 1");
  for (const char* wrong : {"8", "-1", "1.0", "2*3", "seven"}) {
    EXPECT_EQ(
        faults("{count: " + std::string(wrong) + "}",
               [](const OptionReader& reader) { EXPECT_FALSE(reader.whole("count", 0, 7)); }),
        "m.yaml:1:9: error: training: count is '" + std::string(wrong) + "'; expected a whole number from 0 to 7");
  }
  EXPECT_EQ(faults("{file: [a]}", [](const OptionReader& reader) { reader.text("file"); }),
            "m.yaml:1:8: error: training: file is a list; expected a text");
  EXPECT_EQ(
      faults("{names: [a, [b]]}", [](const OptionReader& reader) { EXPECT_EQ(reader.names("names").size(), 1u); }),
      "m.yaml:1:13: error: training: names is a list; expected a list of names");
}

TEST(OptionReaderTest, UnknownKeysAndOtherThingsThanMapsAreFaults) {
  EXPECT_EQ(Section("{moed: fast}").faults(), "m.yaml:1:2: error: training: unknown key 'moed'; did you mean 'mode'?");
  EXPECT_EQ(Section("{zero: 1}").faults(),
            "m.yaml:1:2: error: training: unknown key 'zero'\n    zero is a key of parallel");
  EXPECT_EQ(Section("[mode]").faults(), "m.yaml:1:1: error: training is a list; expected a map");
}

}  // namespace
}  // namespace shardplan
