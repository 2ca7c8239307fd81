#include "graph/operator_graph.h"

#include <gtest/gtest.h>

namespace shardplan {
namespace {

const TensorType kType{{4, 8}, DataType::kF32};

OperatorType type_called(const std::string& name) {
  OperatorType type;
  type.name = name;
  return type;
}

/// An operation with `operands` equal operands and one result, made without the catalogue.
Operation operation_of(const OperatorType& type, std::size_t operands) {
  Operation operation;
  operation.type = &type;
  operation.operands.assign(operands, kType);
  operation.results = {kType};
  return operation;
}

TensorId input(OperatorGraphBuilder& builder, const std::string& name) {
  GraphTensor tensor;
  tensor.name = name;
  tensor.type = kType;
  tensor.kind = TensorKind::kInput;
  return builder.add_tensor(std::move(tensor));
}

OperatorId op(OperatorGraphBuilder& builder, const OperatorType& type, const std::string& name,
              std::vector<TensorId> operands) {
  GraphOperator added;
  added.name = name;
  added.operands = std::move(operands);
  const std::size_t count = added.operands.size();
  return builder.add_operator(std::move(added), operation_of(type, count));
}

std::string order_of(const OperatorGraph& graph) {
  std::string text;
  for (const GraphOperator& each : graph.operators()) text += (text.empty() ? "" : " ") + each.name;
  return text;
}

TEST(OperatorGraphTest, SortsByDependencyThenByOrderOfAddition) {
  const OperatorType type = type_called("Add");
  OperatorGraphBuilder builder("g");
  const TensorId x = input(builder, "x");
  const OperatorId late = op(builder, type, "late", {x, x});
  const OperatorId b = op(builder, type, "b", {x});
  const OperatorId a = op(builder, type, "a", {x});
  builder.op(late).operands[1] = builder.op(a).results[0];
  const OperatorGraph graph = builder.build();
  EXPECT_EQ(order_of(graph), "b a late");
  EXPECT_EQ(graph.operators()[*graph.find_operator("late")].operands[1], *graph.find_tensor("a"));
  EXPECT_EQ(graph.tensor(*graph.find_tensor("a")).producer, graph.find_operator("a"));
  EXPECT_EQ(graph.tensor(*graph.find_tensor("x")).readers,
            (std::vector<Reader>{
                {*graph.find_operator("b"), 0}, {*graph.find_operator("a"), 0}, {*graph.find_operator("late"), 0}}));
  EXPECT_FALSE(graph.find_operator("nobody"));
  (void)b;
}

TEST(OperatorGraphTest, HoldsEqualOperationsOnce) {
  const OperatorType type = type_called("Add");
  const OperatorType other = type_called("Mul");
  OperatorGraphBuilder builder("g");
  const TensorId x = input(builder, "x");
  op(builder, type, "a", {x});
  op(builder, type, "b", {x});
  op(builder, type, "c", {x, x});
  op(builder, other, "d", {x});
  const OperatorGraph graph = builder.build();
  EXPECT_EQ(graph.operations().size(), 3u);
  EXPECT_EQ(graph.operators()[OperatorId(0)].operation, graph.operators()[OperatorId(1)].operation);
}

TEST(OperatorGraphTest, NamesTheOperatorsOfACycle) {
  const OperatorType type = type_called("Add");
  OperatorGraphBuilder builder("g");
  const TensorId x = input(builder, "x");
  op(builder, type, "before", {x});
  const OperatorId a = op(builder, type, "a", {x});
  const OperatorId b = op(builder, type, "b", {builder.op(a).results[0]});
  op(builder, type, "after", {builder.op(b).results[0]});
  builder.op(a).operands[0] = builder.op(b).results[0];
  try {
    builder.build();
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "error: these operators wait for each other, no order is possible: a, b");
  }
}

TEST(OperatorGraphTest, GoesOnFromAFinishedGraph) {
  const OperatorType type = type_called("Add");
  OperatorGraphBuilder builder("g");
  const TensorId x = input(builder, "x");
  op(builder, type, "a", {x});
  const OperatorGraph first = builder.build();
  OperatorGraphBuilder next(first);
  op(next, type, "b", {*first.find_tensor("a")});
  const OperatorGraph graph = next.build();
  EXPECT_EQ(order_of(graph), "a b");
  EXPECT_EQ(graph.find_tensor("a"), first.find_tensor("a"));
  EXPECT_EQ(graph.operations().size(), 1u);
}

}  // namespace
}  // namespace shardplan
