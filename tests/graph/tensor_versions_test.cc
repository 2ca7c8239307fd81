#include "graph/tensor_versions.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "model/planned_model.h"
#include "model/read_model.h"

namespace shardplan {
namespace {

const char* name_of(TensorVersion::Kind kind) {
  switch (kind) {
    case TensorVersion::Kind::kProduced:
      return "produced";
    case TensorVersion::Kind::kStored:
      return "stored";
    case TensorVersion::Kind::kRequested:
      return "requested";
    case TensorVersion::Kind::kDelivered:
      return "delivered";
    case TensorVersion::Kind::kKept:
      return "kept";
    case TensorVersion::Kind::kOutput:
      return "output";
    case TensorVersion::Kind::kUpdated:
      return "updated";
  }
  return "";
}

/// One line per version of a tensor: "delivered [1, 3) to b, c".
std::string versions_of(const OperatorGraph& graph, const std::string& tensor) {
  const TensorVersions versions = tensor_versions(graph);
  std::string text;
  for (const VersionId id : versions.all.ids()) {
    const TensorVersion& version = versions.all[id];
    if (graph.tensor(version.tensor).name != tensor) continue;
    std::vector<std::string> readers;
    for (const Reader& reader : version.readers) readers.push_back(graph.operators()[reader.op].name);
    text += fmt::format("{} [{}, {}){}{}\n", name_of(version.kind), version.begin, version.end,
                        readers.empty() ? "" : " to ", fmt::join(readers, ", "));
  }
  return text;
}

TEST(TensorVersionsTest, SeveralReadersAreDeliveredToAndOneReadsWhatIsThere) {
  const OperatorGraph graph = read_model_text(
                                  "shardplan: 1\ninputs: {x: [4, 4]}\nparameters: {w: [4, 4]}\noperators:\n"
                                  "  a: {op: MatMul, in: [x, w], out_strategy: [[1, 1]]}\n"
                                  "  b: {op: ReLU, in: a}\n"
                                  "  c: {op: Add, in: [a, b]}\n",
                                  "m.yaml")
                                  .graph;
  EXPECT_EQ(versions_of(graph, "x"), "stored [0, 0) to a\n");  // a holds it in its own layout while it runs
  EXPECT_EQ(versions_of(graph, "w"), "stored [0, 4) to a\n");  // always in memory
  EXPECT_EQ(versions_of(graph, "a"), "produced [0, 1)\nrequested [1, 2)\ndelivered [1, 2) to b, c\n");
  EXPECT_EQ(versions_of(graph, "b"), "produced [1, 2) to c\n");
  EXPECT_EQ(versions_of(graph, "c"), "produced [2, 3)\noutput [3, 4)\n");
}

TEST(TensorVersionsTest, WhatTheBackwardPassReadsIsKept) {
  const Model model = read_model_text(
      "shardplan: 1\ninputs: {x: [4, 4]}\nparameters: {w: [4, 4]}\noperators:\n"
      "  a: {op: MatMul, in: [x, w]}\n"
      "  b: {op: Square, in: a}\n"
      "  loss: {op: ReduceMean, in: b}\nloss: loss\ntraining: {optimizer: sgd}\n",
      "m.yaml");
  const OperatorGraph graph = planned_graph(model);
  std::string order;
  for (const GraphOperator& op : graph.operators()) order += op.name + " ";
  ASSERT_EQ(order,
            "a b loss grad.loss.Mul grad.loss.Reshape grad.loss.BroadcastTo grad.b.SquareGrad grad.a.MatMul "
            "update.w.ApplyGradientDescent ");
  EXPECT_EQ(versions_of(graph, "x"), "stored [0, 1)\ndelivered [0, 1) to a\nkept [1, 7) to grad.a.MatMul\n");
  EXPECT_EQ(versions_of(graph, "a"), "produced [0, 1)\ndelivered [1, 2) to b\nkept [2, 6) to grad.b.SquareGrad\n");
  EXPECT_EQ(versions_of(graph, "b"), "produced [1, 2) to loss\n");
  EXPECT_EQ(versions_of(graph, "w"), "stored [0, 10) to update.w.ApplyGradientDescent, a\n");
  EXPECT_EQ(versions_of(graph, "grad.a.MatMul"), "produced [7, 8) to update.w.ApplyGradientDescent\n");
  // The new value overwrites the old one.
  EXPECT_EQ(versions_of(graph, "update.w.ApplyGradientDescent"), "produced [8, 8)\nupdated [9, 9)\n");
}

// What only updates read is in their layout from the operator behind its producer on.
TEST(TensorVersionsTest, AGradientWaitsForItsUpdateAsThatReadsIt) {
  struct Case {
    const char *operators, *training;
    const char *tensor, *versions;
    bool is_taken_early;
  };
  constexpr char kTwo[] = "  a: {op: MatMul, in: [x, v]}\n  b: {op: MatMul, in: [a, w]}\n";
  // grad.b.MatMul is that of a, grad.b.MatMul_1 that of w.
  const Case cases[] = {
      {kTwo, "", "grad.b.MatMul_1", "produced [7, 8) to update.w.ApplyGradientDescent\n", true},
      {kTwo, "", "grad.b.MatMul", "produced [6, 8) to grad.a.MatMul\n", false},
      // Two readers: the norm of all gradients and its own scaling.
      {kTwo, ", clip_norm: 1", "grad.b.MatMul_1",
       "produced [7, 8)\ndelivered [8, 14) to clip.SquareSum_1, clip.w.Mul\n", false},
      // A sum over micro-batches is complete when the loop ends.
      {kTwo, ", micro_batches: 2", "grad.w.Accumulate", "produced [0, 13) to update.w.ApplyGradientDescent\n", false},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(fmt::format("{} {}", one.training, one.tensor));
    const OperatorGraph graph = planned_graph(read_model_text(
        fmt::format("shardplan: 1\ndims: {{B: 4}}\ninputs: {{x: [B, 4]}}\nparameters: {{v: [4, 4], w: [4, "
                    "4]}}\noperators:\n{}  loss: {{op: ReduceMean, in: b}}\nloss: loss\n"
                    "training: {{optimizer: sgd{}}}\n",
                    one.operators, one.training),
        "m.yaml"));
    std::string order;
    for (const GraphOperator& op : graph.operators()) order += op.name + " ";
    SCOPED_TRACE(order);
    EXPECT_EQ(versions_of(graph, one.tensor), one.versions);
    const TensorVersions versions = tensor_versions(graph);
    for (const TensorVersion& version : versions.all) {
      if (graph.tensor(version.tensor).name == one.tensor) {
        EXPECT_EQ(version.is_taken_early, one.is_taken_early);
      }
    }
  }
}

// Whatever the user says, the tensor is delivered to the reader in whose layout it may be kept.
TEST(TensorVersionsTest, WhatAnActivationIsKeptAsIsTheUsers) {
  using Keeping = TensorVersion::Keeping;
  struct Case {
    const char* beside;  // b
    const char* parallel;
    Keeping keeping;
  };
  constexpr char kVersions[] = "produced [0, 1)\ndelivered [1, 2) to b\nkept [2, 6) to grad.b.SquareGrad\n";
  const Case cases[] = {
      {"", "", Keeping::kFree},
      {", gather_again: true", "", Keeping::kAsProduced},
      {", gather_again: false", "", Keeping::kAsRead},
      {"", "gather_again: false, ", Keeping::kAsRead},
      {", gather_again: true", "gather_again: false, ", Keeping::kAsProduced},
      {", in_strategy: [[1, 1]]", "", Keeping::kFree},
  };
  for (const Case& one : cases) {
    const std::string text = fmt::format(
        "shardplan: 1\ninputs: {{x: [4, 4]}}\nparameters: {{w: [4, 4]}}\noperators:\n"
        "  a: {{op: MatMul, in: [x, w]}}\n"
        "  b: {{op: Square, in: a{}}}\n"
        "  loss: {{op: ReduceMean, in: b}}\nloss: loss\ntraining: {{optimizer: sgd}}\n"
        "parallel: {{{}device_num: 4}}\n",
        one.beside, one.parallel);
    SCOPED_TRACE(text);
    const OperatorGraph graph = planned_graph(read_model_text(text, "m.yaml"));
    EXPECT_EQ(versions_of(graph, "a"), kVersions);
    const TensorVersions versions = tensor_versions(graph);
    for (const VersionId id : versions.all.ids()) {
      const TensorVersion& version = versions.all[id];
      if (version.kind != TensorVersion::Kind::kKept || graph.tensor(version.tensor).name != "a") continue;
      EXPECT_EQ(version.keeping, one.keeping);
      EXPECT_EQ(graph.operators()[kept_for(graph, versions, id).op].name, "b");
      EXPECT_EQ(versions.all[produced_before(versions, id)].kind, TensorVersion::Kind::kProduced);
    }
  }
}

// Of the readers that keep it as delivered, the last one counts; one that gathers it again is enough.
TEST(TensorVersionsTest, OfSeveralReadersTheOneThatSaysSoDecides) {
  using Keeping = TensorVersion::Keeping;
  struct Case {
    const char *b, *c, *d;
    Keeping keeping;
    const char* reader;
  };
  constexpr char kNot[] = ", gather_again: false", kAgain[] = ", gather_again: true";
  const Case cases[] = {
      {"", "", "", Keeping::kFree, ""},
      {"", kNot, "", Keeping::kAsRead, "c"},
      {"", "", kNot, Keeping::kAsRead, "d"},
      {kNot, "", "", Keeping::kAsRead, "b"},
      {kNot, kNot, "", Keeping::kAsRead, "c"},
      {kNot, kNot, kAgain, Keeping::kAsProduced, ""},
      {kAgain, kNot, "", Keeping::kAsProduced, ""},
      {"", "", kAgain, Keeping::kAsProduced, ""},
  };
  for (const Case& one : cases) {
    const OperatorGraph graph = planned_graph(
        read_model_text(fmt::format("shardplan: 1\ninputs: {{x: [4, 4]}}\nparameters: {{w: [4, 4]}}\noperators:\n"
                                    "  a: {{op: MatMul, in: [x, w]}}\n"
                                    "  b: {{op: Square, in: a{}}}\n"
                                    "  c: {{op: Square, in: a{}}}\n"
                                    "  d: {{op: Square, in: a{}}}\n"
                                    "  e: {{op: Add, in: [b, c]}}\n"
                                    "  f: {{op: Add, in: [e, d]}}\n"
                                    "  loss: {{op: ReduceMean, in: f}}\nloss: loss\ntraining: {{optimizer: sgd}}\n"
                                    "parallel: {{device_num: 4}}\n",
                                    one.b, one.c, one.d),
                        "m.yaml"));
    SCOPED_TRACE(fmt::format("b{} c{} d{}", one.b, one.c, one.d));
    const TensorVersions versions = tensor_versions(graph);
    std::size_t kept = 0;
    for (const VersionId id : versions.all.ids()) {
      const TensorVersion& version = versions.all[id];
      if (version.kind != TensorVersion::Kind::kKept || graph.tensor(version.tensor).name != "a") continue;
      ++kept;
      EXPECT_EQ(version.keeping, one.keeping);
      if (one.keeping == Keeping::kAsRead) {
        EXPECT_EQ(graph.operators()[kept_for(graph, versions, id).op].name, one.reader);
      }
    }
    EXPECT_EQ(kept, 1u);
  }
}

}  // namespace
}  // namespace shardplan
