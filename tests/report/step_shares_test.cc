#include "report/metrics/step_shares.h"

#include <gtest/gtest.h>

#include "model/planned_model.h"
#include "model/read_model.h"
#include "tests/support/marked_model.h"

namespace shardplan {
namespace {

OperatorGraph trained() { return planned_graph(read_model_text(layered_model(""), "layered.yaml")); }

// Everything that a training step does for a layer belongs to the layer: its operators, their gradients, updates of its
// weights.
TEST(StepSharesTest, GradientsAndUpdatesBelongToTheirBlock) {
  const OperatorGraph graph = trained();
  std::map<Pass, std::size_t> of_layers;
  for (const OperatorId op : graph.operators().ids()) {
    const std::string& name = graph.operators()[op].name;
    const bool names_layer = name.find("layers.") != std::string::npos;
    const std::string block = folded_block(graph, op);
    EXPECT_EQ(block == "layers.*", names_layer) << name << " is of " << block;
    if (names_layer) ++of_layers[graph.operators()[op].pass];
  }
  EXPECT_GT(of_layers[Pass::kForward], 15u);
  EXPECT_GT(of_layers[Pass::kBackward], 15u);
  EXPECT_EQ(of_layers[Pass::kUpdate], 3u * 6u);  // gamma, beta, and two weights and biases, of three layers
  EXPECT_EQ(folded_block(graph, *graph.find_operator("square")), "square");
}

TEST(StepSharesTest, CollectivesAreForWhoAskedForThem) {
  const OperatorGraph graph = trained();
  Plan plan;
  plan.graph = std::make_shared<const OperatorGraph>(graph);
  const OperatorId gelu = *graph.find_operator("layers.1.gelu");
  const OperatorId square = *graph.find_operator("square");
  ProgramValue value;
  value.tensor = *graph.find_tensor("error");
  const ValueId of_error = plan.program.values.push_back(value);
  value.tensor = *graph.find_tensor("x");
  const ValueId of_input = plan.program.values.push_back(value);
  Instruction instruction;
  instruction.outputs = {of_error};
  instruction.op = gelu;
  instruction.origin = Origin{Origin::Kind::kRedistribution, "square", "loss", 0, ""};
  EXPECT_EQ(spender(plan, instruction), gelu);
  instruction.op.reset();
  EXPECT_EQ(spender(plan, instruction), graph.find_operator("loss"));  // the reader of what it delivers
  instruction.origin.edit().consumer = "";
  EXPECT_EQ(spender(plan, instruction), square);  // else the producer
  instruction.origin.edit().producer = "x";
  EXPECT_EQ(spender(plan, instruction), graph.find_operator("error"));  // else the producer of the tensor
  instruction.outputs = {of_input};
  EXPECT_EQ(spender(plan, instruction), std::nullopt);
}

}  // namespace
}  // namespace shardplan
