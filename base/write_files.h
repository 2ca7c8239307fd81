#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardplan {

struct NamedText {
  std::string name;  // relative to the folder; may contain '/'
  std::string text;
};

/// Throws the InputError for a path that cannot be written; `reason` is an errno.
[[noreturn]] void cannot_write(const std::string& path, int reason);

/// Writes one file, whole or not at all: under a temporary name next to it, which is then renamed. Creates missing
/// parent folders. Of a symbolic link the file that it stands for is replaced; a device or a pipe is written to. Throws
/// InputError that names the file and the system's reason.
void write_file(const std::string& path, std::string_view text);

/// Writes files into a folder, which is created if it is missing; other files in it are not touched. All files are
/// written under temporary names before the first is renamed, so that a full disk leaves the old ones.
void write_files(const std::string& folder, const std::vector<NamedText>& files);

}  // namespace shardplan
