#include "report/text/strategy_text.h"

#include <gtest/gtest.h>

#include "tests/support/operations.h"

namespace shardplan {
namespace {

const DeviceMesh kMesh = DeviceMesh::parse("pcie=2, hccs=4");

Strategy strategy_of(const Operation& operation,
                     const std::vector<std::pair<std::string, std::vector<AxisRef>>>& cuts) {
  std::vector<std::vector<AxisRef>> factors(operation.rule.factors.size());
  for (const auto& [factor, axes] : cuts) factors[*operation.rule.find(factor)] = axes;
  Strategy strategy;
  for (std::vector<AxisRef>& factor : factors) strategy.factors.push_back(std::move(factor));
  return strategy;
}

const AxisRef kPcie{0, 1, 2};
const AxisRef kHccs{1, 1, 4};

// Tuples are MindSpore's: the pieces of a tuple take consecutive ranks.
TEST(StrategyTextTest, TuplesAreForRanksInARow) {
  const Operation matmul = operation_of("MatMul", {}, {{8, 16}, {16, 32}});
  const auto text = [&](const std::vector<std::pair<std::string, std::vector<AxisRef>>>& cuts) {
    const Strategy strategy = strategy_of(matmul, cuts);
    const auto in = input_tuples(matmul, strategy, kMesh);
    const auto out = output_tuples(matmul, strategy, kMesh);
    EXPECT_EQ(in.has_value(), out.has_value());
    return in ? tuple_text(*in) + " -> " + tuple_text(*out) : "none";
  };
  EXPECT_EQ(text({}), "((1, 1), (1, 1)) -> ((1, 1))");
  EXPECT_EQ(text({{"m", {kPcie}}, {"n", {kHccs}}}), "((2, 1), (1, 4)) -> ((2, 4))");
  EXPECT_EQ(text({{"m", {kHccs}}, {"n", {kPcie}}}), "none");  // hccs before pcie
  EXPECT_EQ(text({{"m", {kHccs}}}), "none");                  // the first pieces of the ranks are pcie's
  EXPECT_EQ(text({{"m", {kPcie, {1, 1, 2}}}}), "((4, 1), (1, 1)) -> ((4, 1))");
  EXPECT_EQ(text({{"m", {kPcie, {1, 2, 2}}}}), "none");
  EXPECT_EQ(text({{"m", {kPcie}}, {"k", {kHccs}}}), "((2, 4), (4, 1)) -> ((2, 1))");
}

TEST(StrategyTextTest, WordsNameFactorsAndAxes) {
  const Operation matmul = operation_of("MatMul", {}, {{8, 16}, {16, 32}});
  EXPECT_EQ(strategy_words(matmul, strategy_of(matmul, {}), kMesh), "all repeated");
  EXPECT_EQ(strategy_words(matmul, strategy_of(matmul, {{"m", {kPcie, {1, 1, 2}}}, {"n", {{1, 2, 2}}}}), kMesh),
            "m over pcie, hccs:(1)2, n over hccs:(2)2");
  Strategy partial = strategy_of(matmul, {{"m", {kPcie}}});
  partial.partial = {kHccs};
  EXPECT_EQ(strategy_words(matmul, partial, kMesh), "m over pcie, partial over hccs");
  partial.partial = {{1, 1, 2}, {1, 2, 2}};
  EXPECT_EQ(strategy_words(matmul, partial, kMesh), "m over pcie, partial over hccs") << "the parts are the whole axis";
  EXPECT_EQ(input_tuples(matmul, partial, kMesh), std::nullopt);
  EXPECT_EQ(axes_text({}, kMesh), "");
}

TEST(StrategyTextTest, EntriesAreWrittenAsTheUserDid) {
  StrategyEntry tuple{StrategyEntry::Kind::kTuple, {1, 8}, "", {}};
  StrategyEntry layout{StrategyEntry::Kind::kLayout, {}, "[{dp}, {}]", {}};
  StrategyEntry none{StrategyEntry::Kind::kDataParallel, {}, "", {}};
  StrategyEntry follow;
  EXPECT_EQ(entry_text(tuple), "(1, 8)");
  EXPECT_EQ(entry_text(layout), "[{dp}, {}]");
  EXPECT_EQ(entry_text(none), "None");
  EXPECT_EQ(entry_text(follow), "()");
  EXPECT_EQ(entries_text({tuple, none}), "((1, 8), None)");
  EXPECT_EQ(entries_text({}), "()");
}

TEST(StrategyTextTest, LayoutsAreDeviceMatricesWhereMindSporeHasThem) {
  const auto text = [](const char* layout) { return device_matrix_text(parse_layout(layout, kMesh), kMesh); };
  EXPECT_EQ(text("[{}, {hccs}]"), "{device_matrix: (2, 4), tensor_map: (-1, 0)}");
  EXPECT_EQ(text("[{pcie}, {hccs}]"), "{device_matrix: (2, 4), tensor_map: (1, 0)}");
  EXPECT_EQ(text("[{pcie, hccs}, {}]"), "{device_matrix: (2, 4), tensor_map: ((1, 0), -1)}");
  EXPECT_EQ(text("[{}, {}] unreduced={pcie}"), "{device_matrix: (2, 4), tensor_map: (-1, -1)}");  // its shards alone
  EXPECT_EQ(text("[(2:{}, 4:{hccs}), {}]"), "\"[(2:{}, 4:{hccs}), {}]\"");
}

}  // namespace
}  // namespace shardplan
