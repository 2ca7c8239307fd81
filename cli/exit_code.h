#pragma once

namespace shardplan {

/// Exit codes, the same for every command.
enum ExitCode {
  kDone = 0,
  kOurFault = 1,
  kUsage = 2,
  kBadInput = 3,
  kNoFeasiblePlan = 4,
  kDifferenceFound = 5,
  kInterrupted = 130,
};

}  // namespace shardplan
