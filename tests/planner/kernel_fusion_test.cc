#include "costmodel/kernel_fusion.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "costmodel/cluster/cluster.h"
#include "model/planned_model.h"
#include "model/read_model.h"
#include "planner/model_planner.h"
#include "planner/problem/plan_choice.h"
#include "program/timeline.h"
#include "strategies/user_strategy.h"

namespace shardplan {
namespace {

struct Fused {
  OperatorGraph graph;
  KernelFusion fusion;

  const KernelTraffic& of(const std::string& name) const { return fusion.traffic[*graph.find_operator(name)]; }
  bool in_registers(const std::string& name) const { return fusion.in_registers[*graph.find_tensor(name)] != 0; }
};

Fused fused(const std::string& text, Fusion fusion = Fusion::kElementwise) {
  const Model model = read_model_text("shardplan: 1\n" + text, "fused.yaml");
  Fused result{planned_graph(model), {}};
  result.fusion = kernel_fusion(result.graph, fusion);
  return result;
}

constexpr const char* kFusedAttention = R"(
inputs: {x: [2, 64, 96]}
parameters: {w: [96, 288], b: [288], o: [96, 96]}
operators:
  qkv:    {op: MatMul, in: [x, w]}
  bias:   {op: BiasAdd, in: [qkv, b]}
  heads:  {op: Reshape, in: bias, shape: [2, 64, 12, 24]}
  split:  {op: Split, in: heads, axis: -1, output_num: 3}
  q:      {op: Transpose, in: split, perm: [0, 2, 1, 3]}
  k:      {op: Transpose, in: split.1, perm: [0, 2, 1, 3]}
  v:      {op: Transpose, in: split.2, perm: [0, 2, 1, 3]}
  scores: {op: BatchMatMul, in: [q, k], transpose_b: true}
  scaled: {op: Mul, in: [scores, 0.3]}
  probs:  {op: Softmax, in: scaled, axis: -1}
  drop:   {op: Dropout, in: probs, keep_prob: 0.9}
  mixed:  {op: BatchMatMul, in: [drop, v]}
  back:   {op: Transpose, in: mixed, perm: [0, 2, 1, 3]}
  flat:   {op: Reshape, in: back, shape: [2, 64, 96]}
  out:    {op: MatMul, in: [flat, o]}
  sum:    {op: Add, in: [out, x]}
  norm:   {block: nn.LayerNorm, in: sum}
)";

// Values that are a slice of the keys are in the same memory and read with them; other values are not.
TEST(KernelFusionTest, AttentionReadsValuesThatAreItsKeysOnce) {
  const auto reads_values = [](const std::string& values) {
    const Fused latent = fused(
        "inputs: {q: [2, 4, 1, 24], entry: [2, 1, 1, 24], at: {shape: [2], dtype: i32}, other: [2, 1, 8, 16]}\n"
        "parameters: {cache: {shape: [2, 1, 8, 24], requires_grad: false}}\n"
        "operators:\n"
        "  keys:    {op: KVCacheScatterUpdate, in: [cache, at, entry]}\n"
        "  slice:   {op: Slice, in: keys, begin: [0, 0, 0, 0], size: [-1, -1, -1, 16]}\n"
        "  mixed:   {op: Add, in: [slice, other]}\n"
        "  context: {op: FlashAttention, in: [q, keys, " +
        values + "]}\n");
    EXPECT_TRUE(latent.of("context").reads(1));
    return latent.of("context").reads(2);
  };
  EXPECT_FALSE(reads_values("slice"));
  EXPECT_FALSE(reads_values("keys"));
  EXPECT_TRUE(reads_values("mixed"));
}

TEST(KernelFusionTest, LibrariesAddTheBiasAndReadStridesAndMakeNoChains) {
  const Fused tested = fused(kFusedAttention, Fusion::kLibrary);
  EXPECT_TRUE(tested.of("bias").is_free);
  EXPECT_TRUE(tested.in_registers("qkv"));
  for (const char* name : {"scaled", "probs", "drop", "sum"}) {
    EXPECT_TRUE(tested.of(name).is_started) << name;
    EXPECT_TRUE(tested.of(name).reads(0) && tested.of(name).writes(0)) << name;
  }
  EXPECT_FALSE(tested.in_registers("scaled"));
}

TEST(KernelFusionTest, ScaleSoftmaxAndDropoutAreOneKernel) {
  const Fused tested = fused(kFusedAttention);
  EXPECT_TRUE(tested.of("scaled").is_started);
  EXPECT_TRUE(tested.of("scaled").reads(0));   // the scores
  EXPECT_FALSE(tested.of("scaled").reads(1));  // a constant
  EXPECT_FALSE(tested.of("scaled").writes(0));
  EXPECT_FALSE(tested.of("probs").is_started);
  EXPECT_FALSE(tested.of("probs").reads(0));
  EXPECT_FALSE(tested.of("drop").reads(0));
  EXPECT_TRUE(tested.of("drop").writes(0));
  EXPECT_TRUE(tested.in_registers("scaled"));
  EXPECT_TRUE(tested.in_registers("probs"));
  EXPECT_FALSE(tested.in_registers("scores"));
}

TEST(KernelFusionTest, HandWrittenKernelsEndWithTheSoftmaxAndLeaveNormsAlone) {
  const Fused tested = fused(kFusedAttention, Fusion::kHandWritten);
  EXPECT_TRUE(tested.of("bias").is_free);
  EXPECT_TRUE(tested.in_registers("scaled"));
  EXPECT_FALSE(tested.of("probs").is_started);
  EXPECT_TRUE(tested.of("probs").writes(0));
  EXPECT_TRUE(tested.of("drop").is_started && tested.of("drop").reads(0));
  EXPECT_TRUE(tested.of("sum").writes(0));
  EXPECT_TRUE(tested.of("norm.layer_norm").is_started && tested.of("norm.layer_norm").reads(0));
}

// Backward as in forward: the gradients of the softmax and of the scale are one kernel, that of the dropout is another.
TEST(KernelFusionTest, HandWrittenGradientsAreThoseOfTheKernels) {
  const std::string text =
      fmt::format("{}  mean: {{op: ReduceMean, in: norm, axis: [0, 1, 2]}}\nloss: mean\ntraining: {{optimizer: sgd}}\n",
                  kFusedAttention);
  const Fused tested = fused(text, Fusion::kHandWritten);
  std::size_t chains = 0;
  for (const OperatorId id : tested.graph.operators().ids()) {
    const GraphOperator& op = tested.graph.operators()[id];
    const KernelTraffic& traffic = tested.fusion.traffic[id];
    if (op.pass != Pass::kBackward) continue;
    if (tested.graph.operation(id).type->name == "SoftmaxGrad") {
      EXPECT_TRUE(traffic.is_started && traffic.reads(0));
      EXPECT_FALSE(traffic.writes(0));
      ++chains;
    }
    const bool is_norm = tested.graph.operation(id).type->name == "LayerNormGrad";
    EXPECT_TRUE(!is_norm || traffic.is_started) << op.name;
  }
  EXPECT_EQ(chains, 1u);
}

TEST(KernelFusionTest, ABiasIsAddedWhileTheProductIsWritten) {
  const Fused tested = fused(kFusedAttention);
  EXPECT_TRUE(tested.of("bias").is_free);
  EXPECT_TRUE(tested.in_registers("qkv"));
  EXPECT_EQ(tested.of("qkv"), KernelTraffic{});
}

TEST(KernelFusionTest, MovesAreViewsWhereStridesAreRead) {
  const Fused tested = fused(kFusedAttention);
  for (const char* name : {"split", "q", "k", "v"}) EXPECT_TRUE(tested.of(name).is_free) << name;
  EXPECT_FALSE(tested.of("back").is_free);  // the reshape merges heads that are apart in memory
}

/// One of the two copies: a concatenation that reads slices where they are, or slices that are written where it is.
TEST(KernelFusionTest, SlicesAreCopiedByTheConcatenationOrIntoIt) {
  const auto copies = [](const std::string& joined, Fusion fusion) {
    const Fused tested = fused(
        "inputs: {x: [8, 64]}\noperators:\n  cut: {op: Split, in: x, axis: 1, output_num: 2, out: [a, b]}\n"
        "  joined: {op: Concat, in: " +
            joined + ", axis: 1}\n",
        fusion);
    return fmt::format("{}{}", tested.of("cut").is_free ? "" : "cut ", tested.of("joined").is_free ? "" : "joined ");
  };
  EXPECT_EQ(copies("[b, a]", Fusion::kLibrary), "joined ");
  EXPECT_EQ(copies("[b, a]", Fusion::kElementwise), "cut ");
  EXPECT_EQ(copies("[b, a, x]", Fusion::kElementwise), "joined ") << "x must be copied, so the kernel reads all three";
}

TEST(KernelFusionTest, LibrariesCopyMatricesThatLieAtTwoDistances) {
  const auto is_view = [](const std::string& shape, const std::string& perm) {
    return fused("inputs: {x: " + shape + ", y: [2, 12, 24, 64]}\noperators:\n  t: {op: Transpose, in: x, perm: " +
                     perm + "}\n  z: {op: BatchMatMul, in: [t, y]}\n",
                 Fusion::kLibrary)
        .of("t")
        .is_free;
  };
  EXPECT_FALSE(is_view("[2, 64, 12, 24]", "[0, 2, 1, 3]"));
  EXPECT_TRUE(is_view("[64, 2, 12, 24]", "[1, 2, 0, 3]")) << "sequences first, as in Megatron-LM";
  EXPECT_TRUE(is_view("[2, 12, 24, 64]", "[0, 1, 3, 2]")) << "the product itself transposes";
  EXPECT_FALSE(fused(kFusedAttention, Fusion::kLibrary).of("k").is_free);
  EXPECT_TRUE(fused(kFusedAttention, Fusion::kHandWritten).of("k").is_free);
}

TEST(KernelFusionTest, WhatAnotherKernelReadsIsWritten) {
  const Fused tested = fused(kFusedAttention);
  EXPECT_TRUE(tested.of("sum").is_started);
  EXPECT_TRUE(tested.of("sum").reads(0) && tested.of("sum").reads(1));
  EXPECT_FALSE(tested.of("sum").writes(0));  // only the norm reads it
  const Fused read_twice = fused(std::string(kFusedAttention) + "  again: {op: MatMul, in: [sum, o]}\n");
  EXPECT_TRUE(read_twice.of("sum").writes(0));
  EXPECT_FALSE(read_twice.of("norm.layer_norm").reads(0));
}

// d reads c, which a contraction computes from b: a kernel of a, b and d would wait for itself.
TEST(KernelFusionTest, NoPathLeavesAKernelAndComesBack) {
  const Fused tested = fused(R"(
inputs: {x: [8, 8]}
parameters: {w: [8, 8]}
operators:
  a: {op: ReLU, in: x}
  b: {op: Tanh, in: a}
  c: {op: MatMul, in: [b, w]}
  d: {op: Add, in: [b, c]}
)");
  EXPECT_FALSE(tested.of("b").is_started);
  EXPECT_TRUE(tested.of("d").is_started);
  EXPECT_TRUE(tested.of("d").reads(0));
  EXPECT_TRUE(tested.of("b").writes(0));
}

TEST(KernelFusionTest, WithoutFusionEveryOperatorIsAKernel) {
  const Model model = read_model_text(std::string("shardplan: 1\n") + kFusedAttention, "plain.yaml");
  const KernelFusion none = kernel_fusion(model.graph, Fusion::kNone);
  for (const KernelTraffic& traffic : none.traffic) EXPECT_EQ(traffic, KernelTraffic{});
  for (const char in_registers : none.in_registers) EXPECT_FALSE(in_registers);
}

/// The Casts of `a` and of its gradient that read and write memory, under `autocast` of this type.
std::string conversions(const std::string& type, const std::string& op) {
  const Fused tested = fused("autocast: " + type +
                                 "\ninputs: {x: [8, 16]}\nparameters: {w: [16, 16]}\noperators:\n"
                                 "  a: {op: MatMul, in: [x, w]}\n  y: " +
                                 op + "\n  loss: {op: ReduceMean, in: y}\nloss: loss\ntraining: {optimizer: sgd}\n",
                             Fusion::kLibrary);
  std::string kernels;
  for (const OperatorId id : tested.graph.operators().ids()) {
    const std::string& name = tested.graph.operators()[id].name;
    const bool is_cast = tested.graph.operation(id).type->name == "Cast" && name.find("a.") != std::string::npos;
    const KernelTraffic& traffic = tested.fusion.traffic[id];
    if (is_cast && traffic.reads(0) && traffic.writes(0)) kernels += (kernels.empty() ? "" : " ") + name;
  }
  return kernels;
}

// PyTorch's sums convert as they read; so do its softmaxes of f16, and their gradients as they write.
TEST(KernelFusionTest, LibrariesConvertWithinSumsAndSoftmaxes) {
  EXPECT_EQ(conversions("f16", "{op: Softmax, in: a}"), "");
  EXPECT_EQ(conversions("f16", "{op: LogSoftmax, in: a}"), "");
  EXPECT_EQ(conversions("bf16", "{op: Softmax, in: a}"), "a.f32 grad.a.f32.Cast");
  EXPECT_EQ(conversions("bf16", "{op: ReduceSum, in: a, axis: 0}"), "grad.a.f32.Cast");
  EXPECT_EQ(conversions("f16", "{op: Exp, in: a}"), "a.f32 grad.a.f32.Cast");
}

// For random choices `evaluate` gives the program's sums, including recomputation and micro-batches.
/// A loss outside of what is compiled: its conversion to f32, softmax and gradient are kernels and tensors of their own.
TEST(KernelFusionTest, WhatIsNotCompiledHasKernelsOfItsOwn) {
  const auto step_of = [](const std::string& compiled) {
    return fused(R"(
dims: {B: 64, C: 96}
inputs: {x: [B, C]}
blocks:
  wide_loss:
    inputs: {logits: {shape: [B, C], dtype: bf16}}
    operators:
      wide:  {op: Cast, in: logits, dtype: f32}
      probs: {op: LogSoftmax, in: wide}
      exp:   {op: Exp, in: probs}
      mean:  {op: ReduceMean, in: exp}
parameters: {w: {shape: [C, C], dtype: bf16}}
operators:
  narrow: {op: Cast, in: x, dtype: bf16}
  logits: {op: MatMul, in: [narrow, w]}
  act:    {op: GeLU, in: logits}
  loss:   {block: wide_loss, in: act)" +
                 compiled + "}\nloss: loss\ntraining: {optimizer: sgd}\n");
  };
  const Fused all = step_of(""), part = step_of(", compiled: false");
  EXPECT_TRUE(all.in_registers("act") && all.in_registers("loss.wide"));
  for (const char* name : {"act", "loss.wide", "loss.probs"}) EXPECT_FALSE(part.in_registers(name)) << name;
  for (const char* name : {"act", "loss.wide", "loss.probs", "loss.exp"}) EXPECT_TRUE(part.of(name).is_started) << name;
  std::size_t backward = 0, joined = 0;
  for (const OperatorId id : part.graph.operators().ids()) {
    const GraphOperator& op = part.graph.operators()[id];
    if (op.pass != Pass::kBackward || !op.forward ||
        !part.graph.operators()[*op.forward].name.str().starts_with("loss."))
      continue;
    ++backward;
    joined += part.fusion.traffic[id]->is_started ? 0 : 1;
  }
  EXPECT_GE(backward, 3u);
  EXPECT_EQ(joined, 0u);
}

TEST(KernelFusionTest, ABlockInsideWhatIsNotCompiledMayBe) {
  const Fused tested = fused(R"(
inputs: {x: [8, 8]}
blocks:
  chain:
    inputs: {x: [8, 8]}
    operators: {a: {op: ReLU, in: x}, b: {op: Tanh, in: a}}
  eager:
    inputs: {x: [8, 8]}
    operators:
      apart:    {block: chain, in: x}
      together: {block: chain, in: apart, compiled: true}
operators: {y: {block: eager, in: x, compiled: false}}
)");
  for (const char* name : {"y.apart.a", "y.apart.b", "y.together.a"}) EXPECT_TRUE(tested.of(name).is_started) << name;
  EXPECT_FALSE(tested.of("y.together.b").is_started);
}

/// Weight-only quantisation: the product reads the byte.
TEST(KernelFusionTest, AProductWidensAWeightOfOneByte) {
  constexpr char kText[] = R"(
inputs: {x: {shape: [4, 96], dtype: bf16}}
parameters: {w: {shape: [96, 96], dtype: i8}, twice: {shape: [96, 96], dtype: i8}}
operators:
  wide:   {op: Cast, in: w, dtype: bf16}
  y:      {op: MatMul, in: [x, wide]}
  kept:   {op: Cast, in: twice, dtype: bf16}
  z:      {op: MatMul, in: [y, kept]}
  again:  {op: MatMul, in: [z, kept]}
)";
  const Fused compiled = fused(kText), library = fused(kText, Fusion::kLibrary);
  const TensorType bf16{{96, 96}, DataType::kBF16};
  EXPECT_TRUE(compiled.of("wide").is_free) << "no kernel that could run beside a collective before the product";
  EXPECT_TRUE(compiled.of("y").widens(1, bf16) && !compiled.of("y").reads(1));
  EXPECT_EQ(compiled.of("y").widened_from[1], DataType::kI8);
  EXPECT_TRUE(compiled.of("y").reads(0) && !compiled.of("y").widens(0, bf16));
  EXPECT_TRUE(compiled.in_registers("wide"));
  EXPECT_TRUE(compiled.of("kept").is_started && compiled.of("kept").writes(0)) << "read by two products";
  EXPECT_TRUE(library.of("wide").is_started && library.of("wide").writes(0) && library.of("y").reads(1));
  EXPECT_FALSE(library.of("y").widens(1, bf16));
}

/// Gradients of two bytes that are reduced as f32 with every micro-batch, on several devices.
TEST(KernelFusionTest, ASumOverMicroBatchesConvertsWhatItAdds) {
  const Model model = read_model_text(R"(
shardplan: 1
dims: {B: 64}
inputs: {x: [B, 32]}
parameters: {w: [32, 32]}
operators:
  y:    {op: MatMul, in: [x, w]}
  loss: {op: ReduceMean, in: y}
loss: loss
training: {optimizer: adamw, mixed_precision: bf16, micro_batches: 2}
parallel: {parallel_mode: data_parallel, zero: 2}
)",
                                      "fused.yaml");
  const TensorType f32{{32, 32}, DataType::kF32};
  for (const Fusion kind : {Fusion::kElementwise, Fusion::kHandWritten, Fusion::kLibrary}) {
    Fused tested{planned_graph(one_micro_batch(model), 8), {}};
    tested.fusion = kernel_fusion(tested.graph, kind);
    EXPECT_TRUE(tested.of("grad.w.Cast").is_free);
    EXPECT_FALSE(tested.in_registers("grad.w.Cast")) << "it is what is reduced";
    const KernelTraffic& sum = tested.of("grad.w.Accumulate");
    EXPECT_TRUE(sum.widens(0, f32) && !sum.reads(0) && sum.is_started);
    EXPECT_EQ(sum.widened_from[0], DataType::kBF16);
  }
  const OperatorGraph alone = planned_graph(one_micro_batch(model), 1);
  EXPECT_FALSE(alone.find_operator("grad.w.Cast")) << "nothing is reduced";
}

/// Its scale is that of the largest element, which must be known first.
TEST(KernelFusionTest, ACastToF8IsAKernelOfItsOwn) {
  const auto cast_to = [](const std::string& type) {
    return fused(R"(
inputs: {x: [64, 96]}
operators:
  act:  {op: GeLU, in: x}
  cast: {op: Cast, in: act, dtype: )" +
                 type + "}\noutputs: [cast]\n");
  };
  const Fused narrow = cast_to("bf16"), scaled = cast_to("f8e4m3");
  EXPECT_FALSE(narrow.of("cast").is_started);
  EXPECT_TRUE(narrow.in_registers("act"));
  EXPECT_TRUE(scaled.of("cast").is_started);
  EXPECT_TRUE(scaled.of("cast").reads(0));
  EXPECT_FALSE(scaled.in_registers("act"));
}

TEST(KernelFusionTest, ProblemAndProgramAgree) {
  for (const char* recompute : {"false", "true"}) {
    const std::string text = fmt::format(R"(
shardplan: 1
inputs: {{x: [16, 32, 64]}}
blocks:
  mlp:
    inputs: {{x: [16, 32, 64]}}
    operators:
      up:   {{block: nn.Dense, in: x, out_channels: 256}}
      act:  {{op: GeLU, in: up}}
      down: {{block: nn.Dense, in: act, out_channels: 64}}
      drop: {{op: Dropout, in: down, keep_prob: 0.9}}
      sum:  {{op: Add, in: [drop, x]}}
      norm: {{block: nn.LayerNorm, in: sum}}
operators:
  first:  {{block: mlp, in: x, recompute: {0}}}
  second: {{block: mlp, in: first, recompute: {0}}}
  loss:   {{op: ReduceMean, in: second}}
loss: loss
training: {{optimizer: adam, mixed_precision: bf16}}
parallel: {{mesh: {{dp: 2, mp: 4}}}}
)",
                                         recompute);
    const auto model = std::make_shared<const Model>(read_model_text(text, "agree.yaml"));
    PlanOptions options;
    options.work_limit = 1;  // any plan will do
    const ModelPlanner planner(model, read_cluster("dgx-a100"), options);
    Restrictions restrictions = no_restrictions(planner.graph(), planner.versions());
    restrictions.capacity = kUnlimitedBytes;
    for (std::size_t axis = 0; axis < planner.mesh().axes().size(); ++axis) {
      restrictions.pieces.push_back(planner.mesh().whole(axis));
    }
    const ModelProblem problem =
        build_problem(planner.graph(), planner.versions(), planner.costs(), planner.redistributions(), restrictions);
    for (const Level level : kLevels) {
      const Plan plan = planner.plan(level, "auto");
      const auto choice = find_choice(planner.versions(), problem, plan.strategies, plan.versions);
      ASSERT_TRUE(choice);
      const Evaluation evaluation = evaluate(problem.problem, *choice);
      EXPECT_EQ(evaluation.cost.computation, plan.time.computation) << recompute << number_of(level);
      EXPECT_EQ(evaluation.cost.communication, plan.time.communication) << recompute << number_of(level);
    }
  }
}

}  // namespace
}  // namespace shardplan
