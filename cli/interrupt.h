#pragma once

#include <stop_token>

namespace shardplan {

/// Asked to stop by the first Ctrl-C (the second ends the process at once).
std::stop_token interrupt_token();
/// kInterrupted if Ctrl-C was pressed, else `code`.
int exit_code(int code);

}  // namespace shardplan
