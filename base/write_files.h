#pragma once

#include <memory>
#include <optional>
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

/// What a symbolic link stands for, which need not exist; other paths stay, and so do those of open files (/dev/stdout,
/// /proc/self/fd/3).
std::string linked_path(const std::string& path);

/// Which file writing to the path would replace, under one name for all paths of it; nothing for what is written to
/// instead: devices, pipes and open files.
std::optional<std::string> replaced_file(const std::string& path);

/// Writes one file, whole or not at all: under a temporary name next to it, which is then renamed. Creates missing
/// parent folders. Of a symbolic link the file that it stands for is replaced; devices, pipes and open files
/// are written to. Throws InputError that names the file and the system's reason.
void write_file(const std::string& path, std::string_view text);

class PendingFile;

/// Files that are written together: each under a temporary name when it is added, as by `write_file`. The temporary files
/// are removed unless all are put into place.
class PendingFiles {
 public:
  PendingFiles();
  PendingFiles(const PendingFiles&) = delete;
  PendingFiles& operator=(const PendingFiles&) = delete;
  ~PendingFiles();

  void add(const std::string& path, std::string_view text);
  /// Devices and pipes, which may still fail, come first, so that a failure leaves the old files.
  void put_into_place();

 private:
  std::vector<std::unique_ptr<PendingFile>> files_;
};

/// Writes files into a folder, which is created if it is missing; other files in it are not touched. All files are
/// written under temporary names before the first is renamed, so that a full disk leaves the old ones.
void write_files(const std::string& folder, const std::vector<NamedText>& files);

}  // namespace shardplan
