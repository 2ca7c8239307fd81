#include "report/plan/compare_report.h"

#include <gtest/gtest.h>

#include "graph/folded_names.h"
#include "tests/support/golden.h"
#include "tests/support/hand_plan.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

TEST(CompareReportTest, FoldsWhatDiffers) {
  const Plan first = tiny_plan();
  Plan other = tiny_plan();
  other.options.level = other.cost.level = other.bound.level = Level::kMemory;
  for (const OperatorId op : other.graph->operators().ids()) {
    if (folded_name(other.graph->operators()[op].name) == "layers.*.relu") other.strategies[op].factors = {{}, {}, {}};
  }
  const std::vector<ComparedPlan> rows{
      compared("level 0", first), compared("level 1", other),
      compared(Baseline{"stand_alone", {500'000'000'000, 0, 0, 1}, Bytes{40} << 30, false})};
  const std::string text = compare_report(rows);
  expect_fits_terminal(text);
  expect_golden("report/compare.txt", text);
  expect_golden("report/compare_in_colour.txt", compare_report(rows, {.colour = true}));
  expect_golden("report/compare.json", compare_json(rows));
  EXPECT_TRUE(compare_report({compared("level 0", first), compared("level 2", first)})
                  .ends_with("\n  level 2  level 0's plan\n"));
}

TEST(CompareReportTest, MarksPlansWhoseSearchWasEnded) {
  Plan plan = tiny_plan();
  const std::string whole = compare_report({compared("level 0", plan)});
  EXPECT_EQ(whole.find("* the best so far"), std::string::npos) << whole;
  expect_has(compare_json({compared("level 0", plan)}), "\"complete\": true");
  const Plan other = plan;
  plan.ended_early = true;
  const std::string text = compare_report({compared("level 0", plan), compared("level 1", other)});
  expect_fits_terminal(text);
  expect_has(text, "  *\n  level 1 ");
  expect_has(text, "\n  * the best so far: a time limit or an interruption ended the search\n\n");
  expect_has(compare_json({compared("level 0", plan)}), "\"complete\": false");
}

TEST(CompareReportTest, NamesTheUnitOfMindSporesValues) {
  const Plan plan = tiny_plan();
  std::vector<ComparedPlan> rows{compared("level 0", plan), compared("level 1", plan)};
  EXPECT_EQ(compare_report(rows).find("weighted"), std::string::npos);
  rows[1].mindspore = MindSporeValue{27'646 * kPartsOfWeightedByte};
  const std::string text = compare_report(rows);
  expect_fits_terminal(text);
  expect_has(text, "    mindspore\n");
  expect_has(text, "  weighted KB\n");
  expect_has(text, "         27.6\n");
  expect_has(compare_json(rows), "\"mindspore_weighted_bytes\": 27646.0");
}

}  // namespace
}  // namespace shardplan
