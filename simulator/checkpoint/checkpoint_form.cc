// Files are read as if anyone had written them: every number, shape and layout of the metadata is checked against the
// file's own tensors before something is computed or allocated from it. Metadata are a flat list with several texts per
// tensor, so they are first brought into a map.

#include "simulator/checkpoint/checkpoint_form.h"

#include <map>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/parse_number.h"
#include "base/shortened.h"
#include "layouts/uneven.h"

namespace shardplan {
namespace {

constexpr char kFormat[] = "shardplan.checkpoint/1";
constexpr std::int64_t kMostRanks = 1 << 20;
constexpr double kMostElements = 1e18;

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
  if (text == nullptr) throw InputError({file.path(), 0, 0}, "metadata: '{}' is missing", shortened(key));
  return *text;
}

template <class Number>
Number metadata_number(const SafetensorsReader& file, const std::string& key) {
  const std::string& text = metadata(file, key);
  const auto value = parse_number<Number>(text);
  if (!value || *value < 0) {
    throw InputError({file.path(), 0, 0}, "metadata: {} is '{}'; expected a whole number", key, shortened(text));
  }
  return *value;
}

/// Whether this shape has too many elements to compute with.
bool is_too_large(const Shape& shape) {
  double elements = 1;
  for (const std::int64_t size : shape) elements *= static_cast<double>(size);
  return elements > kMostElements;
}

/// Empty, or that a piece is larger than its layout makes it, so that no shape is trusted that the file cannot hold.
std::string check_piece(const SafetensorsEntry& entry, const TensorLayout& layout, const Shape& shape) {
  const Shape local = local_shape(layout, shape);
  bool fits = entry.shape.size() == local.size();
  for (std::size_t d = 0; fits && d < local.size(); ++d) fits = local[d] >= 1 && entry.shape[d] <= local[d];
  const bool is_near = fits && num_elements(local) / 2 <= num_elements(entry.shape) * num_shards(layout);
  return is_near ? "" : fmt::format("makes pieces of {}, the file's has {}", to_string(local), to_string(entry.shape));
}

/// Adds this file as the place of an InputError that `read` throws without one.
template <class Read>
auto read_metadata(const SafetensorsReader& file, const std::string& key, Read read) {
  try {
    return read();
  } catch (const InputError& error) {
    throw InputError({file.path(), 0, 0}, "metadata: {}: {}", shortened(key), error.diagnostics().front().message);
  }
}

/// Metadata by key: headers have several for each tensor, so that looking one up among them takes too long.
using MetadataTexts = std::map<std::string_view, std::string_view>;
MetadataTexts metadata_texts(const SafetensorsReader& file) {
  MetadataTexts texts;
  for (const auto& [key, text] : file.header().metadata) texts[key] = text;
  return texts;
}

/// The metadata `key` of a tensor, a shape or a position.
Shape metadata_shape(const SafetensorsReader& file, const MetadataTexts& texts, const std::string& key) {
  const auto text = texts.find(key);
  if (text == texts.end()) throw InputError({file.path(), 0, 0}, "metadata: '{}' is missing", shortened(key));
  std::optional<Shape> shape = parse_shape(text->second);
  if (!shape)
    throw InputError({file.path(), 0, 0}, "metadata: {} is '{}'; expected as in [512, 784]", shortened(key),
                     shortened(text->second));
  return *std::move(shape);
}

/// Reads the rest of a form whose files state where their pieces begin.
void read_per_device(const SafetensorsReader& file, CheckpointForm& form) {
  const SourcePlace place{file.path(), 0, 0};
  const auto ranks = metadata_number<std::int64_t>(file, "ranks");
  const auto rank = metadata_number<std::int64_t>(file, "rank");
  if (ranks < 1 || ranks > kMostRanks) {
    throw InputError(place, "metadata: ranks is {}; expected 1 to {}", ranks, kMostRanks);
  }
  if (rank >= ranks) throw InputError(place, "metadata: rank {} of {} ranks", rank, ranks);
  form.is_per_device = true;
  form.is_integrated = false;
  form.mesh = mesh_of_ranks(ranks);
  const MetadataTexts texts = metadata_texts(file);
  for (const SafetensorsEntry& entry : file.header().entries) {
    const Shape shape = metadata_shape(file, texts, "shape:" + entry.name);
    const Shape begin = metadata_shape(file, texts, "begin:" + entry.name);
    bool fits = shape.size() == entry.shape.size() && begin.size() == entry.shape.size();
    PieceRuns piece;
    for (std::size_t d = 0; fits && d < shape.size(); ++d) {
      fits = entry.shape[d] <= shape[d] && begin[d] <= shape[d] - entry.shape[d];
      piece.dimensions.push_back({{begin[d], entry.shape[d]}});
    }
    if (!fits || is_too_large(shape)) {
      throw InputError(place, "metadata: {}: {} from {} is not a piece of {}", shortened(entry.name),
                       to_string(entry.shape), to_string(begin), to_string(shape));
    }
    form.tensors.push_back(
        {entry.name, entry.dtype, shape, TensorLayout::replicated(shape.size()), {{rank, std::move(piece)}}});
  }
}

}  // namespace

DeviceMesh mesh_of_ranks(std::int64_t ranks) { return DeviceMesh({{"rank", ranks}}); }

std::optional<PieceRuns> piece_of_rank(const CheckpointForm& form, const CheckpointTensor& tensor, std::int64_t rank) {
  if (!form.is_per_device) return held_piece(tensor.layout, form.mesh, tensor.shape, rank);
  const auto found = tensor.pieces.find(rank);
  if (found == tensor.pieces.end()) return std::nullopt;
  return found->second;
}

PieceRuns source_piece(const CheckpointTensor& stored, const CheckpointTensor& tensor, const PieceRuns& piece) {
  return stored.shape == tensor.shape ? piece : whole_piece(stored.shape);
}

std::int64_t claimed_rank(const SafetensorsReader& file) { return metadata_number<std::int64_t>(file, "rank"); }

CheckpointForm integrated(CheckpointForm form) {
  form.is_integrated = true;
  form.is_per_device = false;
  form.mesh = DeviceMesh();
  for (CheckpointTensor& tensor : form.tensors) {
    tensor.layout = TensorLayout::replicated(tensor.shape.size());
    tensor.pieces.clear();
  }
  return form;
}

CheckpointForm form_of_file(const SafetensorsReader& file) {
  const SourcePlace place{file.path(), 0, 0};
  const std::string* format = file.header().find_metadata("format");
  CheckpointForm form;
  for (const SafetensorsEntry& entry : file.header().entries) {
    if (num_elements(entry.shape) == 0) throw InputError(place, "tensor '{}' has no elements", shortened(entry.name));
  }
  if (format == nullptr || !format->starts_with("shardplan.")) {  // written by another program
    form.is_integrated = true;
    for (const SafetensorsEntry& entry : file.header().entries) {
      form.tensors.push_back({entry.name, entry.dtype, entry.shape, TensorLayout::replicated(entry.shape.size())});
    }
    return form;
  }
  if (*format != kFormat) throw InputError(place, "metadata: format is '{}'; expected {}", shortened(*format), kFormat);
  form.model = metadata(file, "model");
  form.step = metadata_number<std::int64_t>(file, "step");
  form.seed = metadata_number<std::uint64_t>(file, "seed");
  form.is_integrated = file.header().find_metadata("rank") == nullptr;
  if (file.header().find_metadata("ranks") != nullptr) {
    read_per_device(file, form);
    return form;
  }
  if (!form.is_integrated && !metadata(file, "mesh").empty()) {
    form.mesh = read_metadata(file, "mesh", [&] { return DeviceMesh::parse(metadata(file, "mesh")); });
  }
  if (form.mesh.num_devices() > kMostRanks) {
    throw InputError(place, "metadata: the mesh {} has {} devices; expected at most {}", form.mesh.to_string(),
                     form.mesh.num_devices(), kMostRanks);
  }
  const MetadataTexts texts = metadata_texts(file);
  for (const SafetensorsEntry& entry : file.header().entries) {
    const auto shape_text = texts.find("shape:" + entry.name);
    const auto layout_text = texts.find("layout:" + entry.name);
    if (shape_text == texts.end() || layout_text == texts.end()) {
      throw InputError(place, "metadata: 'shape:{0}' or 'layout:{0}' is missing", shortened(entry.name));
    }
    const std::optional<Shape> shape = parse_shape(shape_text->second);
    if (!shape || is_too_large(*shape)) {
      throw InputError(place, "metadata: the shape of {} is '{}'; expected as in [512, 784]", shortened(entry.name),
                       shortened(shape_text->second));
    }
    const TensorLayout layout = read_metadata(file, std::string(layout_text->first),
                                              [&] { return parse_layout(layout_text->second, form.mesh); });
    std::string fault = check_uneven_layout(layout, form.mesh, *shape);
    if (fault.empty()) fault = check_piece(entry, layout, *shape);
    if (fault.empty() && !layout.partial.empty()) fault = "a stored tensor is never partial";
    if (!fault.empty()) {
      throw InputError(place, "metadata: the layout {} of {}: {}", shortened(layout_text->second),
                       shortened(entry.name), fault);
    }
    form.tensors.push_back({entry.name, entry.dtype, *shape, layout});
    const auto unpadded = texts.find("unpadded:" + entry.name);
    if (unpadded == texts.end()) continue;
    const std::optional<Shape> without = parse_shape(unpadded->second);
    bool fits = without && without->size() == shape->size();
    for (std::size_t d = 0; fits && d < shape->size(); ++d) fits = (*without)[d] >= 1 && (*without)[d] <= (*shape)[d];
    if (!fits) {
      throw InputError(place, "metadata: without padding {} is '{}', which is not part of {}", shortened(entry.name),
                       shortened(unpadded->second), to_string(*shape));
    }
    form.tensors.back().unpadded = *without;
  }
  return form;
}

SafetensorsHeader header_of(const CheckpointForm& form, std::int64_t rank) {
  SafetensorsHeader header;
  header.metadata = {{kFileHash, ""},  // filled in by the writer
                     {"format", kFormat},
                     {"model", form.model},
                     {"step", std::to_string(form.step)},
                     {"seed", std::to_string(form.seed)}};
  if (form.is_per_device) {
    header.metadata.emplace_back("ranks", std::to_string(form.mesh.num_devices()));
  } else if (!form.is_integrated) {
    header.metadata.emplace_back("mesh", form.mesh.to_string());
  }
  if (!form.is_integrated) header.metadata.emplace_back("rank", std::to_string(rank));
  for (const CheckpointTensor& tensor : form.tensors) {
    const std::optional<PieceRuns> piece = piece_of_rank(form, tensor, rank);
    if (!piece) continue;
    header.metadata.emplace_back("shape:" + tensor.name, to_string(tensor.shape));
    if (form.is_per_device) {
      header.metadata.emplace_back("begin:" + tensor.name, to_string(piece->begin()));
    } else {
      header.metadata.emplace_back("layout:" + tensor.name, to_string(tensor.layout, form.mesh));
    }
    if (!tensor.unpadded.empty()) {
      header.metadata.emplace_back("unpadded:" + tensor.name, to_string(tensor.unpadded));
    }
    header.entries.push_back({tensor.name, tensor.dtype, piece->shape(), 0, 0});
  }
  return header;
}

}  // namespace shardplan
