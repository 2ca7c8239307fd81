#include "model/comm_fusion_options.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace shardplan {
namespace {

/// The meaning of `comm_fusion: {TEXT}`, and its errors as one text.
struct Answer {
  CommFusions fusions;
  std::string faults;
};
Answer read_fusion(const std::string& text) {
  std::vector<Diagnostic> faults;
  const YamlDocument document = parse_yaml(text, "m.yaml", faults);
  Answer answer;
  answer.fusions = read_comm_fusion(OptionReader(document, document.root, "parallel", parallel_keys(), faults));
  if (!faults.empty()) answer.faults = InputError(faults).what();
  return answer;
}
Answer read_map(const std::string& text) { return read_fusion("comm_fusion: {" + text + "}"); }

using Mode = CommFusion::Mode;

TEST(CommFusionOptionsTest, ReadsTheModes) {
  const CommFusions sized = read_map("openstate: true, allreduce: {mode: size, config: 32}").fusions;
  EXPECT_EQ(sized.all_reduce, (CommFusion{Mode::kSize, Bytes{32} << 20, {}}));
  EXPECT_EQ(sized.all_gather.mode, Mode::kBest);
  ASSERT_TRUE(sized.place);
  EXPECT_EQ(sized.place->column, 14);
  const CommFusions automatic = read_map("allreduce: {mode: auto, config: None}").fusions;
  EXPECT_EQ(automatic.all_reduce, (CommFusion{Mode::kSize, Bytes{64} << 20, {}}));
  EXPECT_EQ(read_map("allreduce: {mode: index, config: [20, 35]}").fusions.all_reduce,
            (CommFusion{Mode::kIndex, Bytes{64} << 20, {20, 35}}));
  EXPECT_EQ(read_map("reducescatter: {mode: best}").fusions.reduce_scatter.mode, Mode::kBest);
  EXPECT_EQ(read_map("openstate: true").fusions.reduce_scatter.mode, Mode::kSize);
  const CommFusions none = read_map("openstate: False").fusions;
  for (const CommFusion& fusion : {none.all_reduce, none.all_gather, none.reduce_scatter}) {
    EXPECT_EQ(fusion.mode, Mode::kNone);
  }
  for (const char* nothing : {"level: 0", "comm_fusion: null", "comm_fusion: None"}) {
    const Answer answer = read_fusion(nothing);
    EXPECT_EQ(answer.faults, "") << nothing;
    EXPECT_FALSE(answer.fusions.place) << nothing;
    EXPECT_EQ(answer.fusions.all_reduce.mode, Mode::kBest) << nothing;
  }
}

TEST(CommFusionOptionsTest, RefusesWhatMindSporeRefuses) {
  const auto fault = [](const std::string& fusion) { return read_map(fusion).faults; };
  EXPECT_EQ(
      fault("allgather: {mode: index, config: [20, 35]}"),
      "m.yaml:1:33: error: parallel: comm_fusion: allgather: mode index is for allreduce only; expected auto, size "
      "or best");
  EXPECT_EQ(
      fault("allreduce: {mode: auto, config: 64}"),
      "m.yaml:1:47: error: parallel: comm_fusion: allreduce: config is '64'; expected null: mode auto takes 64 MB");
  EXPECT_EQ(fault("allreduce: {mode: best, config: 64}"),
            "m.yaml:1:47: error: parallel: comm_fusion: allreduce: config is '64'; expected null: mode best finds the "
            "sizes");
  EXPECT_EQ(fault("allreduce: {mode: fast}"),
            "m.yaml:1:33: error: parallel: comm_fusion: allreduce: mode is 'fast'; expected auto, size, index or best");
  EXPECT_EQ(
      fault("allreduce: {config: 4}"),
      "m.yaml:1:15: error: parallel: comm_fusion: allreduce: mode is missing; expected auto, size, index or best");
  EXPECT_EQ(fault("openstate: 1"),
            "m.yaml:1:26: error: parallel: comm_fusion: openstate is '1'; expected true or false");
  EXPECT_EQ(fault("openstate: false, allgather: {mode: auto}"),
            "m.yaml:1:26: error: parallel: comm_fusion: openstate: false joins nothing, but a kind says how\n"
            "    keep one of them");
  EXPECT_EQ(fault("broadcast: {mode: auto}"),
            "m.yaml:1:15: error: parallel: comm_fusion: unknown key 'broadcast'\n"
            "    openstate, allreduce, allgather or reducescatter");
  EXPECT_EQ(read_fusion("comm_fusion: 7").faults,
            "m.yaml:1:14: error: parallel: comm_fusion is '7'; expected a map as in {allreduce: {mode: size, config: "
            "32}}");
  for (const char* config : {"[35, 20]", "20", "[]", "[20, 20]", "[-1]"}) {
    const std::string text = fault(std::string("allreduce: {mode: index, config: ") + config + "}");
    EXPECT_TRUE(text.starts_with("m.yaml:1:48: error: parallel: comm_fusion: allreduce: config is ")) << text;
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 0) << text;
  }
  for (const char* config : {"-3", "\"32\"", "[32]", "1.5"}) {
    const std::string text = fault(std::string("allreduce: {mode: size, config: ") + config + "}");
    EXPECT_NE(text.find("expected a whole number of MB, as in config: 32"), std::string::npos) << text;
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 0) << text;
  }
}

// One error discards all of it.
TEST(CommFusionOptionsTest, AnyFaultLeavesTheDefaults) {
  const Answer answer = read_map("allreduce: {mode: size, config: 32}, allgather: {mode: fast}");
  EXPECT_NE(answer.faults, "");
  EXPECT_EQ(answer.fusions.all_reduce, CommFusion());
  EXPECT_FALSE(answer.fusions.place);
}

}  // namespace
}  // namespace shardplan
