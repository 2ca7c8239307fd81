// What MindSpore's data parallelism leaves to each device: its initial parameters, layerwise-parallel parameters,
// statistics of its own part of the batch. Each is compared with what MindSpore documents, written out by hand or
// computed by models of one device's rows.
#include "graph/per_device.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "base/random.h"
#include "model/read_model.h"
#include "planner/model_planner.h"
#include "program/program_checker.h"
#include "simulator/execute/simulate.h"
#include "simulator/proof/prove.h"
#include "tests/simulator/planned_step.h"

namespace shardplan {
namespace {

int gradient_sums(const PlannedStep& planned) {
  const auto& instructions = planned.plan.program.instructions;
  return static_cast<int>(std::count_if(instructions.begin(), instructions.end(), [](const Instruction& instruction) {
    return instruction.kind == InstructionKind::kCollective && instruction.origin->kind == Origin::Kind::kMirror;
  }));
}

// --- layerwise_parallel ----------------------------------------------------------------------------------------------

// Device d's loss is the mean over its 2 x 2 errors, and trains its own w; v takes the mean of the four gradients.
TEST(PerDeviceTest, ADeviceTrainsItsOwnParameterByItsOwnLoss) {
  const PlannedStep planned(two_products("{shape: [3, 4], layerwise_parallel: true}"));
  const ReferenceStep step = planned.reference(5);
  const auto given = [&](const char* name) { return draw_tensor(planned.graph(), planned.id(name), 5, 0); };
  const TensorValues x = given("x"), t = given("t"), w = given("w"), v = given("v");
  ASSERT_EQ(w.size(), 4u * 3 * 4);
  TensorValues new_w = w, new_v = v;
  double loss = 0;
  for (std::size_t d = 0; d < 4; ++d) {
    for (std::size_t row = 2 * d; row < 2 * d + 2; ++row) {
      double h[4] = {0, 0, 0, 0};
      for (std::size_t n = 0; n < 4; ++n) {
        for (std::size_t k = 0; k < 3; ++k) h[n] += x[row * 3 + k] * w[(d * 3 + k) * 4 + n];
      }
      for (std::size_t j = 0; j < 2; ++j) {
        double e = -t[row * 2 + j];
        for (std::size_t n = 0; n < 4; ++n) e += h[n] * v[n * 2 + j];
        loss += e * e / 4 / 4;
        for (std::size_t n = 0; n < 4; ++n) {
          new_v[n * 2 + j] -= 0.5 * (2 * e / 4) * h[n] / 4;  // a quarter of each device's
          for (std::size_t k = 0; k < 3; ++k) {
            new_w[(d * 3 + k) * 4 + n] -= 0.5 * (2 * e / 4) * v[n * 2 + j] * x[row * 3 + k];
          }
        }
      }
    }
  }
  EXPECT_NEAR(step.tensors[planned.id("loss")][0], loss, 1e-12);
  const TensorValues& found_w = planned.updated(step, "w");
  const TensorValues& found_v = planned.updated(step, "v");
  for (std::size_t i = 0; i < w.size(); ++i) EXPECT_NEAR(found_w[i], new_w[i], 1e-12) << i;
  for (std::size_t i = 0; i < v.size(); ++i) EXPECT_NEAR(found_v[i], new_v[i], 1e-12) << i;
}

TEST(PerDeviceTest, ItsGradientIsNotSummedAndThePlanIsProven) {
  const PlannedStep own(two_products("{shape: [3, 4], layerwise_parallel: true}"));
  EXPECT_EQ(gradient_sums(own), 1);  // of v
  EXPECT_EQ(gradient_sums(PlannedStep(two_products("[3, 4]"))), 2);
  EXPECT_TRUE(is_equal(own));
  const ValueId stored =
      std::find_if(own.plan.program.given.begin(), own.plan.program.given.end(), [&](const Binding& given) {
        return given.tensor == own.id("w");
      })->value;
  EXPECT_EQ(own.plan.program.values[stored].local_shape, (Shape{1, 3, 4}));
  ASSERT_FALSE(own.plan.notices.empty());
  EXPECT_NE(own.plan.notices.back().find("each device has its own values of w"), std::string::npos);
}

TEST(PerDeviceTest, DenseLayersWithTheirOwnWeightsAndBiasesOfAnyRank) {
  for (const std::string shape : {"[8, 3]", "[8, 5, 3]"}) {
    const PlannedStep planned("shardplan: 1\ncluster: dgx-a100\ninputs: {x: " + shape + R"(}
blocks:
  own:
    dims: {n: given}
    inputs: {x: )" + shape +
                              R"(}
    parameters: {w: {shape: [n, 3], layerwise_parallel: true}, b: {shape: [n], layerwise_parallel: true}}
    operators:
      product: {op: MatMul, in: [x, w], transpose_b: true}
      bias:    {op: BiasAdd, in: [product, b]}
operators:
  a:    {block: own, in: x, n: 6}
  r:    {op: ReLU, in: a}
  fc:   {block: nn.Dense, in: r, out_channels: 4}
  q:    {op: Square, in: fc}
  loss: {op: ReduceMean, in: q}
loss: loss
training: {optimizer: adamw, mixed_precision: bf16, clip_norm: 1}
parallel: {parallel_mode: data_parallel, device_num: 4}
)");
    EXPECT_TRUE(is_equal(planned)) << shape;
    EXPECT_EQ(planned.graph().operation(*planned.graph().find_operator("a.product")).type->name, "PerDevice.MatMul");
  }
}

TEST(PerDeviceTest, WhatCannotBeWrittenForOneDeviceIsAnErrorAtItsPlace) {
  EXPECT_NE(
      fault_of_model(two_products("{shape: [3, 4], layerwise_parallel: true}", "mesh: {dp: 4}"))
          .find("m.yaml:4:14: error: w: layerwise_parallel is for parallel_mode data_parallel and hybrid_parallel"),
      std::string::npos);
  // A sum over the rows, or a norm over the batch, leaves no rows to concatenate.
  const auto reader = [](const std::string& line) {
    return "shardplan: 1\ncluster: dgx-a100\ninputs: {x: [8, 4]}\nparameters: {w: {shape: [4], layerwise_parallel: "
           "true}}\noperators:\n  h: {op: Mul, in: [x, w]}\n  c: " +
           line +
           "\n  loss: {op: ReduceMean, in: c}\nloss: loss\ntraining: {optimizer: sgd}\n"
           "parallel: {parallel_mode: data_parallel}\n";
  };
  const std::pair<const char*, const char*> kRefused[] = {
      {"{op: MatMul, in: [w2, h], transpose_a: true}", "w2: layerwise_parallel: c (MatMul) reads it"},
      {"{op: Concat, in: [h, w2], axis: 0}", "w2: layerwise_parallel: c (Concat) reads it"},
  };
  for (const auto& [line, part] : kRefused) {
    std::string text = reader(line);
    text.replace(text.find("{w: "), 4, "{w2: {shape: [8, 4], layerwise_parallel: true}, w: ");
    const std::string fault = fault_of_model(text);
    EXPECT_NE(fault.find(std::string("m.yaml:4:14: error: ") + part), std::string::npos) << line << "\n" << fault;
  }
  const std::string norm = R"(shardplan: 1
cluster: dgx-a100
inputs: {x: [8, 2, 4, 4]}
parameters: {g: {shape: [2], layerwise_parallel: true}}
operators:
  c: {op: BatchNorm, in: [x, g, b, m, v], is_training: true}
  loss: {op: ReduceMean, in: c}
loss: loss
training: {optimizer: sgd}
parallel: {parallel_mode: data_parallel}
)";
  std::string with_rest = norm;
  with_rest.replace(with_rest.find("{g: "), 4,
                    "{b: [2], m: {shape: [2], requires_grad: false}, v: {shape: [2], requires_grad: false}, g: ");
  const std::string fault = fault_of_model(with_rest);
  EXPECT_NE(fault.find("g: layerwise_parallel: c (BatchNorm) reads it, and computes with all rows"), std::string::npos)
      << fault;
  EXPECT_NE(fault.find("batch_norm: local"), std::string::npos) << fault;
  std::string output = reader("{op: Tanh, in: h}");
  output.replace(output.find("operators:\n"), 11, "operators:\n  t: {op: Tanh, in: w}\n");
  output.replace(output.find("loss: loss"), 10, "outputs: [t]\nloss: loss");
  EXPECT_NE(fault_of_model(output).find("t: every device has another one"), std::string::npos)
      << fault_of_model(output);
  // Rows that are not a batch: the transposed input of the first product.
  const std::string transposed = R"(shardplan: 1
cluster: dgx-a100
inputs: {x: [8, 8]}
parameters: {w: {shape: [8, 2], layerwise_parallel: true}}
operators:
  xt:   {op: Transpose, in: x, perm: [1, 0]}
  h:    {op: MatMul, in: [xt, w]}
  loss: {op: ReduceMean, in: h}
loss: loss
training: {optimizer: sgd}
parallel: {parallel_mode: data_parallel}
)";
  EXPECT_NE(
      fault_of_model(transposed).find("m.yaml:4:14: error: w: every device has its own (layerwise_parallel), but"),
      std::string::npos)
      << fault_of_model(transposed);
  // 8 rows for 3 devices.
  std::string uneven = two_products("{shape: [3, 4], layerwise_parallel: true}", "parallel_mode: data_parallel");
  uneven.replace(uneven.find("device_num: 4"), 13, "device_num: 3");
  EXPECT_NE(fault_of_model(uneven).find("3 devices do not divide dimension 0 of x, which is 8"), std::string::npos)
      << fault_of_model(uneven);
}

TEST(PerDeviceTest, OnOneDeviceNothingChanges) {
  const Model model = read_model_text(two_products("{shape: [3, 4], layerwise_parallel: true}"), "m.yaml");
  const OperatorGraph one = with_per_device_parts(model.graph, 1, false);
  EXPECT_EQ(one.operators().size(), model.graph.operators().size());
  EXPECT_EQ(one.tensor(*one.find_tensor("w")).type.shape, (Shape{3, 4}));
}

/// Layers, some of which are layerwise-parallel, on 2 to 8 devices, with random training options.
std::string random_network(Random& random) {
  const std::int64_t devices = 2 + static_cast<std::int64_t>(random.below(7));
  const std::int64_t micro_batches = 1 + static_cast<std::int64_t>(random.below(2));
  const std::int64_t channels = 4 + static_cast<std::int64_t>(random.below(3));
  const std::string rows = random.below(2) == 0 ? "B" : "B, 3";
  std::string parameters, operators, last = "x";
  const auto add = [&](const std::string& line) {
    const std::string name = fmt::format("l{}", operators.size());
    operators += fmt::format("  {}: {}\n", name, fmt::format(fmt::runtime(line), last, name));
    last = name;
    return name;
  };
  const std::size_t layers = 1 + random.below(4);
  for (std::size_t i = 0; i < layers; ++i) {
    const std::string own = fmt::format("p{}", i);
    const bool is_product = random.below(2) == 0;
    const char* const shapes[] = {"[C]", "[1, C]"};
    parameters += fmt::format("{}{}: {{shape: {}, layerwise_parallel: {}}}", i == 0 ? "" : ", ", own,
                              is_product ? "[C, C]" : shapes[random.below(2)], i == 0 || random.below(3) > 0);
    if (is_product) {
      add(fmt::format("{{{{op: MatMul, in: [{{}}, {}], transpose_b: {}}}}}", own, random.below(2) == 0));
    } else {
      const char* const types[] = {"Add", "Sub", "Mul"};
      const bool is_first = random.below(2) == 0;
      add(fmt::format("{{{{op: {}, in: [{}, {}]}}}}", types[random.below(3)], is_first ? own : "{}",
                      is_first ? "{}" : own));
    }
    if (random.below(2) == 0) add("{{op: Tanh, in: {}}}");
    if (random.below(3) == 0) add("{{block: nn.Dense, in: {}, out_channels: C}}");
  }
  add("{{op: Square, in: {}}}");
  const char* const optimizers[] = {"sgd", "momentum", "adamw"};
  return fmt::format(
      "shardplan: 1\ncluster: dgx-a100\ndims: {{B: {}, C: {}}}\ninputs: {{x: [{}, C]}}\nparameters: "
      "{{{}}}\noperators:\n{}"
      "  loss: {{op: ReduceMean, in: {}}}\nloss: loss\ntraining: {{optimizer: {}, micro_batches: {}, clip_norm: {}}}\n"
      "parallel: {{parallel_mode: data_parallel, device_num: {}, gradients_mean: {}, enable_parallel_optimizer: {}, "
      "parameter_broadcast: {}}}\n",
      devices * 2 * micro_batches, channels, rows, parameters, operators, last, optimizers[random.below(3)],
      micro_batches, random.below(2), devices, random.below(2) == 0, random.below(2) == 0, random.below(2) == 0);
}

TEST(PerDeviceTest, RandomNetworksAreProven) {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    Random random(seed);
    const std::string text = random_network(random);
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    const PlannedStep planned(text);
    EXPECT_EQ(check_program(planned.plan.program, planned.graph()), "");
    EXPECT_TRUE(is_equal(planned));
  }
}

/// A layer, some of whose parameters are layerwise-parallel, after an input of images [B, C, 4, 4] or rows [B, 6, C].
struct OwnLayer {
  const char* name;
  bool is_of_images;
  const char* parameters;  // their shapes; `own` is where a parameter may be layerwise-parallel
  const char* operators;   // of "x"; the result is "y"
};
const OwnLayer kOwnLayers[] = {
    {"convolution", true, "w: {shape: [C, C, 3, 3], own}, b: {shape: [C], own}",
     "  c: {op: Conv2D, in: [x, w], pad_mode: same}\n  y: {op: BiasAdd, in: [c, b]}\n"},
    {"batch_norm", true,
     "g: {shape: [C], own}, b: {shape: [C], own}, m: {shape: [C], requires_grad: false}, v: {shape: [C], "
     "requires_grad: "
     "false}",
     "  y: {op: BatchNorm, in: [x, g, b, m, v], is_training: true}\n"},
    {"group_norm", true, "g: {shape: [C], own}, b: {shape: [C], own}",
     "  y: {op: GroupNorm, in: [x, g, b], num_groups: 2}\n"},
    {"layer_norm", false, "g: {shape: [C], own}, b: {shape: [C], own}", "  y: {op: LayerNorm, in: [x, g, b]}\n"},
    {"rms_norm", false, "g: {shape: [C], own}", "  y: {op: RmsNorm, in: [x, g]}\n"},
    {"batched_product", false, "w: {shape: [6, C], own}, u: {shape: [C, 6], own}",
     "  r: {op: Tanh, in: w}\n  p: {op: MatMul, in: [u, r]}\n  y: {op: MatMul, in: [x, p]}\n"},
    {"embedding", false, "t: {shape: [9, C], own}",
     "  e: {op: Gather, in: [t, ids], axis: 0}\n  y: {op: Add, in: [x, e]}\n"},
    {"elementwise", false, "a: {shape: [C], own}, b: {shape: [6, C], own}, c: {shape: [1], own}",
     "  h: {op: Mul, in: [x, a]}\n  i: {op: Maximum, in: [b, h]}\n  s: {op: Sigmoid, in: c}\n  y: {op: Sub, in: [i, "
     "s]}\n"},
    {"prelu", true, "w: {shape: [C], own}", "  y: {op: PReLU, in: [x, w]}\n"},
};

class OwnLayerTest : public testing::TestWithParam<OwnLayer> {};

/// Of the layer's parameters, those of `own` are layerwise_parallel, or not.
std::string network_of(const OwnLayer& layer, Random& random) {
  const std::int64_t devices = 2 + static_cast<std::int64_t>(random.below(3));
  const std::int64_t micro_batches = 1 + static_cast<std::int64_t>(random.below(2));
  std::string parameters = layer.parameters;
  bool is_first = true;
  for (std::size_t at = parameters.find(", own"); at != std::string::npos; at = parameters.find(", own")) {
    const bool is_own = is_first || random.below(2) == 0;
    parameters.replace(at, 5, is_own ? ", layerwise_parallel: true" : "");
    is_first = false;
  }
  const char* const optimizers[] = {"sgd", "momentum", "adamw"};
  return fmt::format(
      "shardplan: 1\ncluster: dgx-a100\ndims: {{B: {}, C: 4}}\ninputs: {{data: {}, ids: {{shape: [B, 6], dtype: "
      "i32}}}}\nparameters: {{{}}}\noperators:\n"
      "  before: {{op: Tanh, in: data}}\n{}  squares: {{op: Square, in: y}}\n  loss: {{op: ReduceMean, in: squares}}\n"
      "loss: loss\n"
      "training: {{optimizer: {}, micro_batches: {}}}\n"
      "parallel: {{parallel_mode: data_parallel, device_num: {}, batch_norm: local, gradients_mean: {}, "
      "enable_parallel_optimizer: {}}}\n",
      devices * 2 * micro_batches, layer.is_of_images ? "[B, C, 4, 4]" : "[B, 6, C]", parameters,
      [&] {
        std::string text = layer.operators;
        for (const char* x : {"[x,", ", x]", "in: x"}) {
          for (std::size_t at = text.find(x); at != std::string::npos; at = text.find(x)) {
            text.replace(text.find('x', at), 1, "before");
          }
        }
        return text;
      }(),
      optimizers[random.below(3)], micro_batches, devices, random.below(2) == 0, random.below(2) == 0);
}

void drop_unread_ids(std::string& text) {
  if (text.find("ids]") != std::string::npos) return;
  const std::string input = ", ids: {shape: [B, 6], dtype: i32}";
  text.erase(text.find(input), input.size());
}

TEST_P(OwnLayerTest, IsProvenAndTrainedByItsOwnDevice) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Random random(seed);
    std::string text = network_of(GetParam(), random);
    drop_unread_ids(text);
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    const PlannedStep planned(text);
    EXPECT_EQ(check_program(planned.plan.program, planned.graph()), "");
    EXPECT_TRUE(is_equal(planned));
  }
}

/// With equal numbers and equal rows on every device, each layerwise-parallel layer learns what one device's layer
/// would.
TEST_P(OwnLayerTest, LearnsWhatOneDeviceLearnsAlone) {
  std::string parameters = GetParam().parameters;
  for (std::size_t at = parameters.find(", own"); at != std::string::npos; at = parameters.find(", own")) {
    parameters.replace(at, 5, ", layerwise_parallel: true");
  }
  const auto text = [&](int rows, const std::string& parallel) {
    OwnLayer layer = GetParam();
    layer.parameters = parameters.c_str();
    Random random(1);
    std::string all = network_of(layer, random);
    all.replace(all.find("B: "), all.find(", C: 4") - all.find("B: "), fmt::format("B: {}", rows));
    all.replace(all.find("\ntraining:") + 1, std::string::npos,
                "training: {optimizer: sgd, learning_rate: 0.5}\nparallel: {" + parallel + "}\n");
    drop_unread_ids(all);
    return all;
  };
  const PlannedStep planned(text(6, "parallel_mode: data_parallel, device_num: 3, batch_norm: local"));
  std::string alone_text = text(2, "parallel_mode: stand_alone");
  for (std::size_t at = alone_text.find(", layerwise_parallel: true"); at != std::string::npos;
       at = alone_text.find(", layerwise_parallel: true")) {
    alone_text.erase(at, std::string(", layerwise_parallel: true").size());
  }
  const PlannedStep alone(alone_text);
  const ReferenceStep step = planned.reference(3);
  for (std::size_t d = 0; d < 3; ++d) {
    const auto part_of = [&](const TensorValues& whole, std::size_t size) {
      const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(d * size);
      return TensorValues(begin, begin + static_cast<std::ptrdiff_t>(size));
    };
    const ReferenceStep own = run_reference(
        alone.graph(),
        [&](TensorId tensor, std::uint64_t) {
          const GraphTensor& wanted = alone.graph().tensor(tensor);
          return part_of(draw_tensor(planned.graph(), planned.id(wanted.name), 3, 0),
                         static_cast<std::size_t>(num_elements(wanted.type.shape)));
        },
        3, 0, Precision::kFloat64);
    for (const TensorId id : alone.graph().tensors().ids()) {
      const GraphTensor& tensor = alone.graph().tensor(id);
      if (tensor.kind != TensorKind::kParameter) continue;
      const TensorValues& expected = alone.updated(own, tensor.name);
      const TensorValues found = part_of(planned.updated(step, tensor.name), expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_NEAR(found[i], expected[i], 1e-11) << tensor.name << " of device " << d << " at " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, OwnLayerTest, testing::ValuesIn(kOwnLayers),
                         [](const auto& layer) { return std::string(layer.param.name); });

// The sum of the devices' gradients is their mean times the number of devices; a layerwise-parallel parameter has no
// sum.
TEST(PerDeviceTest, OwnGradientsAreNotSummedWhereOthersAre) {
  const std::string own = "{shape: [3, 4], layerwise_parallel: true}";
  const PlannedStep whole(two_products(own));
  const PlannedStep sums(two_products(own, "parallel_mode: data_parallel, mesh: {dp: 4}, gradients_mean: false"));
  const ReferenceStep of_whole = whole.reference(5), of_sums = sums.reference(5);
  const auto change = [](const PlannedStep& planned, const ReferenceStep& step, const char* name, std::size_t i) {
    return planned.updated(step, name)[i] - draw_tensor(planned.graph(), planned.id(name), 5, 0)[i];
  };
  for (std::size_t i = 0; i < 4u * 3 * 4; ++i) {
    EXPECT_NEAR(change(sums, of_sums, "w", i), change(whole, of_whole, "w", i), 1e-12);
  }
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_NEAR(change(sums, of_sums, "v", i), 4 * change(whole, of_whole, "v", i), 1e-12);
  }
  EXPECT_TRUE(is_equal(sums));
}

// A gradient that is accumulated over the micro-batches is complete after the last of them, and multiplied by the
// number of devices there.
TEST(PerDeviceTest, TheSumOfMeansIsTakenBehindTheLastMicroBatch) {
  const PlannedStep planned(R"(shardplan: 1
cluster: dgx-a100
dims: {B: 32, C: 8}
inputs: {x: [B, C]}
operators:
  fc:   {block: nn.Dense, in: x, out_channels: C}
  s:    {op: Square, in: fc}
  loss: {op: ReduceMean, in: s}
loss: loss
training: {optimizer: momentum, micro_batches: 2}
parallel: {parallel_mode: data_parallel, gradients_mean: false, mesh: {dp: 8}}
)");
  EXPECT_EQ(check_program(planned.plan.program, planned.graph()), "");
  EXPECT_EQ(gradient_sums(planned), 2);
  EXPECT_TRUE(is_equal(planned));
}

// Layerwise-parallel parameters of 128 devices are proven on a smaller mesh, with one parameter for each of its
// devices.
TEST(PerDeviceTest, ManyDevicesAreProvenOnASmallerMesh) {
  const PlannedStep planned(R"(shardplan: 1
cluster: dgx-a100x16
dims: {B: 256, C: 32}
inputs: {x: [B, C]}
parameters: {w: {shape: [C, C], layerwise_parallel: true}}
operators:
  h:    {op: MatMul, in: [x, w]}
  s:    {op: Square, in: h}
  loss: {op: ReduceMean, in: s}
loss: loss
training: {optimizer: momentum}
parallel: {parallel_mode: data_parallel}
)");
  const Proof proof = prove(planned.plan, {});
  EXPECT_TRUE(proof.is_proven()) << proof.shrinking.refusal;
  EXPECT_LT(proof.validation.num_devices, 128);
}

// --- batch normalisation
// -------------------------------------------------------------------------------------------------

std::string normalised(int rows, const std::string& parallel) {
  return "shardplan: 1\ncluster: dgx-a100\ninputs: {x: [" + std::to_string(rows) + ", 2, 2, 3], t: [" +
         std::to_string(rows) + R"(, 2, 2, 3]}
operators:
  bn:   {block: nn.BatchNorm2d, in: x}
  e:    {op: Sub, in: [bn, t]}
  s:    {op: Square, in: e}
  loss: {op: ReduceMean, in: s}
loss: loss
training: {optimizer: sgd, learning_rate: 0.5}
parallel: {)" +
         parallel + "}\n";
}

// Four models of two rows, each on one device with its own statistics; shared parameters take the mean of the results
// that the four models would get alone.
TEST(PerDeviceTest, LocalBatchNormIsThatOfEachDevicesRows) {
  const PlannedStep planned(normalised(8, "parallel_mode: data_parallel, device_num: 4, batch_norm: local"));
  const PlannedStep alone(normalised(2, "parallel_mode: stand_alone"));
  const ReferenceStep step = planned.reference(3);
  TensorValues gamma(2, 0.0);
  for (std::size_t d = 0; d < 4; ++d) {
    const ReferenceStep own = run_reference(
        alone.graph(),
        [&](TensorId tensor, std::uint64_t) {
          const GraphTensor& wanted = alone.graph().tensor(tensor);
          TensorValues whole = draw_tensor(planned.graph(), planned.id(wanted.name), 3, 0);
          const auto size = static_cast<std::size_t>(num_elements(wanted.type.shape));
          if (whole.size() == size) return whole;
          const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(d * size);
          return TensorValues(begin, begin + static_cast<std::ptrdiff_t>(size));
        },
        3, 0, Precision::kFloat64);
    for (std::size_t c = 0; c < 2; ++c) {
      gamma[c] += alone.updated(own, "bn.gamma")[c] / 4;
      EXPECT_NEAR(planned.updated(step, "bn.moving_mean")[2 * d + c], alone.updated(own, "bn.moving_mean")[c], 1e-12);
      EXPECT_NEAR(planned.updated(step, "bn.moving_variance")[2 * d + c], alone.updated(own, "bn.moving_variance")[c],
                  1e-12);
    }
  }
  for (std::size_t c = 0; c < 2; ++c) EXPECT_NEAR(planned.updated(step, "bn.gamma")[c], gamma[c], 1e-12);
  EXPECT_TRUE(is_equal(planned));
}

TEST(PerDeviceTest, LocalBatchNormSendsNoStatistics) {
  const auto sums_of_statistics = [](const PlannedStep& planned) {
    const auto& instructions = planned.plan.program.instructions;
    return std::count_if(instructions.begin(), instructions.end(), [](const Instruction& instruction) {
      return instruction.kind == InstructionKind::kCollective &&
             instruction.origin->because == "statistics of a cut dimension";
    });
  };
  const PlannedStep local(normalised(8, "parallel_mode: data_parallel, device_num: 4, batch_norm: local"));
  const PlannedStep global(normalised(8, "parallel_mode: data_parallel, device_num: 4, batch_norm: global"));
  EXPECT_EQ(sums_of_statistics(local), 0);
  EXPECT_GT(sums_of_statistics(global), 0);
  EXPECT_NE(local.reference(3).tensors[local.id("loss")], global.reference(3).tensors[global.id("loss")]);
  EXPECT_NE(
      fault_of_model(normalised(8, "batch_norm: local")).find("batch_norm local is for parallel_mode data_parallel"),
      std::string::npos);
}

}  // namespace
}  // namespace shardplan
