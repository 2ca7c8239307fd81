#include "base/pending_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/write_files.h"

namespace shardplan {
namespace fs = std::filesystem;

void check_replaceable(const std::string& path, const Replaceable& older) {
  std::error_code error;
  if (!fs::exists(path, error)) return;
  std::set<std::string> others;  // sorted, so that the same one is named on every system
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    if (!older.is_part(*it)) others.insert(it->path().filename().string());
  }
  if (error) cannot_write(path, error.value());
  if (others.empty()) return;
  throw InputError({path, 0, 0}, "would be replaced, but holds '{}', which is not part of {}; name another folder",
                   *others.begin(), older.name);
}

PendingFolder::PendingFolder(const std::string& path, const Replaceable& older) : path_(path), older_(older) {
  while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
  path_ = linked_path(path_);
  const fs::path parent = fs::path(path_).parent_path();
  std::error_code error;
  if (!parent.empty()) fs::create_directories(parent, error);
  if (error) cannot_write(path_, error.value());
  if (fs::exists(path_, error) && !fs::is_directory(path_, error)) cannot_write(path_, ENOTDIR);
  check_replaceable(path_, older_);
  temporary_ = path_ + ".XXXXXX";
  if (mkdtemp(temporary_.data()) == nullptr) {
    const int reason = errno;
    temporary_.clear();
    cannot_write(path_, reason);
  }
  // mkdtemp creates private folders; these are results to share, as far as the user's umask allows.
  const mode_t mask = umask(0);
  umask(mask);
  if (chmod(temporary_.c_str(), 0777 & ~mask) != 0) {
    const int reason = errno;
    rmdir(temporary_.c_str());  // no destructor runs
    cannot_write(path_, reason);
  }
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
  check_replaceable(path_, older_);  // files may have been put there since
  // After the exchange the temporary name holds the older folder, which the destructor removes.
  if (renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), RENAME_EXCHANGE) == 0) return;
  if (errno != EINVAL && errno != ENOSYS) cannot_write(path_, errno);
  throw InputError({path_, 0, 0}, "exists, and its file system cannot exchange folders in one step; delete it first");
}

}  // namespace shardplan
