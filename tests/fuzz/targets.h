#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "tests/fuzz/guard.h"

namespace shardplan {

/// One kind of input of the program, and what is done with it. Case i of a seed is `run(make(random_of(seed, i)))`: the
/// same text on every machine.
struct FuzzTarget {
  std::string name;
  std::uint64_t batch = 100;  // cases per child process
  std::function<std::string(Random&)> make;
  std::function<CaseResult(const std::string&)> run;

  std::string text(std::uint64_t seed, std::uint64_t index) const;
};

/// Model, cluster, plan, strategy and rank table files, contest problems, measurements, layouts, meshes, checkpoints
/// and command lines, each made by mutating valid ones; and random graphs whose random plans are lowered, executed and
/// proven. `folder` is an empty working folder. The current folder must be the top of the sources while targets are
/// made, and may be any when they run.
std::vector<FuzzTarget> fuzz_targets(const std::string& folder);

/// Whether the input was accepted. A fault if `work` ends with an error that names no place in the file, or with an
/// exception that is not about the input.
CaseResult result_of(const std::function<void()>& work);

/// The fault `what` together with the line of the error message that shows it. Messages that differ in names and
/// numbers only are one kind of fault.
CaseResult fault_of(const std::string& what, const InputError& error, const Diagnostic& line);

/// Random graphs only, with faults injected in `share` per cent of them (tests/fuzz/random_graphs.cc).
FuzzTarget graph_target(int share_with_faults);

/// Command lines: every command and option is parsed, and quick ones are run (tests/fuzz/command_lines.cc).
FuzzTarget command_target(const std::string& folder);

}  // namespace shardplan
