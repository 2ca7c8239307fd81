#include "solver/contest/contest_problem.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"

namespace shardplan {
namespace {

const std::string kExample = R"({
  "problem": {
    "name": "example",
    "nodes": {
      "intervals": [[30, 70], [40, 70], [50, 120], [110, 140], [110, 150]],
      "costs": [[15], [55, 65], [25, 45, 35], [85, 75], [95]],
      "usages": [[10], [25, 25], [15, 20, 15], [10, 10], [15]]
    },
    "edges": {
      "nodes": [[0, 1], [0, 2], [1, 3], [2, 4], [3, 4]],
      "costs": [[30, 40], [50, 10, 40], [90, 10, 20, 80], [60, 20, 30], [70, 60]]
    },
    "usage_limit": 50
  }
})";

Choice choice_of(std::initializer_list<std::size_t> strategies) {
  Choice choice;
  for (const std::size_t strategy : strategies) choice.strategy.push_back(StrategyId(strategy));
  return choice;
}

TEST(ContestProblemTest, ReadsTheContestsExample) {
  const StrategyProblem problem = parse_contest_problem(kExample, "example.json");
  check_problem(problem);
  EXPECT_EQ(problem.nodes.size(), 5u);
  EXPECT_EQ(problem.edges.size(), 5u);
  const Evaluation best = evaluate(problem, choice_of({0, 0, 2, 1, 0}));
  EXPECT_TRUE(best.feasible);
  EXPECT_EQ(best.value({}), 445);  // the contest's own figure
  EXPECT_EQ(best.peak_bytes, 50);  // nodes 0, 1 and 2: 10 + 25 + 15
  const Evaluation larger = evaluate(problem, choice_of({0, 0, 1, 1, 0}));
  EXPECT_FALSE(larger.feasible);
  EXPECT_EQ(larger.worst_excess, 5);
}

TEST(ContestProblemTest, TakesKeysInAnyOrderAndSkipsUnknownOnes) {
  const StrategyProblem problem = parse_contest_problem(
      R"({"note": [1, {"a": null}], "problem": {"usage_limit": 7, "edges": {"costs": [[1, 2e18]], "nodes": [[0, 1]]},
          "nodes": {"usages": [[1], [2, 3]], "costs": [[4.0], [5, 1e1]], "intervals": [[0, 2], [3, 3]]}, "extra": -1.5e3}})",
      "p");
  EXPECT_EQ(problem.matrices[MatrixId(0)].costs, (std::vector<std::int64_t>{1, kForbidden}));
  EXPECT_EQ(problem.strategy_tables[StrategyTableId(1)].costs[1], (Cost{10, 0}));
  EXPECT_TRUE(problem.nodes[NodeId(1)].memory.empty());
  EXPECT_EQ(problem.memory_limits, std::vector<Bytes>{7});
}

TEST(ContestProblemTest, WithoutALimitNoUsageIsKept) {
  std::string text = kExample;
  const std::string limit = ",\n    \"usage_limit\": 50";
  text.erase(text.find(limit), limit.size());
  const StrategyProblem problem = parse_contest_problem(text, "example.json");
  check_problem(problem);
  EXPECT_TRUE(problem.memory_limits.empty());
  EXPECT_TRUE(evaluate(problem, choice_of({0, 0, 1, 1, 0})).feasible);  // 5 bytes too many with the limit
}

TEST(ContestProblemTest, CostsOfAnEdgeOfOneNodeAreItsOwn) {
  const StrategyProblem problem = parse_contest_problem(
      R"({"problem": {"name": "", "nodes": {"intervals": [[0, 1], [0, 1]], "costs": [[5, 3], [5, 3]],
          "usages": [[1, 2], [1, 2]]}, "edges": {"nodes": [[0], [1], [1, 0], [0]], "costs": [[0, 7], [0, 7], [0, 1, 2, 3],
          [100, 2e18]]}, "usage_limit": 9}})",
      "p");
  check_problem(problem);
  EXPECT_EQ(problem.edges.size(), 1u);
  EXPECT_EQ(problem.strategy_tables.size(), 3u);                            // as given, with the first costs, with both
  EXPECT_EQ(evaluate(problem, choice_of({0, 1})).value({}), 105 + 10 + 2);  // (5 + 0 + 100) + (3 + 7) + edge
  EXPECT_FALSE(evaluate(problem, choice_of({1, 0})).feasible);
}

TEST(ContestProblemTest, KeysAndNamesMayBeEscaped) {
  std::string text = kExample;
  text.replace(text.find("\"problem\""), 9, "\"\\u0070roblem\"");
  text.replace(text.find("\"example\""), 9, "\"a\\\"b\"");
  EXPECT_EQ(parse_contest_problem(text, "example.json").name, "a\"b");
}

TEST(ContestProblemTest, CostsThatNoChoiceKeepsWithin64BitsAreRefused) {
  const auto problem_of = [](int count) {  // nodes of one strategy that costs 2^58 - 1
    std::string intervals, costs, usages;
    for (int i = 0; i < count; ++i) {
      const char* comma = i > 0 ? ", " : "";
      intervals += std::string(comma) + "[0, 1]";
      costs += std::string(comma) + "[288230376151711743]";
      usages += std::string(comma) + "[1]";
    }
    return "{\"problem\": {\"nodes\": {\"intervals\": [" + intervals + "], \"costs\": [" + costs + "], \"usages\": [" +
           usages + "]}, \"edges\": {\"nodes\": [], \"costs\": []}, \"usage_limit\": 99}}";
  };
  EXPECT_EQ(parse_contest_problem(problem_of(32), "p").nodes.size(), 32u);
  try {
    parse_contest_problem(problem_of(33), "p");
    ADD_FAILURE() << "was accepted";
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()),
              "p:1:22: error: the least costs of all nodes and edges add up to 9511602413006487519; expected at most "
              "9223372036854775807, the largest number of 64 bits");
  }
}

TEST(ContestProblemTest, HoldsEqualListsOnce) {
  const StrategyProblem problem = parse_contest_problem(
      R"({"problem": {"name": "", "nodes": {"intervals": [[0, 1], [0, 1], [0, 1]], "costs": [[1, 2], [1, 2], [1, 2]],
          "usages": [[1, 2], [1, 2], [3, 4]]}, "edges": {"nodes": [[0, 1], [1, 2]], "costs": [[1, 2, 3, 4], [1, 2, 3, 4]]},
          "usage_limit": 9}})",
      "p");
  EXPECT_EQ(problem.strategy_tables.size(), 1u);
  EXPECT_EQ(problem.usage_tables.size(), 2u);
  EXPECT_EQ(problem.matrices.size(), 1u);
}

struct HostileCase {
  const char* name;
  const char* from;  // this part of the example
  const char* to;    // becomes this
  const char* message;
};
const HostileCase kHostileCases[] = {
    {"negative_cost", "[15]", "[-15]", "negative number"},
    {"fraction", "[15]", "[15.25]", "fraction"},
    {"too_large", "[15]", "[9223372036854775808]", "64 bits"},
    {"too_large_exponent", "[15]", "[1e19]", "64 bits"},
    {"word", "[15]", "[NaN]", "expected a number"},
    {"no_strategies", "[15]", "[]", "no strategies"},
    {"more_usages", "[[10]", "[[10, 11]", "1 costs and 2 usages"},
    {"fewer_intervals", "[[30, 70], ", "[", "4 intervals"},
    {"three_ends", "[30, 70]", "[30, 70, 80]", "3 numbers"},
    {"foreign_node", "[3, 4]]", "[3, 5]]", "names node 5; there are 5"},
    {"edge_of_three", "[3, 4]]", "[3, 4, 0]]", "an edge of 3 nodes; only edges of two nodes, or one, are supported"},
    {"edge_of_none", "[3, 4]]", "[]]", "an edge of 0 nodes; only edges of two nodes"},
    {"edge_of_one", "[3, 4]]", "[4]]", "edge 4 has 2 costs; expected 1, one for each strategy of its node"},
    {"short_matrix", "[70, 60]", "[70]", "expected 2 x 1"},
    {"missing_edge_costs", ", [70, 60]", "", "5 edges and 4 lists"},
    {"second_limit", "\"usage_limit\": 50", "\"usage_limit\": 50, \"usage_limit\": 51", "second \"usage_limit\""},
    {"missing_comma", "[0, 1], [0, 2]", "[0, 1] [0, 2]", "expected ']'"},
    {"text_for_list", "[[30, 40]", "[\"30\"", "expected '['"},
    {"open_text", "\"example\"", "\"example", "does not end"},
    {"trailing", "50\n  }\n}", "50\n  }\n} x", "after the end"},
};

TEST(ContestProblemTest, NamesTheFaultOfAHostileFile) {
  for (const HostileCase& hostile : kHostileCases) {
    SCOPED_TRACE(hostile.name);
    std::string text = kExample;
    const std::size_t at = text.find(hostile.from);
    ASSERT_NE(at, std::string::npos);
    text.replace(at, std::string(hostile.from).size(), hostile.to);
    try {
      parse_contest_problem(text, "hostile.json");
      ADD_FAILURE() << "was accepted";
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(hostile.message), std::string::npos) << error.what();
      EXPECT_EQ(error.diagnostics().size(), 1u);
    }
  }
}

/// What disagrees is shown at the part that it is about, though it is seen only at the file's end.
TEST(ContestProblemTest, NamesThePlaceOfWhatDisagrees) {
  const std::string text =
      "{\"problem\": {\"usage_limit\": 9,\n \"nodes\": {\"intervals\": [[0, 1]], \"costs\": [[1]], \"usages\": "
      "[[1]]},\n"
      " \"edges\": {\"nodes\": [[0, 3]], \"costs\": [[1]]}}}";
  const auto fault = [](const std::string& problem) {
    try {
      parse_contest_problem(problem, "p.json");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(fault(text), "p.json:3:10: error: edge 0 names node 3; there are 1");
  std::string fewer = text;
  fewer.replace(fewer.find("[[1]]"), 5, "[]");
  EXPECT_EQ(fault(fewer),
            "p.json:2:10: error: 1 intervals, 0 lists of costs and 1 of usages; expected one of each per node");
}

TEST(ContestProblemTest, SurvivesEveryCutAndRandomDamage) {
  for (std::size_t length = 0; length < kExample.size() - 1; ++length) {
    EXPECT_THROW(parse_contest_problem(kExample.substr(0, length), "cut"), InputError) << length;
  }
  Random random(1);
  const std::string characters = "0159{}[],:\"\\ -.eE\n\x01\x7f";
  for (int round = 0; round < 500; ++round) {
    std::string text = kExample;
    for (std::size_t damage = 1 + random.below(3); damage > 0; --damage) {
      text[random.below(text.size())] = characters[random.below(characters.size())];
    }
    try {
      check_problem(parse_contest_problem(text, "damaged"));
    } catch (const InputError&) {
    }
  }
  EXPECT_THROW(parse_contest_problem(std::string(100000, '['), "deep"), InputError);
  EXPECT_THROW(parse_contest_problem("{\"a\":" + std::string(100000, '['), "deep"), InputError);
  EXPECT_THROW(parse_contest_problem(std::string(3, '\0'), "zeros"), InputError);
  EXPECT_THROW(read_contest_problem("/nonexistent/problem.json"), InputError);
  EXPECT_THROW(read_contest_problem("/"), InputError);
}

TEST(ContestProblemTest, EndsWhenToldToBeforeTheEndIsReached) {
  std::stop_source stop;
  const Deadline deadline(0, stop.get_token());
  EXPECT_TRUE(parse_contest_problem(kExample, "example.json", deadline));
  stop.request_stop();
  EXPECT_FALSE(parse_contest_problem(kExample, "example.json", deadline));
  EXPECT_FALSE(parse_contest_problem(kExample, "example.json", Deadline(1e-9, {})));
}

}  // namespace
}  // namespace shardplan
