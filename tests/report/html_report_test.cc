#include "report/html/html_report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/json_tree.h"
#include "model/read_model.h"
#include "planner/job_cluster.h"
#include "planner/model_planner.h"
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

/// Memory is drawn from left to right, although a collective may begin before kernels that precede it.
TEST(HtmlReportTest, MemoryGoesOnInTime) {
  const auto model = std::make_shared<const Model>(read_model("configs/lenet.yaml"));
  const ModelPlanner planner(model, read_cluster("dgx-a100"), {});
  bool is_early = false;
  for (const Level level : {Level::kRatio, Level::kMemory, Level::kSpeed}) {
    const Plan plan = planner.plan(level, "auto");
    const std::vector<OverlappedTimeline::Span> spans = plan.spans();
    for (std::size_t i = 1; i < spans.size(); ++i) is_early = is_early || spans[i].begin < spans[i - 1].begin;
    const std::string page = html_report({{"plan", &plan, {}}}, {compared("plan", plan)}, "the summary");
    const JsonNode data = parse_json(data_of(page), "data");
    const JsonNode& shown = data.find("plans")->items.at(0);
    std::int64_t last = 0, most = 0, most_at = -1;
    for (const JsonNode& point : shown.find("memory")->items) {
      const std::int64_t at = std::stoll(point.items.at(0).text), bytes = std::stoll(point.items.at(1).text);
      EXPECT_GE(at, last);
      last = at;
      if (bytes > most) most_at = at;
      most = std::max(most, bytes);
    }
    EXPECT_EQ(most, plan.memory.peak);
    EXPECT_EQ(std::stoll(shown.find("peak_at")->text), most_at);
  }
  EXPECT_TRUE(is_early) << "no plan here has what the test is about";
}

/// Items of the timeline are those of the loop's first run; the page draws a box for the other runs.
TEST(HtmlReportTest, OtherRunsOfTheLoopAreWhereNothingIsComputed) {
  const auto model = std::make_shared<const Model>(read_model_text(R"(shardplan: 1
model: batches
cluster: dgx-a100
dims: {B: 512, C: 2048}
inputs: {x: [B, C]}
operators:
  up:   {block: nn.Dense, in: x, out_channels: C}
  act:  {op: GeLU, in: up}
  down: {block: nn.Dense, in: act, out_channels: C}
  loss: {op: ReduceMean, in: down}
loss: loss
training: {optimizer: momentum, micro_batches: 4}
parallel: {parallel_mode: data_parallel}
)",
                                                                   "batches.yaml"));
  const Plan plan = ModelPlanner(model, read_cluster("dgx-a100"), {}).plan(Level::kSpeed, "auto");
  const std::string page = html_report({{"plan", &plan, {}}}, {compared("plan", plan)}, "the summary");
  const JsonNode data = parse_json(data_of(page), "data");
  const JsonNode& shown = data.find("plans")->items.at(0);
  ASSERT_NE(shown.find("loop"), nullptr);
  const std::int64_t begin = std::stoll(shown.find("loop")->items.at(0).text);
  const std::int64_t end = std::stoll(shown.find("loop")->items.at(1).text);
  EXPECT_GT(end - begin, 2 * begin) << "three runs, and one before them";
  for (const JsonNode& item : shown.find("timeline")->items) {
    if (item.items.at(0).text != "0") continue;  // collectives are issued in the last run
    const std::int64_t start = std::stoll(item.items.at(1).text);
    EXPECT_TRUE(start < begin || start >= end) << start << " is between " << begin << " and " << end;
  }
}

/// With `place` a lane is a worker, which does one thing at a time; both ends of a send are in one.
TEST(HtmlReportTest, EveryWorkerHasALaneOfItsOwn) {
  const auto model = std::make_shared<const Model>(read_model("configs/lenet-place.yaml"));
  const Plan plan = ModelPlanner(model, job_cluster(*model, {}).cluster, {}).plan(Level::kSpeed, "auto");
  ASSERT_EQ(plan.program.workers, 5);
  const std::string page = html_report({{"plan", &plan, {}}}, {compared("plan", plan)}, "the summary");
  const JsonNode data = parse_json(data_of(page), "data");
  const JsonNode& shown = data.find("plans")->items.at(0);
  std::vector<std::string> lanes;
  for (const JsonNode& lane : shown.find("lanes")->items) lanes.push_back(lane.text);
  EXPECT_EQ(lanes, (std::vector<std::string>{"worker 0", "worker 1", "worker 2", "worker 3", "worker 4"}));
  std::map<std::string, std::vector<std::pair<std::int64_t, std::int64_t>>> bars;
  std::map<std::string, std::size_t> ends;  // of sends, by reference
  std::int64_t last = 0;
  for (const JsonNode& item : shown.find("timeline")->items) {
    const std::int64_t begin = std::stoll(item.items.at(1).text), end = begin + std::stoll(item.items.at(2).text);
    bars[item.items.at(0).text].emplace_back(begin, end);
    if (item.items.at(3).text.starts_with("-")) ++ends[item.items.at(3).text];
    last = std::max(last, end);
  }
  EXPECT_EQ(bars.size(), 5u);
  for (auto& [lane, list] : bars) {
    std::sort(list.begin(), list.end());
    for (std::size_t i = 1; i < list.size(); ++i) EXPECT_LE(list[i - 1].second, list[i].first + 1) << lane;
  }
  EXPECT_FALSE(ends.empty());
  for (const auto& [send, count] : ends) EXPECT_EQ(count % 2, 0u) << send;
  EXPECT_NEAR(static_cast<double>(last), static_cast<double>(plan.time.step()) / 1000, 2) << "the axis ends there";
}

/// The other runs of the loop fill each worker's lane where it has no bars.
TEST(HtmlReportTest, EveryWorkerRunsTheLoopInItsOwnTime) {
  const auto model = std::make_shared<const Model>(read_model_text(R"(shardplan: 1
model: stages
cluster: dgx-a100
dims: {B: 4096, H: 1024}
inputs: {x: [B, H]}
operators:
  up:   {block: nn.Dense, in: x, out_channels: H, place: (MS_WORKER, 0)}
  down: {block: nn.Dense, in: up, out_channels: H, place: (MS_WORKER, 1)}
  loss: {op: ReduceMean, in: down, place: (MS_WORKER, 1)}
loss: loss
training: {optimizer: sgd, micro_batches: 4}
parallel: {device_num: 2}
)",
                                                                   "stages.yaml"));
  const Plan plan = ModelPlanner(model, job_cluster(*model, {}).cluster, {}).plan(Level::kSpeed, "auto");
  const JsonNode data =
      parse_json(data_of(html_report({{"plan", &plan, {}}}, {compared("plan", plan)}, "the summary")), "data");
  const JsonNode& shown = data.find("plans")->items.at(0);
  ASSERT_EQ(shown.find("loops")->items.size(), 2u);
  for (const JsonNode& item : shown.find("timeline")->items) {
    const JsonNode& loop = shown.find("loops")->items.at(std::stoul(item.items.at(0).text));
    const std::int64_t begin = std::stoll(item.items.at(1).text), end = begin + std::stoll(item.items.at(2).text);
    EXPECT_TRUE(end <= std::stoll(loop.items.at(0).text) + 1 || begin >= std::stoll(loop.items.at(1).text) - 1)
        << begin;
  }
}

/// Columns of numbers are sorted as numbers.
TEST(HtmlReportTest, FiguresOfPlansAreNumbers) {
  const Plan plan = tiny_plan();
  ComparedPlan row = compared("plan", plan), silent = row;
  row.time.repeated = silent.time.repeated = 0;
  row.gap = 0.105;
  silent.time.communication = 0;
  silent.gap.reset();
  const JsonNode data = parse_json(data_of(html_report({{"plan", &plan, {}}}, {row, silent}, "the summary")), "data");
  const std::vector<JsonNode>& rows = data.find("rows")->items;
  EXPECT_EQ(rows.at(0).items.at(7).kind, JsonNode::Kind::kNumber);
  EXPECT_DOUBLE_EQ(std::stod(rows.at(0).items.at(8).text), 10.5);
  EXPECT_EQ(rows.at(1).items.at(7).text, "inf");
  EXPECT_EQ(rows.at(1).items.at(8).kind, JsonNode::Kind::kNull);
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
