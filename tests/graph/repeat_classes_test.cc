#include "graph/repeat_classes.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "graph/folded_names.h"
#include "model/planned_model.h"
#include "model/read_model.h"
#include "tests/support/marked_model.h"

namespace shardplan {
namespace {

OperatorGraph repeating_graph(const std::string& text) { return planned_graph(read_model_text(text, "m.yaml")); }

/// The names of the operators of every class with several members.
std::vector<std::vector<std::string>> shared_classes(const OperatorGraph& graph) {
  const RepeatClasses classes = repeat_classes(graph);
  std::map<RepeatClassId, std::vector<std::string>> members;
  for (const OperatorId op : graph.operators().ids()) {
    members[classes.operators[op]].push_back(graph.operators()[op].name);
  }
  std::vector<std::vector<std::string>> result;
  for (auto& [id, names] : members) {
    if (names.size() > 1) result.push_back(std::move(names));
  }
  return result;
}

TEST(RepeatClassesTest, CopiesOfABlockAndWhatIsDerivedFromThemAreOneClass) {
  // Classes do not depend on names, so names can check the result.
  for (const char* training :
       {"", ", mixed_precision: f16", ", clip_norm: 1", ", micro_batches: 2", ", recompute: [layers.*]"}) {
    SCOPED_TRACE(training);
    const OperatorGraph graph = repeating_graph(layered_model(training));
    const auto classes = shared_classes(graph);
    std::size_t members = 0;
    for (const std::vector<std::string>& names : classes) {
      const bool is_numbered = names[0].starts_with("clip.SquareSum");  // distinguished by what they read alone
      for (const std::string& name : names) EXPECT_TRUE(is_numbered || folded_name(name) == folded_name(names[0]));
      EXPECT_LE(names.size(), 3u);
      members += names.size();
    }
    std::size_t in_layers = 0;
    for (const GraphOperator& op : graph.operators()) in_layers += op.name.find("layers.") != std::string::npos ? 1 : 0;
    // The first layer's input needs no gradient: the operators that compute it in the other layers, and what is next to
    // them, do not occur in all three.
    EXPECT_GE(members, in_layers - 12) << fmt::format("{}", classes);
    EXPECT_LE(members, in_layers + 30);
    const auto has = [&](const std::vector<std::string>& names) {
      return std::find(classes.begin(), classes.end(), names) != classes.end();
    };
    EXPECT_TRUE(has({"layers.0.up.matmul", "layers.1.up.matmul", "layers.2.up.matmul"}));
    EXPECT_TRUE(has({"grad.layers.2.gelu.GeLUGrad", "grad.layers.1.gelu.GeLUGrad", "grad.layers.0.gelu.GeLUGrad"}))
        << fmt::format("{}", classes);
    EXPECT_TRUE(has({"update.layers.0.down.weight.ApplyMomentum", "update.layers.1.down.weight.ApplyMomentum",
                     "update.layers.2.down.weight.ApplyMomentum"}))
        << fmt::format("{}", classes);
  }
}

TEST(RepeatClassesTest, CopiesOfOtherSizesAreOtherClasses) {
  const OperatorGraph graph = repeating_graph(R"(
shardplan: 1
dims: {B: 8, H: 16}
inputs: {x: [B, H]}
blocks:
  layer:
    inputs: {x: [B, n]}
    dims: {n: inferred, m: given}
    operators: {up: {block: nn.Dense, in: x, out_channels: m, has_bias: false}}
operators:
  a: {block: layer, in: x, m: H, repeat: 2}
  b: {block: layer, in: a, m: 2*H}
)");
  EXPECT_EQ(shared_classes(graph), (std::vector<std::vector<std::string>>{{"a.0.up.matmul", "a.1.up.matmul"}}));
}

TEST(RepeatClassesTest, OneCopyOfABlockIsNone) {
  const auto has_copies_with = [](const char* layers) {
    std::string text = layered_model("");
    text.replace(text.find("L: 3"), 4, layers);
    const OperatorGraph graph = repeating_graph(text);
    return has_copies(graph, repeat_classes(graph));
  };
  EXPECT_TRUE(has_copies_with("L: 2"));
  EXPECT_FALSE(has_copies_with("L: 1"));
}

TEST(RepeatClassesTest, ParametersAndStatesFollowTheirReaders) {
  const OperatorGraph graph = repeating_graph(layered_model(", mixed_precision: f16"));
  const RepeatClasses classes = repeat_classes(graph);
  const auto class_of = [&](const char* name) { return classes.tensors[*graph.find_tensor(name)]; };
  EXPECT_EQ(class_of("layers.0.up.weight"), class_of("layers.2.up.weight"));
  EXPECT_NE(class_of("layers.0.up.weight"), class_of("layers.0.down.weight"));
  EXPECT_EQ(class_of("layers.1.up.weight.master"), class_of("layers.2.up.weight.master"));
  EXPECT_EQ(class_of("layers.1.up.weight.momentum"), class_of("layers.0.up.weight.momentum"));
  EXPECT_NE(class_of("layers.1.up.weight.momentum"), class_of("layers.1.up.weight.master"));
  EXPECT_NE(class_of("x"), class_of("y"));
}

}  // namespace
}  // namespace shardplan
