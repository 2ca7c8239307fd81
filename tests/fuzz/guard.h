#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace shardplan {

/// How one case ended.
struct CaseResult {
  enum class Kind {
    kAccepted,   // the input is valid, and the requested work was done
    kRefused,    // with an error that names a place
    kUncertain,  // a proof that was refused, or that could not have noticed an injected fault
    kFault,      // a bug of the program
  };
  Kind kind = Kind::kAccepted;
  std::string text = {};  // of a fault: its kind in a few words, then details after a line break
};

/// The limits of one case.
struct GuardLimits {
  double seconds = 20;  // of processor time: a busy machine does not turn a case into a hang
  std::int64_t bytes = std::int64_t{2} << 30;
};

/// A case that failed: by `CaseResult::kFault`, a signal, an exit, a hang, or too much memory.
struct BrokenCase {
  std::uint64_t index = 0;
  std::string kind;     // "signal 11", "hang", "memory", "exit 1", or the first line of the fault's text
  std::string details;  // what was printed on standard error, or the rest of the text
};

struct GuardedRun {
  std::uint64_t accepted = 0;
  std::uint64_t refused = 0;
  std::uint64_t uncertain = 0;
  std::uint64_t done() const { return accepted + refused + uncertain + broken.size(); }
  double slowest = 0;  // processor time of the slowest case, in seconds, as far as the guard measured it
  std::vector<BrokenCase> broken;
  std::optional<BrokenCase> last_uncertain;  // the last of them

  void add(const GuardedRun& other);
};

/// Runs the cases [begin, end) in a child process, and continues in another one after a case that breaks it. The
/// child's output is captured. The child's address space is limited (with sanitizers its resident memory), so a case
/// that takes all memory gets std::bad_alloc.
GuardedRun run_guarded(std::uint64_t begin, std::uint64_t end, const std::function<CaseResult(std::uint64_t)>& run,
                       const GuardLimits& limits);

/// The shortest input found that fails in the same way: lines, then brackets, then words are left out as long as
/// `breaks` confirms the failure. Makes at most `most_trials` trials.
std::string shrunk(std::string text, const std::function<bool(const std::string&)>& breaks, int most_trials = 400);

}  // namespace shardplan
