#pragma once

#include <string>

namespace shardplan {

/// A folder that appears whole or not at all. It is filled under a temporary name next to its final name and then
/// renamed in one step, which exchanges it for an older folder of that name. A program killed before that leaves the
/// older folder as it was (and "NAME.XXXXXX" next to it, which may be deleted).
class PendingFolder {
 public:
  /// Creates missing parent folders of `path`. Throws InputError that names the folder and the system's reason.
  explicit PendingFolder(std::string path);
  PendingFolder(const PendingFolder&) = delete;
  PendingFolder& operator=(const PendingFolder&) = delete;
  /// Removes the folder under its temporary name, if there is one.
  ~PendingFolder();

  /// Where to write until `put_into_place`.
  const std::string& temporary() const { return temporary_; }
  /// Throws InputError, in which case the older folder is unchanged.
  void put_into_place();

 private:
  std::string path_;
  std::string temporary_;
};

}  // namespace shardplan
