#include "model/blocks/built_in_blocks.h"

#include <gtest/gtest.h>

#include "tests/model/read_text.h"

namespace shardplan {
namespace {

std::string expanded(const std::string& inputs, const std::string& call) {
  return faults_of("shardplan: 1\ninputs: {" + inputs + "}\noperators: {a: {" + call + "}}\n") +
         outline(read("shardplan: 1\ninputs: {" + inputs + "}\noperators: {a: {" + call + "}}\n").graph);
}

TEST(BuiltInBlocksTest, BlocksAreWhatTheirOperatorsMake) {
  EXPECT_EQ(expanded("x: [8, 4]", "block: nn.Dense, in: x, out_channels: 6"),
            "a.matmul = MatMul(x, a.weight) [8, 6]\na.bias_add = BiasAdd(a.matmul, a.bias) [8, 6]\n");
  EXPECT_EQ(expanded("x: [2, 3, 4]", "block: nn.Dense, in: x, out_channels: 6, has_bias: false"),
            "a.matmul = MatMul(x, a.weight) [2, 3, 6]\n");
  EXPECT_EQ(expanded("x: [2, 4, 8, 8]",
                     "block: nn.Conv2d, in: x, out_channels: 6, kernel_size: 3, stride: 2, group: 2, has_bias: true"),
            "a.conv2d = Conv2D(x, a.weight) [2, 6, 4, 4]\na.bias_add = BiasAdd(a.conv2d, a.bias) [2, 6, 4, 4]\n");
  EXPECT_EQ(expanded("x: [2, 4, 8, 8]", "block: nn.BatchNorm2d, in: x"),
            "a.batch_norm = BatchNorm(x, a.gamma, a.beta, a.moving_mean, a.moving_variance) [2, 4, 8, 8]\n");
  EXPECT_EQ(expanded("x: [2, 4]", "block: nn.LayerNorm, in: x"),
            "a.layer_norm = LayerNorm(x, a.gamma, a.beta) [2, 4]\n");
  EXPECT_EQ(expanded("x: [2, 4]", "block: nn.RMSNorm, in: x"), "a.rms_norm = RmsNorm(x, a.gamma) [2, 4]\n");
  EXPECT_EQ(expanded("x: {shape: [3], dtype: i32}", "block: nn.Embedding, in: x, vocab_size: 7, embedding_size: 5"),
            "a.gather = Gather(a.embedding_table, x) [3, 5]\n");
  const std::string table = "x: {shape: [3], dtype: i32}", sizes = "in: x, vocab_size: 7, embedding_size: 5";
  const auto rows_of = [&](const std::string& options) {
    const std::string block = "block: nn.Embedding, " + sizes + ", sparse: true" + options;
    const Model model = read("shardplan: 1\ndtype: bf16\ninputs: {" + table + "}\noperators: {a: {" + block + "}}\n");
    EXPECT_EQ(outline(model.graph), "a.gather = SparseGatherV2(a.embedding_table, x) [3, 5]\n");
    return model.graph.tensor(*model.graph.find_tensor("a.gather")).type.dtype;
  };
  EXPECT_EQ(rows_of(""), DataType::kBF16);
  EXPECT_EQ(rows_of(", dtype: f32"), DataType::kF32);
  EXPECT_EQ(faults_of("shardplan: 1\ninputs: {" + table + "}\noperators: {a: {block: nn.Embedding, " + sizes +
                      ", dtype: i8}}\n"),
            "m.yaml:3:86: error: a: dtype is 'i8'; expected f64, f32, f16 or bf16");
  EXPECT_EQ(expanded("x: [3, 5], y: {shape: [3], dtype: i32}",
                     "block: nn.SoftmaxCrossEntropyWithLogits, in: [x, y], sparse: true, reduction: mean"),
            "a.cross_entropy = SparseSoftmaxCrossEntropyWithLogits(x, y) []\n");
  EXPECT_EQ(expanded("x: [3, 5], y: {shape: [3], dtype: i32}",
                     "block: nn.SoftmaxCrossEntropyWithLogits, in: [x, y], sparse: true, reduction: sum"),
            "a.one_hot = OneHot(y) [3, 5]\na.cross_entropy = SoftmaxCrossEntropyWithLogits(x, a.one_hot) [3]\n"
            "a.sum = ReduceSum(a.cross_entropy) []\n");
  EXPECT_EQ(expanded("x: [3, 5], y: [3, 5]", "block: nn.SoftmaxCrossEntropyWithLogits, in: [x, y], reduction: mean"),
            "a.cross_entropy = SoftmaxCrossEntropyWithLogits(x, y) [3]\na.mean = ReduceMean(a.cross_entropy) []\n");
  EXPECT_EQ(expanded("x: [3, 5], y: {shape: [3], dtype: i32}", "block: nn.CrossEntropyLoss, in: [x, y]"),
            expanded("x: [3, 5], y: {shape: [3], dtype: i32}",
                     "block: nn.SoftmaxCrossEntropyWithLogits, in: [x, y], sparse: true, reduction: mean"));
  EXPECT_EQ(expanded("x: [3, 5], y: [3, 5]", "block: nn.CrossEntropyLoss, in: [x, y], reduction: none"),
            "a.cross_entropy = SoftmaxCrossEntropyWithLogits(x, y) [3]\n");
  EXPECT_EQ(faults_of("shardplan: 1\ninputs: {x: [3, 5, 2], y: [3, 5, 2]}\n"
                      "operators: {a: {block: nn.CrossEntropyLoss, in: [x, y]}}\n"),
            "m.yaml:3:49: error: a: the logits are [3, 5, 2]; expected [N, C]");
}

TEST(BuiltInBlocksTest, TheirNamesAreSorted) {
  const std::vector<BuiltInBlock>& blocks = built_in_blocks();
  for (std::size_t i = 1; i < blocks.size(); ++i) EXPECT_LT(blocks[i - 1].name, blocks[i].name);
  EXPECT_EQ(find_built_in_block("nn.Dense")->num_inputs, 1u);
  EXPECT_EQ(find_built_in_block("nn.Dens"), nullptr);
}

}  // namespace
}  // namespace shardplan
