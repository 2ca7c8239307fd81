// Models written per device compared with a model in the view of all devices.

#include "simulator/local/local_validation.h"

#include <gtest/gtest.h>

#include <fstream>
#include <tuple>

#include "costmodel/hierarchical_costs.h"
#include "model/local_model.h"
#include "model/planned_model.h"
#include "model/read_model.h"
#include "planner/job_cluster.h"
#include "planner/local_plan.h"

namespace shardplan {
namespace {

const ModelOverrides kSmall{{{"hidden", 16}, {"side", 6}}, {}};

LocalValidation against(const std::string& local, const std::string& reference, int steps = 3) {
  const Model model = read_model("configs/" + local + ".yaml", kSmall);
  const auto ranks = models_of_ranks(model, model.parallel.device_num->value);
  return validate_against(ranks, read_model("configs/" + reference + ".yaml", kSmall), {.seed = 3, .steps = steps});
}

const LocalStepComparison::Value& value_of(const LocalStepComparison& step, const std::string& name) {
  for (const LocalStepComparison::Value& value : step.values) {
    if (value.name == name) return value;
  }
  throw std::runtime_error(name);
}

/// No gradient is exchanged: the loss of the first step is right, the weights after it and all later losses are not.
TEST(LocalValidationTest, TheDocumentsProgramDriftsFromTheSecondStep) {
  const LocalValidation found = against("manual-mlp", "manual-mlp-reference");
  ASSERT_EQ(found.first_drift, 0u);
  EXPECT_TRUE(value_of(found.steps[0], "loss").is_equal);
  EXPECT_FALSE(value_of(found.steps[1], "loss").is_equal);
  EXPECT_FALSE(value_of(found.steps[2], "loss").is_equal);
  ASSERT_EQ(found.causes.size(), 1u);
  EXPECT_EQ(found.causes[0].message,
            "an AllReduce of the gradients is missing: those of the 8 ranks differ, and their mean is the reference's");
  EXPECT_EQ(found.causes[0].tensors.size(), 6u);
}

TEST(LocalValidationTest, WithMeanGradientsItAgreesInEveryStep) {
  const LocalValidation found = against("manual-mlp-averaged", "manual-mlp-reference", 4);
  EXPECT_TRUE(found.agrees());
  ASSERT_EQ(found.steps.size(), 4u);
  EXPECT_EQ(found.steps[3].values.size(), 7u);  // the loss, six parameters
}

TEST(LocalValidationTest, HybridParallelNetAgreesWithTheMatMulOfAllDevices) {
  const LocalValidation found =
      validate_against(models_of_ranks(read_model("configs/hybrid-parallel-net.yaml", {{{"K", 16}, {"N", 8}}, {}}), 2),
                       read_model("configs/semi-auto-matmul.yaml", {{{"K", 16}, {"N", 8}}, {}}), {});
  EXPECT_TRUE(found.agrees());
  EXPECT_EQ(found.steps[0].values.size(), 1u);
}

// ---- causes

constexpr char kReference[] = R"(shardplan: 1
model: whole
inputs: {x: [8, 4]}
parameters: {w: [4, 6]}
operators:
  y:    {op: MatMul, in: [x, w]}
  z:    {op: Square, in: y}
  loss: {op: ReduceMean, in: z}
loss: loss
training: {optimizer: momentum}
)";

/// Columns of the weight on each of two ranks, or rows of the batch.
LocalValidation columns(const std::string& loss, const std::string& parallel, const std::string& flags = "") {
  const std::string constants = loss.find(" n]") == std::string::npos ? "" : "constants: {n: group_size}\n";
  const std::string text = R"(shardplan: 1
model: pieces
inputs: {x: [8, 4]}
parameters: {w: {shape: [4, 6/group_size], begin: [0, rank*6/group_size])" +
                           flags + R"(}}
)" + constants + R"(operators:
  y:    {op: MatMul, in: [x, w]}
  z:    {op: Square, in: y}
  own:  {op: ReduceMean, in: z}
)" + loss + R"(loss: loss
training: {optimizer: momentum}
parallel: {device_num: 2, )" +
                           parallel + "}\n";
  return validate_against(models_of_ranks(read_model_text(text, "m.yaml"), 2), read_model_text(kReference, "r.yaml"),
                          {});
}

TEST(LocalValidationTest, PiecesOfAParameterAreComparedWhereTheyBegin) {
  // The loss of both, divided once: the gradient is that of the sum over ranks.
  const std::string loss = "  sum:  {op: AllReduce, in: own}\n  loss: {op: RealDiv, in: [sum, n]}\n";
  const LocalValidation found = columns(loss, "parallel_mode: hybrid_parallel", ", layerwise_parallel: true");
  ASSERT_FALSE(found.agrees());
  EXPECT_EQ(found.causes[0].message, "the gradients are 2 times the reference's");
  EXPECT_TRUE(found.causes[0].hint.starts_with("a gradient is that of the sum of all ranks' losses"));
  EXPECT_TRUE(value_of(found.steps[0], "loss").is_equal);
}

TEST(LocalValidationTest, AMissingSumOfTheLossIsNamed) {
  const LocalValidation found =
      columns("  loss: {op: Identity, in: own}\n", "parallel_mode: hybrid_parallel", ", layerwise_parallel: true");
  ASSERT_FALSE(found.agrees());
  EXPECT_EQ(found.causes[0].message,
            "an AllReduce is missing: the values of the ranks differ, and their mean is the reference's");
}

LocalValidation compared(const std::string& local, const std::string& reference, std::int64_t ranks,
                         const LocalValidationOptions& options = {}) {
  return validate_against(models_of_ranks(read_model_text(local, "m.yaml"), ranks),
                          read_model_text(reference, "r.yaml"), options);
}

std::string error_of_comparison(const std::string& local, const std::string& reference, std::int64_t ranks) {
  try {
    compared(local, reference, ranks);
  } catch (const InputError& error) {
    return error.what();
  }
  return "runs";
}

/// What is equal on all ranks misses no sum over them.
TEST(LocalValidationTest, EqualRanksMissNoSum) {
  const LocalValidation loss = columns(
      "  sum:  {op: AllReduce, in: own}\n  mean: {op: RealDiv, in: [sum, n]}\n  loss: {op: RealDiv, in: [mean, n]}\n",
      "parallel_mode: hybrid_parallel", ", layerwise_parallel: true");
  ASSERT_EQ(loss.causes.size(), 1u);
  EXPECT_EQ(loss.causes[0].message, "the values are 0.5 times the reference's");
  EXPECT_EQ(loss.causes[0].hint, "they are divided by the number of ranks once too often");
  EXPECT_EQ(loss.causes[0].tensors, std::vector<std::string>{"loss"});

  const std::string replicated = R"(shardplan: 1
model: copies
inputs: {x: [8, 4]}
parameters: {w: [4, 6]}
constants: {n: group_size}
operators:
  y:    {op: MatMul, in: [x, w]}
  z:    {op: Square, in: y}
  own:  {op: ReduceMean, in: z}
  loss: {op: RealDiv, in: [own, n]}
loss: loss
training: {optimizer: momentum}
parallel: {device_num: 4, parallel_mode: hybrid_parallel, gradients_mean: true}
)";
  const LocalValidation gradients = compared(replicated, kReference, 4);
  ASSERT_EQ(gradients.causes.size(), 2u);
  EXPECT_EQ(gradients.causes[1].message, "the gradients are 0.25 times the reference's");
  EXPECT_EQ(gradients.causes[1].hint,
            "gradients_mean: true divides the sum of the ranks' gradients by their number, and so does the loss: leave "
            "out one of the two");
}

// ---- outputs

/// Row sums of which rank 1 alone computes the maximum.
std::string with_outputs(const std::string& operators, const std::string& outputs) {
  return "shardplan: 1\nmodel: rows\ninputs: {x: {shape: [4, 4], begin: [rank*4, 0]}}\noperators:\n"
         "  y: {op: Square, in: x}\n" +
         operators + "outputs: [" + outputs +
         "]\n"
         "parallel: {parallel_mode: hybrid_parallel, device_num: 2}\n";
}
const std::string kSum = "  own: {op: ReduceSum, in: y}\n  sum: {op: AllReduce, in: own}\n";
constexpr char kOutputs[] = R"(shardplan: 1
model: whole
inputs: {x: [8, 4]}
operators:
  y:    {op: Square, in: x}
  sum:  {op: ReduceSum, in: y}
  most: {op: ReduceMax, in: y}
outputs: [sum, most]
)";

TEST(LocalValidationTest, OutputsAreComparedOnTheRanksThatHaveThem) {
  const std::string one = kSum + "  most: {op: ReduceMax, in: y, ranks: [1]}\n";
  const LocalValidation wrong = compared(with_outputs(one, "sum, most"), kOutputs, 2, {.seed = 5});
  ASSERT_EQ(wrong.steps[0].values.size(), 2u);
  EXPECT_TRUE(value_of(wrong.steps[0], "sum").is_equal);
  EXPECT_FALSE(value_of(wrong.steps[0], "most").is_equal);
  EXPECT_EQ(value_of(wrong.steps[0], "most").rank, 1);
  EXPECT_TRUE(wrong.not_compared.empty());

  const LocalValidation right =
      compared(with_outputs("  top: {op: ReduceMax, in: y}\n  most: {op: AllReduce, in: top, reduce: max}\n", "most"),
               kOutputs, 2, {.seed = 5});
  EXPECT_TRUE(right.agrees());
  ASSERT_EQ(right.not_compared.size(), 1u);
  EXPECT_EQ(right.not_compared[0].name, "sum");
  EXPECT_EQ(right.not_compared[0].reason, "rows has no such output");
}

TEST(LocalValidationTest, OutputsThatAreNotComparedHaveAReason) {
  const LocalValidation found =
      compared(with_outputs(kSum + "  most: {op: ReduceMax, in: y, keep_dims: true}\n  more: {op: Neg, in: sum}\n",
                            "sum, most, more"),
               kOutputs, 2);
  EXPECT_TRUE(found.agrees());
  ASSERT_EQ(found.not_compared.size(), 2u);
  EXPECT_EQ(found.not_compared[0].name, "most");
  EXPECT_EQ(found.not_compared[0].reason, "[1, 1] on ranks 0 and 1, [] in whole");
  EXPECT_EQ(found.not_compared[1].name, "more");
  EXPECT_EQ(found.not_compared[1].reason, "whole has no tensor of this name");
}

// ---- parameters

/// Columns that no rank holds would train in the reference alone.
TEST(LocalValidationTest, APartOnNoRankIsAnError) {
  std::string half = kReference;
  half.replace(half.find("w: [4, 6]"), 9, "w: {shape: [4, 2], begin: [0, rank*4], layerwise_parallel: true}");
  half += "parallel: {parallel_mode: hybrid_parallel, device_num: 2}\n";
  EXPECT_NE(error_of_comparison(half, kReference, 2)
                .find("m.yaml:4:14: error: w: a part of its [4, 6] in whole is on no rank: 8 of 24 elements, the first "
                      "at [0, 2]"),
            std::string::npos)
      << error_of_comparison(half, kReference, 2);
}

TEST(LocalValidationTest, AParameterThatTheReferenceDoesNotTrainIsReported) {
  const auto with_bias = [](const std::string& flags) {
    std::string text = kReference;
    text.replace(text.find("w: [4, 6]"), 9, "w: [4, 6], b: {shape: [6]" + flags + "}");
    text.replace(text.find("in: y"), 5, "in: yb");
    text.replace(text.find("  z:"), 4, "  yb: {op: Add, in: [y, b]}\n  z:");
    text.replace(text.find("momentum"), 8, "sgd");
    return text;
  };
  const std::string parallel = "parallel: {parallel_mode: hybrid_parallel, gradients_mean: true, device_num: 2}\n";
  const LocalValidation found =
      compared(with_bias("") + parallel, with_bias(", requires_grad: false"), 2, {.steps = 1});
  ASSERT_EQ(found.causes.size(), 1u);
  EXPECT_EQ(found.causes[0].tensors, std::vector<std::string>{"b"});
  EXPECT_EQ(found.causes[0].message, "whole does not train it");
  EXPECT_FALSE(compared(with_bias(", requires_grad: false") + parallel, with_bias(""), 2, {.steps = 1}).agrees());
}

// ---- clip_norm

/// Columns of a product on each of four ranks, or each half on two of them; the bias is whole everywhere.
std::string clipped(const std::string& columns, const std::string& sum, const std::string& mode = "hybrid_parallel") {
  return R"(shardplan: 1
model: clip
dims: {Fl: )" +
         columns + R"(}
inputs: {x: [8, 8]}
constants: {parts: 16/Fl}
parameters:
  w: {shape: [8, Fl], )" +
         std::string(mode == "hybrid_parallel" ? "layerwise_parallel: true, " : "") + R"(begin: [0, )" +
         (sum.empty() ? "rank*Fl" : "rank//2*Fl") + R"(]}
operators:
  y:    {op: MatMul, in: [x, w]}
  z:    {op: Square, in: y}
  mean: {op: ReduceMean, in: z}
  part: {op: RealDiv, in: [mean, parts]}
  all:  {op: AllReduce, in: part)" +
         sum + R"(}
  rest: {op: Sub, in: [all, part]}
  stop: {op: StopGradient, in: rest}
  loss: {op: Add, in: [part, stop]}
loss: loss
training: {optimizer: sgd, learning_rate: 0.5, clip_norm: 0.1}
parallel: {parallel_mode: )" +
         mode + ", device_num: 4}\n";
}
std::string with_bias(std::string text) {
  text.replace(text.find("in: [x, w]"), 10, "in: [xb, w]");
  text.replace(text.find("  y:"), 4, "  xb: {op: Add, in: [x, b]}\n  y:");
  const std::size_t operators = text.find("operators:");
  return text.insert(operators, "  b: [8]\n");
}
constexpr char kClipped[] = R"(shardplan: 1
model: whole
inputs: {x: [8, 8]}
parameters:
  w: [8, 16]
operators:
  y:    {op: MatMul, in: [x, w]}
  z:    {op: Square, in: y}
  loss: {op: ReduceMean, in: z}
loss: loss
training: {optimizer: sgd, learning_rate: 0.5, clip_norm: 0.1}
)";

/// All ranks scale by the norm of the gradients of all: pieces are added up, what several hold counts once.
TEST(LocalValidationTest, TheNormOfGradientsIsThatOfAllRanks) {
  const LocalValidation quarters = compared(with_bias(clipped("16/group_size", "")), with_bias(kClipped), 4);
  EXPECT_TRUE(quarters.agrees()) << quarters.causes[0].message;
  ASSERT_EQ(quarters.steps[0].values.size(), 3u);
  const LocalValidation halves = compared(clipped("8", ", group: [[0, 2], [1, 3]]"), kClipped, 4);
  EXPECT_TRUE(halves.agrees()) << halves.causes[0].message;
  std::string unclipped = with_bias(kClipped);
  unclipped.erase(unclipped.find(", clip_norm: 0.1"), 16);
  EXPECT_FALSE(compared(with_bias(clipped("16/group_size", "")), unclipped, 4).agrees()) << "clipping shows";
}

TEST(LocalValidationTest, ARankWithoutPiecesWaitsForTheNormOfOthers) {
  const std::string whole = std::string(kClipped) + "parallel: {parallel_mode: hybrid_parallel, device_num: 2}\n";
  Model model = *models_of_ranks(read_model_text(whole, "m.yaml"), 2)[0];
  EXPECT_TRUE(model.training->piece_holders.empty());
  EXPECT_FALSE(planned_graph(model).find_tensor("clip.AllReduce"));
  model.training->piece_holders = {{"of another rank", 1}};
  EXPECT_TRUE(planned_graph(model).find_tensor("clip.AllReduce"));
}

TEST(LocalValidationTest, ANormThatIsNotKnownIsAnError) {
  std::string overlapping = clipped("8", ", group: [[0, 2], [1, 3]]");
  overlapping.replace(overlapping.find("rank//2*Fl"), 10, "rank*2");
  const std::string error = error_of_comparison(overlapping, kClipped, 4);
  EXPECT_NE(error.find("m.yaml:18:11: error: training: clip_norm: the piece [8, 8] of w that begins at [0, 0] overlaps "
                       "the piece [8, 8] that begins at [0, 2]"),
            std::string::npos)
      << error;
  const std::string alone = error_of_comparison(clipped("16/group_size", "", "stand_alone"), kClipped, 4);
  EXPECT_NE(alone.find("training: clip_norm: w is in pieces (begin), but in stand_alone ranks exchange nothing"),
            std::string::npos)
      << alone;
}

TEST(LocalValidationTest, WhatHasNoCounterpartIsAnError) {
  const auto fault = [](const std::string& parameters, const std::string& reads) {
    const std::string text = "shardplan: 1\ninputs: {x: [8, 4]}\nparameters: " + parameters +
                             "\noperators:\n  y: {op: MatMul, in: [x, " + reads +
                             "]}\n  own: {op: ReduceMean, in: y}\n  loss: {op: AllReduce, in: own}\nloss: loss\n"
                             "training: {optimizer: momentum}\n"
                             "parallel: {parallel_mode: hybrid_parallel, device_num: 2}\n";
    try {
      validate_against(models_of_ranks(read_model_text(text, "m.yaml"), 2), read_model_text(kReference, "r.yaml"), {});
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("runs");
  };
  EXPECT_NE(fault("{u: [4, 6]}", "u").find("m.yaml:3:14: error: u: whole has no parameter of this name"),
            std::string::npos);
  EXPECT_NE(fault("{w: [4, 3]}", "w").find("w: [4, 3] of rank 0 is not a piece of [4, 6] in whole"), std::string::npos);
  EXPECT_NE(fault("{w: {shape: [4, 3], begin: [0, rank*4]}}", "w").find("of rank 1 is not a piece"), std::string::npos);
  EXPECT_NE(fault("{w: {shape: [4, 6], dtype: f64}}", "w").find("error"), std::string::npos);
}

/// Equal infinities would prove nothing.
TEST(LocalValidationTest, OnlyFiniteStepsAreCompared) {
  const auto diverging = [](double rate, const std::string& op) {
    std::string whole = kReference;
    whole.replace(whole.find("Square"), 6, op);
    whole.replace(whole.find("training"), std::string::npos,
                  fmt::format("training: {{optimizer: momentum, learning_rate: {}}}\n", rate));
    const std::string own = whole + "parallel: {parallel_mode: hybrid_parallel, gradients_mean: true, device_num: 2}\n";
    return validate_against(models_of_ranks(read_model_text(own, "m.yaml"), 2), read_model_text(whole, "r.yaml"),
                            {.steps = 4});
  };
  const LocalValidation found = diverging(1e200, "Square");
  EXPECT_TRUE(found.agrees());
  EXPECT_TRUE(found.not_finite);
  EXPECT_EQ(found.steps.size(), 1u);
  EXPECT_FALSE(diverging(0.1, "Square").not_finite);
  EXPECT_THROW(diverging(0.1, "Log"), InputError);
}

TEST(LocalValidationTest, BothTrainWithOneOptimizer) {
  const std::string whole = kReference;
  const std::string own = std::string(kReference).replace(whole.find("momentum"), 8, "adam") +
                          "parallel: {parallel_mode: hybrid_parallel, device_num: 2}\n";
  try {
    validate_against(models_of_ranks(read_model_text(own, "m.yaml"), 2), read_model_text(whole, "r.yaml"), {});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("m.yaml:10:11: error: whole has no optimizer state w.moment"),
              std::string::npos)
        << error.what();
  }
}

// ---- comm_fusion

/// manual-mlp-averaged with a fusion id for each of its layers, or none.
std::string with_fusion_ids(const std::vector<std::string>& ids) {
  std::ifstream file("configs/manual-mlp-averaged.yaml");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::size_t at = text.find("{block: nn.Dense", text.find(fmt::format("layer{}:", i + 1)));
    if (!ids[i].empty()) text.insert(at + 16, ", comm_fusion: " + ids[i]);
  }
  return text;
}

std::vector<std::string> gradient_sums(const Model& model) {
  std::vector<std::string> names;
  const auto ranks = models_of_ranks(model, 8);
  const OperatorGraph graph = planned_graph(*ranks[0], 1);
  for (const GraphOperator& op : graph.operators()) {
    const Operation& operation = graph.operations()[op.operation];
    if (operation.type->name == "FusedAllReduce") names.push_back(fmt::format("{} of {}", op.name, op.operands.size()));
    if (operation.type->name == "AllReduce" && op.name.starts_with("grad.layer")) names.push_back(op.name);
  }
  return names;
}

/// Gradients with equal ids above 0 are one AllReduce, after the last of them; the steps equal those of one card.
TEST(LocalValidationTest, GradientsOfEqualFusionIdsAreSummedTogether) {
  const Model model = read_model_text(with_fusion_ids({"1", "0", "1"}), "m.yaml", kSmall);
  EXPECT_EQ(gradient_sums(model),
            (std::vector<std::string>{"grad.layer2.bias.AllReduce", "grad.layer2.weight.AllReduce",
                                      "comm_fusion.1.FusedAllReduce of 4"}));
  const LocalValidation found = validate_against(
      models_of_ranks(model, 8), read_model("configs/manual-mlp-reference.yaml", kSmall), {.seed = 3, .steps = 3});
  EXPECT_TRUE(found.agrees());
  EXPECT_EQ(gradient_sums(read_model_text(with_fusion_ids({"2", "7", "7"}), "m.yaml", kSmall)),
            (std::vector<std::string>{"comm_fusion.7.FusedAllReduce of 4", "comm_fusion.2.FusedAllReduce of 2"}));
}

/// One collective of all the bytes takes less time than one per tensor.
TEST(LocalPlanTest, JoinedGradientsStartOnce) {
  const auto communication = [](const std::vector<std::string>& ids) {
    const auto model = std::make_shared<const Model>(read_model_text(with_fusion_ids(ids), "m.yaml"));
    const LocalPlan plan = plan_locally(model, job_cluster(*model).cluster);
    Bytes bytes = 0;
    for (const LocalCommunication& one : plan.communications) bytes += one.bytes;
    return std::tuple(plan.communications.size(), bytes, plan.ranks[0].communication);
  };
  const auto [alone, bytes_alone, time_alone] = communication({"", "", ""});
  const auto [joined, bytes_joined, time_joined] = communication({"3", "3", "3"});
  EXPECT_EQ(alone, 8u);
  EXPECT_EQ(joined, 3u);
  EXPECT_EQ(bytes_joined, bytes_alone);
  EXPECT_LT(time_joined, time_alone);
}

TEST(LocalValidationTest, FusionIdsThatJoinNothingAreRefused) {
  const auto fault = [](std::string text, const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
    try {
      read_model_text(text, "m.yaml");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string joined = with_fusion_ids({"1", "", ""});
  EXPECT_EQ(fault(joined, "hybrid_parallel, gradients_mean: true", "stand_alone"),
            "m.yaml:13:43: error: layer1: comm_fusion: in stand_alone no gradients are exchanged that could be joined\n"
            "    parallel_mode: hybrid_parallel sums them over all ranks");
  EXPECT_NE(fault(joined, "hybrid_parallel,", "hybrid_parallel, comm_fusion: {allreduce: {mode: auto}},")
                .find("`comm_fusion: 1` beside a block or a parameter joins gradients of equal ids"),
            std::string::npos);
}

// ---- costs

TEST(LocalPlanTest, CommunicationsCostWhatCollectivesOfPlansCost) {
  const auto model = std::make_shared<const Model>(read_model("configs/manual-mlp-averaged.yaml"));
  const Cluster cluster = job_cluster(*model).cluster;
  const LocalPlan plan = plan_locally(model, cluster);
  ASSERT_EQ(plan.ranks.size(), 8u);
  ASSERT_EQ(plan.communications.size(), 8u);  // the loss, its derivative, six gradients
  const DeviceMesh mesh({{"all", 8}});
  const HierarchicalCosts costs(cluster, mesh);
  Picoseconds sum = 0;
  for (const LocalCommunication& communication : plan.communications) {
    EXPECT_EQ(communication.time, costs.time(CollectiveKind::kAllReduce, {mesh.whole(0)}, communication.bytes))
        << communication.name;
    sum += communication.time;
  }
  for (const LocalRank& rank : plan.ranks) {
    EXPECT_EQ(rank.communication, sum);
    EXPECT_GE(rank.end, std::max(rank.communication, rank.computation));
    EXPECT_LE(rank.end, rank.communication + rank.computation);
    EXPECT_EQ(rank.peak(), plan.ranks[0].peak());
  }
  EXPECT_LT(plan.step, plan.ranks[0].communication + plan.ranks[0].computation)
      << "gradients are summed beside kernels";
  Bytes parameters = 0;
  for (const GraphTensor& tensor : plan.ranks[0].plan.graph->tensors()) {
    if (tensor.kind == TensorKind::kParameter) parameters += tensor.type.bytes();
  }
  EXPECT_GT(plan.ranks[0].peak(), parameters);
}

}  // namespace
}  // namespace shardplan
