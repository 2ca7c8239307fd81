#include "tests/fuzz/guard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#define SHARDPLAN_WITH_SANITIZER 1
#else
#define SHARDPLAN_WITH_SANITIZER 0
#endif

namespace shardplan {
namespace {

constexpr std::size_t kMostText = 4000;

/// The memory shared by child and parent.
struct Progress {
  std::atomic<std::uint64_t> at;  // the running case
  std::atomic<std::uint64_t> accepted;
  std::atomic<std::uint64_t> refused;
  std::atomic<std::uint64_t> uncertain;
  char fault[kMostText + 1];  // empty: none
  std::atomic<std::uint64_t> uncertain_at;
  char uncertain_text[kMostText + 1];
};

/// Memory that stays shared after a fork.
class SharedProgress {
 public:
  SharedProgress()
      : progress_(static_cast<Progress*>(
            mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    if (progress_ == MAP_FAILED) throw std::bad_alloc();
  }
  ~SharedProgress() { munmap(progress_, sizeof(Progress)); }
  SharedProgress(const SharedProgress&) = delete;
  SharedProgress& operator=(const SharedProgress&) = delete;
  Progress* operator->() { return progress_; }

 private:
  Progress* progress_;
};

/// A file without a name that receives what a child prints.
class CaughtOutput {
 public:
  CaughtOutput() : file_(memfd_create("output", MFD_CLOEXEC)) { fcntl(file_, F_SETFL, O_APPEND); }
  ~CaughtOutput() { close(file_); }
  CaughtOutput(const CaughtOutput&) = delete;
  CaughtOutput& operator=(const CaughtOutput&) = delete;

  void take_over() const {
    const int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDOUT_FILENO);
    dup2(file_, STDERR_FILENO);
  }
  void clear() const { (void)!ftruncate(file_, 0); }
  std::string text() const {
    std::string text(kMostText, '\0');
    const ssize_t count = pread(file_, text.data(), text.size(), 0);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    return text;
  }

 private:
  int file_;
};

[[noreturn]] void run_child(std::uint64_t begin, std::uint64_t end, const std::function<CaseResult(std::uint64_t)>& run,
                            const GuardLimits& limits, Progress* progress, const CaughtOutput& output) {
  output.take_over();
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  if (SHARDPLAN_WITH_SANITIZER == 0) {
    const rlimit memory{static_cast<rlim_t>(limits.bytes), static_cast<rlim_t>(limits.bytes)};
    setrlimit(RLIMIT_AS, &memory);
  }
  for (std::uint64_t i = begin; i < end; ++i) {
    progress->at = i;
    output.clear();
    CaseResult result;
    try {
      result = run(i);
    } catch (const std::bad_alloc&) {
      result = {CaseResult::Kind::kFault, "memory"};
    } catch (const std::exception& error) {
      result = {CaseResult::Kind::kFault, std::string("exception\n") + error.what()};
    }
    if (result.kind == CaseResult::Kind::kFault) {
      std::strncpy(progress->fault, result.text.c_str(), kMostText);
      std::fflush(stdout);
      _exit(1);
    }
    std::atomic<std::uint64_t>& count = result.kind == CaseResult::Kind::kAccepted  ? progress->accepted
                                        : result.kind == CaseResult::Kind::kRefused ? progress->refused
                                                                                    : progress->uncertain;
    ++count;
    if (result.kind != CaseResult::Kind::kUncertain) continue;
    progress->uncertain_at = i;
    std::strncpy(progress->uncertain_text, result.text.c_str(), kMostText);
  }
  _exit(0);
}

double processor_seconds(pid_t child) {
  clockid_t clock{};
  timespec used{};
  if (clock_getcpuclockid(child, &clock) != 0 || clock_gettime(clock, &used) != 0) return 0;
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

std::int64_t resident_bytes(pid_t child) {
  std::FILE* file = std::fopen(fmt::format("/proc/{}/statm", child).c_str(), "r");
  if (file == nullptr) return 0;
  long all = 0;
  long resident = 0;
  const int found = std::fscanf(file, "%ld %ld", &all, &resident);
  std::fclose(file);
  return found == 2 ? resident * sysconf(_SC_PAGESIZE) : 0;
}

/// Waits for the child and watches it; returns "" or why it was ended.
std::string watch(pid_t child, const GuardLimits& limits, SharedProgress& progress, double& slowest, int& status) {
  // Sanitizers hold back freed memory and need memory of their own.
  const std::int64_t most_resident = limits.bytes * (SHARDPLAN_WITH_SANITIZER != 0 ? 3 : 1);
  constexpr double kTick = 0.005;
  constexpr double kIdle = 60;  // a case that waits without computing
  std::uint64_t at = progress->at;
  double began = processor_seconds(child);
  double last = began;
  double idle = 0;
  std::string reason;
  while (waitpid(child, &status, WNOHANG) == 0) {
    const timespec tick{0, static_cast<long>(kTick * 1e9)};
    nanosleep(&tick, nullptr);
    const double now = processor_seconds(child);
    idle = now > last ? 0 : idle + kTick;
    last = std::max(last, now);
    if (progress->at != at) {
      at = progress->at;
      began = now;
    }
    slowest = std::max(slowest, now - began);
    if (now - began > limits.seconds || idle > kIdle) reason = "hang";
    if (resident_bytes(child) > most_resident) reason = "memory";
    if (reason.empty()) continue;
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    break;
  }
  return reason;
}

}  // namespace

void GuardedRun::add(const GuardedRun& other) {
  accepted += other.accepted;
  refused += other.refused;
  uncertain += other.uncertain;
  slowest = std::max(slowest, other.slowest);
  if (other.last_uncertain) last_uncertain = other.last_uncertain;
  broken.insert(broken.end(), other.broken.begin(), other.broken.end());
}

GuardedRun run_guarded(std::uint64_t begin, std::uint64_t end, const std::function<CaseResult(std::uint64_t)>& run,
                       const GuardLimits& limits) {
  GuardedRun result;
  while (begin < end) {
    SharedProgress progress;
    const CaughtOutput output;
    progress->at = begin;
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child < 0) throw std::bad_alloc();
    if (child == 0) run_child(begin, end, run, limits, progress.operator->(), output);
    int status = 0;
    std::string kind = watch(child, limits, progress, result.slowest, status);
    result.accepted += progress->accepted;
    result.refused += progress->refused;
    result.uncertain += progress->uncertain;
    if (progress->uncertain > 0) {
      result.last_uncertain = BrokenCase{progress->uncertain_at, "uncertain", progress->uncertain_text};
    }
    if (kind.empty() && WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
    BrokenCase broken{progress->at, kind, output.text()};
    if (kind.empty()) {
      kind = WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                                 : fmt::format("exit {}", WEXITSTATUS(status));
      const std::string fault = progress->fault;
      if (!fault.empty()) {
        const std::size_t line = std::min(fault.find('\n'), fault.size());
        kind = fault.substr(0, line);
        broken.details = fault.substr(std::min(line + 1, fault.size()));
      }
    }
    broken.kind = kind;
    result.broken.push_back(std::move(broken));
    begin = result.broken.back().index + 1;
  }
  return result;
}

namespace {

/// Text in pieces that can be left out one by one.
std::vector<std::string> pieces_of(const std::string& text, bool by_words) {
  std::vector<std::string> pieces(1);
  for (const char c : text) {
    const bool is_word = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
    if (by_words && !is_word && !pieces.back().empty()) pieces.emplace_back();
    pieces.back() += c;
    if (by_words ? !is_word : c == '\n') pieces.emplace_back();
  }
  return pieces;
}

std::string without(const std::vector<std::string>& pieces, std::size_t begin, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (i < begin || i >= begin + count) text += pieces[i];
  }
  return text;
}

}  // namespace

std::string shrunk(std::string text, const std::function<bool(const std::string&)>& breaks, int most_trials) {
  for (const bool by_words : {false, true}) {
    std::vector<std::string> pieces = pieces_of(text, by_words);
    for (std::size_t count = std::max<std::size_t>(pieces.size() / 2, 1); count > 0; count /= 2) {
      for (std::size_t begin = 0; begin + count <= pieces.size() && most_trials > 0;) {
        std::string shorter = without(pieces, begin, count);
        --most_trials;
        if (shorter.size() < text.size() && breaks(shorter)) {
          text = std::move(shorter);
          pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(begin),
                       pieces.begin() + static_cast<std::ptrdiff_t>(begin + count));
        } else {
          begin += count;
        }
      }
    }
  }
  return text;
}

}  // namespace shardplan
