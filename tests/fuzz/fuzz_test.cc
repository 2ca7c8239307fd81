// A few seconds of what bench/fuzz_bench does for minutes, with the same cases every time.
#include <gtest/gtest.h>

#include <map>

#include "tests/fuzz/guard.h"
#include "tests/fuzz/targets.h"
#include "tests/support/files.h"

namespace shardplan {
namespace {

constexpr std::uint64_t kSeed = 20261122;

/// Cases of each target, so that none takes more than a few seconds with sanitizers.
const std::map<std::string, std::uint64_t> kCases = {{"models", 100},
                                                     {"models per device", 100},
                                                     {"planned models", 60},
                                                     {"clusters", 400},
                                                     {"plans", 60},
                                                     {"strategy files", 20},
                                                     {"rank tables", 800},
                                                     {"measurements", 400},
                                                     {"contest problems", 800},
                                                     {"layouts", 800},
                                                     {"checkpoints", 300},
                                                     {"commands", 500},
                                                     {"graphs", 12}};

TEST(FuzzTest, NothingBreaks) {
  const TemporaryFolder folder;
  for (const FuzzTarget& target : fuzz_targets(folder.path())) {
    SCOPED_TRACE(target.name);
    ASSERT_EQ(kCases.count(target.name), 1u);
    const std::uint64_t cases = kCases.at(target.name);
    const GuardedRun found =
        run_guarded(0, cases, [&](std::uint64_t i) { return target.run(target.text(kSeed, i)); }, {.seconds = 60});
    EXPECT_EQ(found.done(), cases);
    EXPECT_GT(found.accepted, 0u) << "nothing was read to its end";
    for (const BrokenCase& broken : found.broken) {
      ADD_FAILURE() << "seed " << kSeed << " case " << broken.index << ": " << broken.kind << "\n"
                    << broken.details << "\n---\n"
                    << target.text(kSeed, broken.index);
    }
  }
}

}  // namespace
}  // namespace shardplan
