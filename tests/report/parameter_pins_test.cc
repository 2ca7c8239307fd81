// What a user can pin of a parameter's training: layouts and types of its gradient and its states, in every mode. They
// have effect on the program, its memory and its exports, and the training equals that of one device.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/random.h"
#include "model/read_model.h"
#include "planner/job_cluster.h"
#include "planner/model_planner.h"
#include "program/program_checker.h"
#include "report/export/export.h"
#include "report/plan/explain_report.h"
#include "report/plan/layout_reasons.h"
#include "report/plan_file/plan_json.h"
#include "simulator/proof/validate.h"

namespace shardplan {
namespace {

Plan plan_of(const std::string& text) {
  auto model = std::make_shared<const Model>(read_model_text(text, "m.yaml"));
  PlanOptions options;
  options.work_limit = 500'000'000;  // some tens of plans are scheduled
  return ModelPlanner(model, job_cluster(*model).cluster, options).plan(Level::kSpeed, "auto");
}

std::string fault_of(const std::string& text) {
  try {
    plan_of(text);
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

/// A product over eight devices. `training` and `parallel` are added to those sections, `rest` is appended.
std::string product(const std::string& weight, const std::string& training, const std::string& parallel,
                    const std::string& rest = "") {
  return fmt::format(
      "shardplan: 1\ncluster: dgx-a100\ndims: {{B: 32}}\ninputs: {{x: [B, 64]}}\nparameters: {{w: {{shape: [64, "
      "48]{}}}}}\n"
      "operators:\n  y:    {{op: MatMul, in: [x, w]}}\n  s:    {{op: Square, in: y}}\n"
      "  loss: {{op: ReduceMean, in: s}}\nloss: loss\ntraining: {{optimizer: adamw{}}}\nparallel: {{{}}}\n{}",
      weight, training, parallel, rest);
}

const ProgramValue* value_of(const Plan& plan, const std::string& name) {
  for (const ProgramValue& value : plan.program.values) {
    if (value.name == name) return &value;
  }
  return nullptr;
}

std::string layout_of(const Plan& plan, const std::string& name) {
  const ProgramValue* const value = value_of(plan, name);
  return value == nullptr ? "none" : to_string(value->layout, plan.mesh);
}

/// The layout in which the parameter's update reads and leaves everything.
std::string update_of(const Plan& plan, const std::string& name) {
  const OperatorId op = *plan.graph->find_operator("update." + name + ".ApplyAdamW");
  return to_string(operand_layout(plan.graph->operation(op), plan.strategies[op], plan.mesh, 4), plan.mesh);
}

struct LayoutCase {
  const char* parallel;
  const char* weight;
  const char* training;
  const char* gradient;  // the value that holds it, and its layout
  const char* gradient_layout;
  const char* states;
};

TEST(ParameterPinsTest, GradientsAndStatesLieAsTheUserSays) {
  constexpr char kAuto[] = "mesh: {dp: 2, mp: 4}", kSemi[] = "parallel_mode: semi_auto_parallel, mesh: {dp: 2, mp: 4}";
  constexpr char kZero[] = "parallel_mode: semi_auto_parallel, mesh: {dp: 2, mp: 4}, zero: 3";
  constexpr char kBoth[] = ", gradient_strategy: \"[{mp}, {}]\", state_strategy: \"[{mp}, {dp}]\"";
  const LayoutCase cases[] = {
      {kAuto, kBoth, "", "grad.w.Identity", "[{mp}, {}]", "[{mp}, {dp}]"},
      {kSemi, kBoth, "", "grad.w.Identity", "[{mp}, {}]", "[{mp}, {dp}]"},
      {kZero, kBoth, "", "grad.w.Identity", "[{mp}, {}]", "[{mp}, {dp}]"},
      {kAuto, kBoth, ", micro_batches: 2", "grad.w.Accumulate", "[{mp}, {}]", "[{mp}, {dp}]"},
      {kZero, kBoth, ", micro_batches: 2", "grad.w.Accumulate", "[{mp}, {}]", "[{mp}, {dp}]"},
      {kSemi, kBoth, ", mixed_precision: bf16", "grad.w.Identity", "[{mp}, {}]", "[{mp}, {dp}]"},
      {kAuto, ", state_strategy: [4, 1]", "", "", "", "[{dp, mp:(1)2}, {}]"},
      {"enable_parallel_optimizer: true, mesh: {dp: 2, mp: 4}", ", state_strategy: \"[{}, {mp}]\"", "", "", "",
       "[{}, {mp}]"},
  };
  for (const LayoutCase& c : cases) {
    SCOPED_TRACE(fmt::format("{} {} {}", c.parallel, c.weight, c.training));
    const Plan plan = plan_of(product(c.weight, c.training, c.parallel));
    if (c.gradient[0] != '\0') {
      EXPECT_EQ(layout_of(plan, c.gradient), c.gradient_layout);
    }
    EXPECT_EQ(update_of(plan, "w"), c.states);
    EXPECT_EQ(layout_of(plan, "w.moment1"), c.states);
    EXPECT_EQ(layout_of(plan, "w.moment2"), c.states);
    EXPECT_EQ(check_program(plan.program, *plan.graph), "");
    EXPECT_TRUE(validate(plan.program, *plan.graph, {}).is_equal());
  }
}

TEST(ParameterPinsTest, SgdHasAnUpdateToLayOut) {
  std::string text = product(", state_strategy: [8, 1]", "", "parallel_mode: semi_auto_parallel");
  text.replace(text.find("adamw"), 5, "sgd");
  const Plan plan = plan_of(text);
  const OperatorId op = *plan.graph->find_operator("update.w.ApplyGradientDescent");
  EXPECT_EQ(to_string(operand_layout(plan.graph->operation(op), plan.strategies[op], plan.mesh, 0), plan.mesh),
            "[{nvlink}, {}]");
  EXPECT_TRUE(validate(plan.program, *plan.graph, {}).is_equal());
}

/// Bytes of one device's values with this name.
Bytes bytes_of(const Plan& plan, const std::string& name) {
  const ProgramValue* const value = value_of(plan, name);
  return value == nullptr ? -1 : value->bytes;
}

TEST(ParameterPinsTest, TypesAreThoseOfStatesAndGradients) {
  constexpr char kData[] = "parallel_mode: data_parallel";
  constexpr Bytes kElements = 64 * 48;
  const Plan wide = plan_of(product("", ", mixed_precision: bf16, micro_batches: 2", kData));
  EXPECT_EQ(bytes_of(wide, "w.moment1"), 4 * kElements);
  EXPECT_EQ(bytes_of(wide, "grad.w.Accumulate"), 4 * kElements);
  // For all parameters, for one of them, and one that overrides it.
  const Plan narrow = plan_of(product("",
                                      ", mixed_precision: bf16, micro_batches: 2, state_dtype: f8e4m3, "
                                      "gradient_dtype: bf16",
                                      kData));
  EXPECT_EQ(bytes_of(narrow, "w.moment1"), kElements);
  EXPECT_EQ(bytes_of(narrow, "w.moment2"), kElements);
  EXPECT_EQ(bytes_of(narrow, "w.master"), 4 * kElements);
  EXPECT_EQ(bytes_of(narrow, "w.step"), 4);
  EXPECT_EQ(bytes_of(narrow, "grad.w.Accumulate"), 2 * kElements);
  EXPECT_GE(wide.memory.peak - narrow.memory.peak, (3 + 3 + 2) * kElements);  // and the sum that is being reduced
  EXPECT_LT(narrow.time.communication, wide.time.communication);
  EXPECT_TRUE(validate(narrow.program, *narrow.graph, {}).is_equal());
  const Plan own = plan_of(product(", state_dtype: f32", ", state_dtype: bf16, clip_norm: 1", kData,
                                   "strategies: {w: {gradient_dtype: f16}}\n"));
  EXPECT_EQ(bytes_of(own, "w.moment1"), 4 * kElements);
  EXPECT_EQ(bytes_of(own, "grad.w.Cast"), 2 * kElements);
  EXPECT_TRUE(validate(own.program, *own.graph, {}).is_equal());
  const std::string json = plan_json(narrow);
  EXPECT_NE(json.find("f8e4m3"), std::string::npos);
}

/// Two layers, of which the second is frozen in one test; `lines` are added to its strategies.
std::string layers(const std::string& training, const std::string& lines) {
  return fmt::format(
      "shardplan: 1\ncluster: dgx-a100\ninputs: {{x: [32, 16]}}\nblocks:\n  layer:\n    inputs: {{x: [32, 16]}}\n"
      "    operators:\n      fc:   {{block: nn.Dense, in: x, out_channels: 16}}\n      act:  {{op: Tanh, in: fc}}\n"
      "    outputs: [act]\noperators:\n  layers: {{block: layer, in: x, repeat: 2}}\n  loss:   {{op: ReduceMean, in: "
      "layers}}\n"
      "loss: loss\ntraining: {{{}}}\nstrategies:\n{}",
      training, lines);
}

TEST(ParameterPinsTest, PatternsAndBlocksNameManyParameters) {
  const Plan plan = plan_of(layers("optimizer: adamw",
                                   "  layers.*.fc.weight: {state_strategy: [8, 1]}\n  layers.1: {state_dtype: bf16}\n"
                                   "  layers.1.fc.bias: {state_dtype: f32}\n"));
  for (const std::string copy : {"0", "1"}) {
    EXPECT_EQ(layout_of(plan, "layers." + copy + ".fc.weight.moment1"), "[{nvlink}, {}]");
  }
  EXPECT_EQ(value_of(plan, "layers.0.fc.weight.moment1")->type.dtype, DataType::kF32);
  EXPECT_EQ(value_of(plan, "layers.1.fc.weight.moment1")->type.dtype, DataType::kBF16);
  EXPECT_EQ(value_of(plan, "layers.1.fc.bias.moment1")->type.dtype, DataType::kF32);
}

TEST(ParameterPinsTest, ContradictionsAreRefusedWithTheirPlaces) {
  const auto expect = [](const std::string& text, const std::string& fault) {
    EXPECT_NE(fault_of(text).find(fault), std::string::npos) << fault_of(text);
  };
  constexpr char kData[] = "parallel_mode: data_parallel";
  expect(product(", state_strategy: [3, 1]", "", "mesh: {dp: 8}, uneven: false"),
         "m.yaml:5:51: error: w: state_strategy: the tuple (3, 1) splits dimension 0 of w into 3, but its size is 64");
  expect(product(", gradient_strategy: [8]", "", ""), "m.yaml:5:54: error: w: gradient_strategy: entry 1 has 1 value");
  expect(product(", gradient_strategy: \"[{}, {}] unreduced={nvlink}\"", "", ""), "cannot be asked for as partial");
  expect(product(", state_strategy: [8, 1], parallel_optimizer: false", "", ""),
         "w: state_strategy and parallel_optimizer: false both say how its states are cut");
  expect(
      product(", gradient_dtype: bf16", "", std::string(kData) + ", gradient_fp32_sync: true"),
      "m.yaml:5:51: error: w: gradient_dtype is bf16, but gradient_fp32_sync: true in line 12 sums gradients as f32");
  expect(product("", ", gradient_dtype: bf16", std::string(kData) + ", gradient_fp32_sync: true"),
         "m.yaml:11:46: error: training: gradient_dtype is bf16, but gradient_fp32_sync");
  expect(product(", state_dtype: i8", "", ""), "w: state_dtype is 'i8'; expected f32, bf16, f16 or f8e4m3");
  expect(product(", requires_grad: false, state_dtype: bf16", "", ""), "is not trained");
  expect(layers("optimizer: sgd, state_dtype: bf16", "  layers: {gradient_dtype: bf16}\n"), "sgd keeps none");
  expect(layers("optimizer: sgd", "  layers: {gradient_strategy: [8, 1]}\n"),
         "layers is a block; gradient_strategy is for");
  expect(layers("optimizer: sgd", "  layers.0.act: {state_dtype: bf16}\n"), "is an operator and has no parameters");
  expect(layers("optimizer: sgd", "  x: {state_dtype: bf16}\n"), "x is an input; it takes strategy, not state_dtype");
}

TEST(ParameterPinsTest, WhereStrategiesAreNotUsedItIsSaid) {
  const Plan plan = plan_of(product(", state_strategy: [8, 1]", "", "parallel_mode: data_parallel"));
  EXPECT_EQ(layout_of(plan, "w.moment1"), "[{}, {}]");
  const auto& notices = plan.model->notices;
  EXPECT_NE(std::find(notices.begin(), notices.end(), "strategies are not used in parallel_mode data_parallel"),
            notices.end());
}

TEST(ParameterPinsTest, ExportsNameTypesOrSayThatTheyCannot) {
  const Plan plan = plan_of(product("", ", mixed_precision: bf16, state_dtype: bf16, gradient_dtype: bf16",
                                    "parallel_mode: data_parallel, zero: 1"));
  const ExportedText megatron = export_plan(plan, "megatron");
  EXPECT_NE(megatron.text.find("--use-precision-aware-optimizer"), std::string::npos) << megatron.text;
  EXPECT_NE(megatron.text.find("--main-grads-dtype bf16"), std::string::npos);
  EXPECT_NE(megatron.text.find("--exp-avg-dtype bf16"), std::string::npos);
  const Plan pure =
      plan_of(product("", ", mixed_precision: bf16, state_dtype: bf16, gradient_dtype: bf16, master_copy: false",
                      "parallel_mode: data_parallel, zero: 1"));
  const std::string difference = "weights of two bytes have no master copy in f32";
  EXPECT_NE(export_plan(pure, "megatron").text.find(difference), std::string::npos);
  EXPECT_EQ(export_plan(plan, "megatron").text.find(difference), std::string::npos);
  EXPECT_NE(export_plan(pure, "torchtitan").text.find("--training.dtype bfloat16"), std::string::npos);
  EXPECT_EQ(export_plan(pure, "torchtitan").text.find(difference), std::string::npos);
  const ExportedText deepspeed = export_plan(plan, "deepspeed");
  EXPECT_NE(deepspeed.text.find("\"grad_accum_dtype\": \"bf16\""), std::string::npos) << deepspeed.text;
  EXPECT_NE(deepspeed.text.find("moments are kept as bf16"), std::string::npos);
}

TEST(ParameterPinsTest, ExplainNamesTheKeysThatDecideALayout) {
  const auto reasons = [](const Plan& plan, const std::string& op) {
    const std::vector<std::string> found = layout_reasons(plan, *plan.graph->find_operator(op));
    return found.empty() ? std::string() : found[0];
  };
  const std::string two = ", micro_batches: 2";
  // The last place is that of the value of the key in line 12.
  const Plan zero3 = plan_of(product("", two, "parallel_mode: data_parallel, zero: 3"));
  EXPECT_EQ(reasons(zero3, "y"), "zero: 3 (m.yaml:12:48) stores w in 8 pieces; this gathers it");
  EXPECT_EQ(reasons(zero3, "grad.w.Accumulate"),
            "zero: 3 (m.yaml:12:48) sums the gradient of w in 8 pieces, with every micro-batch");
  EXPECT_EQ(reasons(zero3, "update.w.ApplyAdamW"), "zero: 3 (m.yaml:12:48) keeps the states of w in 8 pieces");
  const Plan whole =
      plan_of(product("", two, "parallel_mode: data_parallel, zero: 2, gradient_accumulation_shard: false"));
  EXPECT_EQ(reasons(whole, "grad.w.Accumulate"),
            "gradient_accumulation_shard: false (m.yaml:12:80) sums the gradient of w on each device, over the devices "
            "once a "
            "step");
  const Plan optimizer = plan_of(product("", "", "parallel_mode: data_parallel, enable_parallel_optimizer: true"));
  EXPECT_EQ(reasons(optimizer, "update.w.ApplyAdamW"),
            "enable_parallel_optimizer (m.yaml:12:69) keeps the states of w in 8 pieces");
  const Plan pinned = plan_of(product(", state_strategy: [8, 1]", "", "mesh: {dp: 8}"));
  EXPECT_EQ(reasons(pinned, "update.w.ApplyAdamW"), "w: state_strategy (m.yaml:5:51)");
  EXPECT_EQ(decided_by(pinned, *pinned.graph->find_operator("update.w.ApplyAdamW")), "set by the user");
  const Plan searched = plan_of(product("", two, "mesh: {dp: 8}"));
  for (const GraphOperator& op : searched.graph->operators()) EXPECT_EQ(reasons(searched, op.name), "") << op.name;
}

TEST(ParameterPinsTest, ExplainNamesTheKeyThatKeepsAnActivation) {
  const auto reasons = [](const std::string& key) {
    const Plan plan = plan_of(
        "shardplan: 1\ncluster: dgx-a100\ninputs: {x: [16, 16]}\nparameters: {w: [16, 16]}\n"
        "operators:\n  a: {op: Tanh, in: x}\n  y: {op: MatMul, in: [a, w]}\n"
        "  loss: {op: ReduceSum, in: y}\nloss: loss\ntraining: {optimizer: sgd}\n"
        "parallel: {mesh: {mp: 8}" +
        key +
        "}\nstrategies:\n"
        "  a: {in_strategy: [\"[{mp}, {}]\"]}\n"
        "  y: {in_strategy: [\"[{}, {}]\", \"[{}, {mp}]\"]}\n");
    return layout_reasons(plan, *plan.graph->find_operator("grad.y.MatMul"));
  };
  using Reasons = std::vector<std::string>;
  EXPECT_EQ(reasons(""), Reasons());
  EXPECT_EQ(reasons(", gather_again: true"), Reasons{"gather_again: true gathers a again for the backward pass"});
  EXPECT_EQ(reasons(", gather_again: false"), Reasons{"gather_again: false keeps a as the forward pass read it"});
}

TEST(ParameterPinsTest, RandomPinsTrainAsOneDevice) {
  const char* const strategies[] = {"", "[8, 1]", "[1, 8]", "[2, 4]", "[1, 1]", "[4, 1]"};
  const char* const types[] = {"", "f32", "bf16", "f16"};
  const char* const modes[] = {"mesh: {dp: 8}",
                               "mesh: {dp: 2, mp: 4}",
                               "parallel_mode: semi_auto_parallel",
                               "parallel_mode: semi_auto_parallel, zero: 1",
                               "parallel_mode: semi_auto_parallel, zero: 2",
                               "parallel_mode: semi_auto_parallel, zero: 3",
                               "enable_parallel_optimizer: true",
                               "layers: free"};
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    std::string pins;
    const auto add = [&](const char* key, const std::string& value) {
      if (!value.empty()) pins += fmt::format("{}{}: {}", pins.empty() ? "" : ", ", key, value);
    };
    add("gradient_strategy", strategies[random.below(6)]);
    add("state_strategy", strategies[random.below(6)]);
    add("gradient_dtype", types[random.below(4)]);
    add("state_dtype", types[random.below(4)]);
    add("strategy", random.below(3) == 0 ? strategies[random.below(6)] : "");
    const std::string text = fmt::format(
        "shardplan: 1\ncluster: dgx-a100\ndims: {{B: 32}}\ninputs: {{x: [B, 16]}}\nblocks:\n  layer:\n"
        "    inputs: {{x: [B, 16]}}\n    operators:\n      fc:   {{block: nn.Dense, in: x, out_channels: 16}}\n"
        "      act:  {{op: Tanh, in: fc}}\n    outputs: [act]\noperators:\n  layers: {{block: layer, in: x, repeat: "
        "2}}\n"
        "  s:      {{op: Square, in: layers}}\n  loss:   {{op: ReduceMean, in: s}}\nloss: loss\n"
        "training: {{optimizer: {}, micro_batches: {}, clip_norm: {}{}}}\nparallel: {{{}}}\n"
        "strategies:\n  layers.*.fc.weight: {{{}}}\n",
        random.below(2) == 0 ? "adamw" : "momentum", 1 + random.below(2), random.below(2),
        random.below(2) == 0 ? ", mixed_precision: bf16" : "", modes[random.below(8)], pins);
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    const Plan plan = plan_of(text);
    EXPECT_EQ(check_program(plan.program, *plan.graph), "");
    EXPECT_TRUE(validate(plan.program, *plan.graph, {}).is_equal());
  }
}

}  // namespace
}  // namespace shardplan
