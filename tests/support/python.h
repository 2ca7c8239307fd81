#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/write_files.h"

namespace shardplan {

/// Runs a Python script on files; true if there is no python3.
inline bool python_accepts(const std::string& script, const std::vector<NamedText>& files) {
  if (std::system("python3 -c pass >/dev/null 2>&1") != 0) return true;
  std::string folder = (std::filesystem::temp_directory_path() / "python.XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return false;
  write_files(folder, files);
  write_file(folder + "/check.py", script);
  const int result = std::system(("cd " + folder + " && python3 check.py").c_str());
  std::filesystem::remove_all(folder);
  return result == 0;
}

}  // namespace shardplan
