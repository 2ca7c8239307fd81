#include "planner/overlap/hiding_windows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "base/integer.h"
#include "base/random.h"
#include "costmodel/cluster/cluster.h"
#include "model/read_model.h"
#include "program/overlapped_timeline.h"
#include "program/schedule.h"
#include "tests/fuzz/random_model.h"
#include "tests/support/planned_model.h"

namespace shardplan {
namespace {

constexpr const char* kCluster =
    "shardplan: 1\ncluster: small\ndevice:\n  name: d\n  memory: {capacity: 1 GiB, bandwidth: 10 GB/s}\n"
    "  flops: {f32: 10 GFLOP/s, f64: 1 GFLOP/s, f16: 10 GFLOP/s, bf16: 10 GFLOP/s, i8: 10 GFLOP/s}\n  start: 1 us\n"
    "levels:\n  - {name: inner, count: 4, latency: 1 us, bandwidth: 10 GB/s}\n";

Cluster small_cluster() { return read_cluster_text(kCluster, "small.yaml"); }

SearchedModel searched(const PlannedModel& planned) {
  return {planned.graph, planned.versions, planned.problem, planned.costs->mesh(), std::nullopt};
}

using Span = OverlappedTimeline::Span;

Picoseconds common(Span a, Span b) {
  return std::max<Picoseconds>(0, std::min(a.end, b.end) - std::max(a.begin, b.begin));
}
Span both(Span a, Span b) { return {std::max(a.begin, b.begin), std::min(a.end, b.end)}; }

TensorId communicated(const PlannedModel& planned, EdgeId edge) {
  const ModelProblem::Communicated& what = planned.problem.communicated[edge];
  if (what.version) return planned.versions.all[*what.version].tensor;
  return planned.graph.operators()[what.reader.op].operands[what.reader.operand];
}

/// A window by comparing every kernel with every collective; for programs without a loop.
class Slowly {
 public:
  Slowly(const PlannedModel& planned, const ParallelProgram& program)
      : planned_(planned), program_(program), line_(overlapped_timeline(program)) {}

  Span window(EdgeId edge) const {
    const ModelProblem::Communicated& what = planned_.problem.communicated[edge];
    const auto producer = planned_.graph.tensor(communicated(planned_, edge)).producer;
    Span result{producer ? of(*producer).end : 0, line_.end};
    const auto end_before = [&](OperatorId reader) {
      if (of(reader).begin >= result.begin) result.end = std::min(result.end, of(reader).begin);
    };
    if (!what.version) {
      end_before(what.reader.op);
    } else {
      for (const Reader& reader : planned_.versions.all[*what.version].readers) end_before(reader.op);
    }
    return result;
  }

  Picoseconds kernels(Span window) const {
    Picoseconds sum = 0;
    for_each(InstructionKind::kOperator, [&](Span kernel) { sum += common(kernel, window); });
    return sum;
  }

  Picoseconds busy(Span window) const {
    Picoseconds sum = 0;
    for_each(InstructionKind::kOperator, [&](Span kernel) {
      const auto add = [&](Span collective) { sum += common(both(kernel, window), collective); };
      for_each(InstructionKind::kCollective, add);
      for_each(InstructionKind::kHalo, add);
    });
    return sum;
  }

 private:
  Span of(OperatorId op) const {
    Span result{line_.end, 0};
    for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
      const Instruction& instruction = program_.instructions[i];
      if (instruction.kind != InstructionKind::kOperator || !instruction.op || *instruction.op != op) continue;
      result = {std::min(result.begin, line_.spans[i].begin), std::max(result.end, line_.spans[i].end)};
    }
    return result;
  }

  template <class Visit>
  void for_each(InstructionKind kind, const Visit& visit) const {
    for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
      if (program_.instructions[i].kind == kind) visit(line_.spans[i]);
    }
  }

  const PlannedModel& planned_;
  const ParallelProgram& program_;
  OverlappedTimeline line_;
};

TEST(HidingWindowsTest, EstimatesFollowTheTimeline) {
  constexpr Hiding kHiding{20, 50};
  int hidden = 0, exposed = 0, partly = 0, crowded = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const std::string text = random_model(random, 1 + random.below(8));
    SCOPED_TRACE(text);
    const PlannedModel planned(read_model_text(text, "m.yaml"), small_cluster());
    const Choice choice = planned.random_choice(random);
    const StrategyProblem& problem = planned.problem.problem;
    if (evaluate(problem, choice).forbidden_count > 0) continue;
    const ParallelProgram program = planned.lowered(choice);
    if (program.micro_batches > 1) continue;
    const SearchedModel model = searched(planned);
    HidingWindows windows(model);
    windows.add(program);
    const StrategyProblem estimated = windows.estimated(kHiding);
    const Slowly slowly(planned, program);
    // Of edges between the same nodes with the same costs the mean counts.
    std::map<std::tuple<NodeId, NodeId, MatrixId>, std::vector<EdgeId>> alike;
    for (const EdgeId edge : problem.edges.ids()) {
      const ProblemEdge& of = problem.edges[edge];
      alike[{of.from, of.to, of.matrix}].push_back(edge);
    }
    for (const auto& [key, edges] : alike) {
      double kernels = 0, busy = 0;
      for (const EdgeId edge : edges) {
        const Span window = slowly.window(edge);
        kernels += static_cast<double>(slowly.kernels(window)) / static_cast<double>(edges.size());
        busy += static_cast<double>(slowly.busy(window)) / static_cast<double>(edges.size());
      }
      const double crowd = kernels > 0 ? std::clamp((busy / kernels - 0.8) / 0.2, 0.0, 1.0) : 0;
      const std::vector<std::int64_t>& costs = problem.matrices[std::get<MatrixId>(key)].costs;
      const CostMatrix& matrix = estimated.matrices[estimated.edges[edges.front()].matrix];
      for (std::size_t i = 0; i < costs.size(); ++i) {
        if (costs[i] >= kForbidden) {
          EXPECT_GE(matrix.costs[i], kForbidden);
          continue;
        }
        const auto cost = static_cast<double>(costs[i]);
        const double out = std::max(0.0, cost - kernels / 2), by_window = 0.2 * cost + 0.8 * out;
        // Shares are rounded to per cent: of one by 5 % near the steep end.
        EXPECT_NEAR(static_cast<double>(matrix.costs[i]), std::max(by_window, crowd * cost), 0.05 * cost + 3);
        if (cost == 0) continue;
        ++(out == 0 ? hidden : out == cost ? exposed : partly);
        if (crowd * cost > by_window) ++crowded;
      }
    }
  }
  EXPECT_GT(hidden, 1000);
  EXPECT_GT(exposed, 1000);
  EXPECT_GT(partly, 1000);
  EXPECT_GT(crowded, 100);
}

TEST(HidingWindowsTest, SharesOfCostsAreExactIn64Bits) {
  Random random(1);
  for (int i = 0; i < 10'000; ++i) {
    const auto cost =
        static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(kForbidden)) >> random.below(58));
    const auto percent = static_cast<std::int64_t>(random.below(1001));
    EXPECT_EQ(percent_of(cost, percent), multiply_divide(cost, percent, 100)) << cost << " " << percent;
  }
  EXPECT_EQ(percent_of(kForbidden - 1, 1000), multiply_divide(kForbidden - 1, 1000, 100));
}

// A gradient that is summed over micro-batches can only be reduced when the last of them is done with it.
TEST(HidingWindowsTest, OnlyTheLastMicroBatchHidesReductionsOfGradients) {
  const PlannedModel planned(
      read_model_text("shardplan: 1\nmodel: two\ncluster: dgx-a100\ndims: {B: 4096, H: 4096}\n"
                      "inputs: {x: [B, H], y: [B, H]}\noperators:\n  first: {block: nn.Dense, in: x, out_channels: H}\n"
                      "  second: {block: nn.Dense, in: first, out_channels: H}\n  error: {op: Sub, in: [second, y]}\n"
                      "  square: {op: Square, in: error}\n  loss: {op: ReduceMean, in: square}\nloss: loss\n"
                      "training: {optimizer: sgd, learning_rate: 0.1, micro_batches: 8}\n",
                      "two.yaml"),
      read_cluster("dgx-a100"));
  Choice cheapest;  // of each node by itself, which leaves redistributions to be hidden
  for (const NodeId node : planned.problem.problem.nodes.ids()) {
    const auto& costs = planned.problem.problem.strategy_tables[planned.problem.problem.nodes[node].strategies].costs;
    const auto least = std::min_element(costs.begin(), costs.end(), [](const Cost& a, const Cost& b) {
      return a.computation + a.communication < b.computation + b.communication;
    });
    cheapest.strategy.push_back(StrategyId(static_cast<std::size_t>(least - costs.begin())));
  }
  ParallelProgram program = planned.lowered(cheapest);
  schedule(program, planned.graph, *planned.costs->collectives(), {.most_memory = kUnlimitedBytes});
  const OverlappedTimeline line = overlapped_timeline(program);
  ASSERT_EQ(program.micro_batches, 8);
  const SearchedModel model = searched(planned);
  HidingWindows windows(model);
  windows.add(program);
  const StrategyProblem estimated = windows.estimated({0, 100});
  int reductions = 0, hidden = 0;
  for (const EdgeId edge : estimated.edges.ids()) {
    const ModelProblem::Communicated& what = planned.problem.communicated[edge];
    const auto producer = planned.graph.tensor(communicated(planned, edge)).producer;
    const std::int64_t runs =
        what.version ? runs_of(planned.graph, planned.versions.all[*what.version]) : planned.graph.runs(what.reader.op);
    if (!producer || planned.graph.runs(*producer) != 8 || runs != 1) continue;
    const auto& before = planned.problem.problem.matrices[planned.problem.problem.edges[edge].matrix].costs;
    const auto& after = estimated.matrices[estimated.edges[edge].matrix].costs;
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (before[i] == 0 || before[i] >= kForbidden) continue;
      ++reductions;
      hidden += before[i] - after[i] > 0 ? 1 : 0;
      EXPECT_LE(before[i] - after[i], line.computation / 8);
    }
  }
  EXPECT_GT(reductions, 0);
  EXPECT_GT(hidden, 0);
}

}  // namespace
}  // namespace shardplan
