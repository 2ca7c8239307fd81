#include "planner/problem/problem_costs.h"

#include <gtest/gtest.h>

#include "costmodel/operator_steps.h"
#include "model/read_model.h"
#include "tests/support/marked_model.h"
#include "tests/support/planned_model.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

PlannedModel model_on_a_cube(const std::string& training) {
  return PlannedModel(read_model_text(layered_model(training), "m.yaml"), "ascend-910", {{"x", 2}, {"y", 2}, {"z", 2}});
}

/// Requests the redistribution of every operand from each layout in which the operators produce or read it to each
/// other one.
void request_all(const PlannedModel& model, LayoutTables& layouts) {
  for (const OperatorId id : model.graph.operators().ids()) {
    const GraphOperator& op = model.graph.operators()[id];
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      std::vector<ListedLayout> taken;
      for (const Strategy& strategy : *model.problem.strategies[id]) {
        const TensorLayout layout = operand_layout(model.graph.operation(id), strategy, model.costs->mesh(), i);
        taken.push_back({layouts.layout(layout), false});
      }
      const ListId list = layouts.list(std::move(taken));
      const TypeId type = layouts.type(model.graph.tensor(op.operands[i]).type);
      layouts.request({list, list, type, EdgeKind::kRedistribute, 1});
      layouts.request({list, list, type, EdgeKind::kRedistribute, 3});
      layouts.request({list, list, type, EdgeKind::kShares, 1});
    }
  }
}

TEST(ProblemCostsTest, AreThoseOfOneAfterTheOther) {
  const PlannedModel model = model_on_a_cube("");
  StrategyProblem problem;
  LayoutTables layouts(problem);
  request_all(model, layouts);
  std::vector<CostedOperator> operators;
  for (const OperatorId id : model.graph.operators().ids()) {
    operators.push_back(
        {std::make_shared<const Operation>(model.graph.operation(id)), model.problem.strategies[id], {}});
  }
  const ProblemCosts found = problem_costs(operators, layouts, *model.costs, *model.redistributions);

  const std::unique_ptr<RedistributionPlanner> planner = model.redistributions->another();
  ASSERT_EQ(found.tables.size(), operators.size());
  for (std::size_t i = 0; i < operators.size(); ++i) {
    for (std::size_t j = 0; j < operators[i].strategies->size(); ++j) {
      const OperatorSteps steps =
          operator_steps(operators[i].operation, (*operators[i].strategies)[j], *model.costs, *planner);
      EXPECT_EQ(found.tables[i].costs[j], (Cost{steps.computation, steps.communication}));
    }
  }
  ASSERT_EQ(found.of_requests.size(), layouts.requests().size());
  std::size_t entries = 0;
  for (const MatrixRequestId id : layouts.requests().ids()) {
    const MatrixRequest& request = layouts.requests()[id];
    if (request.kind == EdgeKind::kShares) {
      EXPECT_FALSE(found.of_requests[id]);  // nothing shares memory here
      continue;
    }
    const WholeTensor& tensor = layouts[request.type];
    std::vector<Picoseconds> times = planner->times(layouts.layouts_of(request.from), layouts.layouts_of(request.to),
                                                    tensor.shape, tensor.element_bytes);
    for (Picoseconds& time : times) time *= request.runs;
    ASSERT_EQ(found.of_requests[id].has_value(), std::ranges::any_of(times, [](Picoseconds time) { return time > 0; }));
    if (!found.of_requests[id]) continue;
    EXPECT_EQ(found.of_requests[id]->costs, times);
    entries += times.size();
  }
  EXPECT_GT(entries, 100'000u);  // which two threads take
}

TEST(ProblemCostsTest, RunsAreAddedAndWhatIsForbiddenStaysSo) {
  StrategyTable sum{std::vector<Cost>(3)};
  const StrategyTable one{{{5, 7}, {0, kForbidden}, {1, kForbidden / 2}}};
  add_runs(one, 1, sum);
  add_runs(one, 3, sum);
  const StrategyTable expected{{{20, 28}, {0, kForbidden}, {4, kForbidden}}};
  for (std::size_t i = 0; i < sum.costs.size(); ++i) EXPECT_EQ(sum.costs[i], expected.costs[i]) << i;
}

TEST(ProblemCostsTest, AnOperatorThatHasNoCostIsNamed) {
  EXPECT_EQ(
      error_of([] {
        PlannedModel(read_model_text("shardplan: 1\n"
                                     "inputs: {x: {shape: [8, 4], dtype: bf16}}\n"
                                     "operators:\n"
                                     "  y: {op: ReLU, in: x}\n",
                                     "m.yaml"),
                     read_cluster("ascend-910"));
      }),
      "m.yaml:4:3: error: y: ReLU in bf16: Ascend 910 (cluster ascend-910) does not compute bf16; it has f32, f16, "
      "i8");
}

}  // namespace
}  // namespace shardplan
