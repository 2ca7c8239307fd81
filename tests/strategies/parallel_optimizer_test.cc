#include "strategies/parallel_optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>

#include "layouts/shape.h"
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
  std::vector<TensorId> whole;
  const auto layouts = parallel_optimizer_states(graph, mesh, pieces, stored, &whole);
  for (const TensorId id : graph.tensors().ids()) {
    if (layouts[id]) found[graph.tensor(id).name] = to_string(*layouts[id], mesh);
  }
  // Excluded are the step counter, sizes that 8 devices do not divide, and what the user keeps whole.
  const std::map<std::string, std::string> expected = {{"w.moment1", "[{x, y}, {}]"},
                                                       {"w.moment2", "[{x, y}, {}]"},
                                                       {"cut.moment1", "[{x}, {y}]"},
                                                       {"cut.moment2", "[{x}, {y}]"}};
  EXPECT_EQ(found, expected);
  EXPECT_EQ(whole, std::vector<TensorId>{*graph.find_tensor("odd")}) << "what is exempt is not meant to be sharded";
}

/// Each axis in pieces of its prime factors, the unit of a search.
std::vector<AxisRef> prime_pieces(const DeviceMesh& mesh) {
  std::vector<AxisRef> pieces;
  for (std::uint32_t axis = 0; axis < mesh.axes().size(); ++axis) {
    std::int64_t before = 1, factor = 2;
    for (std::int64_t rest = mesh.whole(axis).size; rest > 1;) {
      if (rest % factor == 0) {
        pieces.push_back({axis, before, factor});
        before *= factor;
        rest /= factor;
      } else {
        ++factor;
      }
    }
  }
  return pieces;
}

struct ZeroCase {
  const char* mesh;
  Shape shape;
  const char* layout;
  const char* cut;         // "" for none
  const char* equal_only;  // without unequal pieces
};

TEST(ParallelOptimizerTest, ZeroCutsOneDimensionIfItCanAndSeveralWhereThatSavesMore) {
  const ZeroCase cases[] = {
      {"x=8", {24, 12}, "[{}, {}]", "[{x}, {}]", "[{x}, {}]"},
      {"x=8", {12, 16}, "[{}, {}]", "[{}, {x}]", "[{}, {x}]"},
      // 31 in 8 pieces of 4 waste less than a tenth; 9 in 8 would leave some empty.
      {"x=8", {31, 9}, "[{}, {}]", "[{x}, {}]", ""},
      // 12 in 4 and 6 in 2 waste nothing; 12 in 8 pieces would be empty.
      {"x=8", {12, 6}, "[{}, {}]", "[{x:(1)4}, {x:(4)2}]", "[{x:(1)4}, {x:(4)2}]"},
      // A vocabulary over more devices than equal pieces allow.
      {"ib=128, nvlink=8", {50304, 768}, "[{}, {}]", "[{ib}, {nvlink}]", "[{ib}, {nvlink}]"},
      {"x=8", {6, 3, 3}, "[{}, {}, {}]", "[{x:(1)2}, {x:(2)2}, {x:(4)2}]", ""},
      {"x=2, y=4", {8, 6}, "[{x}, {}]", "[{x, y}, {}]", "[{x, y}, {}]"},
      {"x=2, y=4", {4, 6}, "[{x}, {}]", "[{x, y:(1)2}, {y:(2)2}]", "[{x, y:(1)2}, {y:(2)2}]"},
      {"x=8", {5}, "[{}]", "", ""},
      {"x=8", {15}, "[{}]", "[{x}]", ""},
      {"x=8", {8, 8}, "[{x}, {}]", "[{x}, {}]", "[{x}, {}]"},  // no axis is left to shard over
  };
  for (const ZeroCase& c : cases) {
    SCOPED_TRACE(std::string(c.mesh) + " " + to_string(c.shape) + " " + c.layout);
    const DeviceMesh mesh = DeviceMesh::parse(c.mesh);
    for (const bool uneven : {true, false}) {
      const auto found = zero_layout(parse_layout(c.layout, mesh), c.shape, mesh, prime_pieces(mesh), uneven);
      EXPECT_EQ(found ? to_string(*found, mesh) : "", uneven ? c.cut : c.equal_only);
    }
  }
}

// FSDP and ZeRO store weights as flat lists of elements, which any number of devices divides. Sharded along dimensions
// instead, all weights of every shipped model that trains take less than 100 MiB more per device, at 16 bytes per
// element for the weight, its gradient and two moments.
TEST(ParallelOptimizerTest, ZerosPiecesHoldHardlyMoreThanFlatOnesWould) {
  constexpr std::int64_t kMostMore = (std::int64_t{100} << 20) / 16;
  std::size_t models = 0;
  for (const char* folder : {"configs", "configs/models"}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() != ".yaml") continue;
      const Model model = read_model(entry.path().string());
      if (!model.training) continue;
      ++models;
      for (const char* axes : {"nvlink=8", "ib=8, nvlink=8", "ib=48, nvlink=8", "ib=128, nvlink=8"}) {
        SCOPED_TRACE(entry.path().string() + " on " + axes);
        const DeviceMesh mesh = DeviceMesh::parse(axes);
        const std::vector<AxisRef> pieces = prime_pieces(mesh);
        std::int64_t held = 0, flat = 0;
        for (const GraphTensor& tensor : model.graph.tensors()) {
          if (tensor.kind != TensorKind::kParameter || !tensor.requires_grad) continue;
          const Shape& shape = tensor.type.shape;
          const TensorLayout whole = TensorLayout::replicated(shape.size());
          const auto cut = zero_layout(whole, shape, mesh, pieces, true);
          held += num_elements(local_shape(cut.value_or(whole), shape));
          flat += (num_elements(shape) + mesh.num_devices() - 1) / mesh.num_devices();
        }
        EXPECT_LT(held - flat, kMostMore);
        if (mesh.num_devices() <= 64 && flat > 1 << 20) {
          EXPECT_LT(static_cast<double>(held), 1.002 * static_cast<double>(flat));
        }
      }
    }
  }
  EXPECT_GT(models, 25u);
}

}  // namespace
}  // namespace shardplan
