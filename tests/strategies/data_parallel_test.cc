#include "strategies/data_parallel.h"

#include <gtest/gtest.h>

#include "graph/batch_factors.h"
#include "model/planned_model.h"
#include "model/read_model.h"

namespace shardplan {
namespace {

const DeviceMesh kParallelMesh = DeviceMesh::parse("x=2, y=4");
const std::vector<AxisRef> kWholeAxes{kParallelMesh.whole(0), kParallelMesh.whole(1)};

OperatorGraph trained(const std::string& batch) {
  return planned_graph(read_model_text("shardplan: 1\ninputs: {x: [" + batch +
                                           ", 4]}\noperators:\n"
                                           "  fc:   {block: nn.Dense, in: x, out_channels: 2, has_bias: false}\n"
                                           "  turn: {op: Transpose, in: fc, perm: [1, 0]}\n"
                                           "  loss: {op: ReduceMean, in: turn}\n"
                                           "loss: loss\ntraining: {optimizer: sgd}\n",
                                       "m.yaml"));
}

/// The gradient of a mean depends on no input, yet everything after it must be sharded as in the forward pass. Data
/// parallelism once repeated those products on every device, and was reported as twice as slow as it is.
TEST(DataParallelTest, TheBackwardPassOfAMeanHasTheBatch) {
  const OperatorGraph graph = planned_graph(read_model_text(R"(shardplan: 1
inputs: {x: [16, 4]}
operators:
  up:   {block: nn.Dense, in: x, out_channels: 8, has_bias: false}
  down: {block: nn.Dense, in: up, out_channels: 2, has_bias: false}
  loss: {op: ReduceMean, in: down}
loss: loss
training: {optimizer: sgd}
)",
                                                            "m.yaml"));
  const BatchFactors batch = find_batch(graph);
  std::size_t products = 0;
  for (const OperatorId op : graph.operators().ids()) {
    const GraphOperator& info = graph.operators()[op];
    if (graph.operation(op).type->name != "MatMul") continue;
    EXPECT_TRUE(batch.factors[op]) << info.name;
    const Strategy strategy = data_parallel_strategy(graph.operation(op), batch.factors[op], kParallelMesh, kWholeAxes);
    EXPECT_FALSE(strategy == replicated_strategy(graph.operation(op))) << info.name << " is repeated on every device";
    ++products;
  }
  EXPECT_EQ(products, 5u) << "two forward, two gradients of weights, one of what is between them";
}

TEST(DataParallelTest, TheBatchIsCutOverAsManyAxesAsDivideIt) {
  const auto layout = [](const std::string& batch, const std::vector<AxisRef>& pieces = kWholeAxes) {
    const OperatorGraph graph = trained(batch);
    const OperatorId fc = *graph.find_operator("fc.matmul");
    const Strategy strategy =
        data_parallel_strategy(graph.operation(fc), find_batch(graph).factors[fc], kParallelMesh, pieces);
    return to_string(operand_layout(graph.operation(fc), strategy, kParallelMesh, 0), kParallelMesh);
  };
  EXPECT_EQ(layout("16"), "[{x, y}, {}]");
  EXPECT_EQ(layout("6"), "[{x}, {}]");
  EXPECT_EQ(layout("3"), "[{}, {}]");
  const AxisRef x = kParallelMesh.whole(0), outer{1, 1, 2}, inner{1, 2, 2};
  EXPECT_EQ(layout("12", {x, outer, inner}), "[{x, y:(1)2}, {}]");
  EXPECT_EQ(layout("8", {x, outer, inner}), "[{x, y}, {}]");
  const DeviceMesh uneven = DeviceMesh::parse("x=3, y=4");
  const OperatorGraph graph = trained("4");
  const OperatorId fc = *graph.find_operator("fc.matmul");
  const Strategy strategy = data_parallel_strategy(graph.operation(fc), find_batch(graph).factors[fc], uneven,
                                                   {uneven.whole(0), uneven.whole(1)});
  EXPECT_EQ(to_string(operand_layout(graph.operation(fc), strategy, uneven, 0), uneven), "[{y}, {}]");
}

}  // namespace
}  // namespace shardplan
