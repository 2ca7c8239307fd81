// The program as its users run it: exit codes, and one page of each command.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "base/write_files.h"
#include "cli/commands/commands.h"
#include "cli/exit_code.h"
#include "cli/help.h"
#include "tests/cli/background_process.h"
#include "tests/cli/run_program.h"
#include "tests/support/golden.h"
#include "tests/support/seconds_of.h"

namespace shardplan {
namespace {

struct ExitCase {
  const char* arguments;
  int exit_code;
  const char* says;  // a part of standard output or error
};
const ExitCase kExits[] = {
    {"--version", kDone, "shardplan 0."},
    {"layout --mesh x=2,y=4 --shape 16x8 --layout '[{x}, {y}]'", kDone, "tensor_map     (1, 0)"},
    {"", kUsage, "Exit codes:"},
    {"plam", kUsage, "did you mean 'plan'?"},
    {"plan", kUsage, "MODEL is missing"},
    {"plan configs/mlp.yaml --level 3", kUsage, "--level 3: expected a whole number from 0 to 2"},
    {"plan configs/mlp.yaml --alternatives 2", kBadInput, "--html FILE"},
    {"plan configs/mlp.yaml --rank 1", kBadInput, "--rank 1: the programs of ranks are written by --out FOLDER"},
    {"plan configs/mlp.yaml --memory-slack 0.1", kBadInput, "at level 1 only; this plan is of level 0"},
    {"plan configs/mlp.yaml --memory-slack 0.1 --level 1", kDone, "level 1 (memory)"},
    {"compare configs/mlp.yaml --memory-slack 0.1", kDone, "level 1"},
    {"plan no_such_file.yaml", kBadInput, "no_such_file.yaml: error: "},
    {"plan configs/mlp.yaml --dim B=1", kBadInput, "5 errors"},
    {"plan configs/mlp.yaml --cluster nowhere", kBadInput, "nowhere"},
    {"plan configs/mnist-train.yaml --device-num 3", kBadInput, "HCCL takes 1, 2, 4 or 8"},
    {"plan configs/mnist-train.yaml --rank-table nowhere.json", kBadInput, "nowhere.json"},
    {"plan configs/mnist-train.yaml --strategy-ckpt-load-file nowhere.json", kBadInput, "nowhere.json"},
    {"simulate configs/mnist-train.yaml --load nowhere", kBadInput, "nowhere"},
    {"simulate configs/mnist-train.yaml --save-every 2", kBadInput, "--save-every has no effect without --save FOLDER"},
    {"simulate configs/mnist-train.yaml --integrated", kBadInput, "--integrated has no effect without --save FOLDER"},
    {"simulate configs/mnist-train.yaml --prefix p", kBadInput, "--prefix has no effect without --save or --load"},
    {"simulate configs/mnist-eval.yaml --save somewhere", kBadInput, "nothing to save"},
    {"checkpoint verify nowhere", kBadInput, "nowhere"},
    {"checkpoint mend nowhere", kUsage, "merge"},
    {"operators Relu", kBadInput, "did you mean 'ReLU'?"},
    {"plan configs/mlp.yaml --capacity 1MiB", kNoFeasiblePlan, "no plan on this mesh needs less"},
    {"compare configs/mlp.yaml --capacity 1MiB", kNoFeasiblePlan, "no plan fits"},
    {"compare configs/mlp.yaml --strategy-ckpt-save-file s.json", kUsage,
     "there is no option '--strategy-ckpt-save-file'"},
    {"redistribute --mesh x=2,y=8 --shape 64x64 --from '[{x}, {y}]' --to '[{y}, {x}]' --check", kDone, "ascend-910x2"},
    {"redistribute --mesh x=2,y=3 --shape 6x6 --from '[{x}, {y}]' --to '[{y}, {x}]' --check", kDone,
     "verified on 6 simulated devices"},
    {"validate configs/mlp.yaml --capacity 1MiB", kNoFeasiblePlan, "no plan fits"},
    {"explain configs/manual-mlp.yaml layer1.matmul", kBadInput, "manual-mlp.yaml:23:27: error: manual-mlp is written"},
    {"simulate configs/manual-mlp.yaml --full-size", kBadInput, "always runs at its own sizes"},
    {"simulate configs/manual-mlp.yaml --save ranks --integrated", kBadInput, "`checkpoint merge` puts whole"},
    {"simulate configs/manual-mlp.yaml --load nowhere", kBadInput, "nowhere"},
    {"plan configs/manual-mlp.yaml --level 2", kBadInput, "--level has no effect"},
    {"plan configs/manual-mlp.yaml --time-limit 5", kBadInput, "--time-limit has no effect"},
    {"plan configs/manual-mlp.yaml --level 2 --costs cluster", kBadInput, "--level, --costs have no effect"},
    {"plan configs/manual-mlp.yaml --capacity 0B", kBadInput, "--capacity: expected at least one byte, as 16GiB"},
    {"plan configs/manual-mlp.yaml --capacity 1KiB", kNoFeasiblePlan, "of 1.0 KiB"},
    {"cluster ascend-910 --capacity 0B", kBadInput, "--capacity: expected at least one byte, as 16GiB; found 0B"},
    {"cluster ascend-910 --capacity 16", kBadInput, "--capacity: '16' has no unit"},
    {"cluster ascend-910 --capacity ''", kUsage, "--capacity needs a value"},
    {"plan configs/mlp.yaml --out ''", kUsage, "--out needs a value"},
    {"plan configs/mlp.yaml --dim B=512 --dim B=256", kBadInput,
     "--dim B: given as 512 and as 256; it may be given once"},
    {"plan configs/mlp.yaml --set 'relu2=[[{dp}, {}]]' --set 'relu2=[[{}, {mp}]]'", kBadInput,
     "--set relu2: given as [[{dp}, {}]] and as [[{}, {mp}]]"},
    {"plan configs/mlp.yaml --dot same --html same", kBadInput, "same: error: --html and --dot both write it"},
    {"plan configs", kBadInput, "configs: error: cannot be read: Is a directory"},
    {"calibrate dgx-a100 configs/mlp.yaml", kBadInput,
     "mlp.yaml:2:8: error: this file describes a model, not measurements"},
    {"plan configs/manual-mlp.yaml --overlap off", kBadInput, "its file determines the order"},
    {"plan configs/manual-mlp.yaml --device-num 3", kBadInput, "B/group_size is not whole: 32 / 3"},
    {"plan configs/manual-mlp.yaml --device-num 3 --dim B=30", kBadInput, "HCCL takes 1, 2, 4 or 8"},
    {"plan configs/manual-mlp.yaml --seed 1", kBadInput, "--seed has no effect"},
    {"validate configs/manual-mlp.yaml", kBadInput, "--against FILE names the model"},
    {"validate configs/manual-mlp.yaml --against configs/manual-mlp.yaml", kBadInput, "is written per device as well"},
};

TEST(ProgramTest, ExitsAsDocumented) {
  for (const ExitCase& c : kExits) {
    const ProgramRun run = run_program(c.arguments);
    EXPECT_EQ(run.exit_code, c.exit_code) << c.arguments << "\n" << run.err;
    ASSERT_STRNE(c.says, "") << c.arguments;
    EXPECT_NE((run.out + run.err).find(c.says), std::string::npos) << c.arguments << "\n" << run.err;
  }
}

/// On a model where memory and time are at odds.
TEST(ProgramTest, MemorySlackChangesThePlanOfLevel1) {
  for (const char* command :
       {"plan configs/basic-blocks-net2.yaml --level 1", "compare configs/basic-blocks-net2.yaml"}) {
    const ProgramRun none = run_program(std::string(command) + " --memory-slack 0");
    const ProgramRun much = run_program(std::string(command) + " --memory-slack 1");
    EXPECT_EQ(none.exit_code, kDone) << none.err;
    EXPECT_EQ(much.exit_code, kDone) << much.err;
    EXPECT_NE(none.out, much.out) << command;
  }
}

TEST(ProgramTest, WhatStandardOutputDoesNotTakeIsAnError) {
  for (const char* arguments : {"--version", "plan configs/mlp.yaml --json"}) {
    EXPECT_EQ(run_program(std::string(arguments) + " >/dev/full; (exit $?)").exit_code, kBadInput) << arguments;
  }
}

// The program starts itself again to use large pages, unless the setting that does that is given.
TEST(ProgramTest, PagesOfMemoryDoNotMatter) {
  const char* const given = getenv("GLIBC_TUNABLES");
  const std::string before = given == nullptr ? "" : given;
  unsetenv("GLIBC_TUNABLES");
  const ProgramRun large = run_program("plan configs/mlp.yaml --dim B=64");
  setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=0", 1);
  const ProgramRun small = run_program("plan configs/mlp.yaml --dim B=64");
  given == nullptr ? unsetenv("GLIBC_TUNABLES") : setenv("GLIBC_TUNABLES", before.c_str(), 1);
  EXPECT_EQ(large.exit_code, kDone);
  EXPECT_EQ(small.exit_code, kDone);
  EXPECT_NE(large.out, "");
  EXPECT_EQ(large.out, small.out);
}

/// Options given together with a plan.json take effect, or are rejected.
TEST(ProgramTest, OptionsBesideAPlanFileTakeEffect) {
  const ProjectFolder folder;
  const ProgramRun written = run_program("plan configs/mlp.yaml --out out --seed 3", folder.path());
  ASSERT_EQ(written.exit_code, kDone) << written.err;
  const ProgramRun read = run_program("plan out/plan.json", folder.path());
  EXPECT_EQ(read.err, "");
  EXPECT_EQ(read.out, run_program("plan configs/mlp.yaml", folder.path()).out);
  for (const char* options : {"--level 1", "--cluster dgx-a100", "--dim B=64", "--capacity 10GiB", "--memory unbounded",
                              "--set 'layer3.weight=[{mp}, {}]'", "--search propagation"}) {
    const ProgramRun again = run_program(std::string("plan out/plan.json ") + options, folder.path());
    EXPECT_NE(again.err.find("is planned again with --"), std::string::npos) << options << again.err;
    EXPECT_EQ(again.out, run_program(std::string("plan configs/mlp.yaml --seed 3 ") + options, folder.path()).out)
        << options;
  }
  EXPECT_EQ(run_program("plan out/plan.json --capacity many", folder.path()).exit_code, kBadInput);
  EXPECT_EQ(run_program("plan out/plan.json --dim B", folder.path()).exit_code, kBadInput);
  const ProgramRun proof = run_program("validate out/plan.json --seed 5 --threads 2", folder.path());
  EXPECT_EQ(proof.exit_code, kDone) << proof.err;
  EXPECT_EQ(proof.err, "") << "seed and threads are the proof's";
  EXPECT_NE(proof.out.find("seed 5"), std::string::npos) << proof.out;
  EXPECT_EQ(run_program("compare out/plan.json", folder.path()).out,
            run_program("compare configs/mlp.yaml --seed 3", folder.path()).out);
}

/// A cluster file of the user's may have a preset's name, as one that `calibrate` wrote.
TEST(ProgramTest, APlanFileKeepsTheUsersCluster) {
  const ProjectFolder folder;
  const std::string slow =
      "shardplan: 1\ncluster: dgx-a100x2\nbase: dgx-a100x2\nlevels: [{name: nvlink, bandwidth: 1 GB/s}]\n";
  write_files(folder.path(), {{"slow.yaml", slow}});
  for (const char* devices : {"16", "8"}) {
    const std::string options = fmt::format("--dim B=64 --cluster slow.yaml --device-num {} --level 0 ", devices);
    const ProgramRun written = run_program("plan configs/mnist-train.yaml " + options + "--out out", folder.path());
    ASSERT_EQ(written.exit_code, kDone) << written.err;
    const ProgramRun read = run_program("plan out/plan.json", folder.path());
    EXPECT_EQ(read.out, run_program("plan configs/mnist-train.yaml " + options, folder.path()).out);
    EXPECT_NE(read.out, run_program("plan configs/mnist-train.yaml --dim B=64 --cluster dgx-a100x2 --level 0 "
                                    "--device-num " +
                                        std::string(devices),
                                    folder.path())
                            .out);
  }
}

/// What an earlier run has proven is said and kept until something is planned anew.
TEST(ProgramTest, APlanFileKeepsItsProof) {
  const ProjectFolder folder;
  const ProgramRun written = run_program("plan configs/mlp.yaml --validate --out out", folder.path());
  ASSERT_EQ(written.exit_code, kDone) << written.err;
  const std::string earlier =
      "proven      equal      by an earlier run, as plan.json says; largest difference float64 ";
  EXPECT_EQ(written.out.find(earlier), std::string::npos) << written.out;
  const ProgramRun read = run_program("plan out/plan.json --out again", folder.path());
  EXPECT_NE(read.out.find(earlier), std::string::npos) << read.out;
  EXPECT_EQ(content_of(folder.at("again/plan.json")), content_of(folder.at("out/plan.json")));
  EXPECT_NE(run_program("plan out/plan.json --level 1", folder.path()).out.find("add --validate"), std::string::npos);
}

/// The file whose text a plan.json holds may be right, or gone.
TEST(ProgramTest, FaultsInThePlanFilesModelAreInThePlanFile) {
  const ProjectFolder folder;
  ASSERT_EQ(run_program("plan configs/mlp.yaml --out out", folder.path()).exit_code, kDone);
  std::string text = content_of(folder.at("out/plan.json"));
  const std::string block = "nn.Dense, in: flatten";
  text.replace(text.find(block), block.size(), "nn.Dnse, in: flatten");
  write_file(folder.at("out/plan.json"), text);
  const ProgramRun run = run_program("plan out/plan.json", folder.path());
  EXPECT_EQ(run.exit_code, kBadInput);
  EXPECT_TRUE(run.err.starts_with("out/plan.json (its model, configs/mlp.yaml):10:20: error: layer1: ")) << run.err;
}

TEST(ProgramTest, AnInputIsNotReplaced) {
  const ProjectFolder folder;
  write_file(folder.at("m.yaml"), content_of("configs/mlp.yaml"));
  const ProgramRun run = run_program("plan m.yaml --html m.yaml", folder.path());
  EXPECT_EQ(run.exit_code, kBadInput);
  EXPECT_EQ(run.err, "m.yaml: error: --html would replace what MODEL reads; name another file\n");
  EXPECT_EQ(content_of(folder.at("m.yaml")), content_of("configs/mlp.yaml"));
}

/// Outputs are all written, or none.
TEST(ProgramTest, AnOutputThatFailsLeavesNone) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  const ProjectFolder folder;
  const ProgramRun run =
      run_program("plan configs/mlp.yaml --out out --strategy-ckpt-save-file s.json --html /dev/full", folder.path());
  EXPECT_EQ(run.exit_code, kBadInput);
  EXPECT_EQ(run.err, "/dev/full: error: cannot be written: No space left on device\n");
  EXPECT_FALSE(std::filesystem::exists(folder.at("s.json")));
  EXPECT_TRUE(!std::filesystem::exists(folder.at("out")) || std::filesystem::is_empty(folder.at("out")));
}

/// `timeout` signals a process and then its group; people press Ctrl-C twice.
TEST(ProgramTest, ASignalRepeatedAtOnceIsTheSameOne) {
  BackgroundProcess process("simulate configs/mlp.yaml --steps 100000");
  std::this_thread::sleep_for(std::chrono::seconds(2));
  process.send_signal(SIGTERM);
  process.send_signal(SIGTERM);
  const ProgramRun run = process.wait();
  EXPECT_EQ(run.exit_code, kInterrupted) << run.err;
  EXPECT_EQ(run.err.find("interrupted again"), std::string::npos) << run.err;
}

/// A plan.json stores where its ranks are, and every rank's program can be written.
TEST(ProgramTest, RankTablesAndRanks) {
  const ProjectFolder folder;
  const ProgramRun written = run_program(
      "plan configs/mnist-train.yaml --rank-table configs/rank_table_8pcs.json --out out --rank all", folder.path());
  ASSERT_EQ(written.exit_code, kDone) << written.err;
  const ProgramRun in_order = run_program("plan configs/mnist-train.yaml", folder.path());
  EXPECT_NE(in_order.out.substr(0, in_order.out.find("step  ") + 40),
            written.out.substr(0, written.out.find("step  ") + 40));
  const ProgramRun read = run_program("plan out/plan.json", folder.path());
  EXPECT_EQ(read.exit_code, kDone) << read.err;
  EXPECT_EQ(written.out.substr(0, read.out.size()), read.out);
  for (const char* rank : {"0", "7"}) {
    const std::string all = std::string("out/rank_") + rank + "/step_parallel_end.ir";
    ASSERT_EQ(run_program(std::string("plan out/plan.json --out one --rank ") + rank, folder.path()).exit_code, kDone);
    const std::string one = content_of(folder.at("one/step_parallel_end.ir"));
    EXPECT_FALSE(one.empty());
    EXPECT_EQ(content_of(folder.at(all)), one) << all;
  }
  EXPECT_EQ(run_program("plan configs/mnist-train.yaml --out out --rank 8", folder.path()).exit_code, kBadInput);
}

TEST(ProgramTest, StopsWhenInterrupted) {
  const ProgramRun run = run_program("simulate configs/mlp.yaml --steps 100000", ".", 2);
  EXPECT_EQ(run.exit_code, kInterrupted) << run.err;
}

// What was not found in time is not said to be impossible.
TEST(ProgramTest, AnInterruptedComparisonDoesNotSayThatNothingFits) {
  const ProgramRun run = run_program("compare configs/gpt3-175b.yaml", ".", 1);
  EXPECT_EQ(run.exit_code, kInterrupted) << run.err;
  EXPECT_EQ(run.err.find("no plan fits"), std::string::npos) << run.err;
}

// Nor are plans that were not searched to the end shown as if they were.
TEST(ProgramTest, AComparisonSaysWhatEndedItsSearches) {
  const ProgramRun run = run_program("compare configs/gpt2-small.yaml --time-limit 1");
  if (run.out.empty()) GTEST_SKIP() << "there was no time to begin: " << run.err;
  EXPECT_EQ(run.exit_code, kDone) << run.err;
  EXPECT_NE(run.err.find("notice: level "), std::string::npos) << run.err;
  EXPECT_NE(run.err.find(": the time limit of 1 s ended the search: "), std::string::npos) << run.err;
  EXPECT_NE(run.out.find("\n  * the best so far: "), std::string::npos) << run.out;
}

/// A perceptron with enough layers that reading and building it takes many seconds.
std::string deep_model(const ProjectFolder& folder) {
  write_file(folder.path() + "/deep.yaml",
             "shardplan: 1\ndims: {B: 64, H: 256, L: 65536}\ninputs: {x: [B, H]}\n"
             "blocks:\n  layer:\n    inputs: {x: [B, H]}\n    operators:\n"
             "      fc: {block: nn.Dense, in: x, out_channels: H}\n      act: {op: ReLU, in: fc}\n"
             "operators:\n  layers: {block: layer, in: x, repeat: L}\n  loss: {op: ReduceMean, in: layers}\n"
             "loss: loss\ntraining: {optimizer: sgd}\n");
  return "plan deep.yaml --cluster dgx-a100";
}

/// Before there is a plan, a limit ends the command in any phase; later it ends with the best plan so far.
TEST(ProgramTest, TimeLimitsHoldWhileAModelIsReadAndItsProblemIsBuilt) {
  const ProjectFolder folder;
  const std::string command = deep_model(folder);
  ProgramRun run;
  EXPECT_LT(seconds_of([&] { run = run_program(command + " --time-limit 1", folder.path()); }), 60) << run.err;
  EXPECT_TRUE(run.exit_code == kNoFeasiblePlan || run.exit_code == kDone) << run.exit_code << run.err;
  const bool says_why = run.err.find("there is no plan yet") != std::string::npos;
  EXPECT_TRUE(run.exit_code == kDone || says_why) << run.err;
}

TEST(ProgramTest, AnInterruptEndsWhatHasNoAnswerYet) {
  const ProjectFolder folder;
  const std::string command = deep_model(folder);
  ProgramRun run;
  EXPECT_LT(seconds_of([&] { run = run_program(command, folder.path(), 1); }), 60) << run.err;
  EXPECT_EQ(run.exit_code, kInterrupted) << run.err;
}

struct PageCase {
  const char* name;
  const char* arguments;
  int exit_code = kDone;
  const char* before = nullptr;  // a command whose files it reads
};
const char kSaves[] = "simulate configs/mnist-train.yaml --steps 2 --device-num 4 --save saved";
const PageCase kPages[] = {
    {"plan", "plan configs/mlp.yaml"},
    {"plan_does_not_fit", "plan configs/mlp.yaml --capacity 1MiB", kNoFeasiblePlan},
    {"plan_bad_input", "plan configs/mlp.yaml --dim B=1", kBadInput},
    {"compare", "compare configs/mlp.yaml"},
    {"explain", "explain configs/mlp.yaml layer2.matmul"},
    {"explain_decisions", "explain configs/mlp.yaml"},
    {"validate", "validate configs/mlp.yaml"},
    {"simulate", "simulate configs/mlp.yaml --steps 2"},
    {"export", "export configs/mlp.yaml --to jax"},
    {"layout", "layout --mesh x=2,y=4 --shape 16x8 --layout '[{y}, {}]'"},
    {"layout_json", "layout --mesh x=2,y=4 --shape 16x8 --layout '[{y}, {}]' --json"},
    {"redistribute", "redistribute --mesh x=2,y=4 --shape 16x8 --from '[{x}, {y}]' --to '[{y}, {x}]' --check"},
    {"redistribute_json", "redistribute --mesh x=2,y=4 --shape 16x8 --from '[{x}, {y}]' --to '[{y}, {x}]' --json"},
    {"redistribute_to_others",
     "redistribute --mesh x=2 --shape 4x8 --from '[{}, {x}]' --to-mesh y=4 --to-devices 4-7 --to '[{y}, {}]' --check"},
    {"solve", "solve tests/data/contest_problem.json 60"},
    {"cluster", "cluster ascend-910 --verbose"},
    {"cluster_rank_table", "cluster ascend-910 --to rank-table"},
    {"operators", "operators MatMul"},
    {"calibrate", "calibrate dgx-a100 configs/measurements/dgx-a100.yaml"},
    {"checkpoint_verify", "checkpoint verify saved", kDone, kSaves},
    {"checkpoint_verify_json", "checkpoint verify saved --json", kDone, kSaves},
    {"checkpoint_transform", "checkpoint transform saved --mesh dp=2,mp=3 --layout '*.weight=[{dp}, {}]'", kDone,
     kSaves},
    {"checkpoint_transform_json", "checkpoint transform saved two --mesh dp=2 --json", kDone, kSaves},
    {"checkpoint_merge", "checkpoint merge saved whole", kDone, kSaves},
};

/// Standard output, then the exit code if it is not 0, then standard error.
std::string page_of(const ProgramRun& run) {
  std::string page = run.out;
  if (run.exit_code != 0) page += "exit code " + std::to_string(run.exit_code) + "\n";
  return run.err.empty() ? page : page + "--- standard error\n" + run.err;
}

TEST(ProgramTest, PagesAreAsRecorded) {
  for (const PageCase& c : kPages) {
    const ProjectFolder folder;
    if (c.before != nullptr) {
      ASSERT_EQ(run_program(c.before, folder.path()).exit_code, kDone) << c.before;
    }
    ProgramRun run = run_program(c.arguments, folder.path());
    EXPECT_EQ(run.exit_code, c.exit_code) << c.arguments;
    if (std::string(c.name) == "solve") run.err.clear();  // the output contains times
    expect_golden(std::string("cli/") + c.name + ".txt", page_of(run));
  }
}

TEST(ProgramTest, HelpPagesAreAsRecorded) {
  const Program program = shardplan_program();
  expect_golden("help/shardplan.txt", overview_page(program));
  for (const Command& command : program.commands) {
    expect_golden("help/" + command.name + ".txt", help_page(program, command));
  }
}

}  // namespace
}  // namespace shardplan
