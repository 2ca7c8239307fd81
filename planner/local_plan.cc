#include "planner/local_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "costmodel/hierarchical_costs.h"
#include "costmodel/send_costs.h"
#include "model/local_model.h"
#include "operators/families/communication.h"
#include "planner/model_planner.h"
#include "program/startup_broadcasts.h"

namespace shardplan {
namespace {

/// Each rank's graph as planned on one device, where nothing is left to decide.
Plan plan_of_rank(const Model& model, const Cluster& one_device) {
  auto own = std::make_shared<Model>(model);
  own->parallel.mesh.clear();  // it names groups of ranks
  PlanOptions options;
  options.level = Level::kSpeed;
  options.search = "propagation";
  options.overlap = false;
  options.capacity = Bytes{1} << 60;  // costed even if it does not fit
  const ModelPlanner planner(own, one_device, options);
  return planner.plan(options.level, options.search);
}

/// Times of communications between the ranks of one cluster.
class CommunicationCosts {
 public:
  CommunicationCosts(const Cluster& cluster, const LocalProgram& program) : cluster_(cluster), program_(program) {
    for (const LocalStep& step : program.steps) {
      if (!is_communication(*operation(step[0]).type)) continue;
      groups_[name(step[0])].push_back(ranks_of(step));
    }
  }

  Picoseconds time(const LocalStep& step) {
    const Operation& first = operation(step[0]);
    const std::string& type = first.type->name;
    if (type.starts_with("NeighborExchange")) return sends_time(cluster_, sends(step));
    const Bytes x = first.operands[0].bytes();
    const auto size = static_cast<Bytes>(step.size());
    const auto of_kind = [&](CollectiveKind kind, Bytes bytes) {
      return collective(step, [&](const std::vector<AxisRef>& axes, const CollectiveCosts& costs) {
        return costs.time(kind, axes, bytes);
      });
    };
    if (type == "AllGather") return of_kind(CollectiveKind::kAllGather, x * size);
    if (type == "ReduceScatter") return of_kind(CollectiveKind::kReduceScatter, x);
    if (type == "AlltoAll") return of_kind(CollectiveKind::kAllToAll, x * size);
    if (type == "AllReduce") return of_kind(CollectiveKind::kAllReduce, x);
    if (type == "FusedAllReduce") return of_kind(CollectiveKind::kAllReduce, bytes_of(first));
    return collective(step, [&](const std::vector<AxisRef>& axes, const CollectiveCosts& costs) {
      return broadcast_time(axes, x, costs);
    });
  }

  const Operation& operation(const LocalOperator& at) const {
    return program_.graphs[static_cast<std::size_t>(at.rank)]->operation(at.op);
  }
  const SharedText& name(const LocalOperator& at) const {
    return program_.graphs[static_cast<std::size_t>(at.rank)]->operators()[at.op].name;
  }
  /// The bytes that a member contributes.
  static Bytes bytes_of(const Operation& operation) {
    Bytes sum = 0;
    for (const TensorType& operand : operation.operands) sum += operand.bytes();
    return sum;
  }
  static std::vector<std::int64_t> ranks_of(const LocalStep& step) {
    std::vector<std::int64_t> ranks;
    for (const LocalOperator& at : step) ranks.push_back(at.rank);
    return ranks;
  }

 private:
  /// A collective of the step's group; other groups of the operator run at the same time if all have the same size.
  template <class Time>
  Picoseconds collective(const LocalStep& step, const Time& time) {
    if (step.size() == 1) return 0;
    const std::vector<std::int64_t> own = ranks_of(step);
    const auto [known, is_first] = beside_.try_emplace(name(step[0]), nullptr);
    if (is_first) known->second = costs_of_all(groups_[name(step[0])]);
    const HierarchicalCosts& costs = known->second != nullptr ? *known->second : costs_of({own});
    return time({AxisRef{1, 1, static_cast<std::int64_t>(own.size())}}, costs);
  }

  /// The costs of groups that communicate at the same time; null if their sizes differ or they share ranks.
  const HierarchicalCosts* costs_of_all(const std::vector<std::vector<std::int64_t>>& groups) {
    std::set<std::int64_t> ranks;
    for (const std::vector<std::int64_t>& group : groups) {
      if (group.size() != groups[0].size()) return nullptr;
      for (const std::int64_t rank : group) {
        if (!ranks.insert(rank).second) return nullptr;
      }
    }
    return &costs_of(groups);
  }

  const HierarchicalCosts& costs_of(const std::vector<std::vector<std::int64_t>>& groups) {
    std::unique_ptr<HierarchicalCosts>& costs = costs_[groups];
    if (costs == nullptr) {
      std::vector<std::int64_t> devices;
      for (const std::vector<std::int64_t>& group : groups) devices.insert(devices.end(), group.begin(), group.end());
      const DeviceMesh mesh({{"groups", static_cast<std::int64_t>(groups.size())},
                             {"group", static_cast<std::int64_t>(groups[0].size())}},
                            devices);
      costs = std::make_unique<HierarchicalCosts>(cluster_, mesh);
    }
    return *costs;
  }

  std::vector<DeviceSend> sends(const LocalStep& step) const {
    std::vector<DeviceSend> sends;
    const bool is_backwards = operation(step[0]).type->name == "NeighborExchangeV2Grad";
    const bool is_v2 = operation(step[0]).type->name.starts_with("NeighborExchangeV2");
    for (const NeighbourSend& send : neighbour_sends(program_, step)) {
      const Operation& from = operation(step[send.from]);
      Bytes bytes = 0;
      if (is_v2) {
        const Shape& shape = from.operands[0].shape;
        const Patch patch = sent_patch(from, send.sent);
        bytes = shape[0] * shape[1] * patch.rows * patch.columns * element_bytes(from.operands[0].dtype);
      } else {
        bytes = from.operands[send.sent].bytes();
      }
      const std::int64_t source = step[is_backwards ? send.to : send.from].rank;
      const std::int64_t target = step[is_backwards ? send.from : send.to].rank;
      sends.push_back({source, target, bytes});
    }
    return sends;
  }

  const Cluster& cluster_;
  const LocalProgram& program_;
  std::map<std::string, std::vector<std::vector<std::int64_t>>> groups_;  // by the operator's name
  std::map<std::string, const HierarchicalCosts*>
      beside_;  // of all groups of an operator; null if each communicates alone
  std::map<std::vector<std::vector<std::int64_t>>, std::unique_ptr<HierarchicalCosts>> costs_;
};

/// The time of each operator of a rank on its device.
IdVector<OperatorId, Picoseconds> kernel_times(const Plan& plan) {
  IdVector<OperatorId, Picoseconds> times(plan.graph->operators().size(), 0);
  for (const Instruction& instruction : plan.program.instructions) {
    if (instruction.op) times[*instruction.op] += instruction.time;
  }
  return times;
}

void run_timeline(LocalPlan& plan, const LocalProgram& program) {
  CommunicationCosts costs(plan.cluster, program);
  const std::size_t count = plan.ranks.size();
  std::vector<IdVector<OperatorId, Picoseconds>> times;
  std::vector<IdVector<TensorId, Picoseconds>> ready;
  for (const LocalRank& rank : plan.ranks) {
    times.push_back(kernel_times(rank.plan));
    ready.emplace_back(rank.plan.graph->tensors().size(), 0);
  }
  std::vector<Picoseconds> kernels(count, 0);         // when each rank has finished its kernels so far
  std::vector<Picoseconds> communications(count, 0);  // and its communications
  for (const LocalStep& step : program.steps) {
    const bool communicates = is_communication(*costs.operation(step[0]).type);
    Picoseconds begin = 0;
    for (const LocalOperator& at : step) {
      const auto r = static_cast<std::size_t>(at.rank);
      begin = std::max(begin, kernels[r]);
      if (communicates) begin = std::max(begin, communications[r]);
      for (const TensorId operand : program.graphs[r]->operators()[at.op].operands) {
        begin = std::max(begin, ready[r][operand]);
      }
    }
    const auto first = static_cast<std::size_t>(step[0].rank);
    const Picoseconds time = communicates ? costs.time(step) : times[first][step[0].op];
    for (const LocalOperator& at : step) {
      const auto r = static_cast<std::size_t>(at.rank);
      LocalRank& rank = plan.ranks[r];
      (communicates ? communications[r] : kernels[r]) = begin + time;
      (communicates ? rank.communication : rank.computation) += time;
      rank.end = std::max(rank.end, begin + time);
      for (const TensorId result : program.graphs[r]->operators()[at.op].results) ready[r][result] = begin + time;
    }
    if (!communicates) continue;
    plan.communications.push_back({costs.name(step[0]), costs.operation(step[0]).type->name,
                                   CommunicationCosts::ranks_of(step),
                                   CommunicationCosts::bytes_of(costs.operation(step[0])), begin, time});
  }
  plan.step = plan.ranks[plan.slowest()].end;
}

}  // namespace

std::size_t LocalPlan::slowest() const {
  const auto at = std::max_element(ranks.begin(), ranks.end(),
                                   [](const LocalRank& a, const LocalRank& b) { return a.end < b.end; });
  return static_cast<std::size_t>(at - ranks.begin());
}

std::size_t LocalPlan::largest() const {
  const auto at = std::max_element(ranks.begin(), ranks.end(),
                                   [](const LocalRank& a, const LocalRank& b) { return a.peak() < b.peak(); });
  return static_cast<std::size_t>(at - ranks.begin());
}

LocalPlan plan_locally(const std::shared_ptr<const Model>& model, const Cluster& cluster,
                       const std::optional<Bytes>& capacity) {
  LocalPlan plan;
  plan.cluster = cluster;
  plan.usable = capacity.value_or(cluster.usable_bytes());
  const Cluster one_device = take_devices(cluster, 1);
  for (const std::shared_ptr<const Model>& own : models_of_ranks(*model, cluster.num_devices())) {
    if (plan.model == nullptr) plan.model = own;
    LocalRank rank;
    rank.plan = plan_of_rank(*own, one_device);
    plan.ranks.push_back(std::move(rank));
  }
  std::vector<const OperatorGraph*> graphs;
  for (const LocalRank& rank : plan.ranks) graphs.push_back(rank.plan.graph.get());
  run_timeline(plan, local_program(std::move(graphs)));
  return plan;
}

}  // namespace shardplan
