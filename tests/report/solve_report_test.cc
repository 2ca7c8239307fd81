#include "report/solve_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace shardplan {
namespace {

Choice choice_of(const std::vector<std::size_t>& strategies) {
  Choice choice;
  for (const std::size_t strategy : strategies) choice.strategy.push_back(StrategyId(strategy));
  return choice;
}

TEST(SolveReportTest, ChoicesAreOneStrategyPerNode) {
  EXPECT_EQ(choice_text(std::nullopt), "[]");
  EXPECT_EQ(choice_text(choice_of({4})), "[4]");
  EXPECT_EQ(choice_text(choice_of({0, 3, 1})), "[0,3,1]");
}

PlanResult result_of(std::int64_t cost, std::int64_t bound) {
  PlanResult result;
  result.status = cost == bound ? PlanStatus::kOptimal : PlanStatus::kFeasible;
  result.choice = choice_of({0, 3, 1});
  result.cost = cost;
  result.lower_bound = bound;
  result.found_by = "dive";
  result.seconds_to_best = 0.12345;
  result.statistics = {{"presolve", {{"core nodes", 2}, {"core edges", 1}}}};
  return result;
}

TEST(SolveReportTest, OneLineHoldsTheAnswer) {
  StrategyProblem problem;
  problem.name = "diamond";
  const std::string line = solve_json(problem, {"auto", 7, 2}, result_of(1240, 1200));
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["name"], "diamond");
  EXPECT_EQ(json["seed"], 7);
  EXPECT_EQ(json["threads"], 2);
  EXPECT_EQ(json["cost"], 1240);
  EXPECT_EQ(json["bound"], 1200);
  EXPECT_DOUBLE_EQ(json["gap"].get<double>(), 0.033333);  // 40 / 1200
  EXPECT_DOUBLE_EQ(json["seconds_to_best"].get<double>(), 0.123);
  EXPECT_EQ(json["solution"], (std::vector<int>{0, 3, 1}));
  EXPECT_EQ(json["statistics"]["presolve"]["core nodes"], 2);
  PlanResult none;
  none.status = PlanStatus::kInfeasible;
  const auto empty = nlohmann::json::parse(solve_json(problem, {}, none));
  EXPECT_TRUE(empty["cost"].is_null() && empty["gap"].is_null());
  EXPECT_TRUE(empty["solution"].empty());
  EXPECT_FALSE(empty.contains("found_by"));
}

TEST(SolveReportTest, StatisticsNameStagesAndTheFinder) {
  EXPECT_EQ(solve_statistics(result_of(10, 10)),
            "presolve\n"
            "  core nodes                                  2\n"
            "  core edges                                  1\n"
            "found by dive at t 0.1\n");
  EXPECT_EQ(solve_statistics({}), "");
}

TEST(SolveReportTest, ProgressIsShownWhenSomethingIsBetter) {
  SolveProgress progress(12, 20);
  const StageStatistics presolve{"presolve", {{"core nodes", 5}, {"core edges", 4}}};
  SearchProgress now;
  now.stage = &presolve;
  EXPECT_EQ(progress.lines(now, 0.04), "# read 12 nodes 20 edges, presolve 5 nodes 4 edges, t 0.0\n");
  now.stage = nullptr;
  EXPECT_EQ(progress.lines(now, 0.1), "");  // neither a cost nor a stage
  now.cost = 1240;
  now.lower_bound = 1180;
  EXPECT_EQ(progress.lines(now, 0.2), "# cost 1240 bound 1180 gap 5.08% t 0.2\n");
  EXPECT_EQ(progress.lines(now, 5), "");  // unchanged
  now.lower_bound = 1200;
  EXPECT_EQ(progress.lines(now, 0.9), "");  // a new bound alone is reported after a second
  EXPECT_EQ(progress.lines(now, 1.2), "# cost 1240 bound 1200 gap 3.33% t 1.2\n");
  now.cost = 1230;
  EXPECT_EQ(progress.lines(now, 1.3), "# cost 1230 bound 1200 gap 2.50% t 1.3\n");
  now.lower_bound = 1230;
  EXPECT_EQ(progress.lines(now, 1.4), "# cost 1230 bound 1230 gap 0.00% t 1.4 optimal\n");
}

TEST(SolveReportTest, APresolveThatWasCutShortHasNoFigures) {
  SolveProgress progress(12, 20);
  const StageStatistics presolve{"presolve", {{"nodes", 12}}};
  SearchProgress now;
  now.stage = &presolve;
  EXPECT_EQ(progress.lines(now, 0.3), "# read 12 nodes 20 edges, t 0.3\n");
}

TEST(SolveReportTest, ADearerCostIsNoNews) {
  SolveProgress progress(12, 20);
  SearchProgress now;
  now.cost = 1240;
  EXPECT_EQ(progress.lines(now, 0.1), "# cost 1240 bound 0 gap 100.00% t 0.1\n");
  now.cost = 1300;
  EXPECT_EQ(progress.lines(now, 0.2), "");
}

TEST(SolveReportTest, TheLastLineHasTheFiguresOfTheAnswer) {
  SolveProgress progress(12, 20);
  SearchProgress now;
  now.cost = 1240;
  now.lower_bound = 1180;
  progress.lines(now, 0.2);
  EXPECT_EQ(progress.last_line({}, result_of(1240, 1180), 0.9), "");  // they are those of the line before
  EXPECT_EQ(progress.last_line({}, result_of(1240, 1200), 0.9), "# cost 1240 bound 1200 gap 3.33% t 0.9\n");
  EXPECT_EQ(progress.last_line({}, result_of(1240, 1240), 1), "# cost 1240 bound 1240 gap 0.00% t 1.0 optimal\n");
}

TEST(SolveReportTest, TheLastLineSaysWhyThereIsNoAnswer) {
  SolveProgress progress(12, 20);
  PlanResult none;
  EXPECT_EQ(progress.last_line({}, none, 2), "# no choice was found: the search ended without one, t 2.0\n");
  none.obstacle = "its tables would be too large";
  EXPECT_EQ(progress.last_line({}, none, 2), "# no choice was found: its tables would be too large, t 2.0\n");
  none.stopped_by = Limit::kTime;
  EXPECT_EQ(progress.last_line({}, none, 2), "# no choice was found: the time limit was reached, t 2.0\n");
  none.stopped_by = Limit::kInterrupted;
  EXPECT_EQ(progress.last_line({}, none, 2), "# no choice was found: interrupted, t 2.0\n");

  StrategyProblem problem;  // one node of one strategy, which holds 9 bytes
  problem.strategy_tables = {{{{1, kForbidden}}}};
  problem.usage_tables = {{{9}}};
  problem.nodes = {{StrategyTableId(0), {{UsageTableId(0), 0, 1}}}};
  problem.memory_limits = {9};
  PlanResult infeasible;
  infeasible.status = PlanStatus::kInfeasible;
  EXPECT_EQ(progress.last_line(problem, infeasible, 2),
            "# no choice is feasible: each one that fits in memory has a cost of 2^58 or more, which is forbidden\n");
  problem.memory_limits = {4};
  EXPECT_EQ(progress.last_line(problem, infeasible, 2),
            "# no choice is feasible: the least usages exceed the limit by 5\n");
}

TEST(SolveReportTest, GapsPrintAsTheyAreRounded) {
  const std::string line = solve_json({}, {}, result_of(1017392, 1000000));
  EXPECT_NE(line.find("\"gap\": 0.017392,"), std::string::npos) << line;
}

}  // namespace
}  // namespace shardplan
