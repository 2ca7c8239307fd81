#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "layouts/shape.h"

namespace shardplan {

// Files in the safetensors format (https://github.com/huggingface/safetensors, "Format"): 8 bytes with the length of
// the header, little-endian; the header, one JSON object that may end in blanks; the data, each tensor row-major and
// little-endian. The header gives each tensor by its name a dtype ("F32"), a shape and two offsets into the data, which
// tile it without holes; under "__metadata__" it may hold texts by name.

// The format has no checksum. If the metadata have the key `kFileHash`, its value is one: 64-bit FNV-1a over all bytes
// of the file, computed with zeros in place of its 16 hexadecimal digits.
inline constexpr char kFileHash[] = "fnv1a64";

/// One tensor of a file.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;
  Shape shape;
  std::int64_t begin = 0;  // in the data
  std::int64_t end = 0;

  bool operator==(const SafetensorsEntry&) const = default;
};

struct SafetensorsHeader {
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<SafetensorsEntry> entries;  // in the file's order

  /// Null if there is no entry of that name. Compares the names one by one: not for a lookup per tensor.
  const std::string* find_metadata(std::string_view key) const;
  const SafetensorsEntry* find(std::string_view name) const;
};

/// Bytes of one element of a dtype ("F32": 4); 0 if the format has no such dtype.
std::int64_t element_bytes(std::string_view dtype);

/// Reads a file piece by piece.
class SafetensorsReader {
 public:
  /// Throws InputError that names the file and its first fault: no such file, too short, a header that is not JSON or
  /// too long, a duplicate tensor, an unknown dtype, offsets that overlap, leave a hole, are outside the file, or do
  /// not fit the shape.
  explicit SafetensorsReader(std::string path);

  const std::string& path() const { return path_; }
  const SafetensorsHeader& header() const { return header_; }
  /// Reads `bytes.size()` bytes from `offset` within the tensor. Throws InputError if the file has fewer.
  void read(const SafetensorsEntry& entry, std::int64_t offset, std::span<std::byte> bytes);
  /// Reads the whole file and compares its hash, if the metadata have one. Throws InputError if the file has changed
  /// since it was written.
  void check_hash();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  SafetensorsHeader header_;
  std::int64_t data_begin_ = 0;
};

/// Writes a file tensor by tensor. Sets the offsets of the entries and, if the metadata begin with `kFileHash`, the
/// hash, whatever its text.
class SafetensorsWriter {
 public:
  /// Throws InputError that names the file and the system's reason.
  SafetensorsWriter(std::string path, SafetensorsHeader header);

  /// Appends the next bytes of the data.
  void append(std::span<const std::byte> bytes);
  /// Ends the file. Requires that all tensors were written. Throws InputError, for instance if the disk is full.
  void finish();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  void write(std::span<const std::byte> bytes);

  std::unique_ptr<std::FILE, Close> file_;
  std::int64_t left_ = 0;
  std::uint64_t hash_;
  std::optional<std::int64_t> hash_at_;  // in the file
};

}  // namespace shardplan
