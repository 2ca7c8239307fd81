#include "simulator/execute/executor.h"

#include <gtest/gtest.h>

#include "simulator/proof/comparison.h"
#include "simulator/proof/validate.h"
#include "tests/simulator/small_model.h"

namespace shardplan {
namespace {

/// Two layers sharded as in Megatron, and one training step of the second: a sum over y forward, one over x backward.
SmallModel::Built two_layers(bool with_update = true) {
  SmallModel model("x=2, y=2");
  const ValueId input = model.give("input", {8, 4}, TensorKind::kInput, "[{x}, {}]");
  const ValueId w1 = model.give("w1", {4, 6}, TensorKind::kParameter, "[{}, {y}]");
  const ValueId w2 = model.give("w2", {6, 4}, TensorKind::kParameter, "[{y}, {}]");
  const ValueId hidden = model.run("hidden", "Product", {input, w1}, "{x}, {}, {y}");
  const ValueId square = model.run("square", "Square", {hidden}, "{x}, {y}");
  const ValueId output = model.move(model.run("output", "Product", {square, w2}, "{x}, {y}, {}"), "[{x}, {}]");
  const ValueId energy = model.run("energy", "Square", {output}, "{x}, {}");
  model.put_out(model.move(model.run("loss", "Total", {energy}, "{x}, {}"), "[]"));
  if (with_update) {
    const ValueId gradient = model.move(
        model.run("gradient", "Outer", {square, output}, "{x}, {y}, {}", "{}", Pass::kBackward), "[{y}, {}]");
    model.update(w2, model.run("new_w2", "Descend", {w2, gradient}, "{y}, {}", "{}", Pass::kUpdate));
  }
  return model.build();
}

TEST(Executor, ComputesWhatOneDeviceDoes) {
  const SmallModel::Built built = two_layers();
  const ValidationResult result = validate(built.program, built.graph, {});
  ASSERT_TRUE(result.is_equal()) << result.first_wrong->tensor;
  ASSERT_EQ(result.precisions.size(), 2u);
  EXPECT_EQ(result.precisions[0].steps, 3);
  EXPECT_EQ(result.precisions[0].outputs, 1u);
  EXPECT_EQ(result.precisions[0].parameters, 1u);
  EXPECT_EQ(result.precisions[1].gradients, 1u);
  EXPECT_LT(result.precisions[0].largest, 1e-14);
  EXPECT_LT(result.precisions[1].largest, 1e-6);
  EXPECT_GT(result.precisions[1].largest, 1e-12);  // it was rounded
  EXPECT_EQ(result.num_collectives, 3u);
  EXPECT_EQ(result.num_devices, 4);
  EXPECT_TRUE(result.unproven.empty());
}

TEST(Executor, NextStepStartsFromWhatTheLastOneLeft) {
  const SmallModel::Built built = two_layers();
  const ValidationResult one = validate(built.program, built.graph, {.steps = 1, .float32 = false});
  const ValidationResult three = validate(built.program, built.graph, {.steps = 3, .float32 = false});
  EXPECT_TRUE(one.is_equal());
  EXPECT_TRUE(three.is_equal());
  // A stored value that is not carried over would show: the reference's weights do change.
  const auto stored = [&](TensorId id, std::uint64_t) { return draw_tensor(built.graph, id, 0, 0); };
  const ReferenceStep first = run_reference(built.graph, stored, 0, 0, Precision::kFloat64);
  const TensorId w2 = *built.graph.find_tensor("w2");
  EXPECT_NE(first.tensors[w2], first.tensors[*built.graph.find_tensor("new_w2")]);
}

TEST(Executor, SameNumbersWithThreadsAndTwice) {
  const SmallModel::Built built = two_layers();
  const auto run = [&](int threads) {
    Executor executor(built.program, built.graph, {.seed = 3, .threads = threads});
    executor.start(0, [&](TensorId id, std::uint64_t) { return draw_tensor(built.graph, id, 3, 0); });
    while (!executor.is_done()) executor.run_next();
    return executor.value(built.program.updates[0].value).data;
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_EQ(run(1), run(3));
}

TEST(Executor, FetchesRimsOfNeighbours) {
  for (const char* factors : {"{x}, {}, {y}", "{x, y}, {}, {}", "{y}, {}, {x}"}) {
    SmallModel model("x=2, y=3");
    const std::string cut(factors);
    const std::string rows = cut.substr(0, cut.find('}') + 1);
    const std::string columns = cut.substr(cut.rfind('{'));
    const ValueId input = model.give("input", {12, 6}, TensorKind::kInput, "[" + rows + ", " + columns + "]");
    const ValueId blurred = model.run("blurred", "Blur", {model.fetch_halo(input, "Blur", factors)}, factors);
    const ValueId again = model.run("again", "Blur", {model.fetch_halo(blurred, "Blur", factors)}, factors);
    model.put_out(again);
    const SmallModel::Built built = model.build();
    const ValidationResult result = validate(built.program, built.graph, {});
    EXPECT_TRUE(result.is_equal()) << factors;
    EXPECT_EQ(result.num_collectives, 2u);
  }
}

TEST(Executor, RandomNumbersAreThoseOfOneDevice) {
  SmallModel model("x=2, y=2");
  const ValueId input = model.give("input", {8, 4}, TensorKind::kInput, "[{x}, {y}]");
  model.put_out(model.run("noisy", "Noise", {input}, "{x}, {y}"));
  const SmallModel::Built built = model.build();
  EXPECT_TRUE(validate(built.program, built.graph, {}).is_equal());
}

TEST(Executor, ConstantsAreMadeInPieces) {
  SmallModel model("x=2, y=2");
  const ValueId input = model.give("input", {8, 8}, TensorKind::kInput, "[{x}, {y}]");
  const ValueId causal = model.constant("causal", {8, 8}, {Fill::Kind::kCausal, 0}, "[{x}, {y}]");
  const ValueId iota = model.constant("iota", {8, 8}, {Fill::Kind::kIota, 0}, "[{x}, {y}]");
  model.put_out(model.run("masked", "Descend", {input, causal}, "{x}, {y}"));
  model.put_out(model.run("counted", "Descend", {input, iota}, "{x}, {y}"));
  const SmallModel::Built built = model.build();
  EXPECT_TRUE(validate(built.program, built.graph, {}).is_equal());
}

/// A constant added to a partial sum becomes a sum too: it must count once.
TEST(Executor, ConstantsBesideAPartialSumCountOnce) {
  SmallModel model("x=2, y=2");
  const ValueId a = model.give("a", {4, 8}, TensorKind::kInput, "[{}, {x, y}]");
  const ValueId b = model.give("b", {8, 4}, TensorKind::kInput, "[{x, y}, {}]");
  const ValueId product = model.run("product", "Product", {a, b}, "{}, {x, y}, {}");
  const ValueId three = model.constant("three", {4, 4}, {Fill::Kind::kValue, 3}, "[{}, {}] unreduced={x, y}");
  const ValueId sum = model.run("sum", "Descend", {product, three}, "{}, {}", "{x, y}");
  model.put_out(model.move(sum, "[{x}, {y}]"));
  const SmallModel::Built built = model.build();
  EXPECT_TRUE(validate(built.program, built.graph, {}).is_equal());
}

TEST(Executor, ThousandDevices) {
  SmallModel model("pod=8, node=16, device=8");
  const ValueId input = model.give("input", {256, 16}, TensorKind::kInput, "[{pod, node}, {}]");
  const ValueId weight = model.give("weight", {16, 16}, TensorKind::kParameter, "[{}, {device}]");
  const ValueId hidden = model.run("hidden", "Product", {input, weight}, "{pod, node}, {}, {device}");
  const ValueId output = model.move(hidden, "[{pod, node, device:(1)2}, {}]");
  model.put_out(model.move(model.run("total", "Total", {output}, "{pod, node, device:(1)2}, {}"), "[]"));
  model.put_out(output);
  const SmallModel::Built built = model.build();
  const ValidationResult result = validate(built.program, built.graph, {});
  EXPECT_TRUE(result.is_equal());
  EXPECT_EQ(result.num_devices, 1024);
}

}  // namespace
}  // namespace shardplan
