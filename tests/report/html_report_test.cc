#include "report/html/html_report.h"

#include <gtest/gtest.h>

#include "base/json_tree.h"
#include "tests/support/hand_plan.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

std::string data_of(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const std::size_t begin = page.find(open) + open.size();
  return page.substr(begin, page.find("</script>", begin) - begin);
}

TEST(HtmlReportTest, IsOnePageWithoutRequests) {
  const Plan plan = tiny_plan();
  const std::string page = html_report({{"plan", &plan, {}}}, {compared("plan", plan)}, "the summary");
  EXPECT_EQ(page, html_report({{"plan", &plan, {}}}, {compared("plan", plan)}, "the summary"));
  expect_has(page, "default-src 'none'");
  expect_has(page, "<pre>the summary</pre>");
  for (const char* request : {" src=", "<link", "@import", "url(", "fetch(", "XMLHttpRequest", "import("}) {
    EXPECT_EQ(page.find(request), std::string::npos) << request;
  }
  const JsonNode data = parse_json(data_of(page), "data");
  ASSERT_NE(data.find("plans"), nullptr);
  const JsonNode& shown = data.find("plans")->items.at(0);
  std::size_t copies = 0;
  for (const JsonNode& op : shown.find("ops")->items) copies += std::stoul(op.find("c")->text);
  EXPECT_EQ(copies, plan.graph->operators().size()) << "every operator is in a row";
}

TEST(HtmlReportTest, NamesAreTextNeverMarkup) {
  HandGraph graph("</script><img src=x onerror=alert(1)>");
  const TensorId x = graph.input("x", {8, 8});
  const TensorId y = graph.op("a", "ReLU", {x});
  const Plan plan = hand_plan(graph.build(y), {});
  const std::string page = html_report({{"plan", &plan, {}}}, {compared("plan", plan)}, "<b>");
  EXPECT_EQ(page.find("<img"), std::string::npos);
  EXPECT_EQ(page.find("<b>"), std::string::npos);
  expect_has(data_of(page), "\\u003c/script>");
  expect_has(page, "&lt;/script&gt;");
}

}  // namespace
}  // namespace shardplan
