// Activations that the forward pass gathers are kept gathered, or kept sharded and gathered again for the backward
// pass, as the user says or as the search finds best. The problem and the program count the same, and training stays
// the same.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "base/random.h"
#include "model/read_model.h"
#include "planner/model_planner.h"
#include "planner/problem/model_problem.h"
#include "planner/problem/plan_choice.h"
#include "program/program_checker.h"
#include "simulator/proof/validate.h"

namespace shardplan {
namespace {

// Tensor and sequence parallelism: the norm's result is sharded over the sequence, and two products with sharded
// weights read it gathered.
constexpr char kTwoReaders[] = R"(
shardplan: 1
dims: {B: 2, S: 64, H: 16, F: 4*H}
inputs: {x: {shape: [B, S, H], strategy: "[{}, {t}, {}]"}}
operators:
  norm: {block: nn.RMSNorm, in: x}
  part: {block: part, in: norm}
  sum:  {op: Add, in: [x, part]}
  loss: {op: ReduceMean, in: sum}
loss: loss
training: {optimizer: sgd}
parallel: {mesh: {t: 4}PARALLEL}
blocks:
  part:
    inputs: {x: [B, S, H]}
    operators:
      up:   {block: nn.Dense, in: x, out_channels: F, has_bias: false}
      gate: {block: nn.Dense, in: x, out_channels: F, has_bias: false}
      act:  {op: Mul, in: [up, gate]}
      down: {block: nn.Dense, in: act, out_channels: H, has_bias: false}
strategies:
  norm.rms_norm:    {in_strategy: ["[{}, {t}, {}]", "[{}]"]}
  part.up.matmul:   {in_strategy: ["[{}, {}, {}]", "[{t}, {}]"]}
  part.gate.matmul: {in_strategy: ["[{}, {}, {}]", "[{t}, {}]"]}
  part.act:         {in_strategy: ["[{}, {}, {t}]", "[{}, {}, {t}]"]}
  part.down.matmul: {in_strategy: ["[{}, {}, {t}]", "[{}, {t}]"], out_strategy: ["[{}, {t}, {}]"]}
  sum:              {in_strategy: ["[{}, {t}, {}]", "[{}, {t}, {}]"]}
)";

std::string with_text(std::string text, const std::string& what, const std::string& with) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), with);
}

std::string two_readers(const std::string& parallel) { return with_text(kTwoReaders, "PARALLEL", parallel); }

/// The same with one product that reads the norm's result.
std::string one_reader(const std::string& parallel) {
  std::string text = two_readers(parallel);
  text = with_text(text, "      gate: {block: nn.Dense, in: x, out_channels: F, has_bias: false}\n", "");
  text = with_text(text, "  part.gate.matmul: {in_strategy: [\"[{}, {}, {}]\", \"[{t}, {}]\"]}\n", "");
  text = with_text(text, "{op: Mul, in: [up, gate]}", "{op: SiLU, in: up}");
  return with_text(text, "[\"[{}, {}, {t}]\", \"[{}, {}, {t}]\"]", "[\"[{}, {}, {t}]\"]");
}

/// Four devices whose products of f32 are so slow that a layer of them is sharded as the tests expect.
Cluster four_devices() {
  Cluster cluster = take_devices(read_cluster("dgx-a100"), 4);
  cluster.device.matmul_f32_efficiency_ppm.reset();
  return cluster;
}

struct PlannedLayer {
  explicit PlannedLayer(const std::string& text, const ModelOverrides& overrides = {})
      : planner(std::make_shared<const Model>(read_model_text(text, "layer.yaml", overrides)), four_devices(), {}),
        plan(planner.plan(Level::kSpeed, "auto")) {}

  /// How often a step gathers the norm's result.
  std::int64_t gathers() const {
    std::int64_t runs = 0;
    for (const Instruction& instruction : plan.program.instructions) {
      if (instruction.kind != InstructionKind::kCollective || instruction.step->kind != CollectiveKind::kAllGather)
        continue;
      const ProgramValue& value = plan.program.values[instruction.inputs[0]];
      runs += value.tensor && plan.graph->tensor(*value.tensor).name == "norm.rms_norm" ? instruction.runs : 0;
    }
    return runs;
  }

  /// The layout of the norm's result between the passes.
  std::string kept() const {
    const TensorVersions versions = tensor_versions(*plan.graph);
    for (const VersionId id : versions.all.ids()) {
      const TensorVersion& version = versions.all[id];
      const bool is_it = version.kind == TensorVersion::Kind::kKept;
      if (is_it && plan.graph->tensor(version.tensor).name == "norm.rms_norm")
        return to_string(plan.versions[id], plan.mesh);
    }
    return "";
  }

  /// The program is valid, takes the memory that the problem predicts, and trains as one device does.
  void check() const {
    EXPECT_EQ(check_program(plan.program, planner.graph()), "");
    Restrictions restrictions = no_restrictions(planner.graph(), planner.versions());
    restrictions.capacity = kUnlimitedBytes;
    restrictions.pieces = {planner.mesh().whole(0)};
    const ModelProblem problem =
        build_problem(planner.graph(), planner.versions(), planner.costs(), planner.redistributions(), restrictions);
    const auto choice = find_choice(planner.versions(), problem, plan.strategies, plan.versions);
    ASSERT_TRUE(choice);
    const Evaluation evaluation = evaluate(problem.problem, *choice);
    EXPECT_EQ(evaluation.forbidden_count, 0u);
    EXPECT_EQ(evaluation.cost.computation, plan.time.computation);
    EXPECT_EQ(evaluation.cost.communication, plan.time.communication);
    EXPECT_LE(evaluation.peak_bytes, plan.memory.peak);
    EXPECT_TRUE(validate(plan.program, planner.graph(), {}).is_equal());
  }

  ModelPlanner planner;
  Plan plan;
};

constexpr char kGathered[] = "[{}, {}, {}]";
constexpr char kInPieces[] = "[{}, {t}, {}]";

TEST(GatherAgainTest, ActivationsAreKeptAsTheKeySays) {
  struct Case {
    const char* parallel;
    std::int64_t gathers;
    const char* kept;
  };
  const Case cases[] = {
      {", parallel_mode: semi_auto_parallel", 1, kGathered},
      {", parallel_mode: semi_auto_parallel, gather_again: false", 1, kGathered},
      {", parallel_mode: semi_auto_parallel, gather_again: true", 2, kInPieces},
      {", gather_again: false", 1, kGathered},
      {", gather_again: true", 2, kInPieces},
  };
  for (const auto& text : {one_reader, two_readers}) {
    for (const Case& one : cases) {
      SCOPED_TRACE(text(one.parallel));
      const PlannedLayer planned(text(one.parallel));
      EXPECT_EQ(planned.gathers(), one.gathers);
      EXPECT_EQ(planned.kept(), one.kept);
      planned.check();
    }
  }
}

// At a size at which a gather takes longer than its start-up.
TEST(GatherAgainTest, TheSearchKeepsWhatItsLevelAsksFor) {
  for (const auto& small : {one_reader, two_readers}) {
    const auto planned = [&](const char* key, Level level) {
      const std::string text = with_text(small(key), "S: 64, H: 16", "S: 2048, H: 4096");
      PlanOptions options;
      options.overlap = false;
      options.level = level;
      const ModelPlanner planner(std::make_shared<const Model>(read_model_text(text, "layer.yaml")),
                                 take_devices(read_cluster("dgx-a100"), 4), options);
      return planner.plan(level, "auto");
    };
    const auto step = [&](const char* key) { return planned(key, Level::kSpeed).time.step(); };
    EXPECT_EQ(step(""), step(", gather_again: false"));
    EXPECT_LT(step(""), step(", gather_again: true"));
    const auto peak = [&](const char* key) { return planned(key, Level::kMemory).memory.peak; };
    EXPECT_LE(peak(""), peak(", gather_again: true"));
  }
}

TEST(GatherAgainTest, ABlockOrAnOperatorSaysItForItself) {
  const std::string of_all = ", gather_again: true";
  std::string text = with_text(two_readers(of_all), "part: {block: part, in: norm}",
                               "part: {block: part, in: norm, gather_again: false}");
  EXPECT_EQ(PlannedLayer(text).kept(), kGathered);
  // One reader that gathers it again is enough.
  text = with_text(text, "part.up.matmul:   {", "part.up.matmul:   {gather_again: true, ");
  EXPECT_EQ(PlannedLayer(text).kept(), kInPieces);
  ModelOverrides options;
  options.strategies["part.up.matmul.gather_again"] = "false";
  EXPECT_EQ(PlannedLayer(text, options).kept(), kGathered);
  text = with_text(two_readers(""), "part.gate.matmul: {", "part.gate.matmul: {gather_again: true, ");
  EXPECT_EQ(PlannedLayer(text).kept(), kInPieces);
}

// reshard_after_forward concerns weights, also in the type of their products.
TEST(GatherAgainTest, WeightsAreNotMeant) {
  const std::string text = with_text(
      with_text(two_readers(""), "operators:\n",
                "operators:\n  half: {op: Cast, in: w, dtype: f16}\n  wide: {op: Cast, in: half, dtype: f32}\n"
                "  first: {op: Mul, in: [x, wide]}\n"),
      "in: x}", "in: first}");
  const auto kept_as = [](const std::string& model) {
    const PlannedLayer planned(with_text(model, "operators:\n", "parameters: {w: [H]}\noperators:\n"));
    std::size_t said = 0;
    for (const TensorVersion& version : planned.planner.versions().all) {
      const std::string name = planned.plan.graph->tensor(version.tensor).name;
      const bool is_said = version.keeping != TensorVersion::Keeping::kFree;
      EXPECT_FALSE(is_said && (name == "half" || name == "wide" || name == "w")) << name;
      said += is_said ? 1 : 0;
    }
    return said;
  };
  EXPECT_EQ(kept_as(text), 0u);
  EXPECT_GT(kept_as(with_text(text, "{t: 4}", "{t: 4}, gather_again: true")), 0u);
}

std::string random_gathers(Random& random) {
  std::string operators = "  first: {block: nn.Dense, in: x, out_channels: 8}\n", strategies, last = "first";
  const char* const layouts[] = {"[{}, {}, {}]", "[{}, {t}, {}]", "[{t}, {}, {}]", "[{}, {}, {t}]", "[{u}, {t}, {}]"};
  const char* const said[] = {"", ", gather_again: true", ", gather_again: false"};
  for (std::size_t i = 0, layers = 2 + random.below(4); i < layers; ++i) {
    const std::string name = fmt::format("l{}", i);
    switch (random.below(3)) {
      case 0:
        operators += fmt::format("  {}: {{op: Tanh, in: {}{}}}\n", name, last, said[random.below(3)]);
        if (random.below(2) == 0)
          strategies += fmt::format("  {}: {{in_strategy: [\"{}\"]}}\n", name, layouts[random.below(5)]);
        break;
      case 1:
        operators +=
            fmt::format("  {}: {{block: nn.Dense, in: {}, out_channels: 8{}}}\n", name, last, said[random.below(3)]);
        break;
      default:
        operators += fmt::format(
            "  {0}a: {{block: nn.Dense, in: {1}, out_channels: 8, has_bias: false{2}}}\n"
            "  {0}b: {{op: Tanh, in: {1}{3}}}\n  {0}: {{op: Mul, in: [{0}a, {0}b]}}\n",
            name, last, said[random.below(3)], said[random.below(3)]);
        if (random.below(2) == 0) {
          strategies += fmt::format("  {0}: {{in_strategy: [\"{1}\", \"{1}\"]}}\n", name, layouts[random.below(5)]);
        }
        break;
    }
    last = name;
  }
  const char* const modes[] = {"", ", parallel_mode: semi_auto_parallel"};
  const char* const training[] = {"", ", mixed_precision: bf16", ", micro_batches: 2"};
  return fmt::format(
      "shardplan: 1\ndims: {{B: 16}}\ninputs: {{x: [B, 8, 8]}}\noperators:\n{}  loss: {{op: ReduceMean, in: {}}}\n"
      "loss: loss\ntraining: {{optimizer: momentum{}}}\nparallel: {{mesh: {{t: 2, u: 2}}{}{}}}\n{}{}",
      operators, last, training[random.below(3)], modes[random.below(2)], said[random.below(3)],
      strategies.empty() ? "" : "strategies:\n", strategies);
}

TEST(GatherAgainTest, RandomTrainingStaysTheSame) {
  std::size_t kept_as_produced = 0, kept_as_read = 0;
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    Random random(seed);
    const std::string text = random_gathers(random);
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    PlanOptions options;
    options.work_limit = 1'000'000;
    const ModelPlanner planner(std::make_shared<const Model>(read_model_text(text, "random.yaml")),
                               take_devices(read_cluster("dgx-a100"), 4), options);
    const Plan plan = planner.plan(kLevels[seed % 3], "auto");
    EXPECT_EQ(check_program(plan.program, planner.graph()), "");
    EXPECT_TRUE(validate(plan.program, planner.graph(), {}).is_equal());
    for (const VersionId id : planner.versions().all.ids()) {
      const TensorVersions& versions = planner.versions();
      if (versions.all[id].keeping == TensorVersion::Keeping::kFree) continue;
      TensorLayout like;
      if (versions.all[id].keeping == TensorVersion::Keeping::kAsProduced) {
        like = plan.versions[produced_before(versions, id)];
        like.partial.clear();
        ++kept_as_produced;
      } else {
        const Reader reader = kept_for(planner.graph(), versions, id);
        like =
            operand_layout(planner.graph().operation(reader.op), plan.strategies[reader.op], plan.mesh, reader.operand);
        ++kept_as_read;
      }
      EXPECT_EQ(*plan.versions[id], like) << planner.graph().tensor(versions.all[id].tensor).name;
    }
  }
  EXPECT_GT(kept_as_produced, 20u);
  EXPECT_GT(kept_as_read, 20u);
}

}  // namespace
}  // namespace shardplan
