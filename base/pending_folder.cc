#include "base/pending_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "base/write_files.h"

namespace shardplan {
namespace fs = std::filesystem;

PendingFolder::PendingFolder(std::string path) : path_(std::move(path)) {
  while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
  const fs::path parent = fs::path(path_).parent_path();
  std::error_code error;
  if (!parent.empty()) fs::create_directories(parent, error);
  if (error) cannot_write(path_, error.value());
  if (fs::exists(path_, error) && !fs::is_directory(path_, error)) cannot_write(path_, ENOTDIR);
  temporary_ = path_ + ".XXXXXX";
  if (mkdtemp(temporary_.data()) == nullptr) {
    const int reason = errno;
    temporary_.clear();
    cannot_write(path_, reason);
  }
  // mkdtemp creates private folders; these are results to share, as far as the user's umask allows.
  const mode_t mask = umask(0);
  umask(mask);
  if (chmod(temporary_.c_str(), 0777 & ~mask) != 0) cannot_write(path_, errno);
}

PendingFolder::~PendingFolder() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

void PendingFolder::put_into_place() {
  if (rename(temporary_.c_str(), path_.c_str()) == 0) {
    temporary_.clear();
    return;
  }
  if (errno != ENOTEMPTY && errno != EEXIST) cannot_write(path_, errno);
  // After the exchange the temporary name holds the older folder, which the destructor removes.
  if (renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), RENAME_EXCHANGE) == 0) return;
  if (errno != EINVAL && errno != ENOSYS) cannot_write(path_, errno);
  throw InputError({path_, 0, 0}, "exists, and its file system cannot exchange folders in one step; delete it first");
}

}  // namespace shardplan
