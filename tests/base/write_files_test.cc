#include "base/write_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"

namespace shardplan {
namespace {

namespace fs = std::filesystem;

class WriteFilesTest : public ::testing::Test {
 protected:
  WriteFilesTest() {
    std::string name = (fs::temp_directory_path() / "write_files.XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~WriteFilesTest() override { fs::remove_all(folder_); }

  std::string text(const std::string& name) const {
    std::ifstream file(folder_ / name);
    std::ostringstream out;
    out << file.rdbuf();
    return out.str();
  }

  fs::path folder_;
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
