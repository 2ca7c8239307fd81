#include "base/write_files.h"

#include <gtest/gtest.h>

#include <filesystem>

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
