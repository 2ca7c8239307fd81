// Small models that a proof once got wrong: a right plan called different or refused, numbers that prove nothing, memory
// that a small file may take.
#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "model/read_model.h"
#include "planner/model_planner.h"
#include "simulator/proof/prove.h"
#include "tests/support/random_plan.h"

namespace shardplan {
namespace {

std::string on_one_line(const Proof& proof) {
  if (!proof.shrinking.refusal.empty()) return "refused: " + proof.shrinking.refusal;
  if (proof.validation.first_wrong) return "different: " + proof.validation.first_wrong->tensor;
  std::string text = "proven";
  for (const Unproven& unproven : proof.validation.unproven) text += "; " + unproven.tensor + " " + unproven.reason;
  return text;
}

struct AttackedCase {
  const char* name;
  const char* cluster;
  Level level;
  const char* expected;
  const char* model;
};
void PrintTo(const AttackedCase& c, std::ostream* out) { *out << c.name; }

class AttackedProof : public testing::TestWithParam<AttackedCase> {};

Plan plan_of(const AttackedCase& c) {
  const auto model =
      std::make_shared<const Model>(read_model_text(std::string("shardplan: 1\n") + c.model, "attacked.yaml"));
  PlanOptions options;
  options.work_limit = 20'000'000;
  return ModelPlanner(model, read_cluster(c.cluster), options).plan(c.level, "auto");
}

TEST_P(AttackedProof, SaysWhatIsTrue) {
  EXPECT_EQ(on_one_line(prove(plan_of(GetParam()), {.validation = {.steps = 2}})), GetParam().expected);
}

const AttackedCase kAttackedCases[] = {
    // On smaller meshes whose axes are not alike, permutes lose or double summands and pieces.
    {"a_permute_of_summands", "ascend-910x8", Level::kRatio, "proven", R"(
dims: {A: 2, E: 4}
parameters:
  p1: [A, 2*A, E-2]
operators:
  o3: {op: Reshape, in: [p1], shape: [E-2, 2*A, A]}
  o4: {op: ReduceMean, in: [o3]}
strategies:
  o3: {in_strategy: [[2, 1, 1]]}
  o4: {in_strategy: [[1, 4, 2]]}
)"},
    {"a_permute_of_other_summands", "ascend-910x8", Level::kRatio, "proven", R"(
dims: {B: 1, C: 32}
inputs:
  x22: [1, B]
  p20: [C/1, B, 1]
operators:
  o23: {op: Einsum, in: [p20, x22], equation: "abc,cb->b"}
)"},
    {"a_gather_from_no_one", "dgx-a100x6", Level::kMemory, "proven", R"(
dims: {D: 12}
inputs:
  x4: [1, 16, D]
  p5: [1, 16, D]
operators:
  o6: {op: Concat, in: [x4, x4, p5], axis: 2}
  o9: {op: Tanh, in: [o6]}
)"},
    {"six_in_place_of_four", "dgx-a100x6", Level::kRatio, "proven", R"(
dims: {B: 4, D: 6}
inputs:
  x1: [4, D]
  p2: [4, B/2]
operators:
  o3: {op: MatMul, in: [x1, p2], transpose_a: true}
  o5: {block: nn.Dense, in: [o3], out_channels: B, has_bias: false}
  o6: {op: Reshape, in: [o5], shape: [-1]}
  o12: {op: Slice, in: [o6], begin: [1], size: [1]}
)"},
    {"eight_in_place_of_two_and_four", "dgx-a100x8", Level::kRatio, "proven", R"(
dims: {C: 2, D: 32}
inputs:
  x2: [D, 1]
operators:
  o4: {block: nn.Dense, in: [x2], out_channels: C}
  o5: {op: Reshape, in: [o4], shape: [-1, 2, 8, 1]}
)"},
    {"a_reshape_of_eight", "dgx-a100x8", Level::kMemory, "proven", R"(
dims: {A: 8}
parameters:
  p6: [A]
operators:
  o11: {op: Reshape, in: [p6], shape: [4, 1, 1, (A)/4]}
)"},
    {"a_mean_of_a_reshaped_parameter", "ascend-910x8", Level::kMemory, "proven", R"(
dims: {B: 8}
parameters:
  p6: [2, (B)]
operators:
  o8: {op: ReduceMean, in: [p6]}
)"},
    // Two sums of the same numbers in two orders.
    {"sums_that_cancel", "ascend-910", Level::kRatio, "proven; d all zero", R"(
inputs: {x: [6, 8, 3]}
operators:
  ya: {op: Einsum, in: x, equation: "abc->ca"}
  b1: {op: ReduceSum, in: x, axis: 1}
  yb: {op: Transpose, in: b1, perm: [1, 0]}
  d: {op: Sub, in: [ya, yb]}
  keep: {op: Square, in: ya}
outputs: [d, keep]
)"},
    {"losses_that_cancel", "ascend-910", Level::kRatio, "proven; d zero but for rounding", R"(
inputs: {x: [6, 8], l0: [6, 8]}
operators:
  la: {op: Softmax, in: l0}
  ya: {op: SoftmaxCrossEntropyWithLogits, in: [x, la]}
  lb: {op: Softmax, in: l0}
  ls: {op: LogSoftmax, in: x}
  m: {op: Mul, in: [ls, lb]}
  r: {op: ReduceSum, in: m, axis: -1}
  yb: {op: Neg, in: r}
  d: {op: Sub, in: [ya, yb]}
  keep: {op: Square, in: ya}
outputs: [d, keep]
)"},
    {"not_a_number_on_both_sides", "ascend-910", Level::kRatio, "proven; y not a number on one device as well", R"(
inputs: {x: [16, 8]}
operators:
  y: {op: Log, in: x}
)"},
    {"numbers_beyond_what_stands_for_infinity", "ascend-910", Level::kRatio, "proven", R"(
dims: {N: 16}
inputs: {x: [N, 8]}
operators:
  a: {op: Mul, in: [x, x]}
  b: {op: Mul, in: [a, 1e12]}
  z: {op: ReduceSum, in: b, axis: 0}
)"},
    {"numbers_beyond_float32", "ascend-910", Level::kRatio,
     "proven; y beyond the numbers of float32, compared in float64 only; w beyond the numbers of float32, compared in "
     "float64 only",
     R"(
inputs: {x: [16, 24]}
operators:
  s: {op: Sigmoid, in: x}
  r: {op: ReduceSum, in: s, axis: 1}
  t: {op: ReduceSum, in: s}
  y: {op: Exp, in: t}
  u: {op: Mul, in: [r, y]}
  z: {op: Tanh, in: u}
  w: {op: Mul, in: [z, r]}
outputs: [y, w]
)"},
    {"a_size_that_no_dim_names", "ascend-910", Level::kRatio, "proven", R"(
inputs: {x: [2147483647]}
operators:
  y: {op: ReLU, in: x}
)"},
};

INSTANTIATE_TEST_SUITE_P(Models, AttackedProof, testing::ValuesIn(kAttackedCases),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(AttackedProofTest, AnyShiftOfASoftmaxIsRight) {
  const AttackedCase softmax = {"softmax", "ascend-910", Level::kRatio, "", R"(
inputs: {x: [2, 64]}
operators:
  y: {op: Softmax, in: x}
strategies:
  y: {in_strategy: [[1, 8]]}
)"};
  const Proof proof = prove(plan_of(softmax), {.validation = {.steps = 1}, .mutations = true});
  ASSERT_EQ(on_one_line(proof), "proven");
  std::map<MutationOutcome, int> outcomes;
  for (const MutationResult& result : proof.mutations) ++outcomes[result.outcome];
  EXPECT_EQ(outcomes[MutationOutcome::kUncaught], 0);
  EXPECT_GT(outcomes[MutationOutcome::kCaught], 0);
  EXPECT_GT(outcomes[MutationOutcome::kWithoutEffect], 0);
}

/// A norm of two numbers is 1 and -1 whatever they are, so that its gradient is what rounding leaves of its statistics:
/// with these cut, another rounding than on one device.
TEST(AttackedProofTest, TheGradientOfANormOfTwoNumbersIsRounding) {
  const PlannedModel planned(read_model_text(R"(
shardplan: 1
dims: {B: 2, D: 8}
parameters: {p: [D, B]}
operators:
  s: {op: Softmax, in: p, axis: 1}
  n: {block: nn.LayerNorm, in: s}
  a: {op: Abs, in: n}
  m: {op: ReduceMean, in: a}
loss: m
training: {optimizer: adamw, learning_rate: 0.01}
)",
                                             "norm.yaml"),
                             "ascend-910", {});
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    EXPECT_EQ(on_one_line(prove(random_plan(planned, seed), {.validation = {.steps = 2}})), "proven") << seed;
  }
}

}  // namespace
}  // namespace shardplan
