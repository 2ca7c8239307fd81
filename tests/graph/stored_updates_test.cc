#include "graph/stored_updates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "model/planned_model.h"
#include "model/read_model.h"

namespace shardplan {
namespace {

/// `more`: further lines, indented as operators.
Model cached(const std::string& more = "") {
  return read_model_text(
      "shardplan: 1\n"
      "inputs: {x: [8, 2, 1, 4], at: {shape: [8], dtype: i32}}\n"
      "parameters: {cache: {shape: [8, 2, 16, 4], requires_grad: false}}\n"
      "operators:\n"
      "  keys:   {op: KVCacheScatterUpdate, in: [cache, at, x]}\n"
      "  scores: {op: MatMul, in: [x, keys], transpose_b: true}\n" +
          more,
      "m.yaml");
}

TEST(StoredUpdatesTest, ACacheIsItsNewValueInInference) {
  const OperatorGraph graph = planned_graph(cached(), 8, 1);
  const TensorId cache = *graph.find_tensor("cache");
  EXPECT_EQ(graph.tensor(*graph.find_tensor("keys")).updates, cache);
  EXPECT_TRUE(is_cache(graph, cache));
  EXPECT_FALSE(is_cache(graph, *graph.find_tensor("x")));
}

TEST(StoredUpdatesTest, KeysAndValuesThatNothingTrainsAreCaches) {
  const auto is_a_cache = [](const std::string& requires_grad) {
    const OperatorGraph graph =
        planned_graph(read_model_text("shardplan: 1\ninputs: {q: [2, 4, 8, 4]}\n"
                                      "parameters:\n"
                                      "  keys:   {shape: [2, 4, 8, 4], requires_grad: " +
                                          requires_grad +
                                          "}\n"
                                          "  values: {shape: [2, 4, 8, 4], requires_grad: " +
                                          requires_grad +
                                          "}\n"
                                          "operators: {y: {op: FlashAttention, in: [q, keys, values]}}\n",
                                      "m.yaml"),
                      8, 1);
    EXPECT_EQ(is_cache(graph, *graph.find_tensor("keys")), is_cache(graph, *graph.find_tensor("values")));
    return is_cache(graph, *graph.find_tensor("keys"));
  };
  EXPECT_TRUE(is_a_cache("false"));
  EXPECT_FALSE(is_a_cache("true"));  // a learned prefix
}

TEST(StoredUpdatesTest, MovingStatisticsStayAsTheyAreInInference) {
  const std::string text =
      "shardplan: 1\ninputs: {x: [8, 4, 2, 2]}\noperators:\n  bn: {block: nn.BatchNorm2d, in: x}\n"
      "  y: {op: ReduceMean, in: bn}\nloss: y\n";
  const auto num_updates = [](const Model& model) {
    const OperatorGraph graph = planned_graph(model, 1, 1);
    return std::ranges::count_if(graph.tensors(), [&](const GraphTensor& tensor) {
      return tensor.updates && !graph.tensor(*tensor.updates).state_of &&
             graph.operators()[*tensor.producer].pass == Pass::kForward;
    });
  };
  EXPECT_EQ(num_updates(read_model_text(text, "m.yaml")), 0);
  EXPECT_EQ(num_updates(read_model_text(text + "training: {optimizer: sgd}\n", "m.yaml")), 2);
}

TEST(StoredUpdatesTest, OnlyWhatIsStoredAndNotReadElsewhereIsOverwritten) {
  const auto error_of = [](const Model& model) {
    try {
      (void)planned_graph(model, 8, 1);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(error_of(cached("  old:    {op: ReLU, in: cache}\n")),
            "m.yaml:5:3: error: keys: updates cache, but 2 operators read it; expected one");
  EXPECT_EQ(error_of(cached("  again:  {op: KVCacheScatterUpdate, in: [keys, at, x]}\n")),
            "m.yaml:7:3: error: again: overwrites keys; expected a parameter with requires_grad: false, whose values "
            "are kept "
            "from step to step");
}

}  // namespace
}  // namespace shardplan
