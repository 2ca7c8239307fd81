#include "cli/commands/commands.h"

#include "cli/exit_code.h"

namespace shardplan {

Program shardplan_program() {
  Program program;
  program.name = "shardplan";
  program.version = SHARDPLAN_VERSION;
  program.summary =
      "How should every tensor of a model be laid out on a cluster, which collectives does that cost, and is the "
      "result correct?";
  program.examples = {
      {"plan configs/gpt2-small.yaml", "a plan, its time and memory, and its gap to the optimum"},
      {"plan configs/gpt2-small.yaml --validate", "the same, proven on simulated devices"},
      {"plan configs/llama-7b.yaml --cluster dgx-h100x8", "on another cluster"},
      {"compare configs/gpt2-small.yaml", "levels 0, 1, 2 and data parallelism side by side"},
      {"redistribute --mesh x=2,y=4 --shape 16x8 --from '[{x}, {y}]' --to '[{y}, {x}]'",
       "the cheapest collectives between two layouts"},
  };
  program.commands = {plan_command(),       compare_command(),   explain_command(),   diff_command(),
                      validate_command(),   simulate_command(),  worker_command(),    scheduler_command(),
                      checkpoint_command(), export_command(),    layout_command(),    redistribute_command(),
                      solve_command(),      cluster_command(),   calibrate_command(), operators_command(),
                      schema_command(),     completion_command()};
  program.exit_codes = {{kDone, "done"},
                        {kOurFault, "internal error"},
                        {kUsage, "the command line cannot be understood"},
                        {kBadInput, "bad input"},
                        {kNoFeasiblePlan, "no plan: none fits, or none was found in the time allowed"},
                        {kDifferenceFound, "the validation found a difference"},
                        {kInterrupted, "interrupted; the best answer so far, if there was one, was printed"}};
  return program;
}

}  // namespace shardplan
