#include "base/write_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "base/error.h"
#include "tests/support/files.h"

namespace shardplan {
namespace {

namespace fs = std::filesystem;

class WriteFilesTest : public ::testing::Test {
 protected:
  std::string text(const std::string& name) const { return content_of(folder_ / name); }

  const TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
};

TEST_F(WriteFilesTest, ReplacesItsFilesAndNothingElse) {
  write_files((folder_ / "new/out").string(), {{"a", "1"}, {"worker_0/b", "2"}});
  write_file((folder_ / "new/out/other").string(), "kept");
  write_files((folder_ / "new/out").string(), {{"a", "3"}});
  EXPECT_EQ(text("new/out/a"), "3");
  EXPECT_EQ(text("new/out/worker_0/b"), "2");
  EXPECT_EQ(text("new/out/other"), "kept");
}

TEST_F(WriteFilesTest, LeavesNothingBehindWhenItFails) {
  fs::create_directory(folder_ / "b");
  EXPECT_THROW(write_files(folder_.string(), {{"a", "new"}, {"b", "a folder is in the way"}}), InputError);
  EXPECT_FALSE(fs::exists(folder_ / "a"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(WriteFilesTest, WritesWhatALinkStandsFor) {
  write_file((folder_ / "real").string(), "old");
  fs::create_symlink("real", folder_ / "link");
  fs::create_symlink("not/yet", folder_ / "dangling");
  write_files(folder_.string(), {{"link", "new"}, {"dangling", "first"}});
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(text("real"), "new");
  EXPECT_EQ(text("not/yet"), "first");
}

TEST_F(WriteFilesTest, WritesIntoAPipeAndADeviceInsteadOfReplacingThem) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::string read;
  std::jthread reader([&] { read = content_of(pipe); });
  write_file(pipe.string(), "through");
  reader.join();
  EXPECT_EQ(read, "through");
  EXPECT_TRUE(fs::is_fifo(pipe));
  fs::create_symlink("/dev/null", folder_ / "null");
  write_file((folder_ / "null").string(), "nowhere");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "null"));
}

/// Appending would leave two documents in one file.
TEST_F(WriteFilesTest, AFileInSharedMemoryIsReplaced) {
  std::string shared = "/dev/shm/shardplan.XXXXXX";
  if (mkdtemp(shared.data()) == nullptr) GTEST_SKIP() << "no /dev/shm";
  for (const char* round : {"first", "second"}) write_file(shared + "/a", round);
  const std::string read = content_of(shared + "/a");
  fs::remove_all(shared);
  EXPECT_EQ(read, "second");
}

TEST_F(WriteFilesTest, WhatIsWrittenToAnOpenFileIsAppended) {
  const int file = open((folder_ / "output").c_str(), O_CREAT | O_WRONLY, 0600);
  ASSERT_GE(file, 0);
  const std::string number = std::to_string(file);
  fs::create_symlink("/dev/fd/" + number, folder_ / "link");
  write_file("/dev/fd/" + number, "a");
  write_file("/proc/self/fd/" + number, "b");
  write_file((folder_ / "link").string(), "c");
  close(file);
  EXPECT_EQ(text("output"), "abc");
}

TEST_F(WriteFilesTest, FilesOfDifferentFoldersAreWrittenTogetherOrNotAtAll) {
  const auto add_all = [&](PendingFiles& pending) {
    pending.add((folder_ / "one/a").string(), "1");
    pending.add((folder_ / "two/b").string(), "2");
  };
  {
    PendingFiles given_up;
    add_all(given_up);
  }
  EXPECT_TRUE(fs::is_empty(folder_ / "one"));
  PendingFiles pending;
  add_all(pending);
  pending.put_into_place();
  EXPECT_EQ(text("one/a"), "1");
  EXPECT_EQ(text("two/b"), "2");
}

/// A device fails only when it is written to.
TEST_F(WriteFilesTest, AFullDeviceLeavesTheOtherFiles) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  write_file((folder_ / "a").string(), "old");
  PendingFiles pending;
  pending.add((folder_ / "a").string(), "new");
  pending.add("/dev/full", "lost");
  EXPECT_THROW(pending.put_into_place(), InputError);
  EXPECT_EQ(text("a"), "old");
}

TEST_F(WriteFilesTest, AFileHasOneNameForAllItsPaths) {
  write_file((folder_ / "real").string(), "");
  fs::create_symlink("real", folder_ / "link");
  fs::create_symlink("not/yet", folder_ / "dangling");
  EXPECT_EQ(replaced_file((folder_ / "link").string()), replaced_file((folder_ / "x/../real").string()));
  EXPECT_EQ(replaced_file((folder_ / "dangling").string()), replaced_file((folder_ / "not/yet").string()));
  EXPECT_NE(replaced_file((folder_ / "real").string()), replaced_file((folder_ / "other").string()));
  EXPECT_EQ(replaced_file("/dev/null"), std::nullopt);
  EXPECT_EQ(replaced_file("/dev/stdout"), std::nullopt);
}

TEST_F(WriteFilesTest, NamesTheFileAndTheReason) {
  try {
    write_file("/proc/no/such/file", "x");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("/proc/no/such/file: error: cannot be written: "))
        << error.what();
  }
}

}  // namespace
}  // namespace shardplan
