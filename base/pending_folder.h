#pragma once

#include <filesystem>
#include <string>

namespace shardplan {

/// What a folder may hold that is replaced by a newer one. Everything in it is deleted, so anything else must be refused.
struct Replaceable {
  const char* name;                                                // "a checkpoint", for messages
  bool (*is_part)(const std::filesystem::directory_entry& entry);  // whether this entry is one of its files
};
/// Throws InputError that names the first entry of the folder, by name, that is not part of it. A folder that does not
/// exist or is empty may be replaced; of a symbolic link the folder that it stands for counts.
void check_replaceable(const std::string& path, const Replaceable& older);

/// A folder that appears whole or not at all. It is filled under a temporary name next to its final name and then
/// renamed in one step, which exchanges it for an older folder of that name. A program killed before that leaves the
/// older folder as it was (and "NAME.XXXXXX" next to it, which may be deleted).
class PendingFolder {
 public:
  /// Creates missing parent folders of `path`; of a symbolic link the folder that it stands for is replaced. Throws
  /// InputError that names the folder and the system's reason, or as `check_replaceable`.
  PendingFolder(const std::string& path, const Replaceable& older);
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
  Replaceable older_;
  std::string temporary_;
};

}  // namespace shardplan
