#include "planner/problem/decided_strategies.h"

#include <gtest/gtest.h>

#include "model/planned_model.h"
#include "model/read_model.h"
#include "tests/support/files.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

const DeviceMesh kMesh = DeviceMesh::parse("x=2,y=4");

struct Decided {
  OperatorGraph graph;
  DecidedStrategies decided;

  /// Whether an operator's strategy is decided, and how it then shards its first operand.
  std::string operand(const std::string& op) const {
    const OperatorId id = *graph.find_operator(op);
    const auto& strategies = decided.strategies.operators[id];
    if (strategies.empty()) return "open";
    return to_string(operand_layout(graph.operation(id), strategies.front(), kMesh, 0), kMesh);
  }
};
Decided decide(const std::string& operators, const std::string& parallel, const std::string& strategy_file = "") {
  const Model model = read_model_text("shardplan: 1\ninputs: {x: [16, 10]}\noperators:\n" + operators +
                                          "parallel: {mesh: {x: 2, y: 4}, " + parallel + "}\n",
                                      "m.yaml");
  Decided result;
  result.graph = planned_graph(model);
  result.decided =
      decided_strategies(model, result.graph, kMesh, {{kMesh.whole(0), kMesh.whole(1)}, true}, strategy_file);
  return result;
}

const char* const kTwo = "  a: {op: ReLU, in: x, in_strategy: [[2, 1]]}\n  b: {op: GeLU, in: a}\n";

TEST(DecidedStrategiesTest, TheUsersAreDecidedTheRestIsOpen) {
  const Decided found = decide(kTwo, "parallel_mode: auto_parallel");
  EXPECT_EQ(found.operand("a"), "[{x}, {}]");
  EXPECT_EQ(found.operand("b"), "open");
  for (const char loaded : found.decided.loaded.is_loaded) EXPECT_EQ(loaded, 0);
}

TEST(DecidedStrategiesTest, WithFullBatchInputsAreWhole) {
  const auto stored = [](const std::string& parallel) -> std::string {
    const Decided found = decide(kTwo, parallel);
    const auto& layout = found.decided.strategies.stored[*found.graph.find_tensor("x")];
    return layout ? to_string(*layout, kMesh) : "open";
  };
  EXPECT_EQ(stored("parallel_mode: auto_parallel"), "open");
  EXPECT_EQ(stored("parallel_mode: auto_parallel, full_batch: true"), "[{}, {}]");
}

TEST(DecidedStrategiesTest, SemiAutoDecidesWhatTheUserDoesNot) {
  const Decided found = decide(kTwo, "parallel_mode: semi_auto_parallel");
  EXPECT_EQ(found.operand("a"), "[{x}, {}]");
  EXPECT_NE(found.operand("b"), "open");
}

// x is divided in two in any case; of y one strategy takes the first half, so that others can, too.
TEST(DecidedStrategiesTest, TheMeshIsDividedAsStrategiesDivideIt) {
  const auto pieces = [](const std::string& operators, const std::string& search = "auto_parallel") {
    return kMesh.to_string(decide(operators, "parallel_mode: " + search).decided.pieces);
  };
  const std::string open = "  a: {op: ReLU, in: x}\n";
  EXPECT_EQ(pieces(open), "{x, y}");
  EXPECT_EQ(pieces("  a: {op: ReLU, in: x, in_strategy: [\"[{x, y}, {}]\"]}\n"), "{x, y}");
  EXPECT_EQ(pieces("  a: {op: ReLU, in: x, in_strategy: [\"[{x, y:(1)2}, {}]\"]}\n"), "{x, y:(1)2, y:(2)2}");
  EXPECT_EQ(pieces("  a: {op: ReLU, in: x, in_strategy: [[4, 1]]}\n"), "{x, y:(1)2, y:(2)2}");
  EXPECT_EQ(pieces("  a: {block: nn.Dense, in: x, out_channels: 8}\n"
                   "strategies:\n  a.weight: {strategy: \"[{y:(1)2}, {}]\"}\n"),
            "{x, y:(1)2, y:(2)2}");
}

TEST(DecidedStrategiesTest, AllFaultsOfTheUsersStrategiesAreFound) {
  EXPECT_EQ(error_of([] {
              decide("  a: {op: ReLU, in: x, in_strategy: [[3, 1]]}\n  b: {op: GeLU, in: a, in_strategy: [[2]]}\n",
                     "parallel_mode: auto_parallel");
            }).substr(0, 11),
            "m.yaml:4:37");
  const std::string both = error_of([] {
    decide("  a: {op: ReLU, in: x, in_strategy: [[3, 1]]}\n  b: {op: GeLU, in: a, in_strategy: [[2]]}\n",
           "parallel_mode: auto_parallel");
  });
  EXPECT_NE(both.find("m.yaml:5:"), std::string::npos) << both;
}

}  // namespace
}  // namespace shardplan
