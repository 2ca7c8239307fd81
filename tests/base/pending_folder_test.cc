#include "base/pending_folder.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/write_files.h"
#include "tests/support/files.h"

namespace shardplan {
namespace {

namespace fs = std::filesystem;

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
    PendingFolder pending(path_ + "/result");
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
    PendingFolder pending(path_ + "/result");
    write_file(pending.temporary() + "/a", "second");
  }
  EXPECT_EQ(text("result/a"), "first");
  EXPECT_EQ(num_entries(), 1u);
}

TEST_F(PendingFolderTest, IsRefusedWhereAFileStands) {
  write_file(path_ + "/result", "a file");
  EXPECT_THROW(PendingFolder{path_ + "/result"}, InputError);
  EXPECT_THROW(PendingFolder{path_ + "/result/inside"}, InputError);
}

}  // namespace
}  // namespace shardplan
