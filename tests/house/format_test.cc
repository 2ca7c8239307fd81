#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/house/include_graph.h"

namespace shardplan {
namespace {

/// The output of a command, and its exit status.
std::pair<std::string, int> output_of(const std::string& command) {
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  std::string output;
  std::array<char, 4096> buffer{};
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe))
    output.append(buffer.data(), count);
  return {output, pclose(pipe)};
}

/// Headers that nearly every source includes; they are formatted with the next change of their contents. Add no more.
const std::vector<std::string> kNotYetFormatted{"costmodel/cost_model.h", "costmodel/hierarchical_costs.h",
                                                "graph/operator_graph.h"};

/// Other versions of clang-format break lines differently.
TEST(FormatTest, SourcesAreAsClangFormat14WritesThem) {
  const auto [version, status] = output_of("clang-format --version");
  if (version.find("version 14.") == std::string::npos) GTEST_SKIP() << "no clang-format 14: " << version;
  std::string files;
  for (const auto& entry : std::filesystem::directory_iterator(".")) {
    const std::string folder = entry.path().filename().string();
    if (!entry.is_directory() || folder.starts_with(".") || folder.starts_with("build")) continue;
    for (const std::string& path : sources_in(folder)) {
      if (std::find(kNotYetFormatted.begin(), kNotYetFormatted.end(), path) == kNotYetFormatted.end())
        files += " " + path;
    }
  }
  const auto [faults, result] = output_of("clang-format --dry-run -Werror" + files);
  EXPECT_EQ(result, 0) << faults.substr(0, 4000) << "\nrun: clang-format -i FILE";
}

}  // namespace
}  // namespace shardplan
