#include "simulator/checkpoint/checkpoint_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/write_files.h"
#include "tests/support/files.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

namespace fs = std::filesystem;

class CheckpointFolderTest : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return folder_.at(name); }
  void save(std::int64_t step, const std::string& prefix = "p") const {
    write_file(checkpoint_folder(folder_.path(), prefix, step) + "/" + rank_file(0), "");
  }
  std::vector<std::string> keep(std::int64_t most, std::int64_t written) const {
    return keep_last_checkpoints(folder_.path(), "p", most, written);
  }
  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_.path())) found.insert(entry.path().filename().string());
    return found;
  }

  const TemporaryFolder folder_;
};

TEST_F(CheckpointFolderTest, TheLastStepIsFoundAndTheLastStepsAreKept) {
  for (const std::int64_t step : {9, 10, 100}) save(step);
  save(1000, "q");
  fs::create_directory(at("p-11.XyZabc"));
  EXPECT_EQ(find_checkpoint(folder_.path(), "p"), at("p-100"));
  EXPECT_EQ(find_checkpoint(at("p-9"), "p"), at("p-9"));
  EXPECT_TRUE(keep(2, 100).empty());
  EXPECT_EQ(names(), (std::set<std::string>{"p-10", "p-100", "p-11.XyZabc", "q-1000"}));
  expect_has(error_of([&] { find_checkpoint(folder_.path(), "r"); }), "expected folders r-1, r-2");
}

/// The steps above belong to a run before this one, which begins anew in the same folder.
TEST_F(CheckpointFolderTest, TheStepJustWrittenIsKeptBelowThoseOfAnEarlierRun) {
  for (const std::int64_t step : {7, 8, 9}) save(step);
  const std::set<std::string> after[] = {{"p-1", "p-8", "p-9"}, {"p-1", "p-2", "p-9"}, {"p-1", "p-2", "p-3"}};
  for (std::int64_t step = 1; step <= 3; ++step) {
    save(step);
    EXPECT_TRUE(keep(3, step).empty());
    EXPECT_EQ(names(), after[step - 1]);
  }
  EXPECT_TRUE(keep(1, 2).empty());
  EXPECT_EQ(names(), (std::set<std::string>{"p-2"}));
}

TEST_F(CheckpointFolderTest, OtherFilesOfAnOlderCheckpointSurvive) {
  save(1);
  save(2);
  save(3);
  write_file(at("p-1/notes.txt"), "kept");
  const std::vector<std::string> said = keep(1, 3);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said.front(), at("p-1") + " is kept: it holds files that are not part of a checkpoint");
  EXPECT_EQ(content_of(at("p-1/notes.txt")), "kept");
  EXPECT_EQ(names(), (std::set<std::string>{"p-1", "p-3"}));
}

/// The superuser may remove anything, so the test gives that up for a moment.
TEST_F(CheckpointFolderTest, WhatCannotBeRemovedIsNamed) {
  save(1);
  save(2);
  fs::permissions(folder_.path(), fs::perms(0555));
  const bool is_superuser = geteuid() == 0;
  if (is_superuser && seteuid(65534) != 0) GTEST_SKIP() << "cannot give up the superuser's rights";
  const std::vector<std::string> said = keep(1, 2);
  if (is_superuser) {
    ASSERT_EQ(seteuid(0), 0);
  }
  fs::permissions(folder_.path(), fs::perms(0755));
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said.front(), at("p-1") + " cannot be removed: Permission denied");
}

}  // namespace
}  // namespace shardplan
