#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "simulator/checkpoint/checkpoint_form.h"
#include "simulator/checkpoint/safetensors.h"

namespace shardplan {

/// A checkpoint that is read piece by piece. Only headers are read in advance; before anything else of a file is read,
/// the file is compared with the hash it was written with.
class Checkpoint {
 public:
  /// `path` is the checkpoint's folder, or a single file. Throws InputError: nothing there, files of both kinds, a file
  /// that states another rank than its name, layouts that do not fit the shapes, ...
  explicit Checkpoint(const std::string& path);

  const std::string& path() const { return path_; }
  const CheckpointForm& form() const { return form_; }
  std::optional<std::size_t> find(const std::string& name) const;  // a position in `form().tensors`

  using Bytes = std::vector<std::byte>;
  /// The elements of `piece`, row-major, assembled from the ranks that hold them; from a single rank if one holds
  /// exactly this piece. Of copies, that of rank `preferred` is read if it has one, else that of the lowest rank
  /// present. Throws InputError if no rank present has some part.
  Bytes read(std::size_t tensor, const PieceRuns& piece, std::int64_t preferred = 0);

  /// The bytes that `read` has read so far.
  std::int64_t bytes_read() const { return bytes_read_; }
  const std::set<std::int64_t>& ranks_read() const { return ranks_read_; }
  void forget_ranks_read() { ranks_read_.clear(); }

  struct Verification {
    std::int64_t files = 0;
    std::int64_t bytes = 0;   // of all data
    std::int64_t copies = 0;  // pieces that were compared with an equal one of another rank
  };
  /// Reads everything and checks that every rank is present, that all agree on mesh, layouts and step, that copies are
  /// equal, and that no part of a tensor is on no rank. Throws InputError with all faults.
  Verification verify();

 private:
  /// Ranks that hold one piece of a tensor.
  struct Holders {
    PieceRuns piece;
    std::vector<std::int64_t> ranks;  // ascending
  };
  SafetensorsReader& file(std::int64_t rank);
  void check_file(std::int64_t rank, const SafetensorsReader& reader) const;
  void check_pieces(const CheckpointForm& other, const SafetensorsReader& reader) const;
  void add_pieces(const CheckpointForm& other);
  /// Throws InputError if no rank present has some part of the piece.
  void check_covered(std::size_t tensor, const PieceRuns& piece);
  const SafetensorsEntry& entry(std::int64_t rank, std::size_t tensor);
  const std::vector<Holders>& holders(std::size_t tensor);

  std::string path_;
  CheckpointForm form_;
  std::map<std::string, std::size_t> by_name_;
  std::map<std::int64_t, std::string> files_;                              // by rank
  std::map<std::int64_t, std::unique_ptr<SafetensorsReader>> open_;        // of files that were read
  std::map<std::int64_t, std::map<std::string, std::size_t>> positions_;   // of their entries, by name
  std::map<std::pair<std::string, Shape>, std::vector<Holders>> holders_;  // by layout and shape
  std::int64_t bytes_read_ = 0;
  std::set<std::int64_t> ranks_read_;
};

/// Throws InputError if the checkpoint `from` must not be written in another form to `folder`: it is stored there, or
/// the folder holds files that are not part of a checkpoint.
void check_target(const Checkpoint& from, const std::string& folder);

/// Returns the bytes of `rank`'s piece of a tensor of the form.
using PieceSource = std::function<std::vector<std::byte>(std::size_t tensor, std::int64_t rank)>;
/// Writes a checkpoint folder whole or not at all, requesting pieces one by one. Replaces an older checkpoint. Throws
/// InputError, also if the folder holds other files.
void write_checkpoint(const std::string& folder, const CheckpointForm& form, const PieceSource& source);

/// What a transformation reads for one rank of its target.
struct RankReads {
  std::int64_t rank = 0;
  std::set<std::int64_t> sources;
  std::int64_t bytes = 0;
};
/// Writes the checkpoint in another form of the same tensors (`source_piece`), with one piece in memory at a time. If
/// `folder` is empty, only reads. Throws InputError, also as `check_target`.
std::vector<RankReads> transform_checkpoint(Checkpoint& from, const CheckpointForm& to, const std::string& folder);

}  // namespace shardplan
