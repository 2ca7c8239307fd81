#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "model/model_source.h"
#include "model/syntax/strategy_syntax.h"

namespace shardplan {
namespace {

/// One line per operator: "fc = MatMul(x, weight) [64, 128]".
std::string outline(const OperatorGraph& graph) {
  std::string text;
  for (const OperatorId id : graph.operators().ids()) {
    const GraphOperator& op = graph.operators()[id];
    std::vector<std::string> operands;
    for (const TensorId operand : op.operands) operands.push_back(graph.tensor(operand).name);
    text += fmt::format("{} = {}({}) {}\n", op.name, graph.operation(id).type->name, fmt::join(operands, ", "),
                        graph.tensor(op.results[0]).type.shape);
  }
  return text;
}

const GraphOperator& operator_of(const OperatorGraph& graph, const std::string& name) {
  const std::optional<OperatorId> id = graph.find_operator(name);
  if (!id) throw std::runtime_error("no operator " + name);
  return graph.operators()[*id];
}
const GraphTensor& tensor_of(const OperatorGraph& graph, const std::string& name) {
  const std::optional<TensorId> id = graph.find_tensor(name);
  if (!id) throw std::runtime_error("no tensor " + name);
  return graph.tensor(*id);
}
std::string to_text(const StrategyEntry& entry) { return to_string(entry); }

Model read(const std::string& text, const ModelOverrides& overrides = {}) {
  return read_model_text(text, "m.yaml", overrides);
}

/// All faults of a text, or "" if it is good.
std::string faults_of(const std::string& text, const ModelOverrides& overrides = {}) {
  try {
    read(text, overrides);
    return "";
  } catch (const InputError& error) {
    return error.what() + (error.note().empty() ? "" : "\n(" + error.note() + ")");
  }
}

TEST(ReadModelTest, OperatorsAndShapes) {
  const Model model = read(R"(shardplan: 1
model: small
dims: {B: 64}
inputs: {x: [B, 512]}
parameters: {weight: [512, 128]}
operators:
  fc:     {op: MatMul, in: [x, weight], in_strategy: [[1, 1], [1, 2]]}
  reduce: {op: ReduceSum, in: fc, axis: -1}
outputs: [reduce]
)");
  EXPECT_EQ(outline(model.graph), "fc = MatMul(x, weight) [64, 128]\nreduce = ReduceSum(fc) [64]\n");
  EXPECT_EQ(model.free_dims, std::vector<std::string>{"B"});
  EXPECT_EQ(model.batch, "B");
  EXPECT_EQ(model.name, "small");
}

TEST(ReadModelTest, ShippedConfigurationsAreRead) {
  const std::pair<const char*, std::size_t> cases[] = {
      {"mlp", 12}, {"basic-blocks", 17}, {"semi-auto-matmul", 2}, {"gpt2-small", 346}, {"llama-7b", 1255},
  };
  for (const auto& [name, num_operators] : cases) {
    const Model model = read_model(fmt::format("configs/{}.yaml", name));
    EXPECT_EQ(model.name, name);
    EXPECT_EQ(model.graph.operators().size(), num_operators) << name;
  }
}

TEST(ReadModelTest, RepeatedBlocksAreTypedOnceAndNamedEach) {
  const Model model = read(R"(shardplan: 1
dims: {B: 4, H: 8, L: 3, F: 4*H}
inputs: {x: [B, H]}
blocks:
  layer:
    inputs: {x: [B, H]}
    parameters: {scale: [H]}
    operators:
      up:   {block: nn.Dense, in: x, out_channels: F, has_bias: false}
      down: {block: nn.Dense, in: up, out_channels: H, has_bias: false}
      out:  {op: Mul, in: [down, scale]}
operators:
  layers: {block: layer, in: x, repeat: L}
  sum:    {op: Add, in: [layers, layers.0]}
  tied:   {op: MatMul, in: [sum, layers.1.up.weight], transpose_b: true}
)");
  EXPECT_EQ(outline(model.graph),
            "layers.0.up.matmul = MatMul(x, layers.0.up.weight) [4, 32]\n"
            "layers.0.down.matmul = MatMul(layers.0.up.matmul, layers.0.down.weight) [4, 8]\n"
            "layers.0.out = Mul(layers.0.down.matmul, layers.0.scale) [4, 8]\n"
            "layers.1.up.matmul = MatMul(layers.0.out, layers.1.up.weight) [4, 32]\n"
            "layers.1.down.matmul = MatMul(layers.1.up.matmul, layers.1.down.weight) [4, 8]\n"
            "layers.1.out = Mul(layers.1.down.matmul, layers.1.scale) [4, 8]\n"
            "layers.2.up.matmul = MatMul(layers.1.out, layers.2.up.weight) [4, 32]\n"
            "layers.2.down.matmul = MatMul(layers.2.up.matmul, layers.2.down.weight) [4, 8]\n"
            "layers.2.out = Mul(layers.2.down.matmul, layers.2.scale) [4, 8]\n"
            "sum = Add(layers.2.out, layers.0.out) [4, 8]\n"
            "tied = MatMul(sum, layers.1.up.weight) [4, 32]\n");
  const OperatorGraph& graph = model.graph;
  const GraphOperator& op = operator_of(graph, "layers.1.up.matmul");
  EXPECT_EQ(op.repeat_class, "layers.*.up.matmul");
  EXPECT_EQ(op.scope, "layers-CellList/1-layer/up-Dense");
  EXPECT_EQ(op.place.line, 9);
  EXPECT_EQ(graph.find_tensor("layers"), graph.find_tensor("layers.2.out"));  // a block's name is its result's
  EXPECT_EQ(graph.find_tensor("layers.0"), graph.find_tensor("layers.0.out"));
  EXPECT_EQ(graph.operations().size(), 4u);
  EXPECT_EQ(model.repeat_dims, std::vector<std::string>{"L"});
  EXPECT_EQ(model.free_dims, (std::vector<std::string>{"B", "H", "L"}));
}

TEST(ReadModelTest, BlocksInferTakeAndComputeDims) {
  const Model model = read(R"(shardplan: 1
dims: {N: 1000}
inputs: {x: [6, 10], y: [2, 10]}
blocks:
  halves:
    dims: {N: inferred, C: inferred, parts: given, half: C/parts}
    inputs: {x: [N, C]}
    operators: {a: {op: Reshape, in: x, shape: [N, parts, half]}}
operators:
  a: {block: halves, in: x, parts: 2}
  b: {block: halves, in: y, parts: 5}
outputs: [a, b]
)");
  EXPECT_EQ(outline(model.graph), "a.a = Reshape(x) [6, 2, 5]\nb.a = Reshape(y) [2, 5, 2]\n");
}

TEST(ReadModelTest, TheOrderOfLinesOnlyBreaksTies) {
  const Model model = read(R"(shardplan: 1
inputs: {x: [4]}
operators:
  last:  {op: Add, in: [b, a]}
  b:     {op: ReLU, in: x}
  a:     {op: Tanh, in: x}
)");
  EXPECT_EQ(outline(model.graph), "b = ReLU(x) [4]\na = Tanh(x) [4]\nlast = Add(b, a) [4]\n");
}

TEST(ReadModelTest, NumbersBecomeScalarsAndWordsStayNames) {
  const Model model = read(R"(shardplan: 1
dims: {D: 16}
dtype: bf16
inputs: {no: [4], n: {shape: [4], dtype: i32}}
constants: {scale: 1/sqrt(D), steps: {shape: [4], dtype: i32, fill: iota}}
operators:
  y:  {op: Mul, in: [no, scale]}
  on: {op: Add, in: [y, -0.5]}
  k:  {op: Add, in: [n, 1]}
  m:  {op: Add, in: [k, steps]}
outputs: [on, m]
)");
  const OperatorGraph& graph = model.graph;
  EXPECT_EQ(tensor_of(graph, "scale").fill, (Fill{Fill::Kind::kValue, 0.25}));
  EXPECT_EQ(tensor_of(graph, "on.in1").fill, (Fill{Fill::Kind::kValue, -0.5}));
  EXPECT_EQ(tensor_of(graph, "on.in1").type, (TensorType{{}, DataType::kBF16}));
  EXPECT_EQ(tensor_of(graph, "k.in1").type, (TensorType{{}, DataType::kI32}));
  EXPECT_EQ(tensor_of(graph, "steps").fill.kind, Fill::Kind::kIota);
  EXPECT_TRUE(tensor_of(graph, "on").is_output);
  EXPECT_FALSE(tensor_of(graph, "y").is_output);
}

TEST(ReadModelTest, SeveralResultsHaveNames) {
  const Model model = read(R"(shardplan: 1
inputs: {x: [4, 6]}
operators:
  split: {op: Split, in: x, axis: 1, output_num: 2, out: [a, b]}
  drop:  {op: Dropout, in: a, keep_prob: 0.5}
  sum:   {op: Add, in: [drop, b]}
)");
  const OperatorGraph& graph = model.graph;
  EXPECT_EQ(outline(graph), "split = Split(x) [4, 3]\ndrop = Dropout(a) [4, 3]\nsum = Add(drop, b) [4, 3]\n");
  EXPECT_EQ(operator_of(graph, "drop").results.size(), 2u);
  EXPECT_TRUE(graph.find_tensor("drop.mask"));
}

TEST(ReadModelTest, StrategiesStandBesideOrUnderTheFullName) {
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
    return to_text(operator_of(model.graph, name).strategy.in.at(i));
  };
  EXPECT_EQ(in("layers.0.fc.matmul", 1), "[{mp, dp}, {}]");
  EXPECT_EQ(in("layers.1.fc.matmul", 0), "[]");  // a plain name beats one with '*'
  EXPECT_EQ(in("layers.1.fc.matmul", 1), "[{}, {mp}]");
  EXPECT_EQ(in("layers.1.act"), "[{dp}, {}]");
  EXPECT_EQ(in("a"), "[1, 8]");
  EXPECT_EQ(in("b"), "[{dp}, {}] unreduced={mp}");
  EXPECT_EQ(to_text(operator_of(model.graph, "b").strategy.out.at(0)), "null");
  EXPECT_EQ(in("c"), "[2, 4]");
  EXPECT_EQ(to_text(*tensor_of(model.graph, "layers.1.fc.weight").layout), "[4, 1]");
  EXPECT_EQ(to_text(*tensor_of(model.graph, "x").layout), "[{dp}, {}]");
  EXPECT_EQ(operator_of(model.graph, "a").strategy.in[0].place, (SourcePlace{"m.yaml", 11, 48}));

  ModelOverrides overrides;
  overrides.strategies = {
      {"layers.*.fc.matmul", "((1, 2), (1, 2))"}, {"layers.0.fc.weight", "[{mp}, {}]"}, {"a.out_strategy", "[null]"}};
  const Model set = read(good, overrides);
  EXPECT_EQ(to_text(operator_of(set.graph, "layers.1.fc.matmul").strategy.in.at(0)), "[1, 2]");
  EXPECT_EQ(to_text(*tensor_of(set.graph, "layers.0.fc.weight").layout), "[{mp}, {}]");
  EXPECT_EQ(to_text(*tensor_of(set.graph, "layers.1.fc.weight").layout), "[4, 1]");
  EXPECT_EQ(to_text(operator_of(set.graph, "a").strategy.out.at(0)), "null");
  overrides.strategies = {{"layrs.0.fc.weight", "[1, 1]"}};
  EXPECT_EQ(faults_of(good, overrides),
            "--set: error: no operator, block or tensor 'layrs.0.fc.weight'; did you mean 'layers.*.fc.weight'?");
}

TEST(ReadModelTest, BordersOfBlocksAreIdentities) {
  const Model model = read_model("configs/basic-blocks.yaml");
  const GraphOperator& in = operator_of(model.graph, "block1.in0");
  EXPECT_EQ(model.graph.operations()[in.operation].type->name, "Identity");
  EXPECT_EQ(to_text(in.strategy.in.at(0)), "[1, 8]");
  EXPECT_EQ(in.strategy.in[0].place, (SourcePlace{"configs/basic-blocks.yaml", 14, 52}));
  EXPECT_EQ(in.border_of, "block1");
  EXPECT_EQ(to_text(operator_of(model.graph, "block1.out0").strategy.out.at(0)), "null");
  EXPECT_EQ(operator_of(model.graph, "block1.gelu").level, 0);
  EXPECT_EQ(operator_of(model.graph, "block1.gelu").level_scope, "block1");
  EXPECT_FALSE(operator_of(model.graph, "block1.gelu").is_data_parallel);
  EXPECT_TRUE(operator_of(model.graph, "block2.gelu").is_data_parallel);
  EXPECT_FALSE(operator_of(model.graph, "block2.gelu").level);
}

TEST(ReadModelTest, ModesAndPlacesHoldInside) {
  const Model model = read(R"(shardplan: 1
inputs: {x: [8, 8]}
blocks:
  two:
    inputs: {x: [8, 8]}
    operators:
      a: {op: ReLU, in: x}
      b: {op: Tanh, in: a, place: {role: MS_WORKER, rank: 2}, in_strategy: [[1, 8]]}
operators:
  semi:   {block: two, in: x, place: {role: MS_WORKER, rank: 1}}
  auto:   {block: two, in: semi, parallel_mode: auto_parallel, recompute: true, comm_fusion: 3}
  shard:  {block: two, in: auto, in_strategy: [[8, 1]]}
  stored: {op: ReLU, in: shard, strategy: [{dp}, {}]}
  last:   {op: ReLU, in: stored}
parallel: {parallel_mode: semi_auto_parallel, device_num: 8}
)");
  const OperatorGraph& graph = model.graph;
  EXPECT_TRUE(operator_of(graph, "semi.a").is_data_parallel);
  EXPECT_FALSE(operator_of(graph, "semi.b").is_data_parallel);  // has a strategy
  EXPECT_EQ(operator_of(graph, "semi.a").worker, 1);
  EXPECT_EQ(operator_of(graph, "semi.b").worker, 2);
  EXPECT_FALSE(operator_of(graph, "auto.a").is_data_parallel);
  EXPECT_EQ(operator_of(graph, "auto.a").recompute_scope, "auto");
  EXPECT_EQ(operator_of(graph, "semi.a").recompute_scope, "");
  EXPECT_EQ(operator_of(graph, "auto.a").comm_fusion, 3);
  EXPECT_FALSE(operator_of(graph, "shard.a").is_data_parallel);  // searched between its borders
  EXPECT_TRUE(operator_of(graph, "last").is_data_parallel);
  EXPECT_EQ(operator_of(graph, "last").operands[0], *graph.find_tensor("stored.out0"));
  EXPECT_EQ(to_text(operator_of(graph, "stored.out0").strategy.out.at(0)), "[{dp}, {}]");
}

TEST(ReadModelTest, OldMindSporeOverridesOutStrategies) {
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
  EXPECT_EQ(to_text(operator_of(model.graph, "a.out0").strategy.out.at(0)), "null");
  EXPECT_EQ(model.notices,
            std::vector<std::string>{
                "out_strategy of 1 block gives way to data parallel in training (compat: mindspore-1.7)"});
  EXPECT_EQ(operator_of(model.graph, "a.a.matmul").recompute_scope, "a.a");
  const Model kept = read(text.substr(0, text.find("parallel:")));
  EXPECT_EQ(to_text(operator_of(kept.graph, "a.out0").strategy.out.at(0)), "[1, 8]");
  EXPECT_TRUE(kept.notices.empty());
}

TEST(ReadModelTest, IntegerInputsKnowWhatTheyIndex) {
  const Model gpt = read_model("configs/gpt2-small.yaml");
  EXPECT_EQ(tensor_of(gpt.graph, "tokens").index_extent, 50304);
  EXPECT_EQ(tensor_of(gpt.graph, "labels").index_extent, 50304);
  const Model model = read(R"(shardplan: 1
inputs: {ids: {shape: [4, 3], dtype: i32}, mask: {shape: [12], dtype: i32}, x: [7, 2]}
operators:
  flat: {op: Reshape, in: ids, shape: [12]}
  rows: {op: Gather, in: [x, flat]}
  hot:  {op: OneHot, in: flat, depth: 5}
  sum:  {op: Add, in: [flat, mask]}
outputs: [rows, hot, sum]
)");
  EXPECT_EQ(tensor_of(model.graph, "ids").index_extent, 5);  // the smaller of 7 and 5
  EXPECT_EQ(tensor_of(model.graph, "mask").index_extent, 0);
  EXPECT_EQ(tensor_of(model.graph, "x").index_extent, 0);
}

TEST(ReadModelTest, MixedPrecisionKeepsTheLossInFullPrecision) {
  const Model gpt = read_model("configs/gpt2-small.yaml");
  EXPECT_EQ(tensor_of(gpt.graph, "wte.embedding_table").type.dtype, DataType::kF16);
  EXPECT_EQ(tensor_of(gpt.graph, "head").type.dtype, DataType::kF16);
  EXPECT_EQ(tensor_of(gpt.graph, "loss.cast").type.dtype, DataType::kF32);
  EXPECT_EQ(gpt.graph.tensor(*gpt.graph.loss()).type, (TensorType{{}, DataType::kF32}));
}

TEST(ReadModelTest, OptionsHaveMindSporesNamesAndOurDefaults) {
  const Model standard = read("shardplan: 1\ninputs: {x: [8]}\noperators: {a: {op: ReLU, in: x}}\n");
  EXPECT_EQ(standard.parallel.parallel_mode, ParallelMode::kAutoParallel);
  EXPECT_EQ(standard.parallel.search, "auto");
  EXPECT_EQ(standard.cluster, "ascend-910");
  EXPECT_FALSE(standard.training);
  const Model model = read(R"(shardplan: 1
inputs: {x: [8], y: [8]}
operators: {a: {op: Add, in: [x, y]}, loss: {op: ReduceSum, in: a}}
loss: loss
training: {optimizer: adamw, learning_rate: 6e-4, beta2: 0.95, micro_batches: 4, mixed_precision: bf16}
parallel:
  parallel_mode: auto_parallel
  search_mode: sharding_propagation
  device_num: 8
  mesh: {dp: 2, mp: 4}
  dataset_strategy: ((8,), ())
  level: 2
  device: GPU
  comm_fusion: {allreduce: {mode: size, config: 32}}
  strategy_ckpt_save_file: out.ckpt
)");
  EXPECT_EQ(model.parallel.search, "propagation");
  EXPECT_EQ(model.parallel.mesh, (std::vector<std::pair<std::string, std::int64_t>>{{"dp", 2}, {"mp", 4}}));
  EXPECT_EQ(model.parallel.comm_fusion.at("allreduce").config, std::vector<std::int64_t>{32});
  EXPECT_EQ(model.parallel.strategy_ckpt_save_file, "out.ckpt");
  EXPECT_EQ(model.cluster, "dgx-a100");
  EXPECT_EQ(to_text(*tensor_of(model.graph, "x").layout), "[8]");
  EXPECT_EQ(to_text(*tensor_of(model.graph, "y").layout), "[]");
  EXPECT_EQ(model.training->learning_rate, 6e-4);
  EXPECT_EQ(model.training->micro_batches, 4);
  EXPECT_EQ(model.training->mixed_precision, DataType::kBF16);
}

TEST(ReadModelTest, OwnOperatorsFollowTheirRule) {
  const Model model = read(R"(shardplan: 1
inputs: {x: [2, 3, 4]}
parameters: {w: [4, 5]}
custom_operators: {Mix: {rule: "b s h, h f -> b s f", factors: {h: max}, flops: 6*b*s*h*f}}
operators: {mix: {op: Mix, in: [x, w]}}
)");
  const Operation& operation = model.graph.operation(*model.graph.find_operator("mix"));
  EXPECT_EQ(operation.results, (std::vector<TensorType>{{{2, 3, 5}, DataType::kF32}}));
  EXPECT_EQ(operation.rule.factors[2].reduction, Reduction::kMax);
  EXPECT_EQ(operation.type->flops_per_point, 6);
  EXPECT_EQ(operation.type->kernel, nullptr);
}

TEST(ReadModelTest, DimsOnTheCommandLine) {
  ModelOverrides overrides;
  overrides.dims = {{"D", 10}};
  const Model model = read_model("configs/basic-blocks.yaml", overrides);
  EXPECT_EQ(model.dims, (std::map<std::string, std::int64_t>{{"B", 32}, {"D", 10}}));
  EXPECT_EQ(tensor_of(model.graph, "x").type.shape, (Shape{32, 10}));
  overrides.dims = {{"E", 10}, {"B", 0}};
  EXPECT_EQ(faults_of("shardplan: 1\ndims: {B: 8}\ninputs: {x: [B]}\noperators: {a: {op: ReLU, in: x}}\n", overrides),
            "--dim: error: B is 0; expected at least 1\n"
            "--dim: error: no dim 'E'\n    the model's dims: B");
}

TEST(ReadModelTest, AllFaultsInOneRun) {
  EXPECT_EQ(faults_of(R"(shardplan: 1
model: broken
dims: {D: 16}
inputs: {x: [8, D]}
parameters: {weight: [D, D]}
operators:
  fc1: {block: nn.Dense, in: x, out_channels: D}
  act: {op: Relu, in: fc1}
  fc2: {op: MatMul, in: [act, weigth]}
outputs: [fc2]
parallel: {device_num: 8, paralel_mode: auto_parallel}
)"),
            "m.yaml:8:13: error: act: no operator 'Relu'; did you mean 'ReLU'?\n"
            "m.yaml:9:31: error: fc2: no tensor 'weigth' here; did you mean 'weight' (parameter, line 5)?\n"
            "m.yaml:11:27: error: parallel: unknown key 'paralel_mode'; did you mean 'parallel_mode'?\n"
            "(shapes behind act were not checked)");
}

}  // namespace
}  // namespace shardplan
