#include "simulator/checkpoint/checkpoint.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/random.h"
#include "model/read_model.h"
#include "planner/model_planner.h"
#include "simulator/checkpoint/checkpoint_folder.h"
#include "simulator/checkpoint/training_checkpoint.h"
#include "simulator/execute/collectives.h"
#include "simulator/execute/simulate.h"
#include "tests/support/files.h"
#include "tests/support/random_plan.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

namespace fs = std::filesystem;

class CheckpointTest : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return folder_.at(name); }

  const TemporaryFolder folder_;
};

/// Some tensors in random layouts.
CheckpointForm random_form(Random& random) {
  constexpr const char* kMeshes[] = {"x=2, y=4", "x=8", "x=2, y=2, z=2", "x=3, y=2", "x=4", "x=1"};
  CheckpointForm form;
  form.model = "m";
  form.step = 7;
  form.mesh = DeviceMesh::parse(kMeshes[random.below(std::size(kMeshes))]);
  const Shape shapes[] = {{24, 48}, {48}, {}, {24, 2, 24}, {96, 24}};
  for (std::size_t t = 0; t < std::size(shapes); ++t) {
    CheckpointTensor tensor{"t" + std::to_string(t), "F64", shapes[t], TensorLayout::replicated(shapes[t].size())};
    for (std::size_t axis = 0; axis < form.mesh.axes().size() && !shapes[t].empty(); ++axis) {
      DimensionPart& part = tensor.layout.dimensions[random.below(shapes[t].size())].parts[0];
      TensorLayout tried = tensor.layout;
      if (random.below(3) == 0) continue;
      part.axes.push_back(form.mesh.whole(axis));
      if (!check_layout(tensor.layout, form.mesh, shapes[t]).empty()) tensor.layout = tried;
    }
    // A fused projection: the same heads of three parts.
    if (t == 4 && form.mesh.axes().front().size <= 4) {
      tensor.layout = parse_layout("[(3:{}, 4:{x}, 8:{}), {}]", form.mesh);
      if (!check_layout(tensor.layout, form.mesh, shapes[t]).empty()) tensor.layout = TensorLayout::replicated(2);
    }
    tensor.layout = canonical(tensor.layout, form.mesh, tensor.shape);
    form.tensors.push_back(std::move(tensor));
  }
  return form;
}

/// Element i of tensor t holds 1000 t + i.
std::vector<double> numbers(const CheckpointForm& form, std::size_t t) {
  std::vector<double> values(static_cast<std::size_t>(num_elements(form.tensors[t].shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 10000.0 * static_cast<double>(t) + static_cast<double>(i);
  return values;
}

std::vector<std::byte> bytes_of(const std::vector<double>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(double));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// What `scatter`, which shares no code with checkpoints, gives a rank.
std::vector<std::byte> scattered(const CheckpointForm& form, std::size_t t, std::int64_t rank) {
  const CheckpointTensor& tensor = form.tensors[t];
  return bytes_of(scatter(numbers(form, t), tensor.shape, tensor.layout, form.mesh)[static_cast<std::size_t>(rank)]);
}

void write(const std::string& path, const CheckpointForm& form) {
  write_checkpoint(path, form, [&](std::size_t t, std::int64_t rank) { return scattered(form, t, rank); });
}

/// Every piece in a checkpoint's files equals the result of scatter.
void expect_right(const std::string& path, const CheckpointForm& form) {
  for (std::int64_t rank = 0; rank < form.mesh.num_devices(); ++rank) {
    SafetensorsReader reader(path + "/" + (form.is_integrated ? kIntegratedFile : rank_file(rank)));
    for (std::size_t t = 0; t < form.tensors.size(); ++t) {
      const SafetensorsEntry* entry = reader.header().find(form.tensors[t].name);
      ASSERT_NE(entry, nullptr);
      std::vector<std::byte> bytes(static_cast<std::size_t>(entry->end - entry->begin));
      reader.read(*entry, 0, bytes);
      EXPECT_EQ(bytes, scattered(form, t, rank))
          << form.tensors[t].name << " " << to_string(form.tensors[t].layout, form.mesh) << " of rank " << rank;
    }
  }
}

TEST_F(CheckpointTest, AnyFormBecomesAnyOther) {
  Random random(3);
  for (int i = 0; i < 25; ++i) {
    SCOPED_TRACE(i);
    CheckpointForm from = random_form(random);
    CheckpointForm to = random_form(random);
    if (random.below(5) == 0) from = integrated(from);
    if (random.below(5) == 0) to = integrated(to);
    write(at("from"), from);
    Checkpoint checkpoint(at("from"));
    EXPECT_EQ(checkpoint.form(), from);
    EXPECT_NO_THROW(checkpoint.verify());
    const std::int64_t before = checkpoint.bytes_read();
    transform_checkpoint(checkpoint, to, at("to"));
    expect_right(at("to"), to);
    std::int64_t needed = 0;
    for (const auto& file : fs::directory_iterator(at("to"))) {
      SafetensorsReader reader(file.path().string());
      for (const SafetensorsEntry& entry : reader.header().entries) needed += entry.end - entry.begin;
    }
    EXPECT_EQ(checkpoint.bytes_read() - before, needed) << "nothing is read but what is needed";
  }
}

TEST_F(CheckpointTest, UnevenPiecesAreKeptWithoutPadding) {
  CheckpointForm form;
  form.mesh = DeviceMesh::parse("x=4");
  form.tensors = {{"w", "F64", {10, 2}, parse_layout("[{x}, {}]", form.mesh)}};
  write_checkpoint(at("c"), form, [&](std::size_t, std::int64_t rank) {
    std::vector<double> rows;  // pieces of 3, 3, 3 and 1
    for (std::int64_t i = 6 * rank; i < std::min<std::int64_t>(6 * rank + 6, 20); ++i) rows.push_back(double(i));
    return bytes_of(rows);
  });
  Checkpoint checkpoint(at("c"));
  checkpoint.verify();
  const std::vector<double> whole = [&] {
    std::vector<double> values(20);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
    return values;
  }();
  EXPECT_EQ(checkpoint.read(0, whole_piece({10, 2})), bytes_of(whole));
}

TEST_F(CheckpointTest, ReadsOnlyTheRanksThatHoldWhatIsNeeded) {
  CheckpointForm form;
  form.mesh = DeviceMesh::parse("dp=2, mp=4");
  form.tensors = {{"w", "F64", {8, 4}, parse_layout("[{mp}, {}]", form.mesh)}};
  write(at("c"), form);
  CheckpointForm two = form;
  two.mesh = DeviceMesh::parse("y=2");
  two.tensors[0].layout = parse_layout("[{y}, {}]", two.mesh);
  Checkpoint checkpoint(at("c"));
  std::vector<RankReads> reads = transform_checkpoint(checkpoint, two, "");
  EXPECT_EQ(reads[0].sources, (std::set<std::int64_t>{0, 1}));
  EXPECT_EQ(reads[1].sources, (std::set<std::int64_t>{2, 3}));
  EXPECT_EQ(reads[0].bytes, 4 * 4 * 8);
  // A missing rank is replaced by one that holds the same; if there is none, the piece is missing.
  fs::remove(at("c/rank_1.safetensors"));
  Checkpoint without(at("c"));
  EXPECT_EQ(transform_checkpoint(without, two, "")[0].sources, (std::set<std::int64_t>{0, 5}));
  EXPECT_EQ(error_of([&] { without.verify(); }), at("c") + ": error: rank_1.safetensors is missing");
  fs::remove(at("c/rank_5.safetensors"));
  Checkpoint lacking(at("c"));
  EXPECT_EQ(error_of([&] { transform_checkpoint(lacking, two, at("d")); }),
            at("c") + ": error: a piece of 'w' is missing: rank_1.safetensors or rank_5.safetensors is not there");
  EXPECT_FALSE(fs::exists(at("d"))) << "written whole or not at all";
}

TEST_F(CheckpointTest, FaultsAreNamed) {
  CheckpointForm form;
  form.model = "m";
  form.mesh = DeviceMesh::parse("x=2");
  form.tensors = {{"w", "F64", {8}, parse_layout("[{x}]", form.mesh)},
                  {"v", "F64", {2}, parse_layout("[{}]", form.mesh)}};
  const auto fault = [&](const char* name, const auto& spoil) {
    write(at(name), form);
    spoil(at(name));
    return error_of([&] {
      Checkpoint checkpoint(at(name));
      checkpoint.verify();
    });
  };
  const auto has = [&](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(error_of([&] { Checkpoint checkpoint(at("nowhere")); }), "cannot be read");
  has(fault("empty", [](const std::string& c) { fs::remove_all(c), fs::create_directory(c); }), "no checkpoint");
  has(fault("doubled", [](const std::string& c) { fs::copy(c + "/rank_1.safetensors", c + "/rank_01.safetensors"); }),
      "rank 1 is held twice");
  has(fault("exchanged",
            [](const std::string& c) {
              fs::remove(c + "/rank_1.safetensors");
              fs::copy(c + "/rank_0.safetensors", c + "/rank_1.safetensors");
            }),
      "holds the pieces of rank 0; expected those of rank 1");
  has(fault("both", [](const std::string& c) { fs::copy(c + "/rank_1.safetensors", c + "/model.safetensors"); }),
      "one of them is of another checkpoint");
  has(fault("other step",
            [&](const std::string& c) {
              CheckpointForm other = form;
              other.step = 9;
              write(at("other"), other);
              fs::copy(at("other/rank_1.safetensors"), c + "/rank_1.safetensors", fs::copy_options::overwrite_existing);
            }),
      "is of step 9 of m, seed 0;");
  has(fault("fewer",
            [&](const std::string& c) {
              CheckpointForm other = form;
              other.tensors.pop_back();
              write(at("other"), other);
              fs::copy(at("other/rank_1.safetensors"), c + "/rank_1.safetensors", fs::copy_options::overwrite_existing);
            }),
      "tensor 'v' is missing");
  has(fault("copy differs",
            [&](const std::string& c) {
              write_checkpoint(c, form, [](std::size_t t, std::int64_t rank) {
                return std::vector<std::byte>(t == 0 ? 32 : 16, std::byte(rank));
              });
            }),
      "tensor 'v' differs from the copy of rank 0");
  // One bit anywhere in the data, of any rank.
  for (int bit = 0; bit < 8; ++bit) {
    const std::string damaged = fault(("bit " + std::to_string(bit)).c_str(), [&](const std::string& c) {
      std::fstream file(c + "/rank_1.safetensors", std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(-1 - 5 * bit, std::ios::end);
      const int byte = file.peek();
      file.seekp(-1 - 5 * bit, std::ios::end);
      file.put(static_cast<char>(byte ^ 1 << bit));
    });
    has(damaged, "rank_1.safetensors: error: is damaged: its bytes are not those that were written (fnv1a64 is ");
  }
  // Found by random damage: reading waited for a pipe; and the program ended when a tensor requested after another
  // one's file turned out to be damaged.
  has(fault("pipe",
            [](const std::string& c) {
              fs::remove(c + "/rank_1.safetensors");
              mkfifo((c + "/rank_1.safetensors").c_str(), 0600);
            }),
      "rank_1.safetensors: error: cannot be read: it is not a regular file");
  write(at("again"), form);
  {
    std::fstream file(at("again/rank_0.safetensors"), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('x');
    file.close();
    Checkpoint again(at("again"));
    for (const std::size_t tensor : {0u, 1u, 0u}) {
      has(error_of([&] {
            again.read(tensor, held_piece(form.tensors[tensor].layout, form.mesh, form.tensors[tensor].shape, 0));
          }),
          "rank_0.safetensors: error: is damaged");
    }
  }
  // Found by random changes: the error for unreadable metadata did not name the file.
  for (const auto& [from, to, message] :
       {std::tuple{"x=2", "x=0", "metadata: mesh: mesh 'x=0': axis 'x' has size '0'"},
        std::tuple{"\"[8]\"", "\"[9223372036854775807]\"", "metadata: the shape of w is '[9223372036854775807]'"},
        std::tuple{"[{x}]", "[{q}]", "metadata: layout:w: layout '[{q}]', character 3: unknown axis 'q'"}}) {
    const std::string said = fault(from, [&](const std::string& c) {
      std::string bytes = content_of(c + "/rank_0.safetensors");
      for (std::size_t k = bytes.find(from); k != std::string::npos; k = bytes.find(from))
        bytes.replace(k, std::strlen(from), to);
      std::uint64_t length = 0;  // of the header
      std::memcpy(&length, bytes.data(), sizeof(length));
      length += std::strlen(to) - std::strlen(from);
      std::memcpy(bytes.data(), &length, sizeof(length));
      std::ofstream(c + "/rank_0.safetensors", std::ios::binary) << bytes;
    });
    EXPECT_TRUE(said.starts_with(at(from) + "/rank_0.safetensors: error: ")) << said;
    has(said, message);
  }
  has(fault("cut",
            [](const std::string& c) {
              fs::resize_file(c + "/rank_1.safetensors", fs::file_size(c + "/rank_1.safetensors") - 5);
            }),
      "is cut short");
}

TEST_F(CheckpointTest, OnlyAnOlderCheckpointIsReplaced) {
  CheckpointForm form;
  form.mesh = DeviceMesh::parse("x=2");
  form.tensors = {{"w", "F64", {8}, parse_layout("[{x}]", form.mesh)}};
  write(at("c"), form);
  Checkpoint checkpoint(at("c"));
  EXPECT_EQ(error_of([&] { transform_checkpoint(checkpoint, integrated(form), at("c")); }),
            at("c") + ": error: is where the checkpoint is read from; name another folder");
  std::ofstream(at("c") + "/notes.txt") << "kept";
  EXPECT_EQ(error_of([&] { write(at("c"), integrated(form)); }),
            at("c") +
                ": error: would be replaced, but holds 'notes.txt', which is not part of a checkpoint; name "
                "another folder");
  fs::create_directories(at("d/rank_0.safetensors"));
  expect_has(error_of([&] { transform_checkpoint(checkpoint, form, at("d")); }), "holds 'rank_0.safetensors'");
  EXPECT_EQ(content_of(at("c/notes.txt")), "kept");
  expect_right(at("c"), form);
}

/// A writer that is killed at any time leaves the older checkpoint intact.
TEST_F(CheckpointTest, AWriterMayBeKilledAtAnyTime) {
  CheckpointForm form;
  form.mesh = DeviceMesh::parse("x=4");
  form.tensors = {{"w", "F64", {64, 64}, parse_layout("[{x}, {}]", form.mesh)}};
  write(at("c"), form);
  for (int round = 0; round < 12; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      for (;;) write(at("c"), form);
    }
    usleep(static_cast<useconds_t>(2000 + 700 * round));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    Checkpoint checkpoint(at("c"));
    EXPECT_NO_THROW(checkpoint.verify()) << round;
    expect_right(at("c"), form);
  }
}

const std::string kTrained = R"(
shardplan: 1
model: net
dims: {B: 24}
inputs: {x: [B, 12], label: {shape: [B], dtype: i32}}
operators:
  fc1:  {block: nn.Dense, in: x, out_channels: 24}
  act:  {op: ReLU, in: fc1}
  fc2:  {block: nn.Dense, in: act, out_channels: 12}
  loss: {block: nn.SoftmaxCrossEntropyWithLogits, in: [fc2, label], sparse: true, reduction: mean}
loss: loss
training: {optimizer: adamw, learning_rate: 0.05, micro_batches: 2}
)";

/// The plan with the least memory, which shards what it can.
Plan plan_on(std::int64_t devices) {
  const auto model = std::make_shared<const Model>(read_model_text(kTrained, "m.yaml"));
  const ModelPlanner planner(model, take_devices(read_cluster("dgx-a100"), devices), {});
  return planner.plan(Level::kMemory, "auto");
}

/// Training continues from the checkpoint of other devices with another plan: bit for bit on the same devices,
/// otherwise up to the order of sums.
TEST_F(CheckpointTest, TrainingGoesOnOnOtherDevices) {
  const PlannedModel eight(read_model_text(kTrained, "m.yaml"), "dgx-a100", {{"x", 2}, {"y", 4}});
  const Plan plan = random_plan(eight, 5);
  const auto losses = [](const Plan& of, const SimulationOptions& options) {
    return simulate(of.program, *of.graph, options).front().steps;
  };
  SimulationOptions straight{.seed = 4, .steps = 6};
  const std::vector<SimulatedStep> expected = losses(plan, straight);
  SimulationOptions first{.seed = 4, .steps = 3};
  first.after_step = [&](std::int64_t steps, const Executor& executor) {
    const CheckpointForm form = stored_form(plan.program, *plan.graph, steps, 4);
    save_checkpoint(at("rank"), form, plan.program, *plan.graph, executor);
    save_checkpoint(at("whole"), integrated(form), plan.program, *plan.graph, executor);
  };
  losses(plan, first);
  const auto goes_on = [&](const Plan& of, const std::string& from) {
    Checkpoint checkpoint(at(from));
    checkpoint.verify();
    EXPECT_EQ(checkpoint.form().step, 3);
    LoadedTensors loaded = load_checkpoint(checkpoint, of.program, *of.graph);
    EXPECT_TRUE(loaded.notices.empty());
    SimulationOptions second{.seed = 4, .steps = 3, .first_step = 3};
    second.loaded = std::move(loaded.values);
    return losses(of, second);
  };
  for (const char* from : {"rank", "whole"}) {
    const std::vector<SimulatedStep> same = goes_on(plan, from);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(same[i].mesh, expected[i + 3].mesh) << from << i;
  }
  for (const std::int64_t devices : {4, 2, 1}) {
    const std::vector<SimulatedStep> there = goes_on(plan_on(devices), "rank");
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(there[i].mesh, expected[i + 3].mesh, 1e-12) << devices << " devices, step " << i;
      EXPECT_NEAR(there[i].one_device, expected[i + 3].one_device, 1e-12) << devices << " devices, step " << i;
    }
  }
  EXPECT_GT(std::abs(expected[3].mesh - expected[0].mesh), 1e-3) << "what is learned shows";
}

TEST_F(CheckpointTest, AModelThatDiffersIsRefused) {
  const Plan plan = plan_on(2);
  CheckpointForm form = stored_form(plan.program, *plan.graph, 1, 0);
  form.tensors[0].shape[0] += 2;
  form.tensors[0].layout = TensorLayout::replicated(form.tensors[0].shape.size());
  const std::string wrong = form.tensors[0].name;
  form.tensors[1].name = "another";
  write(at("c"), form);
  Checkpoint checkpoint(at("c"));
  const std::string text = error_of([&] { load_checkpoint(checkpoint, plan.program, *plan.graph); });
  EXPECT_NE(text.find("tensor '" + wrong + "' has the shape"), std::string::npos) << text;
  form = stored_form(plan.program, *plan.graph, 1, 0);
  for (CheckpointTensor& tensor : form.tensors) tensor.name = "other." + tensor.name;
  write(at("d"), form);
  Checkpoint other(at("d"));
  const std::string all = error_of([&] { load_checkpoint(other, plan.program, *plan.graph); });
  EXPECT_EQ(all.find('\n'), std::string::npos) << "one cause: " << all;
  EXPECT_NE(all.find("has no tensors "), std::string::npos) << all;
}

/// A tensor belongs to a padded model or to one without padding, whatever its shape.
TEST_F(CheckpointTest, PaddedAndUnpaddedAreNotMixed) {
  const auto plan_of = [](const std::string& dims, std::int64_t devices) {
    const std::string text = "shardplan: 1\ndims: {B: 8, " + dims + R"(}
inputs: {x: [B, 4], label: {shape: [B], dtype: i32}}
operators:
  head: {block: nn.Dense, in: x, out_channels: V}
  loss: {op: SparseSoftmaxCrossEntropyWithLogits, in: [head, label]}
loss: loss
training: {optimizer: adam, learning_rate: 0.01}
)";
    return random_plan(PlannedModel(read_model_text(text, "m.yaml"), "dgx-a100", {{"x", devices}, {"y", 8 / devices}}),
                       1);
  };
  const Plan plan = plan_of("V: {size: 13, pad: 8}", 2);
  const CheckpointForm form = stored_form(plan.program, *plan.graph, 1, 0);
  write(at("rank"), form);
  write(at("whole"), integrated(form));
  Checkpoint ranks(at("rank"));
  ranks.verify();
  transform_checkpoint(ranks, integrated(form), at("transformed"));
  const Plan same = plan_of("V: {size: 13, pad: 4}", 4), plain = plan_of("V: 16", 2),
             other = plan_of("V: {size: 14, pad: 8}", 2);
  for (const char* name : {"rank", "whole", "transformed"}) {
    Checkpoint checkpoint(at(name));
    EXPECT_FALSE(load_checkpoint(checkpoint, same.program, *same.graph).values.empty()) << name;
    const std::string from_plain = error_of([&] { load_checkpoint(checkpoint, plain.program, *plain.graph); });
    EXPECT_NE(from_plain.find(
                  "tensor 'head.weight' has the shape [16, 4] of which [13, 4] exist, in the model without padding"),
              std::string::npos)
        << from_plain;
    const std::string from_other = error_of([&] { load_checkpoint(checkpoint, other.program, *other.graph); });
    EXPECT_NE(from_other.find("of which [13, 4] exist, in the model of which [14, 4] exist"), std::string::npos)
        << from_other;
  }
  write(at("plain"), stored_form(plain.program, *plain.graph, 1, 0));
  Checkpoint without(at("plain"));
  const std::string text = error_of([&] { load_checkpoint(without, plan.program, *plan.graph); });
  EXPECT_NE(text.find("without padding, in the model of which [13, 4] exist"), std::string::npos) << text;
}

/// A checkpoint of weights alone starts the same training as one whose master copies are these weights.
TEST_F(CheckpointTest, MasterCopiesStartAsTheLoadedWeights) {
  const std::string text = R"(shardplan: 1
inputs: {x: [8, 4]}
parameters: {w: [4, 8]}
operators:
  y:    {op: MatMul, in: [x, w]}
  z:    {op: Square, in: y}
  loss: {op: ReduceMean, in: z}
loss: loss
training: {optimizer: adamw, learning_rate: 0.1, mixed_precision: bf16}
)";
  const Plan plan = random_plan(PlannedModel(read_model_text(text, "m.yaml"), "dgx-a100", {{"x", 2}, {"y", 4}}), 1);
  const CheckpointForm all = integrated(stored_form(plan.program, *plan.graph, 0, 3));
  CheckpointForm weights = all;
  std::erase_if(weights.tensors, [](const CheckpointTensor& tensor) { return tensor.name != "w"; });
  const auto save = [&](const char* name, const CheckpointForm& form) {
    write_checkpoint(at(name), form, [&](std::size_t t, std::int64_t) {
      const CheckpointTensor& tensor = form.tensors[t];
      const bool is_weight = tensor.name == "w" || tensor.name == "w.master";
      return bytes_of(
          std::vector<double>(static_cast<std::size_t>(num_elements(tensor.shape)), is_weight ? 0.25 : 0.0));
    });
  };
  save("all", all);
  save("weights", weights);
  Checkpoint alone(at("weights"));
  std::vector<std::string> notices;
  transform_checkpoint(alone, form_for_plan(alone, plan.program, *plan.graph, notices), at("transformed"));
  const auto losses = [&](const char* name) {
    Checkpoint checkpoint(at(name));
    LoadedTensors loaded = load_checkpoint(checkpoint, plan.program, *plan.graph);
    notices = loaded.notices;
    SimulationOptions options{.seed = 3, .steps = 3};
    options.loaded = std::move(loaded.values);
    const std::vector<SimulatedScalar> scalars = simulate(plan.program, *plan.graph, options);
    std::vector<std::pair<double, double>> found;
    for (const SimulatedStep& step : scalars.front().steps) {
      found.emplace_back(step.one_device, step.mesh);
    }
    return found;
  };
  const auto expected = losses("all");
  EXPECT_TRUE(notices.empty());
  for (const char* name : {"weights", "transformed"}) {
    EXPECT_EQ(losses(name), expected) << name;
    EXPECT_EQ(notices, std::vector<std::string>{"optimizer states that the checkpoint does not hold: w.master, "
                                                "w.moment1, w.moment2 and 1 more; master copies start as the loaded "
                                                "weights"});
  }
}

}  // namespace
}  // namespace shardplan
