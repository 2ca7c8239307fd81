#pragma once

#include <stop_token>
#include <string>

namespace shardplan {

/// Asked to stop by the first Ctrl-C (the second ends the process at once).
std::stop_token interrupt_token();
/// kInterrupted if Ctrl-C was pressed, else `code`.
int exit_code(int code);

/// How a phase of a command ends before its end.
enum class PhaseEnd {
  kBySelf,  // it watches `interrupt_token` and its limits, and gives what it has
  kAtOnce,  // nothing is known yet that would be worth waiting for: the process ends
};
/// Begins the next phase of the command, "reading configs/mlp.yaml". On a terminal one that takes over a second is said on
/// standard error, and every ten seconds again. A phase that ends at once does so at the first Ctrl-C, and when
/// the limit of `limit_time` is exceeded by half and a second, with a line on standard error that says in which phase that was.
void begin_phase(const std::string& phase, PhaseEnd end);
/// The phase has come to an answer: from now on it ends by itself.
void answer_found();
/// The limit that --time-limit sets, in seconds since the program began; 0: none.
void limit_time(double seconds);
/// Since the program began.
double elapsed_seconds();

}  // namespace shardplan
