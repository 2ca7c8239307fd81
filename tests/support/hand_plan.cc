#include "tests/support/hand_plan.h"

#include <memory>

#include "costmodel/cluster/cluster_mesh.h"
#include "costmodel/roofline_costs.h"
#include "graph/differentiate.h"
#include "graph/tensor_versions.h"
#include "layouts/redistribution/redistribution_planner.h"
#include "model/read_model.h"
#include "operators/catalogue.h"
#include "program/lower.h"
#include "program/timeline.h"
#include "strategies/strategy.h"

namespace shardplan {
namespace {

/// A launch costs 20 us, a byte on a link very little: one collective beats two, and reduce_scatter beats all_reduce.
class LaunchCosts : public CollectiveCosts {
 public:
  Picoseconds time(CollectiveKind kind, const std::vector<AxisRef>& axes, Bytes group_bytes) const override {
    if (kind == CollectiveKind::kSlice || kind == CollectiveKind::kToPartial || num_pieces(axes) == 1) return 0;
    return 20'000'000 + (kind == CollectiveKind::kAllReduce ? 2 : 1) * group_bytes * 2490;
  }
};

}  // namespace

std::string factor_of_result(const OperatorGraph& graph, const std::string& op, std::size_t dimension) {
  const ShardingRule& rule = graph.operation(*graph.find_operator(op)).rule;
  return rule.factors[rule.results[0][dimension].factors[0]].name;
}

std::vector<AxisRef> parse_axes(const std::string& text, const DeviceMesh& mesh) {
  return parse_layout("[" + text + "]", mesh).dimensions[0].parts[0].axes;
}

Plan hand_plan(OperatorGraph built, const HandStrategies& strategies,
               const std::map<std::string, std::string>& stored) {
  Plan plan;
  auto model = std::make_shared<Model>();
  model->name = built.name();
  model->source = model_source("shardplan: 1\n", "configs/hand.yaml");
  plan.model = model;
  plan.graph = std::make_shared<const OperatorGraph>(std::move(built));
  plan.cluster = read_cluster("ascend-910");
  plan.mesh = make_mesh(plan.cluster);
  plan.options.search = "propagation";
  plan.status = PlanStatus::kFeasible;
  plan.usable = plan.cluster.usable_bytes();
  const OperatorGraph& graph = *plan.graph;
  Decisions decisions;
  for (const OperatorId op : graph.operators().ids()) {
    const ShardingRule& rule = graph.operation(op).rule;
    Strategy strategy;
    strategy.factors.resize(rule.factors.size());
    const auto found = strategies.find(graph.operators()[op].name);
    if (found != strategies.end()) {
      for (const auto& [factor, axes] : found->second) {
        strategy.factors[rule.find(factor).value()] = parse_axes(axes, plan.mesh);
      }
    }
    decisions.strategies.push_back(strategy);
  }
  const TensorVersions versions = tensor_versions(graph);
  const auto taken = [&](const Reader& reader) {
    return operand_layout(graph.operation(reader.op), decisions.strategies[reader.op], plan.mesh, reader.operand);
  };
  for (const VersionId id : versions.all.ids()) {
    const TensorVersion& version = versions.all[id];
    const GraphTensor& tensor = graph.tensor(version.tensor);
    TensorLayout layout;
    if (version.kind == TensorVersion::Kind::kProduced) {
      layout = result_layout(graph.operation(*tensor.producer), decisions.strategies[*tensor.producer], plan.mesh,
                             tensor.result);
    } else if (version.kind == TensorVersion::Kind::kStored) {
      const auto given = stored.find(tensor.name);
      layout = given != stored.end() ? canonical(parse_layout(given->second, plan.mesh), plan.mesh, tensor.type.shape)
               : tensor.readers.empty() ? TensorLayout::replicated(tensor.type.shape.size())
                                        : taken(tensor.readers.front());
    } else if (version.kind == TensorVersion::Kind::kUpdated) {
      layout = decisions.versions[*version.stored];
    } else if (!version.readers.empty()) {
      layout = taken(version.readers.front());
    } else {
      layout = decisions.versions[*version.from];
      layout.partial.clear();
    }
    decisions.versions.push_back(layout);
  }
  const RooflineCosts costs(plan.cluster, plan.mesh);
  RedistributionPlanner redistributions(plan.mesh, std::make_shared<LaunchCosts>());
  plan.program = lower(graph, versions, decisions, costs, redistributions);
  plan.strategies = decisions.strategies;
  plan.versions = decisions.versions;
  plan.is_user_strategy.resize(graph.operators().size());
  plan.memory = memory_profile(plan.program);
  const Timeline times = timeline(plan.program);
  plan.time = {times.computation, times.communication, times.exposed, 0};
  plan.cost = plan.bound = value_at(Level::kRatio, plan.time, plan.memory.peak);
  return plan;
}

Plan block_plan() {
  HandGraph graph("basic-blocks");
  const std::string dense1 = "block1-BasicBlock/dense1-Dense", dense2 = "block1-BasicBlock/dense2-Dense";
  const TensorId x = graph.input("x", {32, 16});
  const TensorId w1 = graph.parameter("block1.dense1.weight", {16, 16});
  const TensorId b1 = graph.parameter("block1.dense1.bias", {16});
  const TensorId w2 = graph.parameter("block1.dense2.weight", {16, 16});
  const TensorId b2 = graph.parameter("block1.dense2.bias", {16});
  const TensorId in = graph.op("block1.in0", "Identity", {x});
  StrategyEntry entry;
  entry.kind = StrategyEntry::Kind::kTuple;
  entry.tuple = {1, 8};
  graph.last().border_of = "block1";
  graph.last().strategy.edit().in = {entry};
  graph.last().strategy.edit().in_place = {"configs/hand.yaml", 14, 40};
  const TensorId m1 = graph.op("block1.dense1.matmul", "MatMul", {in, w1}, {{"transpose_b", true}}, dense1, 10);
  const TensorId a1 = graph.op("block1.dense1.bias_add", "BiasAdd", {m1, b1}, {}, dense1, 10);
  const TensorId g = graph.op("block1.gelu", "GeLU", {a1}, {}, "block1-BasicBlock", 11);
  const TensorId m2 = graph.op("block1.dense2.matmul", "MatMul", {g, w2}, {{"transpose_b", true}}, dense2, 12);
  const TensorId a2 = graph.op("block1.dense2.bias_add", "BiasAdd", {m2, b2}, {}, dense2, 12);
  OperatorGraph built = graph.build(a2);
  HandStrategies strategies;
  const auto first_factor = [&](const std::string& name) {
    return built.operation(*built.find_operator(name)).rule.factors[0].name;
  };
  const auto factor_of = [&](const std::string& name, std::size_t dimension) {
    const Operation& operation = built.operation(*built.find_operator(name));
    return operation.rule.factors[operation.rule.operands[0][dimension].factors[0]].name;
  };
  strategies["block1.in0"][factor_of("block1.in0", 1)] = "{pcie, hccs}";
  strategies["block1.dense1.matmul"]["k"] = "{pcie, hccs}";
  for (const char* name : {"block1.dense1.bias_add", "block1.gelu", "block1.dense2.matmul", "block1.dense2.bias_add"}) {
    strategies[name][first_factor(name)] = "{pcie, hccs}";
  }
  return hand_plan(std::move(built), strategies, {{"x", "[{}, {}]"}});
}

Plan tiny_plan() {
  HandGraph graph("tiny");
  const TensorId tokens = graph.input("tokens", {8, 16}, DataType::kI32);
  const TensorId table = graph.parameter("wte.embedding_table", {64, 32});
  std::vector<TensorId> weights;
  for (int i = 0; i < 2; ++i)
    weights.push_back(graph.parameter("layers." + std::to_string(i) + ".up.weight", {32, 32}));
  TensorId x = graph.op("wte.gather", "Gather", {table, tokens});
  for (int i = 0; i < 2; ++i) {
    const std::string layer = "layers." + std::to_string(i);
    x = graph.op(layer + ".up.matmul", "MatMul", {x, weights[static_cast<std::size_t>(i)]});
    x = graph.op(layer + ".relu", "ReLU", {x});
  }
  const TensorId logits = graph.op("head", "MatMul", {x, table}, {{"transpose_b", true}});
  const TensorId loss = graph.op("loss", "ReduceSum", {logits}, {{"axis", std::vector<std::int64_t>{0, 1, 2}}});
  TrainingOptions training;
  training.optimizer = "momentum";
  OperatorGraph built = differentiate(graph.build_with_loss(loss), training);
  HandStrategies strategies;
  for (const OperatorId id : built.operators().ids()) {
    const GraphOperator& op = built.operators()[id];
    if (op.pass != Pass::kForward || op.name == "loss") continue;
    const ShardingRule& rule = built.operation(id).rule;
    strategies[op.name][rule.factors[rule.results[0][0].factors[0]].name] = "{pcie}";
    if (op.name == "wte.gather") {
      strategies[op.name][rule.factors[rule.operands[0][0].factors[0]].name] = "{hccs}";
    }
  }
  return hand_plan(
      std::move(built), strategies,
      {{"layers.0.up.weight.momentum", "[{hccs, pcie}, {}]"}, {"layers.1.up.weight.momentum", "[{hccs, pcie}, {}]"}});
}

}  // namespace shardplan
