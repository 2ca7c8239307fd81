#include "cli/named_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "base/write_files.h"
#include "tests/support/files.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

/// A command that reads a model, a cluster and a folder, and writes a page, a picture and a folder.
class NamedFilesTest : public ::testing::Test {
 protected:
  NamedFilesTest() {
    write_file(at("m.yaml"), "");
    write_file(at("c.yaml"), "");
    std::filesystem::create_directory(at("out"));
    write_file(at("out/plan.json"), "");
  }

  std::string at(const std::string& name) const { return folder_.at(name); }
  std::string fault(const std::vector<GivenValue>& given) const {
    return error_of([&] { check_named_files(given); });
  }

  const TemporaryFolder folder_;
  std::optional<std::string> target_;
  const Option model_ = argument("MODEL", &target_, "").completed_by(Completion::kFile);
  const Option cluster_ = option("--cluster", "CLUSTER", &target_, "").completed_by(Completion::kCluster);
  const Option load_ = option("--load", "FOLDER", &target_, "").completed_by(Completion::kFolder);
  const Option html_ = option("--html", "FILE", &target_, "").completed_by(Completion::kFile).writing();
  const Option dot_ = option("--dot", "FILE", &target_, "").completed_by(Completion::kFile).writing();
  const Option out_ =
      option("--out", "FOLDER", &target_, "").completed_by(Completion::kFolder).writing({"plan.json", "plan.txt"});
};

TEST_F(NamedFilesTest, AnOutputIsNoInput) {
  EXPECT_EQ(fault({{&model_, at("m.yaml")}, {&html_, at("m.yaml")}}),
            at("m.yaml") + ": error: --html would replace what MODEL reads; name another file");
  EXPECT_EQ(fault({{&html_, at("c.yaml")}, {&cluster_, at("c.yaml")}}),
            at("c.yaml") + ": error: --html would replace what --cluster reads; name another file");
  EXPECT_EQ(fault({{&model_, at("out/plan.json")}, {&out_, at("out/")}}),
            at("out/plan.json") + ": error: --out would replace what MODEL reads; name another file");
  std::filesystem::create_symlink("m.yaml", at("link"));
  EXPECT_EQ(fault({{&model_, at("m.yaml")}, {&dot_, at("link")}}),
            at("link") + ": error: --dot would replace what MODEL reads; name another file");
  EXPECT_EQ(fault({{&model_, at("link")}, {&dot_, at("out/../m.yaml")}}),
            at("out/../m.yaml") + ": error: --dot would replace what MODEL reads; name another file");
}

TEST_F(NamedFilesTest, TwoOutputsAreTwoFiles) {
  EXPECT_EQ(fault({{&html_, at("new")}, {&dot_, at("new")}}),
            at("new") + ": error: --html and --dot both write it; name two files");
  EXPECT_EQ(fault({{&out_, at("out")}, {&dot_, at("out/plan.txt")}}),
            at("out/plan.txt") + ": error: --out and --dot both write it; name two files");
}

TEST_F(NamedFilesTest, OtherwiseNothingIsRefused) {
  const std::string no_fault = "no error";
  EXPECT_EQ(fault({{&model_, at("m.yaml")}, {&html_, at("out/plan.html")}, {&out_, at("out")}}), no_fault)
      << "older outputs are replaced";
  EXPECT_EQ(fault({{&model_, at("m.yaml")}, {&cluster_, at("m.yaml")}}), no_fault) << "a file may be read twice";
  EXPECT_EQ(fault({{&load_, at("out")}, {&out_, at("out")}}), no_fault);
  EXPECT_EQ(fault({{&cluster_, "dgx-a100"}, {&html_, "dgx-a100"}}), no_fault) << "a preset is no file";
  EXPECT_EQ(fault({{&html_, "/dev/null"}, {&dot_, "/dev/null"}}), no_fault);
}

}  // namespace
}  // namespace shardplan
