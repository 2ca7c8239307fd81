// Checkpoints are read and written by pieces. A piece is one rank's part of one tensor: a list of intervals along each
// dimension, for contiguous, blocked and uneven layouts alike. To move a checkpoint to other devices, each piece of the
// target is assembled from its intersections with the pieces of the source, read directly from their places in the
// files. So one piece is in memory at a time, and nothing else is read. No tensor is ever gathered on the way, and any
// numbers of devices can be combined.

#include "simulator/checkpoint/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <span>

#include "base/error.h"
#include "base/pending_folder.h"
#include "base/shortened.h"
#include "layouts/layout_axes.h"
#include "simulator/checkpoint/checkpoint_folder.h"

namespace shardplan {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostOpenFiles = 256;
constexpr std::size_t kMostAbsent = 3;

}  // namespace

Checkpoint::Checkpoint(const std::string& path) : path_(path) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) {
    files_[0] = path;
  } else {
    std::optional<std::string> whole;
    std::set<std::string> names;  // sorted, so that the same fault is found on every system
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
  form_ = form_of_file(*reader);
  for (std::size_t i = 0; i < form_.tensors.size(); ++i) by_name_[form_.tensors[i].name] = i;
  check_file(first, *reader);
  if (!form_.is_per_device) return;
  for (auto at = std::next(files_.begin()); at != files_.end(); ++at) {
    const SafetensorsReader other(at->second);
    check_file(at->first, other);
    add_pieces(form_of_file(other));
  }
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
  const CheckpointForm other = form_of_file(reader);
  const std::string& first = files_.begin()->second;
  const std::int64_t claimed = claimed_rank(reader);
  if (claimed != rank) {
    throw InputError(place, "holds the pieces of rank {}; expected those of rank {}", claimed, rank);
  }
  if (rank >= form_.mesh.num_devices()) {
    throw InputError(place, "rank {} of a mesh of {} devices ({})", rank, form_.mesh.num_devices(),
                     form_.mesh.to_string());
  }
  if (other.is_per_device != form_.is_per_device) {
    const auto kind = [](bool is_per_device) { return is_per_device ? "per device" : "in the view of all devices"; };
    throw InputError(place, "is of a model written {}, {} of one {}", kind(other.is_per_device), first,
                     kind(form_.is_per_device));
  }
  if (!(other.mesh == form_.mesh)) {
    throw InputError(place, "its mesh is {}, that of {} is {}", other.mesh.to_string(), first, form_.mesh.to_string());
  }
  if (other.step != form_.step || other.model != form_.model || other.seed != form_.seed) {
    throw InputError(place, "is of step {} of {}, seed {}; {} is of step {} of {}, seed {}", other.step,
                     shortened(other.model), other.seed, first, form_.step, shortened(form_.model), form_.seed);
  }
  if (form_.is_per_device) return check_pieces(other, reader);
  std::set<std::string> names;
  for (const CheckpointTensor& tensor : other.tensors) {
    names.insert(tensor.name);
    const std::optional<std::size_t> known = find(tensor.name);
    if (!known) throw InputError(place, "has a tensor '{}', which {} has not", shortened(tensor.name), first);
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

void Checkpoint::check_pieces(const CheckpointForm& other, const SafetensorsReader& reader) const {
  for (const CheckpointTensor& tensor : other.tensors) {
    const std::optional<std::size_t> known = find(tensor.name);
    if (!known) continue;  // ranks may hold different tensors
    const CheckpointTensor& of = form_.tensors[*known];
    if (of.shape == tensor.shape && of.dtype == tensor.dtype) continue;
    throw InputError({reader.path(), 0, 0}, "tensor '{}' is a piece of {}{}; that of rank {} is one of {}{}",
                     tensor.name, tensor.dtype, to_string(tensor.shape), of.pieces.begin()->first, of.dtype,
                     to_string(of.shape));
  }
}

void Checkpoint::add_pieces(const CheckpointForm& other) {
  for (const CheckpointTensor& tensor : other.tensors) {
    const auto [at, is_new] = by_name_.emplace(tensor.name, form_.tensors.size());
    if (is_new) {
      form_.tensors.push_back(tensor);
    } else {
      form_.tensors[at->second].pieces.insert(tensor.pieces.begin(), tensor.pieces.end());
    }
  }
}

SafetensorsReader& Checkpoint::file(std::int64_t rank) {
  const auto found = open_.find(rank);
  if (found != open_.end()) return *found->second;
  if (open_.size() >= kMostOpenFiles) open_.clear();
  auto reader = std::make_unique<SafetensorsReader>(files_.at(rank));
  if (!positions_.contains(rank)) {
    check_file(rank, *reader);
    reader->check_hash();
    std::map<std::string, std::size_t> positions;
    for (std::size_t i = 0; i < reader->header().entries.size(); ++i) positions[reader->header().entries[i].name] = i;
    positions_.emplace(rank, std::move(positions));  // only after all checks, so that a repeated request fails again
  }
  return *open_.emplace(rank, std::move(reader)).first->second;
}

const SafetensorsEntry& Checkpoint::entry(std::int64_t rank, std::size_t tensor) {
  const SafetensorsReader& reader = file(rank);
  return reader.header().entries[positions_.at(rank).at(form_.tensors[tensor].name)];
}

const std::vector<Checkpoint::Holders>& Checkpoint::holders(std::size_t tensor) {
  const CheckpointTensor& of = form_.tensors[tensor];
  const std::string held = form_.is_per_device ? of.name : to_string(of.layout, form_.mesh);
  const auto [found, is_new] = holders_.try_emplace({held, of.shape});
  if (!is_new) return found->second;
  if (form_.is_per_device) {
    std::map<std::pair<Shape, Shape>, std::size_t> by_place;
    for (const auto& [rank, piece] : of.pieces) {
      const auto [at, is_first] = by_place.try_emplace({piece.begin(), piece.shape()}, found->second.size());
      if (is_first) found->second.push_back({piece, {}});
      found->second[at->second].ranks.push_back(rank);
    }
    return found->second;
  }
  const std::vector<AxisRef> axes = cutting_axes(of.layout);
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
  std::vector<const Holders*> sources;
  for (const Holders& source : holders(tensor)) sources.push_back(&source);
  const auto same =
      std::find_if(sources.begin(), sources.end(), [&](const Holders* source) { return source->piece == piece; });
  if (same != sources.end()) {
    sources = {*same};
  } else if (form_.is_per_device) {
    check_covered(tensor, piece);
  }
  Bytes bytes(static_cast<std::size_t>(num_elements(piece.shape()) * size));
  for (const Holders* source : sources) {
    std::optional<std::int64_t> rank;
    for_each_shared_row(source->piece, piece, [&](std::int64_t from, std::int64_t to, std::int64_t count) {
      if (!rank) {
        const auto is_there = [&](std::int64_t holder) { return files_.contains(holder); };
        const auto found = std::find_if(source->ranks.begin(), source->ranks.end(), is_there);
        const bool is_preferred =
            std::binary_search(source->ranks.begin(), source->ranks.end(), preferred) && is_there(preferred);
        if (found == source->ranks.end()) {
          throw InputError({path_, 0, 0}, "a piece of '{}' is missing: rank_{}.safetensors is not there", of.name,
                           fmt::join(source->ranks, ".safetensors or rank_"));
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

void Checkpoint::check_covered(std::size_t tensor, const PieceRuns& piece) {
  const std::int64_t elements = num_elements(piece.shape());
  std::int64_t shared = 0;
  for (const Holders& source : holders(tensor)) {
    for_each_shared_row(source.piece, piece, [&](std::int64_t, std::int64_t, std::int64_t count) { shared += count; });
  }
  // The held elements bound what is allocated, since a file may claim any shape.
  std::int64_t covered = 0;
  if (shared >= elements) {
    std::vector<bool> is_held(static_cast<std::size_t>(elements), false);
    for (const Holders& source : holders(tensor)) {
      for_each_shared_row(source.piece, piece, [&](std::int64_t, std::int64_t to, std::int64_t count) {
        std::fill_n(is_held.begin() + to, count, true);
      });
    }
    covered = std::count(is_held.begin(), is_held.end(), true);
  }
  if (covered == elements) return;
  std::vector<std::string> absent;
  for (std::int64_t rank = 0; rank < form_.mesh.num_devices() && absent.size() < kMostAbsent; ++rank) {
    if (!files_.contains(rank)) absent.push_back(rank_file(rank));
  }
  throw InputError({path_, 0, 0}, "a part of '{}' {}, from {}, is on no rank{}", form_.tensors[tensor].name,
                   to_string(piece.shape()), to_string(piece.begin()),
                   absent.empty() ? "" : fmt::format(" that is there; {} is missing", fmt::join(absent, ", ")));
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
    if (form_.is_per_device) collect([&] { check_covered(t, whole_piece(form_.tensors[t].shape)); });
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

namespace {

bool is_on(const CheckpointForm& form, std::size_t tensor, std::int64_t rank) {
  return !form.is_per_device || form.tensors[tensor].pieces.contains(rank);
}

}  // namespace

void check_target(const Checkpoint& from, const std::string& folder) {
  std::error_code error;
  const fs::path path = from.path();
  const fs::path held = fs::is_directory(path, error) ? path : fs::absolute(path).parent_path();
  if (fs::equivalent(held, folder, error)) {
    throw InputError({folder, 0, 0}, "is where the checkpoint is read from; name another folder");
  }
  check_replaceable(folder, kCheckpointFiles);
}

void write_checkpoint(const std::string& folder, const CheckpointForm& form, const PieceSource& source) {
  PendingFolder pending(folder, kCheckpointFiles);
  for (std::int64_t rank = 0; rank < form.mesh.num_devices(); ++rank) {
    const std::string name = form.is_integrated ? kIntegratedFile : rank_file(rank);
    SafetensorsWriter writer((fs::path(pending.temporary()) / name).string(), header_of(form, rank));
    for (std::size_t t = 0; t < form.tensors.size(); ++t) {
      if (is_on(form, t, rank)) writer.append(source(t, rank));
    }
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
    return from.read(*known, source_piece(from.form().tensors[*known], tensor, *piece_of_rank(to, tensor, rank)), rank);
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
    check_target(from, folder);
    write_checkpoint(folder, to, counted);
    return reads;
  }
  for (std::int64_t rank = 0; rank < to.mesh.num_devices(); ++rank) {
    for (std::size_t t = 0; t < to.tensors.size(); ++t) {
      if (is_on(to, t, rank)) counted(t, rank);
    }
  }
  return reads;
}

}  // namespace shardplan
