#include "cli/terminal.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace shardplan {
namespace {

TEST(TerminalTest, PagesGoToStandardOutputNoticesToStandardError) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  print(std::string("a page\nwith a zero \0 in it\n", 26));
  notice("a notice");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "a notice\n");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), std::string("a page\nwith a zero \0 in it\n", 26));
}

// Captured output is not a terminal: no colours and no progress.
TEST(TerminalTest, AFileGetsNeitherColoursNorProgress) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const bool has_colour = wants_colour();
  const bool has_progress = shows_progress();
  const bool has_sink = static_cast<bool>(progress_sink());
  testing::internal::GetCapturedStderr();
  testing::internal::GetCapturedStdout();
  EXPECT_FALSE(has_colour);
  EXPECT_FALSE(has_progress);
  EXPECT_FALSE(has_sink);
}

}  // namespace
}  // namespace shardplan
