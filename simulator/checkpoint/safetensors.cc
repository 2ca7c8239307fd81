#include "simulator/checkpoint/safetensors.h"

#include <sys/types.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/json_text.h"
#include "base/json_tree.h"
#include "base/parse_number.h"
#include "base/shortened.h"

// Reader and writer stream: only the header is held in memory, data pass through in pieces. All sizes and offsets of a
// header are checked against each other and the file's length before they are used to read or allocate.

namespace shardplan {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they stand in memory");

/// The limit of the format's own implementation.
constexpr std::uint64_t kMostHeaderBytes = 100'000'000;
constexpr std::size_t kLengthBytes = 8;
constexpr char kMetadata[] = "__metadata__";

struct DtypeBytes {
  std::string_view name;
  std::int64_t bytes;
};
constexpr DtypeBytes kDtypes[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1},
                                  {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
                                  {"U32", 4},  {"F32", 4}, {"I64", 8}, {"U64", 8},     {"F64", 8}};

std::string system_reason() { return std::strerror(errno); }

// FNV-1a (Fowler, Noll, Vo). Each step is one-to-one in the state and the byte, so one changed byte changes the hash.
constexpr std::uint64_t kHashOfNothing = 0xcbf29ce484222325u;
std::uint64_t hashed(std::uint64_t hash, std::span<const std::byte> bytes) {
  for (const std::byte byte : bytes) hash = (hash ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3u;
  return hash;
}

constexpr std::size_t kHashDigits = 16;
std::string hash_text(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

/// The position of the hash's digits in a header that this program wrote.
std::optional<std::size_t> find_hash(std::string_view header) {
  const std::string before = fmt::format("{{\"{}\":{{\"{}\":\"", kMetadata, kFileHash);
  if (!header.starts_with(before)) return std::nullopt;
  return before.size();
}

const JsonNode& member(const JsonNode& object, std::string_view key, JsonNode::Kind kind, const char* what,
                       const std::string& tensor) {
  const JsonNode* node = object.find(key);
  if (node == nullptr) throw InputError(object.place, "tensor '{}': the key '{}' is missing", tensor, key);
  if (node->kind != kind) {
    throw InputError(node->place, "tensor '{}': {} is {}; expected {}", tensor, key, describe(*node), what);
  }
  return *node;
}

std::int64_t whole(const JsonNode& node, const std::string& tensor, const char* key) {
  const auto value = parse_number<std::int64_t>(node.text);
  if (node.kind != JsonNode::Kind::kNumber || !value || *value < 0) {
    throw InputError(node.place, "tensor '{}': {} has {}; expected whole numbers of at least 0", tensor, key,
                     describe(node));
  }
  return *value;
}

SafetensorsEntry read_entry(const std::string& name, const JsonNode& node) {
  if (node.kind != JsonNode::Kind::kObject) {
    throw InputError(node.place, "tensor '{}' is {}; expected an object", name, describe(node));
  }
  SafetensorsEntry entry;
  entry.name = name;
  const JsonNode& dtype = member(node, "dtype", JsonNode::Kind::kString, "a string", name);
  entry.dtype = dtype.text;
  if (element_bytes(entry.dtype) == 0) {
    throw InputError(dtype.place, "tensor '{}': no dtype '{}'; expected F64, F32, F16, BF16, I32, ...", name,
                     entry.dtype);
  }
  for (const JsonNode& size : member(node, "shape", JsonNode::Kind::kArray, "a list", name).items) {
    entry.shape.push_back(whole(size, name, "shape"));
  }
  const JsonNode& offsets = member(node, "data_offsets", JsonNode::Kind::kArray, "a list", name);
  if (offsets.items.size() != 2) throw InputError(offsets.place, "tensor '{}': data_offsets needs two numbers", name);
  entry.begin = whole(offsets.items[0], name, "data_offsets");
  entry.end = whole(offsets.items[1], name, "data_offsets");
  // `num_elements` is limited and the size divided, so that a large product cannot wrap around to the right size.
  const std::int64_t elements = num_elements(entry.shape);
  const bool fits = entry.end >= entry.begin && elements <= (entry.end - entry.begin) / element_bytes(entry.dtype);
  if (!fits || elements * element_bytes(entry.dtype) != entry.end - entry.begin) {
    throw InputError(offsets.place, "tensor '{}': data_offsets {} to {} are not the bytes of {}{}", name, entry.begin,
                     entry.end, entry.dtype, to_string(entry.shape));
  }
  return entry;
}

/// Checks that the tensors' bytes tile the data.
void check_tiling(const SafetensorsHeader& header, std::int64_t data_bytes, const SourcePlace& place) {
  std::vector<const SafetensorsEntry*> sorted;
  for (const SafetensorsEntry& entry : header.entries) sorted.push_back(&entry);
  std::sort(sorted.begin(), sorted.end(), [](const SafetensorsEntry* a, const SafetensorsEntry* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  std::int64_t at = 0;
  const SafetensorsEntry* before = nullptr;
  for (const SafetensorsEntry* entry : sorted) {
    if (entry->begin < at) {
      throw InputError(place, "tensors '{}' and '{}' overlap: bytes {} to {} and {} to {}", before->name, entry->name,
                       before->begin, before->end, entry->begin, entry->end);
    }
    if (entry->begin > at) {
      throw InputError(place, "bytes {} to {} before tensor '{}' belong to none", at, entry->begin, entry->name);
    }
    at = entry->end;
    before = entry;
  }
  if (at > data_bytes) {
    throw InputError(place, "tensor '{}' ends at byte {} of the data, which has {}: the file is cut short",
                     before->name, at, data_bytes);
  }
  if (at < data_bytes) throw InputError(place, "{} bytes behind the last tensor belong to none", data_bytes - at);
}

SafetensorsHeader parse_header(const std::string& text, const std::string& path) {
  const JsonNode root = parse_json(text, path);
  if (root.kind != JsonNode::Kind::kObject) {
    throw InputError(root.place, "the header is {}; expected an object", describe(root));
  }
  SafetensorsHeader header;
  for (const JsonMember& entry : root.members) {
    if (entry.key.text != kMetadata) {
      header.entries.push_back(read_entry(entry.key.text, entry.value));
      continue;
    }
    if (entry.value.kind != JsonNode::Kind::kObject) {
      throw InputError(entry.value.place, "{} is {}; expected an object", kMetadata, describe(entry.value));
    }
    for (const JsonMember& text_of : entry.value.members) {
      if (text_of.value.kind != JsonNode::Kind::kString) {
        throw InputError(text_of.value.place, "{}: {} is {}; expected a string", kMetadata, text_of.key.text,
                         describe(text_of.value));
      }
      header.metadata.emplace_back(text_of.key.text, text_of.value.text);
    }
  }
  return header;
}

}  // namespace

const std::string* SafetensorsHeader::find_metadata(std::string_view key) const {
  const auto found =
      std::find_if(metadata.begin(), metadata.end(), [&](const auto& pair) { return pair.first == key; });
  return found == metadata.end() ? nullptr : &found->second;
}

const SafetensorsEntry* SafetensorsHeader::find(std::string_view name) const {
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const SafetensorsEntry& entry) { return entry.name == name; });
  return found == entries.end() ? nullptr : &*found;
}

std::int64_t element_bytes(std::string_view dtype) {
  for (const DtypeBytes& known : kDtypes) {
    if (known.name == dtype) return known.bytes;
  }
  return 0;
}

SafetensorsReader::SafetensorsReader(std::string path) : path_(std::move(path)) {
  const SourcePlace place{path_, 0, 0};
  std::error_code error;  // opening a pipe would wait for its other end
  const std::filesystem::file_status status = std::filesystem::status(path_, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw InputError(place, "cannot be read: it is not a regular file");
  }
  file_.reset(std::fopen(path_.c_str(), "rb"));
  if (!file_) throw InputError(place, "cannot be read: {}", system_reason());
  if (fseeko(file_.get(), 0, SEEK_END) != 0) throw InputError(place, "cannot be read: {}", system_reason());
  const std::int64_t size = ftello(file_.get());
  std::uint64_t length = 0;
  if (fseeko(file_.get(), 0, SEEK_SET) != 0 || std::fread(&length, 1, kLengthBytes, file_.get()) != kLengthBytes) {
    throw InputError(place, "is not a safetensors file: shorter than the 8 bytes that give the header's length");
  }
  const std::uint64_t rest = static_cast<std::uint64_t>(size) - kLengthBytes;
  if (length > rest || length > kMostHeaderBytes) {
    throw InputError(place, "is not a safetensors file, or is truncated: its header claims {} bytes, {} are left",
                     length, rest);
  }
  std::string text(static_cast<std::size_t>(length), '\0');
  if (std::fread(text.data(), 1, text.size(), file_.get()) != text.size()) {
    throw InputError(place, "cannot be read: {}", system_reason());
  }
  header_ = parse_header(text, path_);
  data_begin_ = static_cast<std::int64_t>(kLengthBytes + length);
  check_tiling(header_, size - data_begin_, place);
}

void SafetensorsReader::read(const SafetensorsEntry& entry, std::int64_t offset, std::span<std::byte> bytes) {
  SHARDPLAN_CHECK(offset >= 0 && offset + static_cast<std::int64_t>(bytes.size()) <= entry.end - entry.begin);
  const bool is_read = fseeko(file_.get(), data_begin_ + entry.begin + offset, SEEK_SET) == 0 &&
                       std::fread(bytes.data(), 1, bytes.size(), file_.get()) == bytes.size();
  if (!is_read) throw InputError({path_, 0, 0}, "tensor '{}' cannot be read: the file became shorter", entry.name);
}

void SafetensorsReader::check_hash() {
  const std::string* said = header_.find_metadata(kFileHash);
  if (said == nullptr) return;
  const SourcePlace place{path_, 0, 0};
  if (fseeko(file_.get(), 0, SEEK_SET) != 0) throw InputError(place, "cannot be read: {}", system_reason());
  std::vector<char> bytes(std::size_t{1} << 20);
  std::uint64_t hash = kHashOfNothing;
  for (bool is_first = true;; is_first = false) {
    const std::size_t count = std::fread(bytes.data(), 1, bytes.size(), file_.get());
    if (count == 0) break;
    const std::string_view header = std::string_view(bytes.data(), count).substr(std::min(count, kLengthBytes));
    const std::optional<std::size_t> at = is_first ? find_hash(header) : std::nullopt;
    if (at && *at + kHashDigits <= header.size()) std::fill_n(bytes.begin() + kLengthBytes + *at, kHashDigits, '0');
    hash = hashed(hash, std::as_bytes(std::span(bytes.data(), count)));
  }
  if (std::ferror(file_.get()) != 0) throw InputError(place, "cannot be read: {}", system_reason());
  if (hash_text(hash) == *said) return;
  throw InputError(place, "is damaged: its bytes are not those that were written ({} is {}; expected {})", kFileHash,
                   hash_text(hash), shortened(*said));
}

SafetensorsWriter::SafetensorsWriter(std::string path, SafetensorsHeader header)
    : path_(std::move(path)), hash_(kHashOfNothing) {
  if (!header.metadata.empty() && header.metadata.front().first == kFileHash) {
    header.metadata.front().second.assign(kHashDigits, '0');
  }
  Json json = Json::object();
  // Appended directly, since looking up each key among the previous ones would take quadratic time.
  auto& members = json.get_ref<Json::object_t&>();
  Json metadata = Json::object();
  auto& texts = metadata.get_ref<Json::object_t&>();
  for (const auto& [key, text] : header.metadata) texts.emplace_back(key, text);
  if (!texts.empty()) members.emplace_back(kMetadata, std::move(metadata));
  for (const SafetensorsEntry& entry : header.entries) {
    const std::int64_t bytes = num_elements(entry.shape) * element_bytes(entry.dtype);
    Json value;
    value["dtype"] = entry.dtype;
    value["shape"] = entry.shape;
    value["data_offsets"] = std::vector<std::int64_t>{left_, left_ + bytes};
    members.emplace_back(entry.name, std::move(value));
    left_ += bytes;
  }
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the data begin at a multiple of 8
  const std::uint64_t length = text.size();
  file_.reset(std::fopen(path_.c_str(), "wb"));
  if (!file_) throw InputError({path_, 0, 0}, "cannot be written: {}", system_reason());
  if (const std::optional<std::size_t> at = find_hash(text)) {
    hash_at_ = static_cast<std::int64_t>(kLengthBytes + *at);
  }
  write(std::as_bytes(std::span(&length, 1)));
  write(std::as_bytes(std::span(text)));
}

void SafetensorsWriter::append(std::span<const std::byte> bytes) {
  left_ -= static_cast<std::int64_t>(bytes.size());
  SHARDPLAN_CHECK(left_ >= 0);
  write(bytes);
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  if (hash_at_) hash_ = hashed(hash_, bytes);
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) {
    throw InputError({path_, 0, 0}, "cannot be written: {}", system_reason());
  }
}

void SafetensorsWriter::finish() {
  SHARDPLAN_CHECK(left_ == 0);
  if (hash_at_) {
    const std::string digits = hash_text(hash_);
    if (fseeko(file_.get(), *hash_at_, SEEK_SET) != 0 ||
        std::fwrite(digits.data(), 1, digits.size(), file_.get()) != digits.size()) {
      throw InputError({path_, 0, 0}, "cannot be written: {}", system_reason());
    }
  }
  if (std::fclose(file_.release()) != 0) throw InputError({path_, 0, 0}, "cannot be written: {}", system_reason());
}

}  // namespace shardplan
