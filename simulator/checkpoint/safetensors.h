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

// The format has no checksum. A file whose metadata has the key `kFileHash` has one there: FNV-1a of 64 bits over all bytes of
// the file, in which these 16 hexadecimal digits are zeros.
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

  /// Null if there is none of that name.
  const std::string* find_metadata(std::string_view key) const;
  const SafetensorsEntry* find(std::string_view name) const;
};

/// Bytes of one element of a dtype ("F32": 4); 0 if the format has no such dtype.
std::int64_t element_bytes(std::string_view dtype);

/// A file that is read piece by piece.
class SafetensorsReader {
 public:
  /// Throws InputError that names the file and its first fault: no such file, too short, a header that is no JSON or
  /// too long, a tensor given twice, an unknown dtype, offsets that overlap, leave a hole, leave the file, or do not
  /// fit the shape.
  explicit SafetensorsReader(std::string path);

  const std::string& path() const { return path_; }
  const SafetensorsHeader& header() const { return header_; }
  /// Reads `bytes.size()` bytes from `offset` within the tensor. Throws InputError if the file gives fewer.
  void read(const SafetensorsEntry& entry, std::int64_t offset, std::span<std::byte> bytes);
  /// Reads the whole file and compares its hash, if the metadata has one. Throws InputError if the file is not as it was
  /// written.
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

/// A file that is written tensor by tensor. Offsets of the entries are set here, and so is the hash where the metadata
/// begins with `kFileHash`, whatever its text.
class SafetensorsWriter {
 public:
  /// Throws InputError that names the file and the system's reason.
  SafetensorsWriter(std::string path, SafetensorsHeader header);

  /// The next bytes of the data.
  void append(std::span<const std::byte> bytes);
  /// Ends the file. Requires that all tensors were written. Throws InputError, of a full disk for instance.
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
