#include "graph/row_updates.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "graph/differentiate.h"
#include "model/read_model.h"

namespace shardplan {
namespace {

TEST(RowUpdatesTest, RowsAreUpdatedByWhatCanUpdateThem) {
  const auto error_of = [](const std::string& training, const std::string& more = "", const std::string& last = "y",
                           const std::string& table = "[16, 4]") {
    try {
      const Model model = read_model_text(
          "shardplan: 1\n"
          "inputs: {ids: {shape: [8], dtype: i32}}\n"
          "parameters: {table: " +
              table +
              ", scale: [4]}\n"
              "operators:\n"
              "  rows: {op: SparseGatherV2, in: [table, ids]}\n"
              "  y:    {op: Mul, in: [rows, scale]}\n" +
              more + "  loss: {op: ReduceMean, in: " + last +
              "}\n"
              "loss: loss\n"
              "training: {" +
              training + "}\n",
          "m.yaml");
      const OperatorGraph graph = differentiate(model.graph, *model.training);
      EXPECT_FALSE(graph.find_operator("grad.rows.GatherGrad").has_value());
      const GraphOperator& update = graph.operators()[graph.tensor(*graph.find_tensor("table")).readers.back().op];
      EXPECT_EQ(graph.tensor(update.operands[update.operands.size() - 2]).name, "ids");
      const bool is_narrow = table.find("bf16") != std::string::npos;
      EXPECT_EQ(graph.tensor(update.operands.back()).type.dtype, is_narrow ? DataType::kBF16 : DataType::kF32);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string but = "m.yaml:5:3: error: rows: only the rows of table that were looked up are updated, but ";
  EXPECT_EQ(error_of("optimizer: sgd"), "");
  EXPECT_EQ(error_of("optimizer: adam"), "");
  EXPECT_EQ(error_of("optimizer: momentum"),
            but + "the optimizer is momentum; expected sgd or adam, or a lookup by Gather");
  EXPECT_EQ(error_of("optimizer: sgd, weight_decay: 0.1"),
            but + "weight_decay shrinks all rows; expected weight_decay: 0, or a lookup by Gather");
  EXPECT_EQ(error_of("optimizer: sgd, clip_norm: 1"),
            but + "clip_norm needs the norm of its gradient; expected no clip_norm, or a lookup by Gather");
  EXPECT_EQ(error_of("optimizer: sgd, micro_batches: 2"),
            but + "micro_batches add up whole gradients; expected one micro-batch, or a lookup by Gather");
  EXPECT_EQ(
      error_of("optimizer: sgd, mixed_precision: bf16"),
      but + "it is bf16 and its copy in f32 is updated; expected a table of f32 (dtype: f32), or master_copy: false");
  EXPECT_EQ(error_of("optimizer: sgd", "  z:    {op: MatMul, in: [y, table], transpose_b: true}\n", "z"),
            but + "2 operators read it; expected one, or lookups by Gather");
  EXPECT_EQ(error_of("optimizer: sgd", "", "y", "{shape: [16, 4], gradient_strategy: [8, 1]}"),
            but + "gradient_strategy lays out its gradient; expected state_strategy, or a lookup by Gather");
  EXPECT_EQ(error_of("optimizer: sgd", "", "y", "{shape: [16, 4], comm_fusion: 2}"),
            but + "comm_fusion joins the exchanges of gradients; expected comm_fusion: 0, or a lookup by Gather");
  EXPECT_EQ(error_of("optimizer: sgd", "", "y", "{shape: [16, 4], comm_fusion: 0}"), "");
  EXPECT_EQ(error_of("optimizer: sgd", "", "y", "{shape: [16, 4], gradient_dtype: bf16}"), "");
}

}  // namespace
}  // namespace shardplan
