#include "base/yaml.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "base/write_files.h"

namespace shardplan {
namespace {

/// The tree on one line: plain scalars unchanged, quoted ones in "", [..], {key: value}, null, and - for nothing.
std::string outline(const YamlNode& node) {
  std::string text;
  switch (node.kind) {
    case YamlNode::Kind::kScalar:
      return node.is_quoted ? '"' + node.text + '"' : node.text;
    case YamlNode::Kind::kNull:
      return "null";
    case YamlNode::Kind::kEmpty:
      return "-";
    case YamlNode::Kind::kSequence:
      for (const YamlNode& item : node.items) text += (text.empty() ? "" : ", ") + outline(item);
      return "[" + text + "]";
    case YamlNode::Kind::kMap:
      for (const YamlEntry& entry : node.entries) {
        text += (text.empty() ? "" : ", ") + outline(entry.key) + ": " + outline(entry.value);
      }
      return "{" + text + "}";
  }
  return {};
}

std::string faults_of(const std::string& text) {
  std::vector<Diagnostic> faults;
  try {
    parse_yaml(text, "m.yaml", faults);
    return faults.empty() ? "" : InputError(faults).what();
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(YamlTest, ScalarsAreText) {
  std::vector<Diagnostic> faults;
  const YamlDocument document =
      parse_yaml("a: no\nb: 010\nc: 1e3\nd: ~\ne: null\nf: 'null'\ng:\nh: Null\nnull: y\n", "m.yaml", faults);
  EXPECT_EQ(outline(document.root), "{a: no, b: 010, c: 1e3, d: ~, e: null, f: \"null\", g: -, h: Null, null: y}");
  EXPECT_TRUE(faults.empty());
}

TEST(YamlTest, KeepsLayoutsAndTuplesInOrder) {
  std::vector<Diagnostic> faults;
  const YamlDocument document =
      parse_yaml("s: [[2, 1], [{mp, 'dp'}, {}, {\"x\", y:(1)2}], null, []]\nt: ((1, 8),)\n", "m.yaml", faults);
  EXPECT_EQ(outline(document.root),
            "{s: [[2, 1], [{mp: -, \"dp\": -}, {}, {\"x\": -, y:(1)2: -}], null, []], t: ((1, 8),)}");
  EXPECT_TRUE(faults.empty());
}

TEST(YamlTest, KnowsPlaces) {
  std::vector<Diagnostic> faults;
  const YamlDocument document = parse_yaml("a: 1\nb:\n  c: [x, yy]\n", "m.yaml", faults);
  const YamlNode& list = *document.root.find("b")->find("c");
  EXPECT_EQ(document.place(list), (SourcePlace{"m.yaml", 3, 6}));
  EXPECT_EQ(document.place(list.items[1]), (SourcePlace{"m.yaml", 3, 10}));
  EXPECT_EQ(document.root.find("c"), nullptr);
}

TEST(YamlTest, RefusesWhatGuessesOrExpands) {
  const std::pair<const char*, const char*> cases[] = {
      {"a: 1\nb: 2\na: 3\n", "m.yaml:3:1: error: 'a' is given twice; first in line 1"},
      {"a: &x 1\n",
       "m.yaml:1:4: error: anchors ('&name') are not read\n"
       "    write the value out; blocks and dims serve for what repeats"},
      {"a: !!int 1\n",
       "m.yaml:1:4: error: tags ('tag:yaml.org,2002:int') are not read\n"
       "    leave the tag out: the place decides the type"},
      {"<<: {a: 1}\n", "m.yaml:1:1: error: merge keys ('<<') are not read\n    write the entries out"},
      {"? [a, b]\n: 1\n", "m.yaml:1:3: error: a key must be a word; found a list"},
      {"a: 1\n---\nb: 1\n", "m.yaml:3:1: error: a second document ('---') begins here; expected one"},
      {"", "m.yaml:1:1: error: the file is empty"},
      {"a: 1\nb: \xffx\n",
       "m.yaml:2:4: error: the byte 0xff is not part of a character in UTF-8; the file must be in UTF-8"},
      {"a: \xc3\xa4\xe2\x82\n",
       "m.yaml:1:6: error: the byte 0xe2 is not part of a character in UTF-8; the file must be in UTF-8"},
      {"a: x\x1b[31m\n", "m.yaml:1:5: error: control characters (0x1b) are not read"},
      {"a: 1\nb: \"x\\e[31m\"\n", "m.yaml:2:4: error: control characters (0x1b) are not read"},
      {"a: \xc2\x9b"
       "31m\n",
       "m.yaml:1:4: error: control characters (0x9b) are not read"},
      {"a: [1, 2\n", "m.yaml:2:1: error: not valid YAML: a list that begins with '[' is not closed by ']' before this"},
      {"a: {b: 1\n", "m.yaml:2:1: error: not valid YAML: a map that begins with '{' is not closed by '}' before this"},
      {"a: [1, 2}\n", "m.yaml:1:9: error: not valid YAML: this bracket closes none of its kind"},
      {"a: 1\n  b: 2\n",
       "m.yaml:2:4: error: not valid YAML: no ':' can stand here: the line above may lack one, entries of a map are "
       "indented alike, a text with ': ' is quoted"},
      {"a:\n  b: 1\n c: 2\n",
       "m.yaml:3:2: error: not valid YAML: this is neither an entry of the map above ('key: ...') nor indented like "
       "another one"},
      {"a:\n\tb: 2\n", "m.yaml:2:1: error: not valid YAML: a tab indents this line; only spaces can"},
      {"a:\n  - b\n \t- c\n", "m.yaml:3:2: error: not valid YAML: a tab indents this line; only spaces can"},
      {"a: %x\n", "m.yaml:1:4: error: not valid YAML: no text begins with this character unless it is quoted"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(faults_of(text), expected) << text;
}

/// The parser takes the end of the file for the end of an open quote, so that all keys behind it would be part of it.
TEST(YamlTest, AnOpenQuoteIsRefusedWhereItBegins) {
  const auto fault = [](const char* quote, const char* place) {
    return fmt::format("m.yaml:{0}: error: a text that begins with {1} is not closed by another {1}", place, quote);
  };
  EXPECT_EQ(faults_of("a: \"b\nc: 1\n"), fault("\"", "1:4"));
  EXPECT_EQ(faults_of("a: \"b"), fault("\"", "1:4"));
  EXPECT_EQ(faults_of("a: \"b\\\"\nc: 1\n"), fault("\"", "1:4"));
  EXPECT_EQ(faults_of("a: 1\nb: 'it''s\nc: 1\n"), fault("'", "2:4"));
  EXPECT_EQ(faults_of("a: ['b', \"c]\n"), fault("\"", "1:10"));
  EXPECT_EQ(faults_of("a: {b: 1, 'c: 2}\n"), fault("'", "1:11"));
  EXPECT_EQ(faults_of("a: 1\n\"b: 2\nc: 3\n"), fault("\"", "2:1"));
  for (const char* text :
       {"a: \"b\\\\\"\n", "a: 'it''s'\n", "a: it's\n", "a: 1 # it's\n", "a: \"b\n  c\"\n", "'a': \"\"", "a: ''"}) {
    EXPECT_EQ(faults_of(text), "") << text;
  }
}

TEST(YamlTest, ALongKeyIsOneFault) {
  const std::string key(1100, 'k');
  const std::string message = "error: a key of 1100 characters; at most 1024 are read";
  EXPECT_EQ(faults_of("a: 1\n" + key + ": 2\n"), "m.yaml:2:1: " + message);
  EXPECT_EQ(faults_of("a: {x: [8], " + key + ": [8]}\nb: 1\n"), "m.yaml:1:13: " + message);
  EXPECT_EQ(faults_of("a: 1\n" + std::string(1000, 'k') + ": 2\n"), "");
}

// Each text is looked through once.
TEST(YamlTest, ManyQuotedTextsAreReadInLinearTime) {
  std::string text = "a:\n";
  for (int i = 0; i < 20000; ++i) text += "  - \"quoted\"\n";
  EXPECT_EQ(faults_of(text), "");
}

TEST(YamlTest, WhatCannotBeReadSaysWhy) {
  const auto reason = [](const std::string& path) -> std::string {
    try {
      read_text_file(path);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(reason("no/such.yaml"), "no/such.yaml: error: cannot be read: No such file or directory");
  EXPECT_EQ(reason("/"), "/: error: cannot be read: Is a directory");
}

TEST(YamlTest, AliasesDoNotExplode) {
  std::string text = "a0: &a0 x\n";
  for (int i = 1; i < 40; ++i) text += fmt::format("a{0}: &a{0} [*a{1}, *a{1}]\n", i, i - 1);
  EXPECT_NE(faults_of(text).find("m.yaml:2:10: error: aliases ('*name') are not read"), std::string::npos);
}

TEST(YamlTest, DepthIsLimited) {
  EXPECT_EQ(faults_of(std::string(99, '[') + std::string(99, ']')), "");
  EXPECT_EQ(faults_of(std::string(101, '[') + std::string(101, ']')),
            "m.yaml:1:101: error: nested deeper than 100 levels");
  EXPECT_NE(faults_of(std::string(100000, '[')), "");
  EXPECT_NE(faults_of(std::string(100000, '{')), "");
}

// A wrong path must not fill the memory.
TEST(YamlTest, FilesAreReadUpToALimit) {
  const std::string path = testing::TempDir() + "long_file.yaml";
  write_file(path, std::string((std::size_t{3} << 20) + 1, ' '));
  EXPECT_EQ(read_text_file(path).size(), (std::size_t{3} << 20) + 1);
  try {
    read_text_file(path, std::size_t{3} << 20);
    FAIL() << "nothing was thrown";
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()), path + ": error: the file is above 3 MiB");
  }
  std::remove(path.c_str());
}

TEST(YamlTest, UnknownKeysNameTheNearest) {
  std::vector<Diagnostic> faults;
  const YamlDocument document = parse_yaml("paralel_mode: x\nlevel: 1\n", "m.yaml", faults);
  check_keys(document, document.root, {"parallel_mode", "level"}, "parallel", faults);
  EXPECT_STREQ(InputError(faults).what(),
               "m.yaml:1:1: error: parallel: unknown key 'paralel_mode'; did you mean 'parallel_mode'?");
}

}  // namespace
}  // namespace shardplan
