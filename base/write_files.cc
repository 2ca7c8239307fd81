#include "base/write_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"

namespace shardplan {
namespace {

namespace fs = std::filesystem;

/// A file under its temporary name; it is deleted unless it is put into place.
class PendingFile {
 public:
  PendingFile(std::string path, std::string_view text) : path_(std::move(path)) {
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
    int failure = 0;
    for (std::size_t done = 0; done < text.size() && failure == 0;) {
      const ssize_t written = write(file, text.data() + done, text.size() - done);
      if (written > 0) {
        done += static_cast<std::size_t>(written);
      } else if (errno != EINTR) {
        failure = errno;
      }
    }
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
  PendingFile(PendingFile&& other) noexcept : path_(std::move(other.path_)), temporary_(std::move(other.temporary_)) {
    other.temporary_.clear();
  }
  PendingFile& operator=(PendingFile&&) = delete;
  ~PendingFile() {
    if (!temporary_.empty()) unlink(temporary_.c_str());
  }

  void put_into_place() {
    if (rename(temporary_.c_str(), path_.c_str()) != 0) cannot_write(path_, errno);
    temporary_.clear();
  }

 private:
  std::string path_;
  std::string temporary_;
};

}  // namespace

void cannot_write(const std::string& path, int reason) {
  throw InputError({path, 0, 0}, "cannot be written: {}", std::strerror(reason));
}

void write_file(const std::string& path, std::string_view text) { PendingFile(path, text).put_into_place(); }

void write_files(const std::string& folder, const std::vector<NamedText>& files) {
  std::vector<PendingFile> pending;
  pending.reserve(files.size());
  for (const NamedText& file : files) pending.emplace_back((fs::path(folder) / file.name).string(), file.text);
  for (PendingFile& file : pending) file.put_into_place();
}

}  // namespace shardplan
