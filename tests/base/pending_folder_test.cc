#include "base/pending_folder.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/write_files.h"
#include "tests/support/files.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

namespace fs = std::filesystem;

constexpr Replaceable kLetter{"a letter",
                              [](const fs::directory_entry& entry) { return entry.path().filename() == "a"; }};

class PendingFolderTest : public testing::Test {
 protected:
  std::string text(const std::string& name) const { return content_of(folder_.at(name)); }
  std::size_t num_entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(path_), fs::directory_iterator()));
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.path();
};

TEST_F(PendingFolderTest, AppearsWholeAndExchangesTheOlderOne) {
  for (const char* round : {"first", "second"}) {
    PendingFolder pending(path_ + "/result", kLetter);
    write_file(pending.temporary() + "/a", round);
    if (std::string(round) == "second") {
      EXPECT_EQ(text("result/a"), "first");
    }
    pending.put_into_place();
    EXPECT_EQ(text("result/a"), round);
  }
  EXPECT_EQ(num_entries(), 1u) << "what was exchanged is removed";
}

TEST_F(PendingFolderTest, LeavesTheOlderOneIfItIsNotPutIntoPlace) {
  write_file(path_ + "/result/a", "first");
  {
    PendingFolder pending(path_ + "/result", kLetter);
    write_file(pending.temporary() + "/a", "second");
  }
  EXPECT_EQ(text("result/a"), "first");
  EXPECT_EQ(num_entries(), 1u);
}

TEST_F(PendingFolderTest, IsRefusedWhereAFileStands) {
  write_file(path_ + "/result", "a file");
  EXPECT_THROW(PendingFolder(path_ + "/result", kLetter), InputError);
  EXPECT_THROW(PendingFolder(path_ + "/result/inside", kLetter), InputError);
}

TEST_F(PendingFolderTest, WhatIsNotPartOfTheOlderOneIsNeverDeleted) {
  for (const char* name : {"a", "z", "notes"}) write_file(path_ + "/result/" + name, "kept");
  EXPECT_EQ(error_of([&] { PendingFolder(path_ + "/result/", kLetter); }),
            path_ +
                "/result: error: would be replaced, but holds 'notes', which is not part of a letter; name another "
                "folder");
  EXPECT_EQ(text("result/notes"), "kept");
  EXPECT_EQ(num_entries(), 1u);
  {  // put there while the new one is written
    write_file(path_ + "/late/a", "older");
    PendingFolder pending(path_ + "/late", kLetter);
    write_file(path_ + "/late/b", "kept");
    EXPECT_THROW(pending.put_into_place(), InputError);
  }
  EXPECT_EQ(text("late/b"), "kept");
  EXPECT_EQ(num_entries(), 2u);
}

TEST_F(PendingFolderTest, WritesWhatALinkStandsFor) {
  fs::create_directories(path_ + "/disk/full");
  write_file(path_ + "/disk/full/a", "old");
  const std::pair<const char*, const char*> links[] = {{"link", "disk/full"}, {"dangling", "disk/missing"}};
  for (const auto& [link, target] : links) {
    fs::create_directory_symlink(target, path_ + "/" + link);
    PendingFolder pending(path_ + "/" + link + "/", kLetter);
    write_file(pending.temporary() + "/a", "new");
    pending.put_into_place();
    EXPECT_EQ(text(std::string(target) + "/a"), "new");
    EXPECT_TRUE(fs::is_symlink(path_ + "/" + link));
  }
  EXPECT_EQ(num_entries(), 3u);
}

}  // namespace
}  // namespace shardplan
