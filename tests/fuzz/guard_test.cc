#include "tests/fuzz/guard.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tests/fuzz/targets.h"

namespace shardplan {
namespace {

// The guard distinguishes the ways to fail, and the cases that follow still run.
TEST(GuardTest, EveryWayToBreakIsSeen) {
  const auto run = [](std::uint64_t i) -> CaseResult {
    switch (i) {
      case 1:
        std::fprintf(stderr, "last words\n");
        raise(SIGKILL);
        break;
      case 3:
        for (volatile bool goes_on = true; goes_on;) {
        }
        break;
      case 5:
        throw std::bad_alloc();
      case 6:
        _Exit(4);
      case 7:
        return {CaseResult::Kind::kFault, "wrong\nin detail"};
      case 8:
        throw std::runtime_error("odd");
      case 9:
        return {CaseResult::Kind::kRefused};
      case 10:
        return {CaseResult::Kind::kUncertain};
      default:
        break;
    }
    return {};
  };
  const GuardedRun found = run_guarded(0, 12, run, {.seconds = 0.2});
  std::vector<std::string> lines;
  for (const BrokenCase& broken : found.broken) {
    lines.push_back(std::to_string(broken.index) + " " + broken.kind + ": " + broken.details);
  }
  EXPECT_EQ(lines, (std::vector<std::string>{"1 signal 9: last words\n", "3 hang: ", "5 memory: ", "6 exit 4: ",
                                             "7 wrong: in detail", "8 exception: odd"}));
  EXPECT_EQ(found.accepted, 4u);
  EXPECT_EQ(found.refused, 1u);
  EXPECT_EQ(found.uncertain, 1u);
  EXPECT_EQ(found.done(), 12u);
}

TEST(GuardTest, ACaseIsShrunkToWhatBreaks) {
  const auto breaks = [](const std::string& text) {
    return text.find("bad") != std::string::npos && text.find('{') != std::string::npos;
  };
  EXPECT_EQ(shrunk("one: two\nthree: {bad: 1, x: 2}\nfour\n", breaks), "{bad");
}

/// Errors without a place in a file are faults; messages that differ only in numbers and names are one fault.
TEST(GuardTest, AnErrorWithoutALineIsAFault) {
  EXPECT_EQ(result_of([] { throw InputError({"m.yaml", 3, 1}, "no"); }).kind, CaseResult::Kind::kRefused);
  const CaseResult found = result_of([] { throw InputError({"m.yaml", 0, 0}, "axis 3 of 'x' is missing"); });
  EXPECT_EQ(found.text, "an error without a place: axis  of ' is missing\nm.yaml: error: axis 3 of 'x' is missing");
}

}  // namespace
}  // namespace shardplan
