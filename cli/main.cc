#include <csignal>
#include <exception>
#include <new>

#include "base/error.h"
#include "cli/command_line.h"
#include "cli/commands/commands.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/own_memory.h"
#include "cli/terminal.h"
#include "simulator/execute/reference.h"

namespace {

int run(int argc, char** argv) {
  using namespace shardplan;
  const Request request = read_command_line(shardplan_program(), {argv + 1, argv + argc});
  if (!request.action) {
    print(request.page);
    return kDone;
  }
  return exit_code(request.action());
}

}  // namespace

int main(int argc, char** argv) {
  using namespace shardplan;
  set_up_memory(argv);
  std::signal(SIGXFSZ, SIG_IGN);  // so that a write above the limit fails, and the file is named and removed
  try {
    return run(argc, argv);
  } catch (const UsageError& error) {
    notice(error.what());
    return kUsage;
  } catch (const InputError& error) {
    notice(error.what());
    const std::size_t count = error.diagnostics().size();
    if (count > 1) notice(fmt::format("{} errors", count));
    return kBadInput;
  } catch (const Stopped&) {
    notice("interrupted before the end: there is no result");
    return kInterrupted;
  } catch (const std::bad_alloc&) {
    notice("shardplan: out of memory");
    return kOurFault;
  } catch (const std::exception& error) {
    notice(fmt::format("shardplan: internal error: {}", error.what()));
    return kOurFault;
  }
}
