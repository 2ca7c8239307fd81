#include "simulator/checkpoint/checkpoint_folder.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/parse_number.h"

namespace shardplan {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".safetensors";

/// The value of a text that consists of digits only.
std::optional<std::int64_t> parse_digits(std::string_view text) {
  return text.starts_with('-') ? std::nullopt : parse_number<std::int64_t>(text);
}

/// The step in a checkpoint's name.
std::optional<std::int64_t> step_of_name(std::string_view name, const std::string& prefix) {
  if (!name.starts_with(prefix + "-")) return std::nullopt;
  name.remove_prefix(prefix.size() + 1);
  return parse_digits(name);
}

/// Steps and paths of a folder's checkpoints, ascending.
std::map<std::int64_t, std::string> checkpoints_in(const std::string& folder, const std::string& prefix) {
  std::map<std::int64_t, std::string> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    const auto step = step_of_name(it->path().filename().string(), prefix);
    if (step && it->is_directory(ignored)) found[*step] = it->path().string();
  }
  return found;
}

bool is_checkpoint_file(const fs::directory_entry& entry) {
  const std::string name = entry.path().filename().string();
  std::error_code error;
  return (name == kIntegratedFile || rank_of_file(name)) && !entry.is_directory(error);
}

}  // namespace

const Replaceable kCheckpointFiles{"a checkpoint", is_checkpoint_file};

std::string rank_file(std::int64_t rank) { return fmt::format("rank_{}{}", rank, kExtension); }

std::optional<std::int64_t> rank_of_file(std::string_view name) {
  if (!name.starts_with("rank_") || !name.ends_with(kExtension)) return std::nullopt;
  name.remove_prefix(5);
  name.remove_suffix(kExtension.size());
  return parse_digits(name);
}

void check_prefix(const std::string& prefix) {
  const bool is_plain = !prefix.empty() && prefix.front() != '.' && prefix.find('/') == std::string::npos;
  if (!is_plain) throw InputError(SourcePlace{}, "--prefix {}: expected a plain name, without '/'", prefix);
}

std::string checkpoint_folder(const std::string& folder, const std::string& prefix, std::int64_t step) {
  return (fs::path(folder) / fmt::format("{}-{}", prefix, step)).string();
}

std::string find_checkpoint(const std::string& path, const std::string& prefix) {
  std::error_code error;
  if (fs::is_regular_file(path, error) || fs::exists(fs::path(path) / kIntegratedFile, error)) return path;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    if (rank_of_file(it->path().filename().string())) return path;
  }
  if (error) throw InputError({path, 0, 0}, "cannot be read: {}", error.message());
  const std::map<std::int64_t, std::string> steps = checkpoints_in(path, prefix);
  if (steps.empty()) {
    throw InputError({path, 0, 0}, "no checkpoint: expected folders {0}-1, {0}-2, ... in it, or {1}, or {2}, ...",
                     prefix, kIntegratedFile, rank_file(0));
  }
  return steps.rbegin()->second;
}

std::vector<std::string> keep_last_checkpoints(const std::string& folder, const std::string& prefix, std::int64_t most,
                                               std::int64_t written) {
  const std::map<std::int64_t, std::string> steps = checkpoints_in(folder, prefix);
  std::vector<std::string> others;  // oldest first
  for (auto at = steps.upper_bound(written); at != steps.end(); ++at) others.push_back(at->second);
  for (auto at = steps.begin(); at != steps.lower_bound(written); ++at) others.push_back(at->second);
  std::vector<std::string> faults;
  for (std::size_t i = 0; i + static_cast<std::size_t>(most) <= others.size(); ++i) {
    try {
      check_replaceable(others[i], kCheckpointFiles);
    } catch (const InputError&) {
      faults.push_back(others[i] + " is kept: it holds files that are not part of a checkpoint");
      continue;
    }
    std::error_code error;
    fs::remove_all(others[i], error);
    if (error) faults.push_back(fmt::format("{} cannot be removed: {}", others[i], error.message()));
  }
  return faults;
}

}  // namespace shardplan
