#include <fmt/format.h>
#include <malloc.h>

#include <exception>
#include <new>

#include "base/error.h"
#include "cli/command.h"
#include "simulator/execute/reference.h"

namespace {

constexpr const char* kDescription =
    "How should every tensor of a model be laid out on a cluster, which collectives does that cost, and is the answer "
    "right?";
constexpr const char* kFooter = R"(examples:
  shardplan plan configs/gpt2-small.yaml                     a plan, its time and memory, and how good it is
  shardplan plan configs/gpt2-small.yaml --validate          the same, proven on simulated devices
  shardplan plan configs/llama-7b.yaml --cluster dgx-h100x8  on another machine
  shardplan compare configs/gpt2-small.yaml                  levels 0, 1, 2 and data parallel side by side
  shardplan redistribute --mesh x=2,y=4 --shape 16x8 --from '[{x}, {y}]' --to '[{y}, {x}]'

exit codes: 0 done, 1 our fault, 2 usage, 3 bad input, 4 no feasible plan, 5 the validation found a difference,
            130 interrupted (after the best answer so far))";

int run(int argc, char** argv) {
  using namespace shardplan;
  CLI::App app(kDescription, "shardplan");
  app.set_version_flag("--version", SHARDPLAN_VERSION);
  app.footer(kFooter);
  app.require_subcommand(0, 1);
  CommandAction action;
  add_plan_command(app, action);
  add_compare_command(app, action);
  add_validate_command(app, action);
  add_simulate_command(app, action);
  add_explain_command(app, action);
  add_export_command(app, action);
  add_redistribute_command(app, action);
  add_layout_command(app, action);
  add_solve_command(app, action);
  add_cluster_command(app, action);
  add_operators_command(app, action);
  add_schema_command(app, action);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kUsage;
  }
  if (!action) {
    print(app.help());
    return kUsage;
  }
  return exit_code(action());
}

}  // namespace

int main(int argc, char** argv) {
  using namespace shardplan;
  // Tables of some megabytes come and go all the time: memory that goes back to the system each time is cleared again
  // for every page.
  mallopt(M_MMAP_THRESHOLD, 64 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  try {
    return run(argc, argv);
  } catch (const InputError& error) {
    notice(error.what());
    const std::size_t count = error.diagnostics().size();
    if (count > 1) notice(fmt::format("{} errors", count));
    return kBadInput;
  } catch (const Stopped&) {
    notice("stopped before the end: nothing is proven");
    return kInterrupted;
  } catch (const std::bad_alloc&) {
    notice("shardplan: out of memory");
    return kOurFault;
  } catch (const std::exception& error) {
    notice(fmt::format("shardplan: internal error: {}", error.what()));
    return kOurFault;
  }
}
