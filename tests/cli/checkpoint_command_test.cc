#include <gtest/gtest.h>

#include "base/write_files.h"
#include "cli/exit_code.h"
#include "tests/cli/run_program.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

class CheckpointCommandTest : public testing::Test {
 protected:
  void SetUp() override {
    run("simulate configs/mnist-train.yaml --steps 2 --device-num 2 --save saved");
    ASSERT_TRUE(is_there("saved/checkpoint-2/rank_1.safetensors"));
  }

  ProgramRun run(const std::string& arguments) const { return run_program(arguments, folder_.path()); }
  bool is_there(const std::string& name) const { return std::filesystem::exists(folder_.at(name)); }
  void expect_refused(const std::string& arguments, const std::string& message) const {
    const ProgramRun refused = run(arguments);
    EXPECT_EQ(refused.exit_code, kBadInput) << arguments;
    EXPECT_EQ(refused.out, "") << arguments;
    expect_has(refused.err, message);
  }

  const ProjectFolder folder_;
};

TEST_F(CheckpointCommandTest, NothingIsDeletedButAnOlderCheckpoint) {
  write_file(folder_.at("out/plan.json"), "a plan");
  expect_refused("checkpoint merge saved out", "out: error: would be replaced, but holds 'plan.json', which is not");
  expect_refused("checkpoint transform saved out --plan configs/mnist-train.yaml", "holds 'plan.json'");
  EXPECT_EQ(content_of(folder_.at("out/plan.json")), "a plan");
  expect_refused("checkpoint merge saved saved", "saved: error: would be replaced, but holds 'checkpoint-2'");
  EXPECT_TRUE(is_there("saved/checkpoint-2/rank_1.safetensors"));
  for (const char* arguments : {"transform saved four --mesh dp=4", "merge saved four", "merge saved four"}) {
    const ProgramRun written = run(std::string("checkpoint ") + arguments);
    EXPECT_EQ(written.exit_code, kDone) << arguments << written.err;
  }
  EXPECT_TRUE(is_there("four/model.safetensors"));
  EXPECT_FALSE(is_there("four/rank_0.safetensors")) << "an older checkpoint is replaced";
}

TEST_F(CheckpointCommandTest, ACheckpointIsNotWrittenOverItself) {
  const char* const message = "is where the checkpoint is read from; name another folder";
  expect_refused("checkpoint merge saved saved/checkpoint-2", message);
  expect_refused("checkpoint merge saved/checkpoint-2 saved/../saved/checkpoint-2/", message);
  expect_refused("checkpoint transform saved saved/checkpoint-2 --mesh dp=4", message);
  std::filesystem::create_symlink("saved/checkpoint-2", folder_.at("link"));
  expect_refused("checkpoint merge saved link", message);
  EXPECT_TRUE(is_there("saved/checkpoint-2/rank_1.safetensors"));
  ASSERT_EQ(run("checkpoint merge saved whole").exit_code, kDone);
  expect_refused("checkpoint merge whole/model.safetensors whole", message);
}

TEST_F(CheckpointCommandTest, ALinkToAFolderIsFollowed) {
  std::filesystem::create_directory(folder_.at("disk"));
  std::filesystem::create_directory_symlink("disk", folder_.at("link"));
  const ProgramRun written = run("checkpoint merge saved link");
  EXPECT_EQ(written.exit_code, kDone) << written.err;
  EXPECT_TRUE(is_there("disk/model.safetensors"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder_.at("link")));
}

/// Before anything is computed, and without deleting it.
TEST_F(CheckpointCommandTest, SavingKeepsOtherFiles) {
  write_file(folder_.at("saved/checkpoint-3/notes.txt"), "kept");
  for (const char* model : {"configs/mnist-train.yaml", "configs/manual-mlp.yaml"}) {
    expect_refused(std::string("simulate ") + model + " --steps 3 --save saved --save-every 1", "holds 'notes.txt'");
  }
  EXPECT_EQ(content_of(folder_.at("saved/checkpoint-3/notes.txt")), "kept");
  EXPECT_FALSE(is_there("saved/checkpoint-1"));
}

/// A folder with the later steps of an earlier run.
TEST_F(CheckpointCommandTest, TheStepJustSavedIsKept) {
  std::filesystem::rename(folder_.at("saved/checkpoint-2"), folder_.at("saved/checkpoint-900"));
  write_file(folder_.at("saved/checkpoint-1/notes.txt"), "kept");
  const ProgramRun saved =
      run("simulate configs/mnist-train.yaml --steps 2 --device-num 2 --save saved --keep-checkpoint-max 1");
  EXPECT_EQ(saved.exit_code, kDone) << saved.err;
  EXPECT_EQ(saved.err, "notice: saved/checkpoint-1 is kept: it holds files that are not part of a checkpoint\n");
  EXPECT_TRUE(is_there("saved/checkpoint-2/rank_1.safetensors"));
  EXPECT_FALSE(is_there("saved/checkpoint-900"));
}

TEST_F(CheckpointCommandTest, OptionsWithoutEffectAreRefused) {
  const std::string plan = " --plan configs/mnist-train.yaml", layout = " --layout '*=[{}]'";
  const std::pair<std::string, const char*> cases[] = {
      {"verify saved to --mesh dp=2", "checkpoint verify: TO, --mesh have no effect; it takes only FROM and --prefix"},
      {"verify saved" + layout, "checkpoint verify: --layout has no effect; it takes only FROM"},
      {"verify saved --level 2 --dim B=64 --dim side=8", "checkpoint verify: --dim, --level have no effect"},
      {"merge saved to" + layout, "checkpoint merge: --layout has no effect; use transform for a plan or a mesh"},
      {"merge saved to" + plan, "checkpoint merge: --plan has no effect; use transform"},
      {"merge saved to --time-limit 1", "checkpoint merge: --time-limit has no effect"},
      {"merge saved", "checkpoint merge: TO is missing"},
      {"transform saved to", "checkpoint transform: expected either --plan or --mesh"},
      {"transform saved to --mesh dp=2" + plan, "checkpoint transform: expected either --plan or --mesh"},
      {"transform saved to" + plan + layout, "--layout has no effect; the plan has layouts of its own"},
      {"transform saved to --mesh dp=2 --seed 1", "--seed has no effect; nothing is planned without --plan"},
      {"transform saved to --mesh dp=2 --strategy-ckpt-save-file s.json", "--strategy-ckpt-save-file has no effect"},
  };
  for (const auto& [arguments, message] : cases) expect_refused("checkpoint " + arguments, message);
  EXPECT_FALSE(is_there("to"));
}

}  // namespace
}  // namespace shardplan
