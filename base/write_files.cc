#include "base/write_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"

namespace shardplan {
namespace {

namespace fs = std::filesystem;

/// Writes all of the text; returns the errno of a failure, or 0.
int write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

/// Whether the path stands for a file that a process has open: /dev/stdout, /proc/self/fd/3. Other files below /dev and
/// /proc, as in /dev/shm, are files like any other.
bool is_open_file(const fs::path& path) {
  const fs::path folder = path.parent_path();
  return path == "/dev/stdout" || path == "/dev/stderr" || folder == "/dev/fd" ||
         (folder.filename() == "fd" && path.string().starts_with("/proc/"));
}

/// Devices, pipes and open files: renaming would put a file in their place.
bool is_stream(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  const bool is_there = !error && fs::exists(status) && !fs::is_directory(status);
  return is_there && (!fs::is_regular_file(status) || is_open_file(path));
}

}  // namespace

/// A file under its temporary name; it is deleted unless it is put into place. A stream is written when it would be put
/// into place.
class PendingFile {
 public:
  PendingFile(const std::string& path, std::string_view text) : path_(linked_path(path)) {
    if (is_stream(path_)) {
      for_stream_ = text;
      return;
    }
    const fs::path folder = fs::path(path_).parent_path();
    std::error_code error;
    if (!folder.empty()) fs::create_directories(folder, error);
    if (error) cannot_write(path_, error.value());
    if (fs::is_directory(path_, error)) cannot_write(path_, EISDIR);
    temporary_ = path_ + ".XXXXXX";
    const int file = mkstemp(temporary_.data());
    if (file < 0) {
      const int reason = errno;
      temporary_.clear();
      cannot_write(path_, reason);
    }
    int failure = write_all(file, text);
    // mkstemp creates private files; these are results to share, as far as the user's umask allows.
    const mode_t mask = umask(0);
    umask(mask);
    if (failure == 0 && fchmod(file, 0666 & ~mask) != 0) failure = errno;
    if (close(file) != 0 && failure == 0) failure = errno;
    if (failure != 0) {
      unlink(temporary_.c_str());
      cannot_write(path_, failure);
    }
  }
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;
  ~PendingFile() {
    if (!temporary_.empty()) unlink(temporary_.c_str());
  }

  bool is_for_stream() const { return temporary_.empty(); }

  void put_into_place() {
    if (is_for_stream()) {
      write_stream();
      return;
    }
    if (rename(temporary_.c_str(), path_.c_str()) != 0) cannot_write(path_, errno);
    temporary_.clear();
  }

 private:
  void write_stream() const {
    const int file = open(path_.c_str(), O_WRONLY | O_APPEND);
    if (file < 0) cannot_write(path_, errno);
    int failure = write_all(file, for_stream_);
    if (close(file) != 0 && failure == 0) failure = errno;
    if (failure != 0) cannot_write(path_, failure);
  }

  std::string path_;
  std::string temporary_;   // empty: a stream
  std::string for_stream_;  // the text
};

void cannot_write(const std::string& path, int reason) {
  throw InputError({path, 0, 0}, "cannot be written: {}", std::strerror(reason));
}

std::string linked_path(const std::string& path) {
  constexpr int kMostLinks = 40;  // as Linux follows
  fs::path result = path;
  std::error_code error;
  for (int i = 0; i < kMostLinks && !is_open_file(result) && fs::is_symlink(result, error); ++i) {
    const fs::path target = fs::read_symlink(result, error);
    if (error) return path;
    result = target.is_absolute() ? target : result.parent_path() / target;
  }
  return result.string();
}

std::optional<std::string> replaced_file(const std::string& path) {
  const std::string target = linked_path(path);
  if (is_stream(target)) return std::nullopt;
  std::error_code error;
  const fs::path only_one = fs::weakly_canonical(target, error);
  return error ? target : only_one.string();
}

PendingFiles::PendingFiles() = default;
PendingFiles::~PendingFiles() = default;

void PendingFiles::add(const std::string& path, std::string_view text) {
  files_.push_back(std::make_unique<PendingFile>(path, text));
}

void PendingFiles::put_into_place() {
  std::stable_partition(files_.begin(), files_.end(), [](const auto& file) { return file->is_for_stream(); });
  for (const std::unique_ptr<PendingFile>& file : files_) file->put_into_place();
  files_.clear();
}

void write_file(const std::string& path, std::string_view text) { PendingFile(path, text).put_into_place(); }

void write_files(const std::string& folder, const std::vector<NamedText>& files) {
  PendingFiles pending;
  for (const NamedText& file : files) pending.add((fs::path(folder) / file.name).string(), file.text);
  pending.put_into_place();
}

}  // namespace shardplan
