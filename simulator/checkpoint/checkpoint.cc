// Checkpoints are read and written by pieces. A piece is what one rank holds of one tensor: a list of intervals along
// each dimension, the same for contiguous, blocked and uneven layouts. To bring a checkpoint to other devices, each
// piece of the target is put together from its intersections with the pieces of the source, read straight from their
// places in the files; so one piece is in memory at a time, and nothing is read that is not asked for. No tensor is ever
// gathered on the way, and any numbers of devices fit each other.

#include "simulator/checkpoint/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/pending_folder.h"
#include "layouts/uneven.h"
#include "simulator/checkpoint/checkpoint_folder.h"

namespace shardplan {
namespace {

namespace fs = std::filesystem;

constexpr char kFormat[] = "shardplan.checkpoint/1";
constexpr std::size_t kMostOpenFiles = 256;
constexpr std::int64_t kMostRanks = 1 << 20;

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

/// "[512, 784]".
std::optional<Shape> parse_shape(std::string_view text) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return std::nullopt;
  text = text.substr(1, text.size() - 2);
  Shape shape;
  while (!text.empty()) {
    const std::size_t comma = text.find(", ");
    const auto size = parse_number<std::int64_t>(text.substr(0, comma));
    if (!size || *size < 0) return std::nullopt;
    shape.push_back(*size);
    text = comma == std::string_view::npos ? "" : text.substr(comma + 2);
  }
  return shape;
}

const std::string& metadata(const SafetensorsReader& file, const std::string& key) {
  const std::string* text = file.header().find_metadata(key);
  if (text == nullptr) throw InputError({file.path(), 0, 0}, "metadata: '{}' is missing", key);
  return *text;
}

template <class Number>
Number metadata_number(const SafetensorsReader& file, const std::string& key) {
  const std::string& text = metadata(file, key);
  const auto value = parse_number<Number>(text);
  if (!value || *value < 0) {
    throw InputError({file.path(), 0, 0}, "metadata: {} is '{}'; expected a whole number", key, text);
  }
  return *value;
}

/// Nothing, or that a piece is larger than its layout makes it; so that no shape is believed that the file cannot bear.
std::string check_piece(const SafetensorsEntry& entry, const TensorLayout& layout, const Shape& shape) {
  const Shape local = local_shape(layout, shape);
  bool fits = entry.shape.size() == local.size();
  for (std::size_t d = 0; fits && d < local.size(); ++d) fits = local[d] >= 1 && entry.shape[d] <= local[d];
  const bool is_near = fits && num_elements(local) / 2 <= num_elements(entry.shape) * num_shards(layout);
  return is_near ? "" : fmt::format("makes pieces of {}, the file's has {}", to_string(local), to_string(entry.shape));
}

/// Turns an InputError of `read`, which has no place of its own, into one of this file.
template <class Read>
auto read_metadata(const SafetensorsReader& file, const std::string& key, Read read) {
  try {
    return read();
  } catch (const InputError& error) {
    throw InputError({file.path(), 0, 0}, "metadata: {}: {}", key, error.diagnostics().front().message);
  }
}

/// What a file says of the whole checkpoint.
CheckpointForm form_of(const SafetensorsReader& file) {
  const SourcePlace place{file.path(), 0, 0};
  const std::string* format = file.header().find_metadata("format");
  CheckpointForm form;
  for (const SafetensorsEntry& entry : file.header().entries) {
    if (num_elements(entry.shape) == 0) throw InputError(place, "tensor '{}' has no elements", entry.name);
  }
  if (format == nullptr || !format->starts_with("shardplan.")) {  // of another program
    form.is_integrated = true;
    for (const SafetensorsEntry& entry : file.header().entries) {
      form.tensors.push_back({entry.name, entry.dtype, entry.shape, TensorLayout::replicated(entry.shape.size())});
    }
    return form;
  }
  if (*format != kFormat) throw InputError(place, "metadata: format is '{}'; expected {}", *format, kFormat);
  form.model = metadata(file, "model");
  form.step = metadata_number<std::int64_t>(file, "step");
  form.seed = metadata_number<std::uint64_t>(file, "seed");
  form.is_integrated = file.header().find_metadata("rank") == nullptr;
  if (!form.is_integrated && !metadata(file, "mesh").empty()) {
    form.mesh = read_metadata(file, "mesh", [&] { return DeviceMesh::parse(metadata(file, "mesh")); });
  }
  if (form.mesh.num_devices() > kMostRanks) {
    throw InputError(place, "metadata: the mesh {} has {} devices; expected at most {}", form.mesh.to_string(),
                     form.mesh.num_devices(), kMostRanks);
  }
  std::map<std::string_view, std::string_view> texts;
  for (const auto& [key, text] : file.header().metadata) texts[key] = text;
  for (const SafetensorsEntry& entry : file.header().entries) {
    const auto shape_text = texts.find("shape:" + entry.name);
    const auto layout_text = texts.find("layout:" + entry.name);
    if (shape_text == texts.end() || layout_text == texts.end()) {
      throw InputError(place, "metadata: 'shape:{0}' or 'layout:{0}' is missing", entry.name);
    }
    const std::optional<Shape> shape = parse_shape(shape_text->second);
    if (!shape) throw InputError(place, "metadata: the shape of {} is '{}'", entry.name, shape_text->second);
    const TensorLayout layout = read_metadata(file, std::string(layout_text->first),
                                              [&] { return parse_layout(layout_text->second, form.mesh); });
    std::string fault = check_uneven_layout(layout, form.mesh, *shape);
    if (fault.empty()) fault = check_piece(entry, layout, *shape);
    if (fault.empty() && !layout.partial.empty()) fault = "a stored tensor is never partial";
    if (!fault.empty()) {
      throw InputError(place, "metadata: the layout {} of {}: {}", layout_text->second, entry.name, fault);
    }
    form.tensors.push_back({entry.name, entry.dtype, *shape, layout});
  }
  return form;
}

SafetensorsHeader header_of(const CheckpointForm& form, std::int64_t rank) {
  SafetensorsHeader header;
  header.metadata = {{"format", kFormat},
                     {"model", form.model},
                     {"step", std::to_string(form.step)},
                     {"seed", std::to_string(form.seed)}};
  if (!form.is_integrated) {
    header.metadata.emplace_back("mesh", form.mesh.to_string());
    header.metadata.emplace_back("rank", std::to_string(rank));
  }
  for (const CheckpointTensor& tensor : form.tensors) {
    header.metadata.emplace_back("shape:" + tensor.name, to_string(tensor.shape));
    header.metadata.emplace_back("layout:" + tensor.name, to_string(tensor.layout, form.mesh));
    header.entries.push_back(
        {tensor.name, tensor.dtype, held_piece(tensor.layout, form.mesh, tensor.shape, rank).shape(), 0, 0});
  }
  return header;
}

}  // namespace

CheckpointForm integrated(CheckpointForm form) {
  form.is_integrated = true;
  form.mesh = DeviceMesh();
  for (CheckpointTensor& tensor : form.tensors) tensor.layout = TensorLayout::replicated(tensor.shape.size());
  return form;
}

Checkpoint::Checkpoint(const std::string& path) : path_(path) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) {
    files_[0] = path;
  } else {
    std::optional<std::string> whole;
    std::set<std::string> names;  // in order, so that the same fault is found everywhere
    for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
      names.insert(it->path().filename().string());
    }
    if (error) throw InputError({path, 0, 0}, "cannot be read: {}", error.message());
    for (const std::string& name : names) {
      const std::string file = (fs::path(path) / name).string();
      if (name == kIntegratedFile) whole = file;
      const std::optional<std::int64_t> rank = rank_of_file(name);
      if (!rank) continue;
      const auto [at, is_new] = files_.emplace(*rank, file);
      if (!is_new) throw InputError({file, 0, 0}, "rank {} is held twice: by {} as well", *rank, at->second);
    }
    if (whole && !files_.empty()) {
      throw InputError({path, 0, 0}, "has {} and {}: one of them is of another checkpoint", kIntegratedFile,
                       fs::path(files_.begin()->second).filename().string());
    }
    if (whole) files_[0] = *whole;
  }
  if (files_.empty()) {
    throw InputError({path, 0, 0}, "no checkpoint: expected {} or {}, ... in it", kIntegratedFile, rank_file(0));
  }
  const std::int64_t first = files_.begin()->first;
  auto reader = std::make_unique<SafetensorsReader>(files_.begin()->second);
  form_ = form_of(*reader);
  for (std::size_t i = 0; i < form_.tensors.size(); ++i) by_name_[form_.tensors[i].name] = i;
  check_file(first, *reader);
}

std::optional<std::size_t> Checkpoint::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return std::nullopt;
  return found->second;
}

void Checkpoint::check_file(std::int64_t rank, const SafetensorsReader& reader) const {
  const SourcePlace place{reader.path(), 0, 0};
  if (form_.is_integrated) {
    if (files_.size() > 1)
      throw InputError(place, "says that it holds whole tensors; expected a piece of rank {}", rank);
    return;
  }
  const CheckpointForm other = form_of(reader);
  const std::string& first = files_.begin()->second;
  const auto claimed = metadata_number<std::int64_t>(reader, "rank");
  if (claimed != rank) {
    throw InputError(place, "holds the pieces of rank {}; expected those of rank {}", claimed, rank);
  }
  if (rank >= form_.mesh.num_devices()) {
    throw InputError(place, "rank {} of a mesh of {} devices ({})", rank, form_.mesh.num_devices(),
                     form_.mesh.to_string());
  }
  if (!(other.mesh == form_.mesh)) {
    throw InputError(place, "its mesh is {}, that of {} is {}", other.mesh.to_string(), first, form_.mesh.to_string());
  }
  if (other.step != form_.step || other.model != form_.model || other.seed != form_.seed) {
    throw InputError(place, "is of step {} of {}, seed {}; {} is of step {} of {}, seed {}", other.step, other.model,
                     other.seed, first, form_.step, form_.model, form_.seed);
  }
  std::set<std::string> names;
  for (const CheckpointTensor& tensor : other.tensors) {
    names.insert(tensor.name);
    const std::optional<std::size_t> known = find(tensor.name);
    if (!known) throw InputError(place, "has a tensor '{}', which {} has not", tensor.name, first);
    if (!(form_.tensors[*known] == tensor)) {
      throw InputError(place, "tensor '{}' is {}{} in the layout {}; in {} it is {}{} in the layout {}", tensor.name,
                       tensor.dtype, to_string(tensor.shape), to_string(tensor.layout, form_.mesh), first,
                       form_.tensors[*known].dtype, to_string(form_.tensors[*known].shape),
                       to_string(form_.tensors[*known].layout, form_.mesh));
    }
  }
  for (const CheckpointTensor& tensor : form_.tensors) {
    if (!names.contains(tensor.name)) throw InputError(place, "tensor '{}' is missing", tensor.name);
  }
  for (const SafetensorsEntry& entry : reader.header().entries) {
    const CheckpointTensor& tensor = form_.tensors[*find(entry.name)];
    const Shape expected = held_piece(tensor.layout, form_.mesh, tensor.shape, rank).shape();
    if (entry.shape == expected) continue;
    throw InputError(place, "tensor '{}' has the shape {}; the piece of rank {} in the layout {} has {}", entry.name,
                     to_string(entry.shape), rank, to_string(tensor.layout, form_.mesh), to_string(expected));
  }
}

SafetensorsReader& Checkpoint::file(std::int64_t rank) {
  const auto found = open_.find(rank);
  if (found != open_.end()) return *found->second;
  if (open_.size() >= kMostOpenFiles) open_.clear();
  auto reader = std::make_unique<SafetensorsReader>(files_.at(rank));
  const auto [positions, is_new] = positions_.emplace(rank, std::map<std::string, std::size_t>());
  if (is_new) {
    check_file(rank, *reader);
    for (std::size_t i = 0; i < reader->header().entries.size(); ++i) {
      positions->second[reader->header().entries[i].name] = i;
    }
  }
  return *open_.emplace(rank, std::move(reader)).first->second;
}

const SafetensorsEntry& Checkpoint::entry(std::int64_t rank, std::size_t tensor) {
  const SafetensorsReader& reader = file(rank);
  return reader.header().entries[positions_.at(rank).at(form_.tensors[tensor].name)];
}

const std::vector<Checkpoint::Holders>& Checkpoint::holders(std::size_t tensor) {
  const CheckpointTensor& of = form_.tensors[tensor];
  const auto [found, is_new] = holders_.try_emplace({to_string(of.layout, form_.mesh), of.shape});
  if (!is_new) return found->second;
  std::vector<AxisRef> axes;  // that cut it: points with equal coordinates along them hold the same
  for (const DimensionLayout& dimension : of.layout.dimensions) {
    for (const DimensionPart& part : dimension.parts) axes.insert(axes.end(), part.axes.begin(), part.axes.end());
  }
  std::map<std::int64_t, std::size_t> by_piece;
  for (std::int64_t rank = 0; rank < form_.mesh.num_devices(); ++rank) {
    const auto [at, is_first] = by_piece.try_emplace(form_.mesh.coordinate(rank, axes), found->second.size());
    if (is_first) found->second.push_back({held_piece(of.layout, form_.mesh, of.shape, rank), {}});
    found->second[at->second].ranks.push_back(rank);
  }
  return found->second;
}

Checkpoint::Bytes Checkpoint::read(std::size_t tensor, const PieceRuns& piece, std::int64_t preferred) {
  const CheckpointTensor& of = form_.tensors[tensor];
  const std::int64_t size = element_bytes(of.dtype);
  Bytes bytes(static_cast<std::size_t>(num_elements(piece.shape()) * size));
  for (const Holders& source : holders(tensor)) {
    std::optional<std::int64_t> rank;
    for_each_shared_row(source.piece, piece, [&](std::int64_t from, std::int64_t to, std::int64_t count) {
      if (!rank) {
        const auto is_there = [&](std::int64_t holder) { return files_.contains(holder); };
        const auto found = std::find_if(source.ranks.begin(), source.ranks.end(), is_there);
        const bool is_preferred =
            std::binary_search(source.ranks.begin(), source.ranks.end(), preferred) && is_there(preferred);
        if (found == source.ranks.end()) {
          throw InputError({path_, 0, 0}, "a piece of '{}' is missing: rank_{}.safetensors is not there", of.name,
                           fmt::join(source.ranks, ".safetensors or rank_"));
        }
        rank = is_preferred ? preferred : *found;
        ranks_read_.insert(*rank);
      }
      const SafetensorsEntry& part = entry(*rank, tensor);
      file(*rank).read(
          part, from * size,
          std::span(bytes).subspan(static_cast<std::size_t>(to * size), static_cast<std::size_t>(count * size)));
      bytes_read_ += count * size;
    });
  }
  return bytes;
}

Checkpoint::Verification Checkpoint::verify() {
  Verification verification;
  std::vector<Diagnostic> faults;
  const auto collect = [&](const auto& work) {
    try {
      work();
    } catch (const InputError& error) {
      faults.insert(faults.end(), error.diagnostics().begin(), error.diagnostics().end());
    }
  };
  for (std::int64_t rank = 0; rank < form_.mesh.num_devices(); ++rank) {
    if (!files_.contains(rank)) {
      faults.push_back({{path_, 0, 0}, fmt::format("{} is missing", rank_file(rank)), {}});
    }
  }
  for (const auto& [rank, path] : files_) {
    collect([&, r = rank] {
      for (const SafetensorsEntry& part : file(r).header().entries) verification.bytes += part.end - part.begin;
      ++verification.files;
    });
  }
  if (!faults.empty()) throw InputError(std::move(faults));
  for (std::size_t t = 0; t < form_.tensors.size(); ++t) {
    for (const Holders& source : holders(t)) {
      const Bytes first = read(t, source.piece, source.ranks.front());
      for (std::size_t i = 1; i < source.ranks.size(); ++i) {
        ++verification.copies;
        const std::int64_t rank = source.ranks[i];
        if (read(t, source.piece, rank) == first) continue;
        faults.push_back(
            {{files_.at(rank), 0, 0},
             fmt::format("tensor '{}' differs from the copy of rank {}", form_.tensors[t].name, source.ranks.front()),
             {}});
      }
    }
  }
  if (!faults.empty()) throw InputError(std::move(faults));
  return verification;
}

void write_checkpoint(const std::string& folder, const CheckpointForm& form, const PieceSource& source) {
  PendingFolder pending(folder);
  for (std::int64_t rank = 0; rank < form.mesh.num_devices(); ++rank) {
    const std::string name = form.is_integrated ? kIntegratedFile : rank_file(rank);
    SafetensorsWriter writer((fs::path(pending.temporary()) / name).string(), header_of(form, rank));
    for (std::size_t t = 0; t < form.tensors.size(); ++t) writer.append(source(t, rank));
    writer.finish();
  }
  pending.put_into_place();
}

std::vector<RankReads> transform_checkpoint(Checkpoint& from, const CheckpointForm& to, const std::string& folder) {
  std::vector<RankReads> reads;
  for (std::int64_t rank = 0; rank < to.mesh.num_devices(); ++rank) reads.push_back({rank, {}, 0});
  const PieceSource source = [&](std::size_t t, std::int64_t rank) {
    const CheckpointTensor& tensor = to.tensors[t];
    const std::optional<std::size_t> known = from.find(tensor.name);
    SHARDPLAN_CHECK(known.has_value());
    return from.read(*known, held_piece(tensor.layout, to.mesh, tensor.shape, rank), rank);
  };
  std::int64_t before = from.bytes_read();
  const auto counted = [&](std::size_t t, std::int64_t rank) {
    from.forget_ranks_read();
    std::vector<std::byte> bytes = source(t, rank);
    RankReads& of = reads[static_cast<std::size_t>(rank)];
    of.sources.insert(from.ranks_read().begin(), from.ranks_read().end());
    of.bytes += from.bytes_read() - before;
    before = from.bytes_read();
    return bytes;
  };
  if (!folder.empty()) {
    write_checkpoint(folder, to, counted);
    return reads;
  }
  for (std::int64_t rank = 0; rank < to.mesh.num_devices(); ++rank) {
    for (std::size_t t = 0; t < to.tensors.size(); ++t) counted(t, rank);
  }
  return reads;
}

}  // namespace shardplan
