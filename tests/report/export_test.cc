#include "report/export/export.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/golden.h"
#include "tests/support/hand_plan.h"
#include "tests/support/python.h"

namespace shardplan {
namespace {

TEST(ExportTest, SaysInEveryToolsWordsWhatItCan) {
  const Plan plan = tiny_plan();
  std::vector<ExportedText> exported;
  for (const std::string& target : export_targets()) {
    exported.push_back(export_plan(plan, target));
    expect_golden("report/export_" + target + ".txt", exported.back().text);
  }
  EXPECT_EQ(export_plan(plan, "jax").cannot_say, std::vector<std::string>());
  EXPECT_EQ(export_plan(plan, "dtensor").cannot_say.size(), 1U);
  EXPECT_TRUE(
      python_accepts("import py_compile\nfor n in ('a', 'b', 'c'): py_compile.compile(n + '.py', doraise=True)\n",
                     {{"a.py", exported[0].text}, {"b.py", exported[1].text}, {"c.py", exported[2].text}}));
  EXPECT_THROW(export_plan(plan, "tensorflow"), InputError);
}

}  // namespace
}  // namespace shardplan
