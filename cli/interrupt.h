#pragma once

#include <stop_token>
#include <string>

namespace shardplan {

/// Stop is requested by the first Ctrl-C (one a second later or more ends the process at once).
std::stop_token interrupt_token();
/// For what follows the plan: stop is requested by the first Ctrl-C, and `seconds` from now unless they are 0. To be
/// called once.
std::stop_token limited_token(double seconds);
/// kInterrupted if Ctrl-C was pressed, else `code`.
int exit_code(int code);

/// How a phase of a command ends if it is interrupted.
enum class PhaseEnd {
  kBySelf,  // it watches `interrupt_token` and its limits, and returns what it has
  kAtOnce,  // there is no answer worth waiting for: the process ends
};
/// Begins the next phase of the command, "reading configs/mlp.yaml". On a terminal a phase that takes over a second is
/// announced on standard error, and again every ten seconds. A phase of kind kAtOnce ends the process at the first
/// Ctrl-C, and when the limit of `limit_time` is exceeded by a fifth of it, at least by a second; a line on standard
/// error names the phase.
void begin_phase(const std::string& phase, PhaseEnd end);
/// The phase has found an answer: from now on it ends by itself.
void answer_found();
/// The limit that --time-limit sets, in seconds since the program began; 0: none.
void limit_time(double seconds);
/// Since the program began.
double elapsed_seconds();

}  // namespace shardplan
