#include "simulator/proof/validate.h"

#include <gtest/gtest.h>

#include "simulator/proof/mutations.h"
#include "tests/simulator/small_model.h"

namespace shardplan {
namespace {

/// A program with a sum, a gather, a transposition of the sharding and a halo; `wrong` may damage it before it is
/// built.
SmallModel::Built mixed() {
  SmallModel model("x=2, y=3");
  const ValueId input = model.give("input", {12, 12}, TensorKind::kInput, "[{x}, {y}]");
  const ValueId weight = model.give("layers.0.weight", {12, 12}, TensorKind::kParameter, "[{y}, {}]");
  const ValueId product = model.run("layers.0.product", "Product", {input, weight}, "{x}, {y}, {}");
  const ValueId scattered = model.move(product, "[{x}, {y}]");
  const ValueId square = model.run("layers.0.square", "Square", {scattered}, "{x}, {y}");
  const ValueId turned = model.move(square, "[{y}, {x}]");
  const ValueId halo = model.fetch_halo(turned, "Blur", "{y}, {}, {x}");
  const ValueId blurred = model.run("blurred", "Blur", {halo}, "{y}, {}, {x}");
  const ValueId placed = model.run("placed", "Place", {blurred}, "{y}, {x}");
  const ValueId whole = model.move(placed, "[{}, {}]");
  model.put_out(whole);
  model.put_out(model.move(model.run("total", "Total", {placed}, "{y}, {x}"), "[]"));
  return model.build();
}

/// Turns the collective of this kind into one that sums over nothing: its axes are removed, the layouts stay.
std::size_t find_collective(const ParallelProgram& program, CollectiveKind kind) {
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    if (instruction.kind == InstructionKind::kCollective && instruction.step->kind == kind) return i;
  }
  ADD_FAILURE() << "no " << to_string(kind);
  return 0;
}

TEST(Validate, AcceptsARightProgram) {
  const SmallModel::Built built = mixed();
  const ValidationResult result = validate(built.program, built.graph, {});
  EXPECT_TRUE(result.is_equal());
  EXPECT_TRUE(result.unproven.empty());
  EXPECT_EQ(result.precisions[0].steps, 1);  // nothing is updated
}

TEST(Validate, NamesTheFirstWrongTensorAndWhatItLooksLike) {
  SmallModel model("x=2, y=2");
  const ValueId input = model.give("input", {8, 4}, TensorKind::kInput, "[{x}, {y}]");
  const ValueId weight = model.give("weight", {4, 4}, TensorKind::kParameter, "[{y}, {}]");
  const ValueId product = model.run("product", "Product", {input, weight}, "{x}, {y}, {}");
  const ValueId square = model.run("square", "Square", {model.move(product, "[{x}, {}]")}, "{x}, {}");
  model.put_out(model.move(model.run("total", "Total", {square}, "{x}, {}"), "[]"));
  SmallModel::Built built = model.build();
  // The all_reduce becomes an unfounded claim: nothing is partial, so nothing is summed.
  const std::size_t at = find_collective(built.program, CollectiveKind::kAllReduce);
  Instruction& reduce = built.program.instructions[at];
  built.program.values[reduce.inputs[0]].layout.edit().partial.clear();
  reduce.step.edit().before.partial.clear();
  reduce.step.edit().kind = CollectiveKind::kSlice;
  const ValidationResult result = validate(built.program, built.graph, {});
  ASSERT_TRUE(result.first_wrong.has_value());
  EXPECT_FALSE(result.is_equal());
  const FirstWrong& wrong = *result.first_wrong;
  EXPECT_EQ(wrong.tensor, "product");
  EXPECT_EQ(wrong.instruction, "product");
  EXPECT_EQ(wrong.step, 1);
  EXPECT_EQ(wrong.rank, 0);
  EXPECT_EQ(wrong.coordinates, "x 0, y 0");
  EXPECT_EQ(wrong.local_shape, (Shape{4, 4}));
  EXPECT_EQ(wrong.global_shape, (Shape{8, 4}));
  EXPECT_EQ(wrong.right_inputs, (std::vector<std::string>{"input", "weight"}));
  EXPECT_EQ(wrong.looks_like, "a sum over y is missing: each value is one of 2 summands");
  EXPECT_EQ(wrong.comparison.num_compared, 64);  // 16 elements on each of 4 devices
  EXPECT_EQ(wrong.comparison.num_devices_wrong, 4);
}

TEST(Validate, UntilComparesThatTensorOnly) {
  const SmallModel::Built built = mixed();
  const ValidationResult result = validate(built.program, built.graph, {.until = "blurred"});
  EXPECT_TRUE(result.is_equal());
  EXPECT_EQ(result.precisions[0].between, 1u);
  EXPECT_EQ(result.precisions[0].outputs, 0u);
  EXPECT_THROW(validate(built.program, built.graph, {.until = "blured"}), InputError);
}

TEST(Validate, ConstantAndZeroTensorsAreUnproven) {
  SmallModel model("x=2, y=2");
  const ValueId zero = model.constant("zero", {4, 4}, {Fill::Kind::kValue, 0}, "[{x}, {}]");
  const ValueId two = model.constant("two", {4, 4}, {Fill::Kind::kValue, 2}, "[{x}, {}]");
  model.put_out(model.run("nothing", "Square", {zero}, "{x}, {}"));
  model.put_out(model.run("four", "Square", {two}, "{x}, {}"));
  const SmallModel::Built built = model.build();
  const ValidationResult result = validate(built.program, built.graph, {});
  EXPECT_TRUE(result.is_equal());
  EXPECT_EQ(result.unproven, (std::vector<Unproven>{{"nothing", "all zero"}, {"four", "constant"}}));
}

TEST(Validate, MasksDoNotHideWhatStandsBesideThem) {
  const TensorValues reference = {-1e9, 0.5, 0.25, -1e9};
  EXPECT_EQ(scale_of(reference), 0.5);
  ProgramValue value;
  value.type.shape = {4};
  value.local_shape = {4};
  value.layout = TensorLayout::replicated(1);
  PlacedValue placed;
  placed.data = {{-1e9, 0.5, 0.2501, -1e9}};
  EXPECT_EQ(compare(placed, value, DeviceMesh(), reference, {1e-9, 0}).num_differing, 1);
  placed.data = {{-1e9 + 0.5, 0.5, 0.25, -1e9}};
  EXPECT_TRUE(compare(placed, value, DeviceMesh(), reference, {1e-9, 0}).is_equal());
}

TEST(Mutations, EveryFaultIsCaught) {
  const SmallModel::Built built = mixed();
  const std::vector<MutationResult> results = test_mutations(built.program, built.graph, {});
  std::size_t caught = 0;
  for (const MutationResult& result : results) {
    EXPECT_NE(result.outcome, MutationOutcome::kUncaught) << result.mutation.description;
    if (result.outcome == MutationOutcome::kCaught) ++caught;
    // Only kernels that do not use their global position may be shifted without effect.
    if (result.outcome == MutationOutcome::kWithoutEffect) {
      EXPECT_EQ(result.mutation.fault.kind, FaultKind::kShifted) << result.mutation.description;
      EXPECT_FALSE(result.is_blind);
    }
  }
  EXPECT_GE(caught, 15u);
}

TEST(Mutations, AreTheSameWithThreads) {
  const SmallModel::Built built = mixed();
  const auto outcomes = [&](int threads) {
    std::vector<std::pair<std::string, std::string>> list;
    for (const MutationResult& result : test_mutations(built.program, built.graph, {.threads = threads})) {
      list.emplace_back(result.mutation.description, result.caught_in);
    }
    return list;
  };
  EXPECT_EQ(outcomes(1), outcomes(3));
}

TEST(Mutations, SwappingEqualPiecesIsWithoutEffect) {
  SmallModel model("x=2, y=2");
  const ValueId four = model.constant("four", {4, 4}, {Fill::Kind::kValue, 4}, "[{x}, {}]");
  const ValueId square = model.run("square", "Square", {four}, "{x}, {}");
  model.put_out(model.move(square, "[{}, {}]"));
  const SmallModel::Built built = model.build();
  for (const MutationResult& result : test_mutations(built.program, built.graph, {})) {
    EXPECT_EQ(result.outcome, MutationOutcome::kWithoutEffect) << result.mutation.description;
    EXPECT_TRUE(result.is_blind);
  }
}

/// The output is a sum over the columns, which is the same if two of them are exchanged.
TEST(Mutations, FaultsThatOutputsDoNotShowAreCaughtOnTheWay) {
  SmallModel model("x=2");
  const ValueId input = model.give("input", {4, 4}, TensorKind::kInput, "[{}, {}]");
  const ValueId weight = model.give("weight", {4, 4}, TensorKind::kParameter, "[{}, {x}]");
  const ValueId product = model.run("product", "Product", {input, weight}, "{}, {}, {x}");
  model.put_out(model.move(model.run("total", "Total", {product}, "{}, {x}"), "[]"));
  const SmallModel::Built built = model.build();
  const std::vector<MutationResult> results = test_mutations(built.program, built.graph, {});
  ASSERT_FALSE(results.empty());
  EXPECT_EQ(results[0].mutation.description, "two pieces of weight swapped");
  EXPECT_EQ(results[0].outcome, MutationOutcome::kCaught);
  EXPECT_EQ(results[0].caught_in, "weight");
}

TEST(Mutations, RepeatedLayersAreOneClass) {
  SmallModel model("x=2");
  ValueId value = model.give("input", {4, 4}, TensorKind::kInput, "[{x}, {}]");
  for (int layer = 0; layer < 3; ++layer) {
    value = model.run("layers." + std::to_string(layer) + ".square", "Square", {value}, "{x}, {}");
    value = model.move(model.move(value, "[{}, {x}]"), "[{x}, {}]");
  }
  model.put_out(value);
  const SmallModel::Built built = model.build();
  for (const Mutation& mutation : list_mutations(built.program, built.graph)) {
    if (mutation.fault.kind == FaultKind::kShifted) {
      EXPECT_EQ(mutation.description, "boxes of layers.*.square shifted");
      EXPECT_EQ(mutation.num_places, 3u);
    }
    if (mutation.fault.kind == FaultKind::kRemoved) {
      EXPECT_EQ(mutation.num_places, 6u) << mutation.description;
    }
  }
}

}  // namespace
}  // namespace shardplan
