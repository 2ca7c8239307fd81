#include "model/model_instance.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/model/read_text.h"

namespace shardplan {
namespace {

TEST(ModelInstanceTest, StrategiesStandBesideOrUnderTheFullName) {
  const char* text = R"yaml(shardplan: 1
inputs: {x: {shape: [8, 8], strategy: [{dp}, {}]}}
blocks:
  layer:
    inputs: {x: [8, 8]}
    operators:
      fc:  {block: nn.Dense, in: x, out_channels: 8, has_bias: false}
      act: {op: ReLU, in: fc, in_strategy: [["dp", 1]]}
operators:
  layers: {block: layer, in: x, repeat: 2}
  a:      {op: ReLU, in: layers, in_strategy: ((1, 8),)}
  b:      {op: ReLU, in: a, in_strategy: ["[{dp}, {}] unreduced={mp}"], out_strategy: (None,)}
  c:      {op: Tanh, in: b, in_strategy: "((2, 4),)"}
strategies:
  layers.*.fc.matmul: {in_strategy: [[{dp}, {}], [{mp, dp}, {}]]}
  layers.1.fc.matmul: {in_strategy: [[], [{}, {mp}]]}
  layers.*.fc.weight: {strategy: [4, 1]}
)yaml";
  EXPECT_EQ(faults_of(text).substr(0, 60), "m.yaml:8:46: error: layer.act: in_strategy: 'dp' pieces; exp");
  std::string good = text;
  good.replace(good.find("[[\"dp\", 1]]"), 11, "[[{dp}, {}]]");
  const Model model = read(good);
  const auto in = [&](const char* name, std::size_t i = 0) {
    return to_text(operator_of(model.graph, name).strategy->in.at(i));
  };
  EXPECT_EQ(in("layers.0.fc.matmul", 1), "[{mp, dp}, {}]");
  EXPECT_EQ(in("layers.1.fc.matmul", 0), "[]");  // a plain name takes precedence over one with '*'
  EXPECT_EQ(in("layers.1.fc.matmul", 1), "[{}, {mp}]");
  EXPECT_EQ(in("layers.1.act"), "[{dp}, {}]");
  EXPECT_EQ(in("a"), "[1, 8]");
  EXPECT_EQ(in("b"), "[{dp}, {}] unreduced={mp}");
  EXPECT_EQ(to_text(operator_of(model.graph, "b").strategy->out.at(0)), "null");
  EXPECT_EQ(in("c"), "[2, 4]");
  EXPECT_EQ(to_text(*tensor_of(model.graph, "layers.1.fc.weight").layout), "[4, 1]");
  EXPECT_EQ(to_text(*tensor_of(model.graph, "x").layout), "[{dp}, {}]");
  EXPECT_EQ(operator_of(model.graph, "a").strategy->in[0].place, (SourcePlace{"m.yaml", 11, 48}));

  ModelOverrides overrides;
  overrides.strategies = {
      {"layers.*.fc.matmul", "((1, 2), (1, 2))"}, {"layers.0.fc.weight", "[{mp}, {}]"}, {"a.out_strategy", "[null]"}};
  const Model set = read(good, overrides);
  EXPECT_EQ(to_text(operator_of(set.graph, "layers.1.fc.matmul").strategy->in.at(0)), "[1, 2]");
  EXPECT_EQ(to_text(*tensor_of(set.graph, "layers.0.fc.weight").layout), "[{mp}, {}]");
  EXPECT_EQ(to_text(*tensor_of(set.graph, "layers.1.fc.weight").layout), "[4, 1]");
  EXPECT_EQ(to_text(operator_of(set.graph, "a").strategy->out.at(0)), "null");
  overrides.strategies = {{"layrs.0.fc.weight", "[1, 1]"}};
  EXPECT_EQ(faults_of(good, overrides),
            "--set: error: no operator, block or tensor 'layrs.0.fc.weight'; did you mean 'layers.*.fc.weight'?");
}

TEST(ModelInstanceTest, BlocksFreezeTheirParameters) {
  const char* text = R"yaml(shardplan: 1
inputs: {x: [8, 4, 2, 2]}
parameters: {scale: [2]}
blocks:
  layer:
    inputs: {x: [8, 4, 2, 2]}
    parameters: {own: {shape: [2], requires_grad: true}, other: [2]}
    operators:
      bn:   {block: nn.BatchNorm2d, in: x, requires_grad: true}
      conv: {block: nn.Conv2d, in: bn, out_channels: 4, kernel_size: 1, has_bias: true}
      a:    {op: Mul, in: [conv, own]}
      b:    {op: Mul, in: [a, other]}
operators:
  layers: {block: layer, in: x, repeat: 2, requires_grad: false}
  y:      {op: Mul, in: [layers, scale]}
  loss:   {op: ReduceMean, in: y}
loss: loss
training: {optimizer: momentum}
strategies:
  layers.*.conv.bias:   {requires_grad: true}
  layers.0.conv.weight: {requires_grad: true}
)yaml";
  const Model model = read(text);
  std::vector<std::string> trained;
  for (const GraphTensor& tensor : model.graph.tensors()) {
    if (tensor.kind == TensorKind::kParameter && tensor.requires_grad) trained.push_back(tensor.name);
  }
  std::sort(trained.begin(), trained.end());
  EXPECT_EQ(trained, (std::vector<std::string>{"layers.0.bn.beta", "layers.0.bn.gamma", "layers.0.conv.bias",
                                               "layers.0.conv.weight", "layers.0.own", "layers.1.bn.beta",
                                               "layers.1.bn.gamma", "layers.1.conv.bias", "layers.1.own", "scale"}));
  const auto refused = [&](const std::string& line) {
    return faults_of(std::string(text) + "  " + line + ": {requires_grad: false}\n");
  };
  EXPECT_EQ(refused("y"),
            "m.yaml:22:22: error: y is an operator and has no parameters of its own; requires_grad is for a block or a "
            "parameter");
  EXPECT_EQ(refused("x"), "m.yaml:22:22: error: x is an input; it takes strategy, not requires_grad");
}

TEST(ModelInstanceTest, BordersOfBlocksAreIdentities) {
  const Model model = read_model("configs/basic-blocks.yaml");
  const GraphOperator& in = operator_of(model.graph, "block1.in0");
  EXPECT_EQ(model.graph.operations()[in.operation].type->name, "Identity");
  EXPECT_EQ(to_text(in.strategy->in.at(0)), "[1, 8]");
  EXPECT_EQ(in.strategy->in[0].place, (SourcePlace{"configs/basic-blocks.yaml", 14, 52}));
  EXPECT_EQ(in.border_of, "block1");
  EXPECT_EQ(to_text(operator_of(model.graph, "block1.out0").strategy->out.at(0)), "null");
  EXPECT_EQ(operator_of(model.graph, "block1.gelu").level, 0);
  EXPECT_EQ(operator_of(model.graph, "block1.gelu").level_scope, "block1");
  EXPECT_FALSE(operator_of(model.graph, "block1.gelu").is_data_parallel);
  EXPECT_TRUE(operator_of(model.graph, "block2.gelu").is_data_parallel);
  EXPECT_FALSE(operator_of(model.graph, "block2.gelu").level);
}

TEST(ModelInstanceTest, ModesHoldInside) {
  const Model model = read(R"(shardplan: 1
inputs: {x: [8, 8]}
blocks:
  two:
    inputs: {x: [8, 8]}
    operators:
      a: {op: ReLU, in: x}
      b: {op: Tanh, in: a, in_strategy: [[1, 8]]}
operators:
  semi:   {block: two, in: x}
  auto:   {block: two, in: semi, parallel_mode: auto_parallel, recompute: true}
  shard:  {block: two, in: auto, in_strategy: [[8, 1]]}
  stored: {op: ReLU, in: shard, strategy: [{dp}, {}]}
  last:   {op: ReLU, in: stored}
  dense:  {block: nn.Dense, in: last, out_channels: 8}
  loss:   {op: ReduceMean, in: dense}
loss: loss
training: {optimizer: sgd}
parallel: {parallel_mode: semi_auto_parallel, device_num: 8}
)");
  const OperatorGraph& graph = model.graph;
  EXPECT_TRUE(operator_of(graph, "semi.a").is_data_parallel);
  EXPECT_FALSE(operator_of(graph, "semi.b").is_data_parallel);  // has a strategy
  EXPECT_FALSE(operator_of(graph, "auto.a").is_data_parallel);
  EXPECT_EQ(operator_of(graph, "auto.a").recompute_scope, "auto");
  EXPECT_EQ(operator_of(graph, "semi.a").recompute_scope, "");
  EXPECT_FALSE(operator_of(graph, "shard.a").is_data_parallel);  // searched between its borders
  EXPECT_TRUE(operator_of(graph, "last").is_data_parallel);
  EXPECT_EQ(operator_of(graph, "last").operands[0], *graph.find_tensor("stored.out0"));
  EXPECT_EQ(to_text(operator_of(graph, "stored.out0").strategy->out.at(0)), "[{dp}, {}]");
}

TEST(ModelInstanceTest, OldMindSporeOverridesOutStrategies) {
  const std::string text = R"(shardplan: 1
inputs: {x: [8, 8]}
blocks: {one: {inputs: {x: [8, 8]}, operators: {a: {block: nn.Dense, in: x, out_channels: 8}}}}
operators:
  a:    {block: one, in: x, out_strategy: [[1, 8]]}
  loss: {op: ReduceMean, in: a}
loss: loss
training: {optimizer: sgd, recompute: [a.*]}
parallel: {compat: mindspore-1.7}
)";
  const Model model = read(text);
  EXPECT_EQ(to_text(operator_of(model.graph, "a.out0").strategy->out.at(0)), "null");
  EXPECT_EQ(model.notices,
            std::vector<std::string>{
                "out_strategy of 1 block gives way to data parallel in training (compat: mindspore-1.7)"});
  EXPECT_EQ(operator_of(model.graph, "a.a.matmul").recompute_scope, "a.a");
  const Model kept = read(text.substr(0, text.find("parallel:")));
  EXPECT_EQ(to_text(operator_of(kept.graph, "a.out0").strategy->out.at(0)), "[1, 8]");
  EXPECT_TRUE(kept.notices.empty());
}

constexpr char kCalledTwice[] = R"yaml(shardplan: 1
inputs: {x: [8, 16]}
blocks: {two: {inputs: {x: [8, 16]}, operators: {fc: {block: nn.Dense, in: x, out_channels: 16}, act: {op: ReLU, in: fc}}}}
operators:
  a: {block: two, in: x}
  b: {block: two, in: a, share: a}
  c: {block: two, in: b, repeat: 3, share: c}
)yaml";

TEST(ModelInstanceTest, UsesOfABlockShareParameters) {
  const OperatorGraph graph = read(kCalledTwice).graph;
  std::vector<std::string> parameters;
  for (const GraphTensor& tensor : graph.tensors()) {
    if (tensor.kind == TensorKind::kParameter) parameters.push_back(tensor.name);
  }
  EXPECT_EQ(parameters, (std::vector<std::string>{"a.fc.weight", "a.fc.bias", "c.0.fc.weight", "c.0.fc.bias"}));
  EXPECT_EQ(graph.find_tensor("b.fc.weight"), graph.find_tensor("a.fc.weight"));
  EXPECT_EQ(graph.find_tensor("c.2.fc.bias"), graph.find_tensor("c.0.fc.bias"));
  EXPECT_EQ(tensor_of(graph, "a.fc.weight").readers.size(), 2u);
  EXPECT_EQ(tensor_of(graph, "c.0.fc.weight").readers.size(), 3u);
}

TEST(ModelInstanceTest, OnlyUsesOfOneBlockShare) {
  const auto fault_of_share = [](const std::string& name) {
    std::string text = kCalledTwice;
    text.replace(text.find("share: a"), 8, "share: " + name);
    return faults_of(text);
  };
  EXPECT_EQ(fault_of_share("d"), "m.yaml:6:33: error: b: share: no use of a block is called 'd' here");
  EXPECT_EQ(fault_of_share("b"),
            "m.yaml:6:33: error: b: share: names itself; only the copies of a repeat share among themselves");
  EXPECT_EQ(fault_of_share("c"), "m.yaml:6:33: error: b: share: only one of c and b is repeated");
}

}  // namespace
}  // namespace shardplan
