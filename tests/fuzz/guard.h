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
    kAccepted,   // the input means something, and what it asks for was done
    kRefused,    // with an error that says where
    kUncertain,  // a proof that was refused, or in which a fault made on purpose could not be noticed
    kFault,      // ours
  };
  Kind kind = Kind::kAccepted;
  std::string text = {};  // of a fault: its kind in a few words, then details behind a line break
};

/// What one case may take.
struct GuardLimits {
  double seconds = 20;  // of the processor: a busy machine makes no case a hang
  std::int64_t bytes = std::int64_t{2} << 30;
};

/// A case that broke: by `CaseResult::kFault`, a signal, an exit, a hang, or too much memory.
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
  double slowest = 0;  // seconds of the processor that one case took, as far as the guard saw
  std::vector<BrokenCase> broken;
  std::optional<BrokenCase> last_uncertain;  // the text of the last of them

  void add(const GuardedRun& other);
};

/// Runs the cases [begin, end) in a child process, and goes on in another one behind a case that breaks it. What the
/// child prints is caught. The child's addresses are limited (in builds with sanitizers its resident memory is), so that
/// a case that takes all memory meets std::bad_alloc.
GuardedRun run_guarded(std::uint64_t begin, std::uint64_t end, const std::function<CaseResult(std::uint64_t)>& run,
                       const GuardLimits& limits);

/// The shortest input found that breaks in the same way: lines, then brackets, then words are left out as long as
/// `breaks` says so. At most `most_trials` are made.
std::string shrunk(std::string text, const std::function<bool(const std::string&)>& breaks, int most_trials = 400);

}  // namespace shardplan
