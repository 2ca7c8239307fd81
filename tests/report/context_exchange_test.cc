#include "report/export/context_exchange.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/planned_model.h"
#include "model/read_model.h"
#include "report/export/export.h"
#include "report/export/uniform_plan.h"
#include "report/metrics/parallelism_patterns.h"
#include "tests/support/hand_plan.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

/// One sequence, cut in 8 by all operators but attention, which has 8 heads and is cut as given.
Plan attending(int key_heads, const std::map<std::string, std::string>& attention) {
  const OperatorGraph graph = planned_graph(read_model_text(fmt::format(R"(
shardplan: 1
dims: {{S: 64, H: 8, G: {}, D: 16}}
inputs: {{x: [1, S, H*D]}}
operators:
  norm:    {{block: nn.RMSNorm, in: x}}
  q:       {{block: nn.Dense, in: norm, out_channels: H*D, has_bias: false}}
  k:       {{block: nn.Dense, in: norm, out_channels: G*D, has_bias: false}}
  q_heads: {{op: Reshape, in: q, shape: [1, S, H, D]}}
  k_heads: {{op: Reshape, in: k, shape: [1, S, G, D]}}
  attend:  {{op: FlashAttention, in: [q_heads, k_heads, k_heads], input_layout: BSND, causal: true}}
  merged:  {{op: Reshape, in: attend, shape: [1, S, H*D]}}
  o:       {{block: nn.Dense, in: merged, out_channels: H*D, has_bias: false}}
)",
                                                                        key_heads),
                                                            "m.yaml"));
  HandStrategies strategies{{"attend", attention}};
  for (const char* name : {"norm.rms_norm", "q.matmul", "k.matmul", "o.matmul"}) {
    strategies[name] = {{factor_of_result(graph, name, 1), "{pcie, hccs}"}};
  }
  return hand_plan(graph, strategies);
}

struct ExchangeCase {
  const char* name;
  int key_heads;
  std::map<std::string, std::string> attention;
  const char* patterns;
  const char* option;            // of Megatron-LM
  const char* differs_megatron;  // "" if it does not
  const char* differs_torchtitan;
};

const ExchangeCase kExchanges[] = {
    {"heads",
     8,
     {{"g", "{pcie, hccs}"}},
     "sequence in 8 (context parallel), heads in 8 inside attention (Ulysses)",
     "a2a",
     "",
     "heads in 8 (Ulysses)"},
    {"heads_of_few_keys",
     4,
     {{"g", "{hccs}"}, {"r", "{pcie}"}},
     "sequence in 8 (context parallel), heads in 8 inside attention (Ulysses)",
     "all_gather",
     "heads in 8 (Ulysses)",
     "heads in 8 (Ulysses)"},
    {"queries", 8, {{"s", "{pcie, hccs}"}}, "sequence and queries in 8 (context parallel)", "all_gather", "", ""},
    {"keys",
     8,
     {{"t", "{pcie, hccs}"}},
     "sequence in 8 (context parallel), keys in 8 (context parallel)",
     "all_gather",
     "keys in 8",
     "keys in 8"},
    {"heads_and_queries",
     8,
     {{"g", "{hccs}"}, {"s", "{pcie}"}},
     "sequence in 8 (context parallel), queries in 2 over pcie (context parallel), heads in 4 over hccs inside "
     "attention (Ulysses)",
     "all_gather",
     "heads in 4, queries in 2",
     "heads in 4, queries in 2"},
};

class ContextExchangeTest : public testing::TestWithParam<ExchangeCase> {};

/// Megatron-LM has an option for what attention exchanges, torchtitan gathers keys. Neither has what the other cuts say.
TEST_P(ContextExchangeTest, IsAnOptionOrADifference) {
  const ExchangeCase& tested = GetParam();
  const Plan plan = attending(tested.key_heads, tested.attention);
  EXPECT_EQ(parallelism_patterns(plan), tested.patterns);
  const GlobalDegrees degrees = nearest_degrees(plan);
  EXPECT_EQ(num_pieces(degrees.context), 8);
  EXPECT_EQ(uniform_plan(plan, degrees).differences, std::vector<std::string>());
  const auto check = [&](const std::string& text, const std::string& difference) {
    if (difference.empty()) {
      EXPECT_EQ(text.find("attend:"), std::string::npos) << text;
    } else {
      expect_has(text, "#   attend: " + difference + "\n");
    }
  };
  const std::string megatron = export_plan(plan, "megatron").text;
  expect_has(megatron, "  --context-parallel-size 8\n");
  expect_has(megatron, fmt::format("  --cp-comm-type {}\n", tested.option));
  check(megatron, tested.differs_megatron);
  check(export_plan(plan, "torchtitan").text, tested.differs_torchtitan);
}

INSTANTIATE_TEST_SUITE_P(Exchanges, ContextExchangeTest, testing::ValuesIn(kExchanges),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace shardplan
