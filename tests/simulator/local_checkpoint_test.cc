// Training of models written per device, and the checkpoints of their ranks, each in its own file.

#include "simulator/local/local_checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "base/random.h"
#include "model/local_model.h"
#include "model/read_model.h"
#include "planner/model_planner.h"
#include "simulator/checkpoint/checkpoint_folder.h"
#include "simulator/checkpoint/tensor_bytes.h"
#include "simulator/checkpoint/training_checkpoint.h"
#include "simulator/execute/simulate.h"
#include "tests/support/files.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

namespace fs = std::filesystem;

class LocalCheckpointTest : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return folder_.at(name); }

  const TemporaryFolder folder_;
};

struct Ranks {
  Ranks(const std::string& text, std::int64_t count)
      : models(models_of_ranks(read_model_text(text, "m.yaml"), count)), run(rank_graphs(models)) {}

  std::vector<std::shared_ptr<const Model>> models;
  std::unique_ptr<const RankGraphs> run;
};

/// Trains and saves into `folder` at the end.
std::vector<std::vector<std::optional<double>>> trained(const Ranks& ranks, LocalSimulationOptions options,
                                                        const std::string& folder = "") {
  options.after_step = [&, last = options.first_step + options.steps](std::int64_t steps,
                                                                      const LocalExecutor& executor) {
    if (folder.empty() || steps != last) return;
    save_ranks(folder, local_form(ranks.models, *ranks.run, steps, options.seed), *ranks.run, executor);
  };
  return simulate_locally(ranks.models, *ranks.run, options).front().steps;
}

LocalSimulationOptions loaded(const std::string& path, const Ranks& ranks, int steps) {
  Checkpoint checkpoint(path);
  LoadedRanks found = load_ranks(checkpoint, ranks.models, *ranks.run);
  EXPECT_TRUE(found.notices.empty()) << found.notices.front();
  return {.seed = checkpoint.form().seed,
          .steps = steps,
          .first_step = checkpoint.form().step,
          .stop = {},
          .loaded = std::move(found.values),
          .after_step = {}};
}

/// Each rank loads its rows of the batch. Column-sharded, private and shared weights follow each other; the columns are
/// gathered by hand.
std::string random_ranks(Random& random, std::int64_t ranks) {
  std::string parameters, operators, last = "part";
  const std::size_t layers = 1 + random.below(4);
  for (std::size_t i = 0; i < layers; ++i) {
    const std::string w = fmt::format("w{}", i), h = fmt::format("h{}", i);
    switch (random.below(3)) {
      case 0:
        parameters += fmt::format(
            "  {}: {{shape: [C, C/group_size], layerwise_parallel: true, begin: [0, "
            "rank*(C/group_size)]}}\n",
            w);
        operators += fmt::format(
            "  {0}c: {{op: MatMul, in: [{1}, {2}]}}\n  {0}t: {{op: Transpose, in: {0}c, perm: [1, "
            "0]}}\n  {0}g: {{op: AllGather, in: {0}t}}\n  {0}: {{op: Transpose, in: {0}g, perm: "
            "[1, 0]}}\n",
            h, last, w);
        break;
      case 1:
        parameters += fmt::format("  {}: {{shape: [C, C], layerwise_parallel: true}}\n", w);
        operators += fmt::format("  {}: {{op: MatMul, in: [{}, {}]}}\n", h, last, w);
        break;
      default:
        parameters += fmt::format("  {}: [C, C]\n", w);
        operators += fmt::format("  {}: {{op: MatMul, in: [{}, {}]}}\n", h, last, w);
    }
    last = h;
    if (random.below(2) == 0) {
      operators += fmt::format("  a{0}: {{op: Tanh, in: {1}}}\n", i, last);
      last = fmt::format("a{}", i);
    }
  }
  const char* const optimizers[] = {"sgd", "momentum", "adamw"};
  return fmt::format(
      "shardplan: 1\nmodel: net\ndims: {{B: {}, C: {}, own: B/group_size}}\ninputs: {{x: [B, C]}}\nparameters:\n{}"
      "operators:\n  part: {{op: StridedSlice, in: x, begin: [rank*own], end: [(rank+1)*own]}}\n{}"
      "  q: {{op: Square, in: {}}}\n  m: {{op: ReduceMean, in: q}}\n  loss: {{op: AllReduce, in: m}}\nloss: loss\n"
      "training: {{optimizer: {}, learning_rate: 0.05}}\n"
      "parallel: {{parallel_mode: {}, device_num: {}}}\n",
      ranks * 2, ranks * 2, parameters, operators, last, optimizers[random.below(3)],
      random.below(3) == 0 ? "stand_alone" : "hybrid_parallel, gradients_mean: true", ranks);
}

/// Every rank continues from its own file as if it had never stopped: bit for bit.
TEST_F(LocalCheckpointTest, TrainingGoesOnExactly) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    const std::int64_t count = std::int64_t{2} << random.below(3);
    const std::string text = random_ranks(random, count);
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    const Ranks ranks(text, count);
    const auto straight = trained(ranks, {.seed = seed, .steps = 5}, at("straight"));
    trained(ranks, {.seed = seed, .steps = 3}, at("first"));
    LocalSimulationOptions second = loaded(at("first"), ranks, 2);
    const auto rest = trained(ranks, second, at("second"));
    ASSERT_EQ(rest.size(), 2u);
    EXPECT_EQ(rest[0], straight[3]);
    EXPECT_EQ(rest[1], straight[4]);
    for (std::int64_t rank = 0; rank < count; ++rank) {
      const auto content = [&](const char* run) { return content_of(at(run) + "/" + rank_file(rank)); };
      EXPECT_EQ(content("straight"), content("second")) << "rank " << rank;
    }
    for (const char* run : {"straight", "first", "second"}) fs::remove_all(at(run));
  }
}

/// Columns of one weight on each rank, and the same network in the view of all devices.
constexpr char kColumns[] = R"(shardplan: 1
model: net
dims: {B: 4, C: 8, own: C/group_size}
inputs: {x: [B, C]}
parameters: {w: {shape: [C, own], layerwise_parallel: true, begin: [0, rank*own]}}
operators:
  h:    {op: MatMul, in: [x, w]}
  q:    {op: Square, in: h}
  loss: {op: ReduceSum, in: q}
loss: loss
training: {optimizer: momentum, learning_rate: 0.01}
parallel: {parallel_mode: hybrid_parallel, device_num: 4}
)";
constexpr char kWhole[] = R"(shardplan: 1
model: net
dims: {B: 4, C: 8}
inputs: {x: [B, C]}
parameters: {w: [C, C]}
operators:
  h:    {op: MatMul, in: [x, w]}
  q:    {op: Square, in: h}
  loss: {op: ReduceSum, in: q}
loss: loss
training: {optimizer: momentum, learning_rate: 0.01}
)";

/// MindSpore users merge the slices of hybrid parallelism by hand; here the files say where each belongs.
TEST_F(LocalCheckpointTest, PiecesBecomeTheWholeAndTheOtherWayRound) {
  const std::string saved = at("saved");
  trained(Ranks(kColumns, 4), {.seed = 3, .steps = 2}, saved);
  const auto model = std::make_shared<const Model>(read_model_text(kWhole, "w.yaml"));
  const ModelPlanner planner(model, take_devices(read_cluster("dgx-a100"), 2), {});
  const Plan plan = planner.plan(Level::kMemory, "auto");
  Checkpoint checkpoint(saved);
  EXPECT_NO_THROW(checkpoint.verify());
  const LoadedTensors whole = load_checkpoint(checkpoint, plan.program, *plan.graph);
  EXPECT_TRUE(whole.notices.empty());
  // The merged tensor consists of the ranks' pieces side by side.
  const TensorValues& w = whole.values.at(*plan.graph->find_tensor("w"));
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    SafetensorsReader file(saved + "/" + rank_file(rank));
    std::vector<std::byte> bytes(16 * sizeof(double));
    file.read(*file.header().find("w"), 0, bytes);
    for (std::size_t i = 0; i < 16; ++i) {
      double number = 0;
      std::memcpy(&number, bytes.data() + i * sizeof(double), sizeof(double));
      EXPECT_EQ(number, w[i / 2 * 8 + static_cast<std::size_t>(rank) * 2 + i % 2]);
    }
  }
  // From four ranks to a plan, back to two ranks, and on: the same losses as those of the four ranks.
  SimulationOptions options{.seed = 3, .steps = 1, .first_step = 2};
  options.loaded = whole.values;
  options.after_step = [&](std::int64_t steps, const Executor& executor) {
    save_checkpoint(at("plan"), stored_form(plan.program, *plan.graph, steps, 3), plan.program, *plan.graph, executor);
  };
  simulate(plan.program, *plan.graph, options);
  const Ranks two(kColumns, 2);
  const auto there = trained(two, loaded(at("plan"), two, 2));
  const auto straight = trained(Ranks(kColumns, 4), {.seed = 3, .steps = 5});
  const auto total = [](const std::vector<std::optional<double>>& losses) {  // each rank has that of its own columns
    double sum = 0;
    for (const std::optional<double>& loss : losses) sum += *loss;
    return sum;
  };
  for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(total(there[i]), total(straight[i + 3]), 1e-12 * total(straight[0]));
  EXPECT_LT(total(straight[4]), 0.95 * total(straight[0])) << "what is learned shows";
}

CheckpointForm of_ranks(const Checkpoint& checkpoint, const Ranks& ranks) {
  std::vector<std::string> notices;
  CheckpointForm form = form_for_ranks(checkpoint, ranks.models, *ranks.run, notices);
  EXPECT_TRUE(notices.empty()) << notices.front();
  return form;
}

/// The tensors in random layouts on a mesh, each dimension sharded by at most one axis.
CheckpointForm on_random_mesh(const CheckpointForm& whole, Random& random) {
  CheckpointForm form = whole;
  form.is_integrated = false;
  form.is_per_device = false;
  form.mesh = DeviceMesh::parse("x=2, y=2");
  for (CheckpointTensor& tensor : form.tensors) {
    tensor.pieces.clear();
    std::vector<std::string> cuts(tensor.shape.size(), "{}");
    for (const char* axis : {"{x}", "{y}"}) {
      const std::size_t d = random.below(cuts.size() + 1);
      if (d < cuts.size() && cuts[d] == "{}") cuts[d] = axis;
    }
    tensor.layout = parse_layout(fmt::format("[{}]", fmt::join(cuts, ", ")), form.mesh);
  }
  return form;
}

/// What ranks saved, redistributed over a mesh or put into one file and brought back, is unchanged.
TEST_F(LocalCheckpointTest, ACheckpointOfAnyDevicesIsBroughtToTheRanks) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    const std::int64_t count = std::int64_t{2} << random.below(3);
    const std::string text = random_ranks(random, count);
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    const Ranks ranks(text, count);
    trained(ranks, {.seed = seed, .steps = 2}, at("ranks"));
    Checkpoint saved(at("ranks"));
    const bool is_spread = random.below(2) == 0;
    const CheckpointForm between = is_spread ? on_random_mesh(saved.form(), random) : integrated(saved.form());
    transform_checkpoint(saved, between, at("between"));
    Checkpoint other(at("between"));
    const CheckpointForm form = of_ranks(other, ranks);
    transform_checkpoint(other, form, "");  // reads only
    transform_checkpoint(other, form, at("back"));
    for (std::int64_t rank = 0; rank < count; ++rank) {
      const auto content = [&](const char* run) { return content_of(at(run) + "/" + rank_file(rank)); };
      EXPECT_FALSE(content("ranks").empty());
      EXPECT_EQ(content("ranks"), content("back")) << "rank " << rank;
    }
    for (const char* run : {"ranks", "between", "back"}) fs::remove_all(at(run));
  }
}

/// Each rank reads its columns alone.
TEST_F(LocalCheckpointTest, ARankReadsWhatItHolds) {
  trained(Ranks(kColumns, 4), {.seed = 3, .steps = 2}, at("four"));
  Checkpoint four(at("four"));
  const Ranks two(kColumns, 2);
  const std::vector<RankReads> reads = transform_checkpoint(four, of_ranks(four, two), at("two"));
  ASSERT_EQ(reads.size(), 2u);
  EXPECT_EQ(reads[1].sources, (std::set<std::int64_t>{2, 3}));
  EXPECT_EQ(reads[1].bytes, 2 * 8 * 4 * 8);  // w and its momentum, 8 x 4 of F64
  const auto from_four = trained(two, loaded(at("four"), two, 2));
  EXPECT_EQ(from_four, trained(two, loaded(at("two"), two, 2)));
}

TEST_F(LocalCheckpointTest, FaultsAreNamed) {
  const Ranks ranks(kColumns, 4);
  const std::string saved = at("saved");
  trained(Ranks(kColumns, 4), {.seed = 3, .steps = 2}, saved);
  const auto fault = [&](const std::string& name, const auto& damage) {
    const std::string path = at(name);
    fs::copy(saved, path);
    damage(path);
    const std::string found = error_of([&] {
      Checkpoint checkpoint(path);
      load_ranks(checkpoint, ranks.models, *ranks.run);
    });
    return found;
  };
  const auto expect_fault = [](const std::string& found, const std::string& part) {
    EXPECT_NE(found.find(part), std::string::npos) << found;
  };
  expect_fault(fault("missing", [](const std::string& path) { fs::remove(path + "/rank_2.safetensors"); }),
               "a part of 'w' [8, 2], from [0, 4], is on no rank that is there; rank_2.safetensors is missing");
  expect_fault(fault("short",
                     [](const std::string& path) {
                       fs::resize_file(path + "/rank_1.safetensors", fs::file_size(path + "/rank_1.safetensors") - 8);
                     }),
               "rank_1.safetensors: error: tensor 'w.momentum' ends at byte 256");
  expect_fault(
      fault("renamed",
            [](const std::string& path) { fs::rename(path + "/rank_1.safetensors", path + "/rank_7.safetensors"); }),
      "rank_7.safetensors: error: holds the pieces of rank 1; expected those of rank 7");
  expect_fault(fault("swapped",
                     [](const std::string& path) {
                       fs::copy_file(path + "/rank_1.safetensors", path + "/rank_2.safetensors",
                                     fs::copy_options::overwrite_existing);
                     }),
               "rank_2.safetensors: error: holds the pieces of rank 1; expected those of rank 2");
  expect_fault(fault("twice",
                     [](const std::string& path) {
                       fs::copy_file(path + "/rank_1.safetensors", path + "/rank_01.safetensors");
                     }),
               "rank_01.safetensors");
  trained(ranks, {.seed = 3, .steps = 1}, at("earlier"));
  expect_fault(fault("mixed",
                     [&](const std::string& path) {
                       fs::copy_file(at("earlier") + "/rank_3.safetensors", path + "/rank_3.safetensors",
                                     fs::copy_options::overwrite_existing);
                     }),
               "rank_3.safetensors: error: is of step 1 of net, seed 3; ");
  trained(Ranks(kColumns, 2), {.seed = 3, .steps = 2}, at("two"));
  expect_fault(fault("of_two",
                     [&](const std::string& path) {
                       fs::copy_file(at("two") + "/rank_1.safetensors", path + "/rank_1.safetensors",
                                     fs::copy_options::overwrite_existing);
                     }),
               "rank_1.safetensors: error: its mesh is ");
  CheckpointForm form;
  form.model = "net";
  form.step = 2;
  form.seed = 3;
  form.mesh = DeviceMesh::parse("x=4");
  form.tensors = {{"w", "F64", {8, 8}, parse_layout("[{}, {x}]", form.mesh), {}}};
  write_checkpoint(at("plan"), form, [](std::size_t, std::int64_t) { return std::vector<std::byte>(16 * 8); });
  expect_fault(fault("of_a_plan",
                     [&](const std::string& path) {
                       fs::copy_file(at("plan") + "/rank_1.safetensors", path + "/rank_1.safetensors",
                                     fs::copy_options::overwrite_existing);
                     }),
               "rank_1.safetensors: error: is of a model written in the view of all devices");
}

/// A weight that every rank trained separately is not a weight of a model in the view of all devices.
TEST_F(LocalCheckpointTest, OwnWeightsAreOneForEachRank) {
  std::string own = kColumns;
  const std::string begin = ", begin: [0, rank*own]";
  own.erase(own.find(begin), begin.size());
  const Ranks ranks(own, 4);
  trained(ranks, {.seed = 3, .steps = 2}, at("own"));
  Checkpoint checkpoint(at("own"));
  EXPECT_NO_THROW(checkpoint.verify());
  EXPECT_EQ(checkpoint.form().tensors[*checkpoint.find("w")].shape, (Shape{4, 8, 2}));
  const Ranks columns(kColumns, 4);
  const std::string found = error_of([&] { load_ranks(checkpoint, columns.models, *columns.run); });
  EXPECT_NE(found.find("tensor 'w' has the shape [4, 8, 2], in the model it has [8, 8]"), std::string::npos) << found;
}

/// Ranks with separate weights may all start from the same one; a larger whole needs `begin`.
TEST_F(LocalCheckpointTest, AllRanksBeginWithOneWeight) {
  std::string own = kColumns;
  const std::string begin = ", begin: [0, rank*own]";
  own.erase(own.find(begin), begin.size());
  const Ranks ranks(own, 4);
  CheckpointForm one;
  one.model = "net";
  one.is_integrated = true;
  one.tensors = {{"w", "F64", {8, 2}, TensorLayout::replicated(2)},
                 {"w.momentum", "F64", {8, 2}, TensorLayout::replicated(2)}};
  write_checkpoint(at("one"), one, [](std::size_t t, std::int64_t) {
    return std::vector<std::byte>(16 * 8, static_cast<std::byte>(t + 1));
  });
  Checkpoint checkpoint(at("one"));
  transform_checkpoint(checkpoint, of_ranks(checkpoint, ranks), at("own"));
  Checkpoint of_each(at("own"));
  EXPECT_EQ(of_each.verify().files, 4);
  EXPECT_EQ(of_each.form().tensors[*of_each.find("w")].shape, (Shape{4, 8, 2}));
  EXPECT_EQ(trained(ranks, loaded(at("own"), ranks, 2)), trained(ranks, loaded(at("one"), ranks, 2)));

  one.tensors[0].shape = {8, 8};
  write_checkpoint(at("whole"), one,
                   [](std::size_t t, std::int64_t) { return std::vector<std::byte>(t == 0 ? 64 * 8 : 16 * 8); });
  Checkpoint whole(at("whole"));
  const std::string found = error_of([&] { of_ranks(whole, ranks); });
  EXPECT_NE(found.find("tensor 'w' has the shape [8, 8], in the model it has [4, 8, 2], one for each of 4 ranks"),
            std::string::npos)
      << found;
  EXPECT_NE(found.find("`begin:` beside the parameter"), std::string::npos) << found;
}

/// A checkpoint of weights alone starts the same training as one whose master copies are these weights.
TEST_F(LocalCheckpointTest, MasterCopiesStartAsTheLoadedWeights) {
  std::string mixed = kColumns;
  mixed.replace(mixed.find("0.01}"), 5, "0.01, mixed_precision: f16}");
  const Ranks ranks(mixed, 4);
  CheckpointForm form;
  form.model = "net";
  form.is_integrated = true;
  for (const char* name : {"w", "w.master", "w.momentum"}) {
    form.tensors.push_back({name, "F64", {8, 8}, TensorLayout::replicated(2), {}});
  }
  const auto losses = [&](const std::string& path, std::size_t num_notices) {
    write_checkpoint(
        path, form, [](std::size_t t, std::int64_t) { return bytes_of_numbers(TensorValues(64, t < 2 ? 0.25 : 0.0)); });
    Checkpoint checkpoint(path);
    LoadedRanks found = load_ranks(checkpoint, ranks.models, *ranks.run);
    EXPECT_EQ(found.notices.size(), num_notices);
    LocalSimulationOptions options{.seed = 3, .steps = 3};
    options.loaded = std::move(found.values);
    return trained(ranks, std::move(options));
  };
  const auto expected = losses(at("all"), 0);
  form.tensors.resize(1);
  EXPECT_EQ(losses(at("weights"), 1), expected);
}

TEST_F(LocalCheckpointTest, APartOnNoRankIsFoundByVerify) {
  std::string apart = kColumns;
  apart.replace(apart.find("rank*own"), 8, "rank*2*own");
  trained(Ranks(apart, 4), {.seed = 3, .steps = 1}, at("apart"));
  Checkpoint checkpoint(at("apart"));
  const std::string found = error_of([&] { checkpoint.verify(); });
  EXPECT_NE(found.find("a part of 'w' [8, 14], from [0, 0], is on no rank"), std::string::npos) << found;
  EXPECT_EQ(found.find("a part of 'w' [8, 14], from [0, 0], is on no rank"),
            error_of([&] {
              transform_checkpoint(checkpoint, integrated(checkpoint.form()), "");
            }).find("a part of 'w' [8, 14], from [0, 0], is on no rank"));
}

}  // namespace
}  // namespace shardplan
