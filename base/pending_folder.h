#pragma once

#include <string>

namespace shardplan {

/// A folder that appears whole or not at all: it is filled under a temporary name beside its own and then takes its own
/// in one step, in which an older folder of that name is exchanged for it. Killed at any time before that, a program
/// leaves the older folder as it was (and "NAME.XXXXXX" beside it, which may be deleted).
class PendingFolder {
 public:
  /// Folders on the way to `path` are made. Throws InputError that names the folder and the system's reason.
  explicit PendingFolder(std::string path);
  PendingFolder(const PendingFolder&) = delete;
  PendingFolder& operator=(const PendingFolder&) = delete;
  /// Removes what is not in its place.
  ~PendingFolder();

  /// Where to write meanwhile.
  const std::string& temporary() const { return temporary_; }
  /// Throws InputError; the older folder is then as it was.
  void put_into_place();

 private:
  std::string path_;
  std::string temporary_;
};

}  // namespace shardplan
