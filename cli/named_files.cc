#include "cli/named_files.h"

#include <filesystem>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/write_files.h"
#include "costmodel/cluster/cluster.h"

namespace shardplan {
namespace {

/// Whether the value is the name of a file that is read; folders are checked by those who write into them.
bool is_read(const GivenValue& given) {
  const Completion kind = given.option->completion;
  if (!given.option->writes.empty()) return false;
  return kind == Completion::kFile || (kind == Completion::kCluster && is_cluster_path(given.text));
}

}  // namespace

void check_named_files(const std::vector<GivenValue>& given) {
  std::map<std::string, const Option*> users;  // by file, under one name each
  for (const GivenValue& value : given) {
    if (!is_read(value)) continue;
    if (const std::optional<std::string> file = replaced_file(value.text)) users.emplace(*file, value.option);
  }
  std::vector<Diagnostic> faults;
  for (const GivenValue& value : given) {
    for (const std::string& name : value.option->writes) {
      const std::string path = name.empty() ? value.text : (std::filesystem::path(value.text) / name).string();
      const std::optional<std::string> file = replaced_file(path);
      if (!file) continue;
      const auto [known, is_new] = users.emplace(*file, value.option);
      if (is_new) continue;
      const std::string& other = known->second->name;
      faults.push_back(
          {{path, 0, 0},
           known->second->writes.empty()
               ? fmt::format("{} would replace what {} reads; name another file", value.option->name, other)
               : fmt::format("{} and {} both write it; name two files", other, value.option->name),
           ""});
    }
  }
  if (!faults.empty()) throw InputError(std::move(faults));
}

}  // namespace shardplan
