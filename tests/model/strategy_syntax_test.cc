#include "model/syntax/strategy_syntax.h"

#include <gtest/gtest.h>

#include "model/syntax/settings.h"

namespace shardplan {
namespace {

/// The entries of `key: VALUE` as they are printed, or the errors.
std::string entries_of(const std::string& value) {
  std::vector<Diagnostic> faults;
  const YamlDocument document = parse_yaml("{in_strategy: " + value + ", after: x}", "m.yaml", faults);
  const auto entries = read_entries(document, *document.root.find("in_strategy"), "a", faults);
  std::string text;
  for (const Diagnostic& fault : faults) {
    text += fmt::format("{}:{}: {}; ", fault.place.line, fault.place.column, fault.message);
  }
  if (entries) {
    for (const StrategyEntry& entry : *entries) text += (text.empty() ? "" : " ") + to_string(entry);
  }
  return text;
}

TEST(StrategySyntaxTest, ListsTuplesAndTextSayTheSame) {
  for (const char* value : {"[[1, 8], null, []]", "((1, 8), None, ())", "'((1, 8), None, ())'",
                            "\"[[1, 8], null, []]\"", "[(1, 8), None, []]"}) {
    EXPECT_EQ(entries_of(value), "[1, 8] null []") << value;
  }
  for (const char* value : {"[[{dp}, {mp, x}]]", "([{dp}, {mp, x}],)", "['[{dp}, {mp, x}]']"}) {
    EXPECT_EQ(entries_of(value), "[{dp}, {mp, x}]") << value;
  }
  EXPECT_EQ(entries_of("['[{dp}, {}] unreduced={mp}']"), "[{dp}, {}] unreduced={mp}");
}

TEST(StrategySyntaxTest, OneFaultEach) {
  EXPECT_EQ(entries_of("((1, -8),)"), "1:20: a: '-8' pieces; expected a whole number, at least 1; ");
  EXPECT_EQ(entries_of("((1, x),)"), "1:20: a: 'x' pieces; expected a whole number, at least 1; ");
  EXPECT_EQ(entries_of("((1, 8,)"), "1:15: a: '((1, 8,), after: x': ')' is missing; ");
  EXPECT_EQ(entries_of("3"), "1:15: a is '3'; expected entries of a strategy; ");
  EXPECT_EQ(entries_of("(1, 8)"), "1:15: a is one entry; expected a list with one entry per tensor, as in [[1, 8]]; ");
  EXPECT_EQ(entries_of("[[{dp: 2}, {}]]"), "1:17: a: a map in a layout; expected axes, as in {dp, mp}; ");
}

TEST(StrategySyntaxTest, SetOptionsNameWhatTheySet) {
  const auto set = [](const std::string& name, const std::string& entry) {
    Settings settings;
    std::vector<Diagnostic> faults;
    std::string text = read_set_option(name, entry, settings, faults) + ":";
    if (settings.in_strategy) text += " in " + to_string(settings.in_strategy->value[0]);
    if (settings.out_strategy) text += " out " + to_string(settings.out_strategy->value[0]);
    if (settings.strategy) text += " tensor " + to_string(settings.strategy->value);
    if (settings.level) text += " level " + std::to_string(settings.level->value);
    for (const Diagnostic& fault : faults) text += " " + to_string(fault);
    return text;
  };
  EXPECT_EQ(set("fc", "((1, 8),)"), "fc: in [1, 8]");
  EXPECT_EQ(set("fc.weight", "(1, 8)"), "fc.weight: tensor [1, 8]");
  EXPECT_EQ(set("fc.weight", "[{}, {mp}]"), "fc.weight: tensor [{}, {mp}]");
  EXPECT_EQ(set("fc.out_strategy", "[null]"), "fc: out null");
  EXPECT_EQ(set("fc.level", "2"), "fc: level 2");
  EXPECT_EQ(set("fc", "((1, 8)").substr(0, 43), "fc: --set: error: fc: '((1, 8)': ')' is mis");
}

}  // namespace
}  // namespace shardplan
