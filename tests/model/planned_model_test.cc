#include "model/planned_model.h"

#include <gtest/gtest.h>

#include "model/read_model.h"

namespace shardplan {
namespace {

/// A linear map trained in four micro-batches; `batch` is the first dimension of x as written in the file.
std::string model_of(const std::string& batch) {
  return "shardplan: 1\ndims: {B: 8}\ninputs: {scale: [], x: [" + batch +
         ", 4]}\noperators:\n  s: {op: Mul, in: [x, scale]}\n  fc: {block: nn.Dense, in: s, out_channels: 2}\n"
         "  loss: {op: ReduceMean, in: fc}\nloss: loss\ntraining: {optimizer: sgd, micro_batches: 4}\n";
}

std::string fault_of(const std::string& batch) {
  try {
    one_micro_batch(read_model_text(model_of(batch), "m.yaml"));
  } catch (const InputError& error) {
    return error.diagnostics()[0].message;
  }
  return "";
}

TEST(PlannedModelTest, AMicroBatchIsTheModelAtAPartOfTheBatch) {
  const Model whole = read_model_text(model_of("B"), "m.yaml");
  const Model part = one_micro_batch(whole);
  EXPECT_EQ(part.dims.at("B"), 2);
  EXPECT_EQ(part.divided_by, 4);
  EXPECT_EQ(part.graph.tensor(*part.graph.find_tensor("x")).type.shape, (Shape{2, 4}));
  // It already is one.
  EXPECT_EQ(one_micro_batch(part).dims.at("B"), 2);
  EXPECT_EQ(planned_graph(part).micro_batches(), 4);
  EXPECT_EQ(planned_graph(part, 1, 2).micro_batches(), 2);
}

TEST(PlannedModelTest, TheBatchMustBeADimThatTheCountDivides) {
  EXPECT_EQ(fault_of("2*B"),
            "training: micro_batches: the first dimension of x is 2*B; expected the name of a dim, the batch, so that "
            "it can be divided");
  EXPECT_EQ(
      fault_of("16"),
      "training: micro_batches: the first dimension of x is 16; expected the name of a dim, the batch, so that it "
      "can be divided");
  ModelOverrides overrides;
  overrides.dims = {{"B", 6}};
  EXPECT_THROW(one_micro_batch(read_model_text(model_of("B"), "m.yaml", overrides)), InputError);
}

TEST(PlannedModelTest, WithoutTrainingTheGraphIsTheModels) {
  const Model model = read_model_text("shardplan: 1\ninputs: {x: [4]}\noperators: {a: {op: ReLU, in: x}}\n", "m.yaml");
  EXPECT_EQ(planned_graph(model).operators().size(), 1u);
  EXPECT_FALSE(planned_graph(model).is_training());
}

}  // namespace
}  // namespace shardplan
