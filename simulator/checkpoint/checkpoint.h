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

/// A checkpoint that is read piece by piece. Nothing but headers is read before it is asked for; a file of which something
/// is asked for is first compared with the hash that it was written with.
class Checkpoint {
 public:
  /// `path` is the checkpoint's folder, or a file of its own. Throws InputError: nothing there, files of both kinds, a
  /// file that says another rank than its name, layouts that do not fit the shapes, ...
  explicit Checkpoint(const std::string& path);

  const std::string& path() const { return path_; }
  const CheckpointForm& form() const { return form_; }
  std::optional<std::size_t> find(const std::string& name) const;  // a position in `form().tensors`

  using Bytes = std::vector<std::byte>;
  /// The elements of `piece`, row-major, put together from the ranks that hold them: from one that holds exactly it, if
  /// there is one. Of copies `preferred` is read if it is one, else the lowest rank that is there. Throws InputError
  /// where a part is on no rank that is there.
  Bytes read(std::size_t tensor, const PieceRuns& piece, std::int64_t preferred = 0);

  /// What `read` has read so far.
  std::int64_t bytes_read() const { return bytes_read_; }
  const std::set<std::int64_t>& ranks_read() const { return ranks_read_; }
  void forget_ranks_read() { ranks_read_.clear(); }

  struct Verification {
    std::int64_t files = 0;
    std::int64_t bytes = 0;   // of all data
    std::int64_t copies = 0;  // pieces that were compared with an equal one of another rank
  };
  /// Reads everything: every rank is there, all say the same of mesh, layouts and step, and copies are equal. Throws
  /// InputError with all faults.
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
  /// Throws InputError if some of the piece is on no rank that is there.
  void check_covered(std::size_t tensor, const PieceRuns& piece);
  const SafetensorsEntry& entry(std::int64_t rank, std::size_t tensor);
  const std::vector<Holders>& holders(std::size_t tensor);

  std::string path_;
  CheckpointForm form_;
  std::map<std::string, std::size_t> by_name_;
  std::map<std::int64_t, std::string> files_;                              // by rank
  std::map<std::int64_t, std::unique_ptr<SafetensorsReader>> open_;        // those of them that were read
  std::map<std::int64_t, std::map<std::string, std::size_t>> positions_;   // of the entries of those, by name
  std::map<std::pair<std::string, Shape>, std::vector<Holders>> holders_;  // by layout and shape
  std::int64_t bytes_read_ = 0;
  std::set<std::int64_t> ranks_read_;
};

/// Gives the bytes of what `rank` holds of a tensor of the form.
using PieceSource = std::function<std::vector<std::byte>(std::size_t tensor, std::int64_t rank)>;
/// Writes a checkpoint folder whole or not at all; pieces are asked for one by one. Throws InputError.
void write_checkpoint(const std::string& folder, const CheckpointForm& form, const PieceSource& source);

/// What a transformation reads for one rank of its target.
struct RankReads {
  std::int64_t rank = 0;
  std::set<std::int64_t> sources;
  std::int64_t bytes = 0;
};
/// Writes the checkpoint in another form of the same tensors (`source_piece`), of which one piece at a time is in memory.
/// With an empty `folder` nothing is written, only read.
std::vector<RankReads> transform_checkpoint(Checkpoint& from, const CheckpointForm& to, const std::string& folder);

}  // namespace shardplan
