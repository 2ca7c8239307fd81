#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/pending_folder.h"

namespace shardplan {

// Names of checkpoints: the files of a folder into which training saves.

/// The file of an integrated checkpoint, and that of one rank.
inline constexpr char kIntegratedFile[] = "model.safetensors";
std::string rank_file(std::int64_t rank);
/// The rank whose pieces a file of this name holds; nothing for other files.
std::optional<std::int64_t> rank_of_file(std::string_view name);
/// A folder with these files and no others, which a checkpoint may replace.
extern const Replaceable kCheckpointFiles;

/// Throws InputError if `prefix` is not a plain name.
void check_prefix(const std::string& prefix);
/// The path of step `step` in `folder`: "FOLDER/PREFIX-STEP".
std::string checkpoint_folder(const std::string& folder, const std::string& prefix, std::int64_t step);
/// `path` if it is a checkpoint or a file, else the last step of `prefix` in it. Throws InputError if none exists.
std::string find_checkpoint(const std::string& path, const std::string& prefix);
/// Removes the oldest checkpoints of `prefix` until `most` are left, of which one is `written`, the step just written;
/// steps above it are of an earlier run and count as older. Returns why one could not be removed, or holds other files.
std::vector<std::string> keep_last_checkpoints(const std::string& folder, const std::string& prefix, std::int64_t most,
                                               std::int64_t written);

}  // namespace shardplan
