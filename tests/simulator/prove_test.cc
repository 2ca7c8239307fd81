#include "simulator/proof/prove.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "model/read_model.h"
#include "simulator/execute/reference.h"
#include "simulator/execute/simulate.h"
#include "tests/support/marked_model.h"
#include "tests/support/proofs.h"
#include "tests/support/random_plan.h"

namespace shardplan {
namespace {

struct RandomPlanCase {
  const char* name;
  const char* file;
  const char* cluster;
  std::map<std::string, std::int64_t> dims;
  std::vector<MeshAxis> axes;
  bool training;
  int plans;
};
void PrintTo(const RandomPlanCase& c, std::ostream* out) { *out << c.name; }

class RandomPlans : public testing::TestWithParam<RandomPlanCase> {};

TEST_P(RandomPlans, ComputeWhatOneDeviceDoes) {
  const RandomPlanCase& c = GetParam();
  Model model = read_model(c.file, {c.dims, {}});
  if (!c.training) model.training.reset();
  const PlannedModel planned(std::move(model), c.cluster, c.axes);
  for (int i = 0; i < c.plans; ++i) {
    const Plan plan = random_plan(planned, static_cast<std::uint64_t>(i));
    const Proof proof = prove(plan, {.validation = {.steps = 2}, .shrink = false});
    EXPECT_EQ(outcome(proof), "proven") << "plan " << i;
  }
}

// Written out for small sizes, and on a mesh of fewer devices than the plan's: a correct plan stays correct or is
// rejected.
TEST_P(RandomPlans, AreProvenOnSmallerMeshes) {
  const RandomPlanCase& c = GetParam();
  Model model = read_model(c.file, {c.dims, {}});
  if (!c.training) model.training.reset();
  const PlannedModel planned(std::move(model), c.cluster, c.axes);
  for (int i = 0; i < c.plans; ++i) {
    const Plan plan = random_plan(planned, static_cast<std::uint64_t>(100 + i));
    const Proof proof = prove(plan, {.validation = {.steps = 1}, .most_devices = 4});
    const bool is_refused = !proof.shrinking.refusal.empty();
    EXPECT_TRUE(is_refused || outcome(proof) == "proven") << "plan " << i << ": " << outcome(proof);
    EXPECT_FALSE(is_refused) << "plan " << i << ": " << proof.shrinking.refusal;
  }
}

PlannedModel layered(const std::string& training) {
  return PlannedModel(read_model_text(layered_model(training), "layered.yaml"), "ascend-910", {{"x", 2}, {"y", 4}});
}

TEST(Recompute, RandomPlansComputeWhatOneDeviceDoes) {
  const PlannedModel planned = layered(", recompute: [layers.*]");
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const Plan plan = random_plan(planned, seed);
    EXPECT_EQ(outcome(prove(plan, {.validation = {.steps = 2}, .shrink = false})), "proven") << "plan " << seed;
  }
}

TEST(Recompute, ChangesNoNumber) {
  const OperatorGraph plain = layered("").graph;
  const OperatorGraph marked = layered(", recompute: [layers.*]").graph;
  const auto run = [](const OperatorGraph& graph) {
    const StoredValues stored = [&](TensorId id, std::uint64_t) { return draw_tensor(graph, id, 7, 0); };
    return run_reference(graph, stored, 7, 0, Precision::kFloat64);
  };
  const ReferenceStep expected = run(plain);
  const ReferenceStep found = run(marked);
  for (const TensorId id : plain.tensors().ids()) {
    const std::string& name = plain.tensor(id).name;
    EXPECT_EQ(found.tensors[*marked.find_tensor(name)], expected.tensors[id]) << name;
    const auto copy = marked.find_tensor("recompute." + name);
    if (copy) {
      EXPECT_EQ(found.tensors[*copy], expected.tensors[id]) << name;
    }
  }
}

const char* const kVolumes = R"(
shardplan: 1
model: volumes
dims: {B: 2, D: 8, C: 4}
inputs: {image: [B, 3, D, 4, D], line: [B, 3, 4*D]}
parameters: {scale: [3, 1, 1, 1], w1: [C, 3, 3, 3, 3], w2: [C, 2, 4, 4, 4], v1: [C, 3, 3], v2: [C, 3, 4]}
operators:
  scaled:  {op: Mul, in: [image, scale]}
  conv3:   {op: Conv3D, in: [scaled, w1], pad_mode: same}
  relu3:   {op: ReLU, in: conv3}
  pool3:   {op: AvgPool3D, in: relu3, kernel_size: 3, strides: 2, pad: 1}
  spread3: {op: Conv3DTranspose, in: [pool3, w2], group: 2, stride: 2, pad_mode: pad, pad: 1}
  mean3:   {op: ReduceMean, in: spread3}
  conv1:   {op: Conv1D, in: [line, v1], pad_mode: pad, pad: 1, stride: 2}
  relu1:   {op: ReLU, in: conv1}
  spread1: {op: Conv1DTranspose, in: [relu1, v2], stride: 2, pad_mode: pad, pad: 1}
  pool1:   {op: AvgPool1D, in: spread1, kernel_size: 5, strides: 1, pad: 2}
  plane:   {op: Reshape, in: pool1, shape: [B, 3, D, 4]}
  resized: {op: Resize, in: plane, size: [2*D, 12]}
  squared: {op: Square, in: resized}
  mean1:   {op: ReduceMean, in: squared}
  loss:    {op: Add, in: [mean3, mean1]}
loss: loss
training: {optimizer: momentum, learning_rate: 0.01, momentum: 0.9}
)";

// One, two and three spatial dimensions, forward and backward: where they are sharded, halos are exchanged.
TEST(SpatialOperators, RandomPlansComputeWhatOneDeviceDoes) {
  const PlannedModel planned(read_model_text(kVolumes, "volumes.yaml"), "ascend-910", {{"x", 2}, {"y", 4}});
  std::set<std::string> with_halo;  // operators with a halo exchange
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const Plan plan = random_plan(planned, seed);
    for (const Instruction& instruction : plan.program.instructions) {
      if (instruction.kind == InstructionKind::kHalo) with_halo.insert(instruction.operation->type->name);
    }
    EXPECT_EQ(outcome(prove(plan, {.validation = {.steps = 1}, .shrink = false})), "proven") << "plan " << seed;
  }
  for (const char* name : {"Conv1D", "Conv3D", "Conv1DTranspose", "Conv3DTranspose", "Conv3DBackpropInput",
                           "Conv3DBackpropFilter", "AvgPool1D", "AvgPool3D", "AvgPool3DGrad"}) {
    EXPECT_TRUE(with_halo.contains(name)) << name;
  }
}

using Dims = std::map<std::string, std::int64_t>;
const Dims kSmallTransformer = {{"B", 8}, {"S", 8}, {"H", 32}, {"heads", 8}, {"L", 1}, {"V", 16}};
const Dims kSmallMlp = {{"B", 16}, {"side", 4}, {"hidden1", 16}, {"hidden2", 24}, {"classes", 8}};
const Dims kSmallLenet = {{"B", 8}, {"side", 20}, {"F1", 16}, {"F2", 24}, {"classes", 8}};
const RandomPlanCase kRandomPlans[] = {
    {"mlp", "configs/mlp.yaml", "ascend-910", kSmallMlp, {{"x", 2}, {"y", 4}}, true, 6},
    {"basic_blocks", "configs/basic-blocks.yaml", "ascend-910", {{"B", 8}}, {{"x", 2}, {"y", 4}}, false, 6},
    {"lenet", "configs/lenet.yaml", "ascend-910", kSmallLenet, {{"x", 2}, {"y", 4}}, false, 3},
    {"gpt2", "configs/gpt2-small.yaml", "ascend-910", kSmallTransformer, {{"x", 2}, {"y", 4}}, true, 2},
    {"llama", "configs/llama-7b.yaml", "dgx-a100", kSmallTransformer, {{"x", 2}, {"y", 4}}, false, 2},
};
INSTANTIATE_TEST_SUITE_P(Models, RandomPlans, testing::ValuesIn(kRandomPlans),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace shardplan
