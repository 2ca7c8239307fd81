#include "planner/plan_notices.h"

#include <gtest/gtest.h>

#include "costmodel/cluster/cluster_mesh.h"
#include "model/planned_model.h"
#include "model/read_model.h"

namespace shardplan {
namespace {

TEST(PlanNoticesTest, EachIsGivenOnce) {
  std::vector<std::string> notices;
  add_notice(notices, "a");
  add_notice(notices, "b");
  add_notice(notices, "a");
  EXPECT_EQ(notices, (std::vector<std::string>{"a", "b"}));
}

/// Parameters under these names that every device has for itself.
OperatorGraph graph_of(const std::vector<std::string>& own, bool is_training) {
  OperatorGraphBuilder builder("g");
  for (const std::string& name : own) {
    GraphTensor tensor;
    tensor.name = name;
    tensor.kind = TensorKind::kParameter;
    tensor.layerwise_parallel = true;
    builder.add_tensor(std::move(tensor));
  }
  GraphTensor state;  // an optimizer's, which no user knows by name
  state.name = "moment";
  state.kind = TensorKind::kState;
  state.layerwise_parallel = true;
  state.requires_grad = false;
  builder.add_tensor(std::move(state));
  if (is_training) builder.set_training();
  return builder.build();
}

TEST(PlanNoticesTest, SaysWhatEndedASearch) {
  Plan plan;
  plan.options.time_limit = 1.5;
  EXPECT_FALSE(plan.ended_early);
  note_out_of_time(plan);
  EXPECT_TRUE(plan.ended_early);
  note_out_of_time(plan);
  Plan other;
  note_interruption(other);
  EXPECT_TRUE(other.ended_early);
  EXPECT_EQ(plan.notices,
            std::vector<std::string>{"the time limit of 1.5 s ended the search: this is the best plan so far"});
  EXPECT_EQ(other.notices, std::vector<std::string>{"interrupted: this is the best plan so far"});
}

TEST(PlanNoticesTest, NamesWhatEveryDeviceHasOfItsOwn) {
  const auto notices = [](const std::vector<std::string>& own) { return per_device_notices(graph_of(own, true), {}); };
  EXPECT_TRUE(notices({}).empty());
  EXPECT_EQ(notices({"w", "b"}),
            std::vector<std::string>{
                "each device has its own values of w, b (layerwise_parallel), also in the proof's reference"});
  EXPECT_EQ(
      notices({"a", "b", "c", "d", "e"}),
      std::vector<std::string>{
          "each device has its own values of a, b, c and 2 more (layerwise_parallel), also in the proof's reference"});
}

TEST(PlanNoticesTest, LocalStatisticsMatterInTrainingOnly) {
  ParallelOptions parallel;
  parallel.local_batch_norm = true;
  const Model model = read_model_text(
      "shardplan: 1\ninputs: {x: [8, 4, 2, 2]}\noperators:\n  y: {block: nn.BatchNorm2d, in: x}\n"
      "  loss: {op: ReduceMean, in: y}\nloss: loss\ntraining: {optimizer: sgd}\n",
      "m.yaml");
  EXPECT_EQ(per_device_notices(planned_graph(model), parallel),
            std::vector<std::string>{
                "batch normalisation is over each device's part of the batch, also in the proof's reference"});
  EXPECT_TRUE(per_device_notices(graph_of({}, false), parallel).empty());
}

TEST(PlanNoticesTest, NamesWhatKeepsAttentionFromBeingFused) {
  const auto notice = [](const std::string& more) {
    const Model model = read_model_text(
        "shardplan: 1\ninputs: {q: [4, 8, 16, 8], k: [4, 8, 16, 8], v: [4, 8, 16, 8]}\noperators:\n"
        "  scores:  {op: BatchMatMul, in: [q, k], transpose_b: true}\n"
        "  probs:   {op: Softmax, in: scores}\n"
        "  context: {op: BatchMatMul, in: [probs, v]}\n"
        "  y:       {op: ReLU, in: context}\n" +
            more,
        "m.yaml");
    return attention_as_written(model.graph, model.parallel);
  };
  const std::string fused = "parallel: {attention: fused, mesh: {a: 8}}\n";
  EXPECT_EQ(notice(fused), std::nullopt);
  EXPECT_EQ(notice(fused + "strategies: {y: {in_strategy: [[{a}, {}, {}, {}]]}}\n"), std::nullopt);
  const std::string context = "strategies: {context: {in_strategy: [[{}, {a}, {}, {}], [{}, {a}, {}, {}]]}}\n";
  EXPECT_EQ(notice("parallel: {mesh: {a: 8}}\n" + context), std::nullopt);
  EXPECT_EQ(notice(fused + context),
            "attention: fused leaves the attention around probs as written, since context has a strategy, recompute "
            "or another key of its own; give these to what it reads and to its readers, or to the block around it");
}

TEST(PlanNoticesTest, SaysWhyAttentionIsNotFused) {
  const auto notices = [](const std::string& inputs, const std::string& operators) {
    const Model model = read_model_text(
        "shardplan: 1\ninputs: {" + inputs + "}\noperators:\n" + operators + "parallel: {attention: fused}\n",
        "m.yaml");
    return unfused_attention(model.graph, model.parallel);
  };
  const auto attention = [&](const std::string& bias, const std::string& between, const std::string& softmax) {
    return notices("q: [4, 6, 8, 16, 8], k: [4, 6, 8, 16, 8], bias: " + bias,
                   "  scores:  {op: BatchMatMul, in: [q, k], transpose_b: true}\n"
                   "  biased:  {op: Add, in: [scores, bias]}\n" +
                       between + "  probs:   {op: Softmax, in: " + softmax +
                       "}\n"
                       "  context: {op: BatchMatMul, in: [probs, k]}\n");
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(attention("[1, 1, 8, 16, 16]", "", "biased"), Texts());
  EXPECT_EQ(attention("[4, 1, 8, 16, 16]", "", "biased"),
            Texts{"attention: fused leaves the attention around probs as written, since its bias varies over some of "
                  "the batch dimensions or heads only; broadcast it over all of them"});
  EXPECT_EQ(attention("[1, 1, 8, 16, 16]", "  soft:    {op: Tanh, in: biased}\n", "soft"),
            Texts{"attention: fused leaves what resembles attention around probs as written: only scale, biases, a "
                  "causal mask, Softmax over the last dimension and Dropout may stand between its two products, of one "
                  "type and read by nothing else"});
  const Texts none = {"attention: fused has no effect: no attention is written out in the model"};
  EXPECT_EQ(notices("x: [4, 8]", "  y: {block: nn.Dense, in: x, out_channels: 8}\n"), none);
  EXPECT_EQ(notices("x: [4, 8]", "  y: {op: Softmax, in: x}\n"), none);
}

TEST(PlanNoticesTest, RecomputationBelowAllThatIsTrainedHasNoEffect) {
  const auto notices = [](const std::string& frozen) {
    const Model model = read_model_text(
        "shardplan: 1\ninputs: {x: [4, 8]}\nblocks:\n  layer:\n    inputs: {x: [4, 8]}\n"
        "    operators: {a: {block: nn.Dense, in: x, out_channels: 8}, y: {op: GeLU, in: a}}\n    outputs: [y]\n"
        "operators:\n  low:  {block: layer, in: x, repeat: 2" +
            frozen +
            "}\n  high: {block: layer, in: low, repeat: 2}\n  loss: {op: ReduceMean, in: high}\nloss: loss\n"
            "training: {optimizer: sgd, recompute: [low.*, high.*]}\n",
        "m.yaml");
    return model_notices(model, planned_graph(model));
  };
  EXPECT_TRUE(notices("").empty());
  EXPECT_EQ(notices(", requires_grad: false"),
            std::vector<std::string>{"recompute: low.* has no effect: the backward pass reads nothing of it"});
}

TEST(PlanNoticesTest, RecomputationIsWithoutEffectWhereverItIsAskedFor) {
  const auto notices = [](const std::string& of_y, const std::string& of_z) {
    const Model model = read_model_text(
        "shardplan: 1\ninputs: {x: [4, 8]}\nblocks:\n  layer:\n    inputs: {x: [4, 8]}\n    operators:\n"
        "      a: {block: nn.Dense, in: x, out_channels: 8}\n      y: {op: GeLU, in: a" +
            of_y + "}\n      z: {op: Add, in: [y, x]" + of_z +
            "}\n    outputs: [z]\noperators:\n  layers: {block: layer, in: x, repeat: 2}\n"
            "  loss: {op: ReduceMean, in: layers}\nloss: loss\ntraining: {optimizer: sgd}\n",
        "m.yaml");
    return model_notices(model, planned_graph(model));
  };
  // The Add alone reads what the GeLU returns, and its gradient needs no operands.
  EXPECT_EQ(notices(", recompute: true", ""),
            std::vector<std::string>{"recompute: layers.*.y has no effect: the backward pass reads nothing of it"});
  EXPECT_TRUE(notices("", ", recompute: true").empty());  // the next layer's product reads it
}

TEST(PlanNoticesTest, LocalBatchNormalisationNeedsOne) {
  const Model model = read_model_text(
      "shardplan: 1\ninputs: {x: [8, 8]}\noperators:\n  y: {block: nn.Dense, in: x, out_channels: 8}\n"
      "  loss: {op: ReduceMean, in: y}\nloss: loss\ntraining: {optimizer: sgd}\n"
      "parallel: {parallel_mode: data_parallel, batch_norm: local}\n",
      "m.yaml");
  EXPECT_EQ(model_notices(model, planned_graph(model, 8)),
            std::vector<std::string>{"batch_norm: local has no effect: the model has no batch normalisation"});
}

TEST(PlanNoticesTest, IndicesBeyondTheLastGradientHaveNoEffect) {
  const OperatorGraph graph = graph_of({}, true);
  const ParallelProgram program;  // no gradient is summed
  CommFusions fusions;
  EXPECT_EQ(unused_fusion_index(program, graph, fusions), std::nullopt);
  fusions.all_reduce.mode = CommFusion::Mode::kIndex;
  fusions.all_reduce.config = {20, 35};
  EXPECT_EQ(
      unused_fusion_index(program, graph, fusions),
      "comm_fusion: allreduce: index 20 has no effect: there are 0 all_reduces of gradients to join, counted from "
      "0");
}

TEST(PlanNoticesTest, OtherShapesAreNamedWhereALargePieceMayBeToBlame) {
  const auto notices_of = [](const std::string& parallel, const char* mesh, Picoseconds bound) {
    Plan plan;
    plan.model = std::make_shared<const Model>(read_model_text(
        "shardplan: 1\ninputs: {x: [16, 10]}\noperators:\n  a: {op: ReLU, in: x}\n" + parallel, "m.yaml"));
    plan.options.level = Level::kSpeed;
    plan.status = PlanStatus::kFeasible;
    plan.mesh = DeviceMesh::parse(mesh);
    plan.pieces = search_pieces(plan.mesh);
    plan.time.computation = 100;
    plan.overlapped_bound = bound;
    note_other_shapes(plan);
    return plan.notices;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(
      notices_of("", "y=16, x=16", 90),
      (Texts{"the step is far from its bound with mesh pieces 16 x 2 x 8; `parallel: {mesh: auto}` also plans with "
             "5 other shapes, which takes as many times as long"}));
  EXPECT_EQ(notices_of("", "y=16, x=16", 96), Texts());
  EXPECT_EQ(notices_of("", "node=8, nvlink=8", 90), Texts());
  EXPECT_EQ(notices_of("", "y=16, x=2, z=2", 90), Texts()) << "there is no other";
  EXPECT_EQ(notices_of("parallel: {mesh: {y: 16, x: 16}}\n", "y=16, x=16", 90), Texts());
  EXPECT_EQ(notices_of("parallel: {parallel_mode: semi_auto_parallel}\n", "y=16, x=16", 90), Texts());
}

}  // namespace
}  // namespace shardplan
