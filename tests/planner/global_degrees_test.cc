// Plans of global degrees (planner/problem/global_degrees.h). The oracle is independent of them: the parallel modes
// decide data parallelism and ZeRO operator by operator, and a plan that is found and is of a kind must be found again.

#include "planner/problem/global_degrees.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "layouts/layout_axes.h"
#include "model/read_model.h"
#include "planner/model_planner.h"

namespace shardplan {
namespace {

/// What is tested are kinds of plans, not how good they are: some tens of plans are scheduled.
constexpr std::uint64_t kWorkOfSearch = 500'000'000;

/// Two layers of GPT without attention, so that a search takes no time.
std::string layers(const std::string& parallel, const std::string& training = "") {
  return R"(shardplan: 1
model: layers
dims: {B: 32, S: 64, H: 512, F: 4*H}
inputs: {x: [B, S, H]}
blocks:
  layer:
    inputs: {x: [B, S, H]}
    operators:
      norm: {block: nn.LayerNorm, in: x}
      up:   {block: nn.Dense, in: norm, out_channels: F}
      gelu: {op: GeLU, in: up}
      down: {block: nn.Dense, in: gelu, out_channels: H}
      add:  {op: Add, in: [x, down]}
operators:
  layers: {block: layer, in: x, repeat: 2}
  norm_f: {block: nn.LayerNorm, in: layers}
  loss:   {op: ReduceMean, in: norm_f}
loss: loss
training: {optimizer: adam)" +
         training + "}\nparallel: " + parallel + "\n";
}

ModelPlanner planner_of(const std::string& text, Level level, bool overlap = true) {
  PlanOptions options;
  options.level = level;
  options.work_limit = kWorkOfSearch;
  options.overlap = overlap;
  return {std::make_shared<const Model>(read_model_text(text, "m.yaml")), read_cluster("ascend-910"), options};
}

/// Up to two named axes: "" none, "hccs".
std::vector<AxisRef> axes(const DeviceMesh& mesh, const std::string& name) {
  std::vector<AxisRef> found;
  for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
    if (mesh.axes()[axis].name == name) found.push_back(mesh.whole(axis));
  }
  return found;
}

/// The differences from the degrees, by operator and by version.
std::vector<std::string> differences(const ModelPlanner& planner, const Plan& plan, const GlobalDegrees& degrees) {
  const DegreesKind kind(planner.graph(), planner.versions(), planner.mesh(), degrees);
  std::vector<std::string> names;
  for (const OperatorId op : planner.graph().operators().ids()) {
    if (!kind.allows(op, plan.strategies[op])) names.push_back(planner.graph().operators()[op].name);
  }
  for (const VersionId id : planner.versions().all.ids()) {
    if (kind.allows(id, plan.versions[id])) continue;
    names.push_back("version of " + planner.graph().tensor(planner.versions().all[id].tensor).name);
  }
  return names;
}

/// The plan of a mode is of the kind that its name says, and with or without the mode no slower plan of that kind is
/// found.
TEST(GlobalDegreesTest, DataParallelismAndZeroAreFoundAgain) {
  for (const char* training : {"", ", micro_batches: 2"}) {
    const ModelPlanner free = planner_of(layers("{}", training), Level::kSpeed);
    const Plan any = free.plan(Level::kSpeed, "auto");
    for (int zero = 1; zero <= 2; ++zero) {
      if ((zero == 2) != (*training != 0)) continue;  // ZeRO-1 and ZeRO-2 differ only with micro-batches
      SCOPED_TRACE(fmt::format("ZeRO-{}{}", zero, training));
      const ModelPlanner by_mode =
          planner_of(layers(fmt::format("{{parallel_mode: data_parallel, zero: {}}}", zero), training), Level::kSpeed);
      const Plan plan = by_mode.plan(Level::kSpeed, "auto");
      GlobalDegrees degrees;
      degrees.zero = zero;
      EXPECT_EQ(differences(by_mode, plan, degrees), std::vector<std::string>());
      std::string why;
      const std::optional<Plan> again = by_mode.plan_of_degrees(plan, degrees, &why);
      ASSERT_TRUE(again) << why;
      EXPECT_EQ(differences(by_mode, *again, degrees), std::vector<std::string>());
      EXPECT_LE(again->time.step(), plan.time.step());
      for (int other = 0; other <= 3; ++other) {
        const bool is_same = other == zero || (other + zero == 3 && zero == 1);
        degrees.zero = other;
        EXPECT_EQ(differences(by_mode, plan, degrees).empty(), is_same) << other;
      }

      degrees.zero = zero;
      const std::optional<Plan> found = free.plan_of_degrees(any, degrees, &why);
      ASSERT_TRUE(found) << why;
      EXPECT_LE(found->time.step(), plan.time.step());
      // Within the kind it may still choose which dimensions are sharded: a difference of 13 % at most here.
      EXPECT_GE(found->time.step(), plan.time.step() * 8 / 10);
    }
  }
}

/// Tensor parallelism with and without a sharded sequence, under all stages of ZeRO: the plan found is of the kind, and
/// searched again from itself it stays the same or improves. So does the best plan of all if it is of some kind.
TEST(GlobalDegreesTest, WhatIsFoundIsOfTheKindAndIsFoundAgain) {
  for (const Level level : {Level::kRatio, Level::kMemory, Level::kSpeed}) {
    const ModelPlanner planner = planner_of(layers("{}"), level);
    const Plan free = planner.plan(level, "auto");
    for (const char* tensor : {"hccs", "pcie"}) {
      if (level == Level::kSpeed && std::string_view(tensor) == "pcie") continue;  // takes as long as all others
      for (const bool sequence : {false, true}) {
        for (const int zero : {0, 3}) {
          if (level == Level::kSpeed && (zero == 0 || !sequence)) continue;  // likewise
          SCOPED_TRACE(fmt::format("level {}, {}, sequence {}, ZeRO-{}", number_of(level), tensor, sequence, zero));
          const GlobalDegrees degrees{axes(planner.mesh(), tensor), {}, sequence, zero};
          std::string why;
          const std::optional<Plan> found = planner.plan_of_degrees(free, degrees, &why);
          ASSERT_TRUE(found) << why;
          EXPECT_EQ(differences(planner, *found, degrees), std::vector<std::string>());
          if (level == Level::kSpeed) {
            ASSERT_TRUE(free.overlapped_bound);
            EXPECT_GE(found->time.step(), *free.overlapped_bound);
          }
          const std::optional<Plan> again = planner.plan_of_degrees(*found, degrees, &why);
          ASSERT_TRUE(again) << why;
          // Starting from a better plan, level 2 may find an even better one.
          EXPECT_LE(again->time.step(), found->time.step());
          EXPECT_GE(again->time.step(), found->time.step() / 100 * (level == Level::kSpeed ? 97 : 100));
          if (level != Level::kSpeed) {
            EXPECT_EQ(again->memory.peak, found->memory.peak);
          }
          GlobalDegrees other = degrees;
          other.sequence = !sequence;
          EXPECT_NE(differences(planner, *found, other), std::vector<std::string>());
          other = degrees;
          other.tensor.clear();
          EXPECT_NE(differences(planner, *found, other), std::vector<std::string>());
        }
      }
    }
  }
}

/// A framework knows nothing of the layouts that a user gives: the plan of its kind has none of them.
TEST(GlobalDegreesTest, LayoutsOfTheUserAreNotThoseOfTheKind) {
  const ModelPlanner planner = planner_of(layers("{parallel_mode: semi_auto_parallel}") +
                                              "strategies: {layers.*.up.weight: {strategy: \"[{hccs}, {}]\"}}\n",
                                          Level::kRatio);
  const Plan plan = planner.plan(Level::kRatio, "auto");
  for (const int zero : {0, 3}) {
    SCOPED_TRACE(zero);
    GlobalDegrees degrees;
    degrees.zero = zero;
    EXPECT_NE(differences(planner, plan, degrees), std::vector<std::string>());
    std::string why;
    const std::optional<Plan> found = planner.plan_of_degrees(plan, degrees, &why);
    ASSERT_TRUE(found) << why;
    EXPECT_EQ(differences(planner, *found, degrees), std::vector<std::string>());
  }
}

/// Hybrid sharding: ZeRO over some of the devices that have different rows, copies over the others.
TEST(GlobalDegreesTest, OverReplicasZeroShardsNothing) {
  const ModelPlanner planner = planner_of(layers("{}"), Level::kRatio);
  GlobalDegrees degrees;
  degrees.zero = 3;
  degrees.replicas = axes(planner.mesh(), "pcie");
  std::string why;
  const std::optional<Plan> found = planner.plan_of_degrees(planner.plan(Level::kRatio, "auto"), degrees, &why);
  ASSERT_TRUE(found) << why;
  EXPECT_EQ(differences(planner, *found, degrees), std::vector<std::string>());
  int weights = 0;
  for (const VersionId id : planner.versions().all.ids()) {
    const TensorVersion& version = planner.versions().all[id];
    const GraphTensor& tensor = planner.graph().tensor(version.tensor);
    if (version.kind != TensorVersion::Kind::kStored || tensor.kind != TensorKind::kParameter) continue;
    ++weights;
    const std::vector<AxisRef> cut = cutting_axes(found->versions[id]);
    EXPECT_EQ(num_pieces(cut), 4) << tensor.name;
    EXPECT_EQ(common_pieces(cut, axes(planner.mesh(), "hccs")), 4) << tensor.name;
  }
  EXPECT_GT(weights, 4);
  degrees.replicas.clear();
  EXPECT_NE(differences(planner, *found, degrees), std::vector<std::string>());
}

/// As reshard_after_forward: false does.
TEST(GlobalDegreesTest, GatheredWeightsMayHaveToBeKept) {
  GlobalDegrees degrees;
  degrees.zero = 3;
  for (const bool keeps : {false, true}) {
    SCOPED_TRACE(keeps);
    const std::string mode =
        fmt::format("{{parallel_mode: data_parallel, zero: 3, reshard_after_forward: {}}}", !keeps);
    const ModelPlanner planner = planner_of(layers(mode), Level::kRatio);
    const Plan plan = planner.plan(Level::kRatio, "auto");
    degrees.must_keep = keeps;
    EXPECT_EQ(differences(planner, plan, degrees), std::vector<std::string>());
    std::string why;
    const std::optional<Plan> again = planner.plan_of_degrees(plan, degrees, &why);
    ASSERT_TRUE(again) << why;
    EXPECT_EQ(differences(planner, *again, degrees), std::vector<std::string>());
    degrees.must_keep = !keeps;
    EXPECT_NE(differences(planner, plan, degrees), std::vector<std::string>());
  }
}

/// Expert parallelism: what has experts cuts these over all devices, everything else cuts the batch.
TEST(GlobalDegreesTest, ExpertsAreCutInsteadOfTheBatch) {
  PlanOptions options;
  options.level = Level::kSpeed;
  options.overlap = false;  // else replicated experts are as fast
  const ModelPlanner planner(std::make_shared<const Model>(read_model("configs/mixture.yaml")),
                             read_cluster("dgx-a100"), options);
  const Plan free = planner.plan(Level::kSpeed, "auto");
  for (const int zero : {0, 1, 3}) {
    SCOPED_TRACE(zero);
    GlobalDegrees degrees;
    degrees.zero = zero;
    degrees.experts = {planner.mesh().whole(0)};
    std::string why;
    const std::optional<Plan> found = planner.plan_of_degrees(free, degrees, &why);
    ASSERT_TRUE(found) << why;
    EXPECT_EQ(differences(planner, *found, degrees), std::vector<std::string>());
    const std::optional<Plan> again = planner.plan_of_degrees(*found, degrees, &why);
    ASSERT_TRUE(again) << why;
    EXPECT_LE(again->time.step(), found->time.step());
    const ExpertFactors experts = find_experts(planner.graph());
    int products = 0;
    for (const OperatorId id : planner.graph().operators().ids()) {
      const GraphOperator& op = planner.graph().operators()[id];
      const Operation& operation = planner.graph().operation(id);
      if (operation.type->name != "Einsum" || op.pass != Pass::kForward || !experts.factors[id]) continue;
      ++products;
      EXPECT_EQ(num_pieces(found->strategies[id].factors[*experts.factors[id]]), 8) << op.name;
    }
    EXPECT_GT(products, 1);
    degrees.experts.clear();
    EXPECT_NE(differences(planner, *found, degrees), std::vector<std::string>());
  }
}

/// Over devices of context parallelism everything else cuts the sequence.
TEST(GlobalDegreesTest, ExpertsAreCutInsteadOfTheSequence) {
  PlanOptions options;
  options.level = Level::kSpeed;
  options.overlap = false;
  const ModelPlanner planner(std::make_shared<const Model>(read_model("configs/mixture.yaml", {{{"B", 1}}, {}})),
                             read_cluster("dgx-a100"), options);
  GlobalDegrees degrees;
  degrees.context = {planner.mesh().whole(0)};
  degrees.experts = degrees.context;
  std::string why;
  const std::optional<Plan> found = planner.plan_of_degrees(planner.plan(Level::kSpeed, "auto"), degrees, &why);
  ASSERT_TRUE(found) << why;
  EXPECT_EQ(differences(planner, *found, degrees), std::vector<std::string>());
  const OperatorGraph& graph = planner.graph();
  const auto pieces = [&](const std::string& name, std::size_t factor) {
    return num_pieces(found->strategies[*graph.find_operator(name)].factors[factor]);
  };
  const OperatorId up = *graph.find_operator("layers.0.experts.up");
  EXPECT_EQ(pieces("layers.0.experts.up", *find_experts(graph).factors[up]), 8);
  const OperatorId logits = *graph.find_operator("layers.0.experts.logits.matmul");
  EXPECT_EQ(pieces("layers.0.experts.logits.matmul", *leading_factor(graph.operation(logits).rule.results[0], 1)), 8);
}

/// No factor indexes a batch of 1; what reads tokens is sharded as ever.
TEST(GlobalDegreesTest, ABatchOfOneIsOfTheKind) {
  std::string text = layers("{}");
  text.replace(text.find("B: 32"), 5, "B: 1");
  const ModelPlanner planner = planner_of(text, Level::kRatio);
  GlobalDegrees degrees;
  degrees.tensor = {planner.mesh().whole(0), planner.mesh().whole(1)};
  degrees.sequence = true;
  const DegreesKind kind(planner.graph(), planner.versions(), planner.mesh(), degrees);
  const OperatorGraph& graph = planner.graph();
  EXPECT_TRUE(kind.is_demanded(*graph.find_operator("layers.0.up.matmul")));
  EXPECT_TRUE(kind.is_between(*graph.find_operator("layers.0.add")));
  std::string why;
  const std::optional<Plan> found = planner.plan_of_degrees(planner.plan(Level::kRatio, "auto"), degrees, &why);
  ASSERT_TRUE(found) << why;
  EXPECT_EQ(differences(planner, *found, degrees), std::vector<std::string>());
  degrees.tensor.clear();
  degrees.context = {planner.mesh().whole(0), planner.mesh().whole(1)};
  EXPECT_NE(differences(planner, *found, degrees), std::vector<std::string>());
}

TEST(GlobalDegreesTest, SaysWhyThereIsNoPlan) {
  std::string text = layers("{}");
  text.replace(text.find("B: 32"), 5, "B: 3");
  const ModelPlanner odd = planner_of(text, Level::kSpeed, false);
  std::string why;
  EXPECT_FALSE(odd.plan_of_degrees(odd.plan(Level::kSpeed, "auto"), {}, &why));
  EXPECT_EQ(why, "layers.0.up.matmul cannot cut its batch in 8");

  PlanOptions options;
  options.level = Level::kSpeed;
  options.overlap = false;
  options.capacity = Bytes{30} << 20;
  const ModelPlanner small(std::make_shared<const Model>(read_model_text(layers("{}"), "m.yaml")),
                           read_cluster("ascend-910"), options);
  const Plan plan = small.plan(Level::kSpeed, "auto");
  ASSERT_TRUE(plan.fits());
  EXPECT_FALSE(small.plan_of_degrees(plan, {}, &why));
  EXPECT_TRUE(why.starts_with("it does not fit: the smallest takes ")) << why;
}

}  // namespace
}  // namespace shardplan
