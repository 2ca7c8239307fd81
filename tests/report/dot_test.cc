#include "report/plan/dot.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "tests/support/hand_plan.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

TEST(DotTest, FoldsRepeatsAndNamesWhatMoves) {
  const std::string text = dot_graph(tiny_plan());
  expect_golden("report/tiny.dot", text);
  expect_has(text, "layers.*.up.matmul\\nMatMul, 2 x");
  expect_has(text, "all_reduce");
}

TEST(DotTest, NamesAreQuoted) {
  HandGraph graph("\"]; evil [");
  const TensorId x = graph.input("x", {8, 8});
  const Plan plan = hand_plan(graph.build(graph.op("a\"\\b", "ReLU", {x})), {});
  expect_has(dot_graph(plan), R"(digraph "\"]; evil [" {)");
  expect_has(dot_graph(plan), R"("a\"\\b" [label="a\"\\b\nReLU)");
}

}  // namespace
}  // namespace shardplan
