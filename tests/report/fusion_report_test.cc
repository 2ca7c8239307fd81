#include "report/plan/fusion_report.h"

#include <gtest/gtest.h>

namespace shardplan {
namespace {

TEST(FusionReportTest, BucketsShowWhatTheirMembersWouldTakeAlone) {
  Plan plan;
  plan.mesh = DeviceMesh::parse("dp=2, mp=4");
  plan.graph = std::make_shared<const OperatorGraph>(OperatorGraphBuilder("g").build());
  EXPECT_EQ(fusion_report(plan), "");
  Bucket bucket;
  bucket.kind = CollectiveKind::kAllReduce;
  bucket.axes = {plan.mesh.whole(0)};
  bucket.time = 30'000'000;
  bucket.group_bytes = Bytes{3} << 19;
  bucket.members = 2;
  plan.program.buckets = {bucket};
  for (const auto& [fusion, time] : {std::pair{1u, 20'000'000}, {0u, 99'000'000}, {1u, 25'000'000}}) {
    Instruction instruction;
    instruction.kind = InstructionKind::kCollective;
    instruction.step.edit().kind = CollectiveKind::kAllReduce;
    instruction.fusion = fusion;
    instruction.time = time;
    instruction.outputs = {plan.program.values.push_back({})};
    plan.program.instructions.push_back(std::move(instruction));
  }
  EXPECT_EQ(fusion_report(plan),
            "\n"
            "  bucket  kind        group  members  MiB    us  us alone\n"
            "  1       all_reduce  {dp}         2  1.5  30.0      45.0\n");
}

TEST(FusionReportTest, IdsAreListedWhereTheUserGaveSome) {
  OperatorGraphBuilder builder("g");
  const auto add = [&](const char* name, std::optional<int> fusion, bool requires_grad) {
    GraphTensor tensor;
    tensor.name = name;
    tensor.kind = TensorKind::kParameter;
    tensor.comm_fusion = fusion;
    tensor.requires_grad = requires_grad;
    builder.add_tensor(std::move(tensor));
  };
  add("a", {}, true);
  add("frozen", {}, false);
  Plan plan;
  plan.graph = std::make_shared<const OperatorGraph>(builder.build());
  EXPECT_TRUE(fusion_ids(plan).empty());
  OperatorGraphBuilder more(*plan.graph);
  GraphTensor tensor;
  tensor.name = "b";
  tensor.kind = TensorKind::kParameter;
  tensor.comm_fusion = 2;
  more.add_tensor(std::move(tensor));
  plan.graph = std::make_shared<const OperatorGraph>(more.build());
  EXPECT_EQ(fusion_ids(plan),
            (std::vector<std::string>{"The parameter a is in no bucket", "The parameter b's fusion id is 2"}));
}

}  // namespace
}  // namespace shardplan
