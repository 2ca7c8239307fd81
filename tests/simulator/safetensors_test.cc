#include "simulator/checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "base/random.h"
#include "tests/support/files.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

void write_text(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

std::string with_length(const std::string& header, const std::string& data) {
  std::string text(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(text.data(), &length, 8);
  return text + header + data;
}

/// A file of two tensors, "a" F32[2] holding 1, 2 and "b" U8[3] holding 7, 8, 9.
void write_two(const std::string& path) {
  SafetensorsHeader header;
  header.metadata = {{"format", "pt"}, {"say", "\"yes\""}};
  header.entries = {{"a", "F32", {2}, 0, 0}, {"b", "U8", {3}, 0, 0}};
  SafetensorsWriter writer(path, header);
  const float numbers[] = {1, 2};
  const std::byte bytes[] = {std::byte{7}, std::byte{8}, std::byte{9}};
  writer.append(std::as_bytes(std::span(numbers)));
  writer.append(bytes);
  writer.finish();
}

TEST(SafetensorsTest, AFileIsAsTheFormatSays) {
  const TemporaryFolder folder;
  const std::string path = folder.at("a.safetensors");
  write_two(path);
  const std::string header =
      R"({"__metadata__":{"format":"pt","say":"\"yes\""},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
      R"("b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}})";
  const std::string text = content_of(path);
  ASSERT_GT(text.size(), 8 + header.size());
  EXPECT_EQ(text.substr(8, header.size()), header);
  std::uint64_t length = 0;
  std::memcpy(&length, text.data(), 8);
  EXPECT_EQ(length % 8, 0u) << "so that the data begin at a multiple of 8";
  EXPECT_EQ(text.find_first_not_of(' ', 8 + header.size()), 8 + length);
  EXPECT_EQ(text.substr(8 + length), std::string("\0\0\x80\x3f\0\0\0\x40\7\10\11", 11));
}

TEST(SafetensorsTest, IsReadPieceByPiece) {
  const TemporaryFolder folder;
  const std::string path = folder.at("a.safetensors");
  write_two(path);
  SafetensorsReader reader(path);
  ASSERT_NE(reader.header().find("b"), nullptr);
  EXPECT_EQ(reader.header().find("c"), nullptr);
  EXPECT_EQ(*reader.header().find_metadata("say"), "\"yes\"");
  float second = 0;
  reader.read(*reader.header().find("a"), 4, std::as_writable_bytes(std::span(&second, 1)));
  EXPECT_EQ(second, 2);
  std::byte last{};
  reader.read(*reader.header().find("b"), 2, std::span(&last, 1));
  EXPECT_EQ(last, std::byte{9});
}

struct CorruptCase {
  const char* name;
  std::string text;
  const char* fault;
};

TEST(SafetensorsTest, EveryFaultIsNamed) {
  const auto a = [](const char* rest) { return with_length(std::string(R"({"a":{)") + rest + "}}", "12345678"); };
  const CorruptCase cases[] = {
      {"empty", "", "shorter than the 8 bytes"},
      {"no header", with_length("", ""), "error"},
      {"length beyond the file", std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8), "not a safetensors file"},
      {"no JSON", with_length("{\"a\":", ""), ":1:"},
      {"a list", with_length("[]", ""), "expected an object"},
      {"twice", with_length(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{}})", "1"),
       "key \"a\" was given"},
      {"dtype", a(R"("dtype":"F33","shape":[2],"data_offsets":[0,8])"), "no dtype 'F33'"},
      {"no shape", a(R"("dtype":"F32","data_offsets":[0,8])"), "the key 'shape' is missing"},
      {"negative", a(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])"), "whole numbers of at least 0"},
      {"half", a(R"("dtype":"F32","shape":[1.5],"data_offsets":[0,8])"), "whole numbers of at least 0"},
      {"shape", a(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])"), "are not the bytes of F32[3]"},
      {"wraps round", a(R"("dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8])"), "are not the bytes"},
      {"backwards", a(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])"), "are not the bytes"},
      {"one offset", a(R"("dtype":"F32","shape":[2],"data_offsets":[8])"), "needs two numbers"},
      {"metadata", with_length(R"({"__metadata__":{"a":1}})", ""), "expected a string"},
      {"cut short", with_length(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "1234567"),
       "is cut short"},
      {"too long", with_length(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "123456789"),
       "1 bytes behind the last tensor"},
      {"overlap",
       with_length(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],)"
                   R"("data_offsets":[3,7]}})",
                   "1234567"),
       "tensors 'a' and 'b' overlap"},
      {"hole",
       with_length(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[2],)"
                   R"("data_offsets":[5,7]}})",
                   "1234567"),
       "bytes 4 to 5 before tensor 'b'"},
  };
  const TemporaryFolder folder;
  const std::string path = folder.at("a.safetensors");
  for (const CorruptCase& c : cases) {
    write_text(path, c.text);
    EXPECT_NE(error_of([&] { SafetensorsReader reader(path); }).find(c.fault), std::string::npos)
        << c.name << ": " << error_of([&] { SafetensorsReader reader(path); });
  }
  const std::string missing = folder.at("missing.safetensors");
  EXPECT_NE(error_of([&] { SafetensorsReader reader(missing); }).find("cannot be read"), std::string::npos);
}

/// With a random byte of the header changed, or the file truncated anywhere, it is read or rejected, never worse.
TEST(SafetensorsTest, BytesChangedByChanceDoNoHarm) {
  const TemporaryFolder folder;
  const std::string path = folder.at("a.safetensors");
  write_two(path);
  const std::string right = content_of(path);
  Random random(7);
  for (int i = 0; i < 100; ++i) {
    std::string wrong = right;
    wrong[random.below(wrong.size())] = static_cast<char>(random.below(256));
    if (random.below(4) == 0) wrong.resize(random.below(wrong.size()));
    write_text(path, wrong);
    try {
      SafetensorsReader reader(path);
      for (const SafetensorsEntry& entry : reader.header().entries) {
        std::vector<std::byte> bytes(static_cast<std::size_t>(entry.end - entry.begin));
        reader.read(entry, 0, bytes);
      }
    } catch (const InputError&) {
    }
  }
}

}  // namespace
}  // namespace shardplan
