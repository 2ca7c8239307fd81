#include "report/plan/ir_report.h"

#include <gtest/gtest.h>

#include "model/read_model.h"
#include "planner/job_cluster.h"
#include "planner/model_planner.h"
#include "program/instruction_facts.h"
#include "report/text/ir_text.h"
#include "tests/support/hand_plan.h"

namespace shardplan {
namespace {

/// `count` lines from the first one that begins with `first` on.
std::string lines_from(const std::string& text, const std::string& first, std::size_t count) {
  std::size_t begin = text.starts_with(first) ? 0 : text.find('\n' + first);
  if (begin == std::string::npos) return "nothing begins with " + first + " in:\n" + text;
  if (begin > 0) ++begin;
  std::size_t end = begin;
  for (; count > 0 && end != std::string::npos; --count) end = text.find('\n', end + 1);
  return text.substr(begin, end - begin);
}

TEST(IrTextTest, NamesGroupsByAHashThatIsEqualEverywhere) {
  EXPECT_EQ(fnv1a("0-1-2-3-4-5-6-7"), 3060903066386635826u);
  const DeviceMesh mesh = DeviceMesh::parse("x=2, y=4");
  EXPECT_EQ(group_of(mesh, parse_axes("{y}", mesh), 5).group_ranks(), "4-5-6-7");
  EXPECT_EQ(group_of(mesh, parse_axes("{y, x}", mesh), 5).ranks, (std::vector<std::int64_t>{0, 4, 1, 5, 2, 6, 3, 7}));
  EXPECT_EQ(group_of(mesh, parse_axes("{y:(2)2}", mesh), 6).ranks, (std::vector<std::int64_t>{6, 7}));
}

/// A list of the positions would take terabytes.
TEST(IrTextTest, SlicesOfLongDimensionsTakeNoTime) {
  const DeviceMesh mesh = DeviceMesh::parse("x=8");
  const auto slice = [&](const char* after, const Shape& shape) {
    CollectiveStep step;
    step.kind = CollectiveKind::kSlice;
    step.axes = parse_axes("{x}", mesh);
    step.before = TensorLayout::replicated(shape.size());
    step.after = parse_layout(after, mesh);
    step.to_dim = 0;
    return slice_text(step, mesh, shape, 3);
  };
  const SliceText text = slice("[{x}]", {std::int64_t{8} << 40});
  EXPECT_EQ(text.call, "(3298534883328), (4398046511104), (1)");
  EXPECT_EQ(text.formula, "rank r takes (1099511627776r) to (1099511627776r+1099511627776)");
  const SliceText spaced = slice("[(2199023255552:{}, 8:{x})]", {std::int64_t{16} << 40});
  EXPECT_EQ(spaced.call, "(3), (17592186044412), (8)");
  const SliceText in_parts = slice("[(2:{}, 4398046511104:{x})]", {std::int64_t{8} << 40});
  EXPECT_EQ(in_parts.formula, "in pieces, as the layout says");
}

TEST(IrReportTest, BeginHasFullShapesAndNothingInserted) {
  const std::string text = begin_report(block_plan());
  EXPECT_EQ(lines_from(text, "# 8 devices", 4),
            "# 8 devices, mesh pcie=2, hccs=4; full shapes, nothing inserted; 5 operators, 4 parameters\n"
            "%para0_x : <Tensor[Float32], (32, 16)>\n"
            "%para1_block1.dense1.weight : <Ref[Tensor(F32)], (16, 16), ref_key=:block1.dense1.weight>\n"
            "%para2_block1.dense1.bias : <Ref[Tensor(F32)], (16), ref_key=:block1.dense1.bias>");
  EXPECT_EQ(lines_from(text, "%0", 3),
            "%0(block1.dense1.matmul) = MatMul(%para0_x, %para1_block1.dense1.weight) {instance name: matmul} "
            "primitive_attrs: {input_names: [x1, x2], output_names: [output], transpose_a: false, transpose_b: true, "
            "gen_strategy: ((1, 8), (1, 8))} {in_strategy: ((1, 8), (1, 8))}\n"
            "    : (<Tensor[Float32], (32, 16)>, <Tensor[Float32], (16, 16)>) -> (<Tensor[Float32], (32, 16)>)\n"
            "    # scope: (Default/block1-BasicBlock/dense1-Dense), In file configs/hand.yaml:10");
}

TEST(IrReportTest, EndHasLocalShapesAndEveryInsertedOperator) {
  const std::string text = end_report(block_plan());
  EXPECT_EQ(lines_from(text, "# rank", 3),
            "# rank 0 of 8, mesh pcie=2, hccs=4; local shapes; 5 operators, 1 slice, 1 collective (25.1 us)\n"
            "%para0_x : <Tensor[Float32], (32, 16)>  # origin (32, 16), layout [{}, {}]: full_batch\n"
            "%para1_block1.dense1.weight : <Ref[Tensor(F32)], (16, 2), ref_key=:block1.dense1.weight>  # origin (16, "
            "16), layout [{}, {pcie, hccs}], rank r holds columns 2r to 2r+1");
  EXPECT_EQ(lines_from(text, "%0", 6),
            "%0(block1.in0) = StridedSlice(%para0_x, (0, 0), (32, 2), (1, 1)) {instance name: "
            "redistribution_op_block1.in0StridedSlice} primitive_attrs: {begin_mask: 0, end_mask: 0, ellipsis_mask: 0, "
            "new_axis_mask: 0, shrink_axis_mask: 0}\n"
            "    : (<Tensor[Float32], (32, 16)>) -> (<Tensor[Float32], (32, 2)>)\n"
            "    # origin_input_shapes: ((32, 16)), origin_output_shape: (32, 16)\n"
            "    # layout: [{}, {}] -> [{}, {pcie, hccs}]; rank r takes (0, 2r) to (32, 2r+2)\n"
            "    # in_layout: ({device_matrix: (2, 4), tensor_map: (-1, -1)}), out_layout: ({device_matrix: (2, 4), "
            "tensor_map: (-1, (1, 0))})\n"
            "    # 0 B, 0 us; because block1 has in_strategy ((1, 8)), configs/hand.yaml:14");
  EXPECT_EQ(lines_from(text, "%1", 6),
            "%1(block1.dense1.matmul) = MatMul(%0, %para1_block1.dense1.weight) {instance name: matmul} "
            "primitive_attrs: {input_names: [x1, x2], output_names: [output], transpose_a: false, transpose_b: true, "
            "gen_strategy: ((1, 8), (1, 8))} {in_strategy: ((1, 8), (1, 8))}\n"
            "    : (<Tensor[Float32], (32, 2)>, <Tensor[Float32], (16, 2)>) -> (<Tensor[Float32], (32, 16)>)\n"
            "    # origin_input_shapes: ((32, 16), (16, 16)), origin_output_shape: (32, 16)\n"
            "    # layout: [{}, {pcie, hccs}], [{}, {pcie, hccs}] -> [{}, {}] unreduced={pcie, hccs}\n"
            "    # in_layout: ({device_matrix: (2, 4), tensor_map: (-1, (1, 0))}, {device_matrix: (2, 4), tensor_map: "
            "(-1, (1, 0))}), out_layout: ({device_matrix: (2, 4), tensor_map: (-1, -1)})\n"
            "    # scope: (Default/block1-BasicBlock/dense1-Dense), In file configs/hand.yaml:10");
  EXPECT_EQ(lines_from(text, "%2", 6),
            "%2(block1.dense1.matmul) = ReduceScatter(%1) {instance name: forward_op_block1.dense1.matmul} "
            "primitive_attrs: {group: 8-3060903066386635826, fusion: 0, op: sum, rank_list: (0, 1, 2, 3, 4, 5, 6, 7), "
            "group_ranks: 0-1-2-3-4-5-6-7, index: 0}\n"
            "    : (<Tensor[Float32], (32, 16)>) -> (<Tensor[Float32], (4, 16)>)\n"
            "    # origin_input_shapes: ((32, 16)), origin_output_shape: (32, 16)\n"
            "    # layout: [{}, {}] unreduced={pcie, hccs} -> [{pcie, hccs}, {}]\n"
            "    # in_layout: ({device_matrix: (2, 4), tensor_map: (-1, -1)}), out_layout: ({device_matrix: (2, 4), "
            "tensor_map: ((1, 0), -1)})\n"
            "    # 2048 B in, 256 B out, 25.1 us; because block1.dense1.matmul sums a dimension cut 8 ways, "
            "block1.dense1.bias_add takes ((8, 1))");
}

TEST(IrReportTest, TheHeaderCountsWhatTheFileHas) {
  Plan plan = block_plan();
  for (Instruction& instruction : plan.program.instructions) {
    if (is_communication(instruction)) instruction.runs = 3;
    if (instruction.kind != InstructionKind::kCollective || instruction.step->kind != CollectiveKind::kSlice) continue;
    CollectiveStep step = instruction.step;
    step.kind = CollectiveKind::kToPartial;
    instruction.step = step;
  }
  EXPECT_EQ(
      lines_from(end_report(plan), "# rank", 1),
      "# rank 0 of 8, mesh pcie=2, hccs=4; local shapes; 5 operators, 0 slices, 1 ToPartial, 1 collective (75.3 us "
      "in 3 runs)");
}

TEST(IrReportTest, HeadersOfOneDeviceAndOfWorkers) {
  const auto model = std::make_shared<const Model>(read_model("configs/lenet-place.yaml"));
  const Plan plan = ModelPlanner(model, job_cluster(*model, {}).cluster, {}).plan(Level::kRatio, "auto");
  EXPECT_EQ(lines_from(begin_report(plan), "# 5 workers", 2).substr(0, 41),
            "# 5 workers, each of:\n# 1 device; full sh");
  const std::string text = worker_report(plan, 1);
  const std::string line = lines_from(text, "# MS_WORKER 1 of 5", 1);
  EXPECT_NE(line.find("sends ("), std::string::npos) << line;
  EXPECT_NE(lines_from(text, "# rank 1 of 5; local shapes; ", 1).find(", 0 collectives"), std::string::npos) << text;
  EXPECT_EQ(text.find("collectives ("), std::string::npos) << text;
}

TEST(IrReportTest, AnotherRankTakesAnotherSlice) {
  const std::string text = end_report(block_plan(), 5);
  EXPECT_NE(text.find("StridedSlice(%para0_x, (0, 10), (32, 12), (1, 1))"), std::string::npos) << text;
}

TEST(IrReportTest, AGatherOfColumnsIsExpandedAsInMindSpore) {
  HandGraph graph("gather");
  const TensorId x = graph.input("x", {8, 8});
  const TensorId y = graph.op("relu", "ReLU", {x});
  const OperatorGraph built = graph.build(y);
  const ShardingRule& rule = built.operation(OperatorId(0)).rule;
  const std::string rows = rule.factors[rule.operands[0][0].factors[0]].name;
  const Plan plan = hand_plan(built, {{"relu", {{rows, "{pcie}"}}}}, {{"x", "[{pcie}, {hccs}]"}});
  const std::string text = end_report(plan, 4);
  EXPECT_EQ(lines_from(text, "%0", 2),
            "%0(relu.in0) = AllGather(%para0_x) {instance name: redistribution_op_relu.in0AllGather} primitive_attrs: "
            "{group: 4-" +
                std::to_string(fnv1a("4-5-6-7")) +
                ", fusion: 0, rank_list: (4, 5, 6, 7), group_ranks: 4-5-6-7, index: 0}\n"
                "    : (<Tensor[Float32], (4, 2)>) -> (<Tensor[Float32], (16, 2)>)");
  EXPECT_EQ(lines_from(text, "%1", 1),
            "%1(relu.in0) = Split(%0) {instance name: redistribution_op_relu.in0Split} primitive_attrs: {axis: 0, "
            "output_num: 4}");
  EXPECT_EQ(lines_from(text, "%2", 1),
            "%2(relu.in0) = Concat(%1) {instance name: redistribution_op_relu.in0Concat} primitive_attrs: {axis: 1, N: "
            "4}");
  EXPECT_EQ(lines_from(text, "%3", 1).substr(0, 21), "%3(relu) = ReLU(%2) {");
}

TEST(IrReportTest, AStrategyWithoutATupleIsPrintedAsLayout) {
  HandGraph graph("order");
  const TensorId x = graph.input("x", {8, 8});
  const TensorId w = graph.parameter("w", {8, 8});
  const OperatorGraph built = graph.build(graph.op("fc", "MatMul", {x, w}));
  const Plan plan = hand_plan(built, {{"fc", {{"m", "{hccs}"}, {"n", "{pcie}"}}}});
  const std::string line = lines_from(end_report(plan), "%0", 1);
  EXPECT_EQ(line.find("strategy"), std::string::npos) << line;
  EXPECT_NE(line.find("{in_layout: ({device_matrix: (2, 4), tensor_map: (0, -1)}, {device_matrix: (2, 4), tensor_map: "
                      "(-1, 1)})}"),
            std::string::npos)
      << line;
}

}  // namespace
}  // namespace shardplan
