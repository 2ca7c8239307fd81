// Checkpoints and rank tables with random damage, as by disks, people and other jobs: every command ends at once with a
// clear error that names the file, or with the right result; nothing is left half written.
//
//   SHARDPLAN_TRIALS=200 SHARDPLAN_SEED=7 ./build/dev/tests/cli/cli_test --gtest_filter='RandomFaults*'

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/cli/run_program.h"

namespace shardplan {
namespace {

namespace fs = std::filesystem;

constexpr int kLongest = 60;  // seconds of one command

std::uint64_t number_of(const char* variable, std::uint64_t standard) {
  const char* text = std::getenv(variable);
  return text == nullptr ? standard : std::strtoull(text, nullptr, 10);
}
std::uint64_t seed() { return number_of("SHARDPLAN_SEED", 1); }
std::uint64_t trials() { return number_of("SHARDPLAN_TRIALS", 15); }

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void write(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

template <class T>
const T& any_of(Random& random, const std::vector<T>& all) {
  return all[random.below(all.size())];
}

void flip_bit(std::string& bytes, std::size_t at, Random& random) {
  bytes[at] = static_cast<char>(bytes[at] ^ 1 << random.below(8));
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

/// What every command does when it meets a fault.
void expect_clear_end(const ProgramRun& run, const std::string& name) {
  EXPECT_TRUE(run.exit_code == 0 || run.exit_code == 3) << run.exit_code << "\n" << run.err;
  EXPECT_EQ(run.err.find("internal"), std::string::npos) << run.err;
  if (run.exit_code != 3) return;
  EXPECT_NE(run.err.find("error: "), std::string::npos) << run.err;
  EXPECT_NE(run.err.find(name), std::string::npos) << run.err;
  EXPECT_EQ(run.out, "");
}

// ---- checkpoints

constexpr char kModel[] = R"(shardplan: 1
model: mlp
cluster: ascend-910
inputs: {x: [16, 16]}
operators:
  fc1:  {block: nn.Dense, in: x, out_channels: WIDTH}
  r:    {op: ReLU, in: fc1}
  fc2:  {block: nn.Dense, in: r, out_channels: 8}
  sq:   {op: Square, in: fc2}
  loss: {op: ReduceMean, in: sq}
loss: loss
training: {optimizer: momentum, learning_rate: 0.01}
parallel: {device_num: 8}
)";
constexpr char kRanks[] = R"(shardplan: 1
model: ranks
cluster: ascend-910
dims: {N: 16, own: N/group_size}
inputs: {x: [8, 16]}
parameters: {w: {shape: [16, own], layerwise_parallel: true, begin: [0, rank*own]}}
operators:
  fc:   {op: MatMul, in: [x, w]}
  sq:   {op: Square, in: fc}
  sum:  {op: ReduceMean, in: sq}
  loss: {op: AllReduce, in: sum}
loss: loss
training: {optimizer: momentum, learning_rate: 0.001}
parallel: {parallel_mode: hybrid_parallel, device_num: 4}
)";

class RandomFaultsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    write(at("mlp.yaml"), replaced(kModel, "WIDTH", "32"));
    write(at("other.yaml"), replaced(kModel, "WIDTH", "64"));
    write(at("ranks.yaml"), kRanks);
    for (const char* arguments :
         {"mlp.yaml --save eight", "mlp.yaml --device-num 4 --save four", "mlp.yaml --integrated --save whole",
          "other.yaml --save other", "ranks.yaml --save ranks"}) {
      const ProgramRun run = run_program(fmt::format("simulate {} --steps 2", arguments), folder_->path());
      ASSERT_EQ(run.exit_code, 0) << run.err;
    }
  }
  static void TearDownTestSuite() { delete folder_; }
  static fs::path at(const std::string& name) { return fs::path(folder_->path()) / name; }

  static std::vector<fs::path> files_of(const std::string& checkpoint) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(at(checkpoint))) {
      if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
  }

  /// Damages one file so that `verify` must notice it; returns what it did.
  static std::string damage(const std::string& checkpoint, Random& random) {
    const std::vector<fs::path> files = files_of(checkpoint);
    const fs::path& file = any_of(random, files);
    const std::string name = file.filename().string();
    const std::string bytes = bytes_of(file);
    std::string wrong = bytes;
    switch (random.below(9)) {
      case 0:
        wrong.resize(random.below(bytes.size()));
        write(file, wrong);
        return fmt::format("{} cut after {} of {} bytes", name, wrong.size(), bytes.size());
      case 1:
      case 2:
      case 3: {  // except in the word that announces a hash
        const std::size_t word = bytes.find("fnv1a64");
        const std::size_t bit = random.below(bytes.size() - 7);
        const std::size_t place = bit < word ? bit : bit + 7;
        flip_bit(wrong, place, random);
        write(file, wrong);
        return fmt::format("{}: a bit of byte {}", name, place);
      }
      case 4: {
        const fs::path source = any_of(random, files_of(any_of<std::string>(random, {"other", "four", "ranks"})));
        if (bytes_of(source) == bytes) break;
        fs::copy_file(source, file, fs::copy_options::overwrite_existing);
        return fmt::format("{} has what {} of another checkpoint holds", name, source.filename().string());
      }
      case 5:
        fs::rename(file, file.parent_path() / any_of<std::string>(random, {"rank_99.safetensors", "rank_x.safetensors",
                                                                           "rank_-1.safetensors", "x.bin"}));
        return fmt::format("{} renamed", name);
      case 6:
        fs::remove(file);
        if (random.below(2) == 0) fs::create_directory(file);
        return fmt::format("{} removed, or a folder", name);
      case 7:
        fs::remove(file);
        mkfifo(file.c_str(), 0600);  // opening it would wait forever
        return fmt::format("{} is a pipe", name);
      default:
        break;
    }
    write(file, bytes + "x");
    return fmt::format("{} has a byte more", name);
  }

  static TemporaryFolder* folder_;
};
TemporaryFolder* RandomFaultsTest::folder_ = nullptr;

TEST_F(RandomFaultsTest, DamagedCheckpointsAreNamed) {
  const std::string models[] = {"mlp.yaml", "mlp.yaml", "ranks.yaml"};
  const std::string targets[] = {"--plan mlp.yaml", "--plan mlp.yaml", "--mesh dp=2 --layout 'w=[{dp}, {}]'"};
  const std::string checkpoints[] = {"eight", "whole", "ranks"};
  for (std::uint64_t trial = 0; trial < trials(); ++trial) {
    Random random = Random(seed()).fork(trial);
    const std::size_t which = random.below(3);
    fs::remove_all(at("damaged"));
    fs::copy(at(checkpoints[which]), at("damaged"), fs::copy_options::recursive);
    SCOPED_TRACE(
        fmt::format("seed {}, trial {}: {}: {}", seed(), trial, checkpoints[which], damage("damaged", random)));
    const ProgramRun verified = run_program("checkpoint verify damaged", folder_->path(), kLongest);
    expect_clear_end(verified, "damaged");
    EXPECT_EQ(verified.exit_code, 3) << verified.out;
    const std::string uses[] = {fmt::format("simulate {} --steps 1 --load damaged --save target", models[which]),
                                "checkpoint merge damaged target",
                                fmt::format("checkpoint transform damaged target {}", targets[which])};
    const ProgramRun used = run_program(uses[random.below(3)], folder_->path(), kLongest);
    expect_clear_end(used, "damaged");
    if (used.exit_code == 0) {  // other files contain what the damaged one contained
      const ProgramRun right = run_program("checkpoint verify target", folder_->path(), kLongest);
      EXPECT_EQ(right.exit_code, 0) << right.err;
    }
    EXPECT_EQ(fs::exists(at("target")), used.exit_code == 0);
    fs::remove_all(at("target"));
    for (const auto& entry : fs::directory_iterator(folder_->path())) {  // unfinished files
      EXPECT_EQ(entry.path().filename().string().find("target"), std::string::npos) << entry.path();
    }
  }
}

// ---- rank tables

/// Damages the table so that it must be rejected; returns what it did.
std::string damage_table(std::string& table, Random& random) {
  const std::uint64_t rank = random.below(8);
  const std::string own = fmt::format("\"rank_id\": \"{}\"", rank);
  const auto say = [&](const std::string& value) { table = replaced(table, own, "\"rank_id\": " + value); };
  switch (random.below(8)) {
    case 0:
      say(fmt::format("\"{}\"", (rank + 1 + random.below(7)) % 8));
      return fmt::format("rank {} doubled", rank);
    case 1:
      say(any_of<std::string>(random,
                              {"\"8\"", "\"99999999999999999999\"", "\"9223372036854775807\"", "\"-1\"", "\"1e9\""}));
      return fmt::format("rank {} out of range", rank);
    case 2:
      say(any_of<std::string>(random, {"3", "null", "[]", "{}", "true", "\"\"", "\" 1\"", "\"01\"", "\"\\u0000\""}));
      return fmt::format("rank {} of another type", rank);
    case 3:
      table = replaced(table, own, "\"status\": \"1\"");
      return fmt::format("rank {} missing", rank);
    case 4: {
      const std::size_t quote = table.find('"', random.below(table.size() / 2));
      table.insert(quote + 1, any_of<std::string>(random, {"\xff", "\xc0\x80", "\xed\xa0\x80", "\x80"}));
      return "bytes that are no UTF-8";
    }
    case 5:
      table.resize(random.below(table.rfind('}')));
      return "cut short";
    case 6:
      table = replaced(
          table, "\"server_count\": \"1\"",
          any_of<std::string>(random, {"\"server_count\": \"2\"", "\"server_count\": 1", "\"server_count\": null"}));
      return "another count of servers";
    default:
      table.assign(100'000, any_of<char>(random, {'[', '{', '"', '\0'}));
      return "nothing but one character";
  }
}

TEST_F(RandomFaultsTest, DamagedRankTablesAreNamed) {
  const std::string right = bytes_of("configs/rank_table_8pcs.json");
  for (std::uint64_t trial = 0; trial < trials(); ++trial) {
    Random random = Random(seed()).fork(1'000'000 + trial);
    std::string table = right;
    const std::string what = damage_table(table, random);
    SCOPED_TRACE(fmt::format("seed {}, trial {}: {}", seed(), trial, what));
    ASSERT_NE(table, right);
    write(at("table.json"), table);
    const char* const commands[] = {"cluster ascend-910 --rank-table table.json",
                                    "plan mlp.yaml --rank-table table.json --out target"};
    const ProgramRun run = run_program(commands[random.below(2)], folder_->path(), kLongest);
    expect_clear_end(run, "table.json");
    EXPECT_EQ(run.exit_code, 3) << run.out;
    EXPECT_FALSE(fs::exists(at("target")));
  }
}

}  // namespace
}  // namespace shardplan
