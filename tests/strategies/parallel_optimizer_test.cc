#include "strategies/parallel_optimizer.h"

#include <gtest/gtest.h>

#include <map>

#include "model/planned_model.h"
#include "model/read_model.h"

namespace shardplan {
namespace {

TEST(ParallelOptimizerTest, StatesAreCutOverThePiecesThatHoldTheSamePart) {
  const OperatorGraph graph = planned_graph(read_model_text(
      "shardplan: 1\ninputs: {x: [8, 16]}\nparameters:\n"
      "  w: {shape: [16, 8]}\n  kept: {shape: [8], parallel_optimizer: false}\n  odd: [4]\n  cut: [8, 4]\n"
      "operators:\n"
      "  a: {op: MatMul, in: [x, w]}\n  b: {op: BiasAdd, in: [a, kept]}\n  c: {op: MatMul, in: [b, cut]}\n"
      "  d: {op: BiasAdd, in: [c, odd]}\n  loss: {op: ReduceMean, in: d}\nloss: loss\ntraining: {optimizer: adam}\n",
      "m.yaml"));
  const DeviceMesh mesh = DeviceMesh::parse("x=2, y=4");
  const std::vector<AxisRef> pieces = {mesh.whole(0), mesh.whole(1)};
  IdVector<TensorId, RareValue<TensorLayout>> stored(graph.tensors().size());
  stored[*graph.find_tensor("cut")] = parse_layout("[{}, {y}]", mesh);

  std::map<std::string, std::string> found;
  const auto layouts = parallel_optimizer_states(graph, mesh, pieces, stored);
  for (const TensorId id : graph.tensors().ids()) {
    if (layouts[id]) found[graph.tensor(id).name] = to_string(*layouts[id], mesh);
  }
  // Neither the count of steps nor what 8 devices do not divide, nor what the user keeps whole.
  const std::map<std::string, std::string> expected = {{"w.moment1", "[{x, y}, {}]"},
                                                       {"w.moment2", "[{x, y}, {}]"},
                                                       {"cut.moment1", "[{x}, {y}]"},
                                                       {"cut.moment2", "[{x}, {y}]"}};
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace shardplan
