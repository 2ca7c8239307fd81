#include "solver/contest/character_stream.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

namespace shardplan {
namespace {

std::string read_all(CharacterStream& stream) {
  std::string text;
  for (char c = stream.peek(); c != 0; c = stream.peek()) {
    text += c;
    if (c == '\n') stream.new_line();
    stream.advance();
  }
  return text;
}

/// Longer than two pieces of 256 KiB, each place different from its neighbours.
std::string long_text() {
  std::string text;
  while (text.size() < 600'000) text += std::to_string(text.size()) + (text.size() % 7 == 0 ? "\n" : " ");
  return text;
}

TEST(CharacterStreamTest, GivesATextAndAFileWhole) {
  const std::string text = long_text();
  const Deadline deadline(0, {});
  CharacterStream in_memory(text, "text", deadline);
  EXPECT_TRUE(read_all(in_memory) == text);
  EXPECT_EQ(in_memory.peek(), 0);  // the end stays the end

  const std::string path = testing::TempDir() + "character_stream_test.txt";
  std::ofstream(path) << text;
  CharacterStream file(path, deadline);
  EXPECT_TRUE(read_all(file) == text);
  std::filesystem::remove(path);
}

TEST(CharacterStreamTest, PlacesCountLinesAndColumnsAcrossPieces) {
  const std::string text = std::string(300'000, 'x') + "\n" + std::string(41, 'y') + "!";
  const Deadline deadline(0, {});
  CharacterStream stream(text, "t", deadline);
  while (stream.peek() != '!') {
    if (stream.peek() == '\n') stream.new_line();
    stream.advance();
  }
  EXPECT_EQ(stream.place(), (SourcePlace{"t", 2, 42}));
  try {
    stream.fail("bad {}", 7);
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()), "t:2:42: error: bad 7");
  }
}

TEST(CharacterStreamTest, AZeroCharacterIsAFaultWhereverItStands) {
  const Deadline deadline(0, {});
  for (const std::size_t at : {std::size_t{0}, std::size_t{5}, std::size_t{1} << 18, (std::size_t{1} << 18) + 3}) {
    std::string text(300'000, 'x');
    text[at] = 0;
    const auto read = [&] {
      CharacterStream stream(text, "t", deadline);
      read_all(stream);
    };
    EXPECT_THROW(read(), InputError) << at;
  }
}

TEST(CharacterStreamTest, AnUnreadableFileAndAPastDeadlineAreSaid) {
  const Deadline deadline(0, {});
  EXPECT_THROW(CharacterStream("/nonexistent/file", deadline), InputError);
  EXPECT_THROW(CharacterStream("/", deadline), InputError);
  std::stop_source stop;
  const Deadline stopped(0, stop.get_token());
  CharacterStream stream("abc", "t", stopped);
  stop.request_stop();
  EXPECT_THROW(stream.check_time(), OutOfTime);
  EXPECT_THROW(CharacterStream("abc", "t", stopped), OutOfTime);
}

}  // namespace
}  // namespace shardplan
