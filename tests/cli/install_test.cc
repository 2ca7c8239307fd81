// What `cmake --install` installs works from any folder, without the sources.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/cli/run_program.h"

namespace shardplan {
namespace {

namespace fs = std::filesystem;

TEST(InstallTest, WhatIsInstalledWorksFromAnyFolder) {
  const ProjectFolder folder;
  const std::string prefix = folder.path() + "/prefix";
  ASSERT_EQ(std::system(fmt::format("cmake --install '{}' --prefix '{}' >/dev/null", SHARDPLAN_BUILD, prefix).c_str()),
            0);
  const std::string program = prefix + "/bin/shardplan";
  const std::string configs = prefix + "/share/shardplan/configs";
  const auto runs = [&](const std::string& arguments) {
    return std::system(fmt::format("cd / && '{}' {} >/dev/null", program, arguments).c_str()) == 0;
  };
  EXPECT_TRUE(runs("cluster dgx-a100x2"));
  EXPECT_TRUE(runs("plan " + configs + "/semi-auto-matmul.yaml"));
  EXPECT_TRUE(runs(fmt::format("cluster {}/clusters/dgx-h100.yaml", configs)));
  for (const auto& entry : fs::recursive_directory_iterator("configs")) {
    if (entry.is_regular_file()) {
      EXPECT_TRUE(fs::exists(prefix + "/share/shardplan/" + entry.path().string())) << entry.path();
    }
  }
  for (const char* page : {"bash-completion/completions/shardplan", "zsh/site-functions/_shardplan",
                           "fish/vendor_completions.d/shardplan.fish", "man/man1/shardplan.1"}) {
    const std::string text = content_of(prefix + "/share/" + page);
    EXPECT_NE(text.find("redistribute"), std::string::npos) << page;
  }
}

}  // namespace
}  // namespace shardplan
