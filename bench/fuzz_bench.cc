// Does anything break the program? Ten minutes of mutated files, layouts and command lines, and of random graphs that
// are planned and proven, each in a guarded child process (tests/fuzz/targets.h).
//
//   fuzz_bench [--seconds N] [--cases N] [--seed N] [--only TARGET [--show INDEX | --file PATH]]
//
// Case i of a target is the same text for the same seed, independent of the other options; --show prints it. --file
// runs the text of a file instead, unguarded, for a debugger. The exit code is 1 if a case crashed, ran for more than
// 20 s, took more than 2 GiB or got an error without a place, or if a correct plan was refused as different or an
// injected fault went unnoticed.

#include <fmt/format.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>

#include "base/parse_number.h"
#include "base/yaml.h"
#include "tests/fuzz/guard.h"
#include "tests/fuzz/targets.h"

namespace shardplan {
namespace {

struct Arguments {
  double seconds = 600;
  std::uint64_t cases = UINT64_MAX;  // of all targets together
  std::uint64_t seed = 1;
  std::string only;                   // a target's name; empty means all
  std::optional<std::uint64_t> show;  // print this case instead
  std::string file;                   // run this file's text instead
};

bool read(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const char* const value = argv[i + 1];
    if (name == "--only" || name == "--file") {
      (name == "--only" ? arguments.only : arguments.file) = value;
      continue;
    }
    const auto number = parse_number<std::uint64_t>(value);
    if (!number) return false;
    if (name == "--seconds") {
      arguments.seconds = static_cast<double>(*number);
    } else if (name == "--cases") {
      arguments.cases = *number;
    } else if (name == "--seed") {
      arguments.seed = *number;
    } else if (name == "--show") {
      arguments.show = number;
    } else {
      return false;
    }
  }
  return argc % 2 == 1;
}

/// The results of one target, and every kind of fault with its shortest case.
struct Record {
  GuardedRun run;
  std::uint64_t next = 0;
  double seconds = 0;
  std::map<std::string, std::uint64_t> kinds;
};

void print_fault(const FuzzTarget& target, const BrokenCase& broken, std::uint64_t seed, const GuardLimits& limits) {
  const std::string text = target.text(seed, broken.index);
  const auto breaks = [&](const std::string& shorter) {
    const GuardedRun again = run_guarded(
        0, 1, [&](std::uint64_t) { return target.run(shorter); }, limits);
    return !again.broken.empty() && again.broken[0].kind == broken.kind;
  };
  const int most_trials = broken.kind == "hang" ? 20 : 300;
  fmt::print("\nFAULT {}, case {}: {}\n{}\n--- shrunk from {} bytes\n{}\n---\n", target.name, broken.index, broken.kind,
             broken.details, text.size(), shrunk(text, breaks, most_trials));
  std::fflush(stdout);
}

int run(const Arguments& arguments, const std::string& folder) {
  std::vector<FuzzTarget> targets = fuzz_targets(folder);
  std::erase_if(targets,
                [&](const FuzzTarget& target) { return !arguments.only.empty() && target.name != arguments.only; });
  if (arguments.show) {
    for (const FuzzTarget& target : targets) fmt::print("{}", target.text(arguments.seed, *arguments.show));
    return 0;
  }
  if (!arguments.file.empty()) {
    const std::string text = read_text_file(arguments.file);
    for (const FuzzTarget& target : targets) fmt::print("{}: {}\n", target.name, target.run(text).text);
    return 0;
  }
  const GuardLimits limits;
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  fmt::print("seed {}\n", arguments.seed);
  std::fflush(stdout);
  std::vector<Record> records(targets.size());
  std::uint64_t done = 0;
  while (elapsed() < arguments.seconds && done < arguments.cases) {
    for (std::size_t t = 0; t < targets.size(); ++t) {
      const FuzzTarget& target = targets[t];
      Record& record = records[t];
      const double began = elapsed();
      if (began >= arguments.seconds || done >= arguments.cases) break;
      const std::uint64_t end = record.next + std::min(target.batch, arguments.cases - done);
      const GuardedRun batch = run_guarded(
          record.next, end, [&](std::uint64_t i) { return target.run(target.text(arguments.seed, i)); }, limits);
      done += end - record.next;
      record.next = end;
      record.run.add(batch);
      record.seconds += elapsed() - began;
      for (const BrokenCase& broken : batch.broken) {
        if (record.kinds[broken.kind]++ == 0) print_fault(target, broken, arguments.seed, limits);
      }
    }
  }
  fmt::print("{:18} {:>9} {:>9} {:>9} {:>9} {:>7} {:>9} {:>9}\n", "target", "cases", "accepted", "refused", "uncertain",
             "faults", "cases/s", "slowest s");
  GuardedRun all;
  for (std::size_t t = 0; t < targets.size(); ++t) {
    const GuardedRun& one = records[t].run;
    all.add(one);
    fmt::print("{:18} {:9} {:9} {:9} {:9} {:7} {:9.0f} {:9.2f}\n", targets[t].name, one.done(), one.accepted,
               one.refused, one.uncertain, one.broken.size(),
               static_cast<double>(one.done()) / std::max(records[t].seconds, 1e-9), one.slowest);
    for (const auto& [kind, count] : records[t].kinds) fmt::print("  {:6} times {}\n", count, kind);
    if (one.last_uncertain) {
      fmt::print("  uncertain, case {} for one: {}\n", one.last_uncertain->index, one.last_uncertain->details);
    }
  }
  fmt::print("{:18} {:9} {:9} {:9} {:9} {:7}\n", "all", all.done(), all.accepted, all.refused, all.uncertain,
             all.broken.size());
  return all.broken.empty() ? 0 : 1;
}

}  // namespace
}  // namespace shardplan

int main(int argc, char** argv) {
  shardplan::Arguments arguments;
  if (!shardplan::read(argc, argv, arguments)) {
    fmt::print(stderr,
               "usage: fuzz_bench [--seconds N] [--cases N] [--seed N] [--only TARGET [--show INDEX | --file PATH]]\n");
    return 2;
  }
  std::string folder = (std::filesystem::temp_directory_path() / "shardplan-fuzz.XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  const int code = shardplan::run(arguments, folder);
  std::filesystem::remove_all(folder);
  return code;
}
