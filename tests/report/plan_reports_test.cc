#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/random.h"
#include "base/write_files.h"
#include "model/model_source.h"
#include "report/compare_report.h"
#include "report/explain_report.h"
#include "report/export/export.h"
#include "report/parallelism_patterns.h"
#include "report/plan_file/plan_file.h"
#include "report/plan_file/plan_json.h"
#include "report/plan_file/sha256.h"
#include "report/strategy_table.h"
#include "report/summary.h"
#include "tests/support/hand_plan.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

TEST(StrategyTable, HasOneLinePerOperator) {
  EXPECT_EQ(strategy_table(block_plan()),
            "block1.in0  ((1, 8)) -> [{}, {pcie, hccs}]  search\n"
            "block1.dense1.matmul  ((1, 8), (1, 8)) -> [{}, {}] unreduced={pcie, hccs}  search\n"
            "block1.dense1.bias_add  ((8, 1), (1)) -> [{pcie, hccs}, {}]  search\n"
            "block1.gelu  ((8, 1)) -> [{pcie, hccs}, {}]  search\n"
            "block1.dense2.matmul  ((8, 1), (1, 1)) -> [{pcie, hccs}, {}]  search\n"
            "block1.dense2.bias_add  ((8, 1), (1)) -> [{pcie, hccs}, {}]  search\n");
}

TEST(Summary, SaysFirstWhetherItFitsAndHowFastAndGoodItIs) {
  Plan plan = tiny_plan();
  plan.bound.amount = plan.cost.amount / 2;
  plan.baselines = {{"data_parallel", plan.time, plan.memory.peak, true}};
  SummaryOptions options;
  options.out_folder = "out/";
  options.written = {"plan.json", "strategies.txt"};
  const std::string text = summary_report(plan, options);
  expect_fits_terminal(text);
  EXPECT_TRUE(
      text.starts_with("tiny, training, on ascend-910: 8 devices, mesh pcie=2, hccs=4, level 0 (ratio)\n\n"
                       "  fits        "))
      << text;
  expect_has(text, " of 30.0 GiB per device\n  step        ");
  expect_has(text, "data parallel would take ");
  expect_has(text, "optimal within 100.0 %: no plan has more than ");
  expect_has(text, "\n  proven      no         add --validate\n");
  expect_has(text, "\n  layers.*");
  expect_has(text, "2 x\n");
  expect_has(text, "that of wte\n");
  expect_has(text,
             "\n  in short    batch in 2 over pcie, vocabulary in 4 over hccs, optimizer states in 8 (as ZeRO-1)\n");
  expect_has(text, "\n  dearest collectives ");
  expect_has(text, "\n  written     out/: plan.json, strategies.txt\n");
  EXPECT_EQ(text.find("searched"), std::string::npos);
  plan.options.time_limit = 1.5;
  expect_has(summary_report(plan, options), "\n  searched    for at most 1.5 s: another run may find another plan\n");
}

TEST(Compare, NamesTheUnitOfMindSporesValues) {
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

TEST(PlanFile, HoldsWhatMindSporesCostModelSaidOfItsPlan) {
  Plan plan = tiny_plan();
  plan.options.costs = StrategyCosts::kMindSpore;
  plan.mindspore = {MindSporeValue{1001}, MindSporeValue{1000}};
  const PlanFile file = read_plan_file(plan_json(plan), "plan.json");
  EXPECT_EQ(file.options.costs, StrategyCosts::kMindSpore);
  ASSERT_TRUE(file.mindspore);
  EXPECT_EQ(file.mindspore->cost.parts, 1001);
  EXPECT_EQ(file.mindspore->bound.parts, 1000);
  expect_has(summary_report(plan, {}), "weighted bytes of its cost model; no forward strategies have less than 25.0\n");
}

TEST(Compare, FoldsWhatDiffers) {
  const Plan first = tiny_plan();
  Plan other = tiny_plan();
  other.options.level = other.cost.level = other.bound.level = Level::kMemory;
  for (const OperatorId op : other.graph->operators().ids()) {
    if (other.graph->operators()[op].repeat_class == "layers.*.relu") other.strategies[op].factors = {{}, {}, {}};
  }
  const std::vector<ComparedPlan> rows{
      compared("level 0", first), compared("level 1", other),
      compared(Baseline{"stand_alone", {500'000'000'000, 0, 0, 1}, Bytes{40} << 30, false})};
  const std::string text = compare_report(rows);
  expect_fits_terminal(text);
  expect_has(text, "level 1 differs from level 0 in 2 of ");
  expect_has(text, "\n    layers.*.relu  all repeated instead of ");
  expect_has(text, "too large\n");
  expect_has(compare_report(rows, {.colour = true}), "\x1b[1m");
  expect_has(compare_json(rows), "\"differs_from_first\": [\n  {\"name\": \"level 1\", \"operators\": 2, ");
  expect_has(compare_report({compared("level 0", first), compared("level 2", first)}), "level 2 is level 0's plan\n");
}

TEST(Explain, ShowsTheChosenStrategyAndOrdersTheOthers) {
  const Plan plan = tiny_plan();
  Explanation explanation;
  explanation.plan = &plan;
  explanation.op = *plan.graph->find_operator("layers.0.up.matmul");
  const Operation& operation = plan.graph->operation(explanation.op);
  Strategy by_columns, repeated;
  by_columns.factors.resize(operation.rule.factors.size());
  repeated = by_columns;
  by_columns.factors[*operation.rule.find("n")] = parse_axes("{pcie, hccs}", plan.mesh);
  StepTime dearer = plan.time, dearest = plan.time;
  dearer.communication += 1'000'000'000;
  dearest.repeated = dearest.computation += 9'000'000'000;
  explanation.alternatives = {{repeated, dearest, plan.memory.peak + 2048, false},
                              {by_columns, dearer, plan.memory.peak, true}};
  const std::string text = explain_report(explanation);
  expect_fits_terminal(text);
  EXPECT_TRUE(
      text.starts_with("layers.0.up.matmul: MatMul(wte.gather [8, 16, 32], layers.0.up.weight [32, 32]) -> [8, 16, "
                       "32]\nchosen by the search\n\n  chosen       "))
      << text;
  expect_has(text, "\n    layouts    [{pcie}, {}, {}], [{}, {}] -> [{pcie}, {}, {}]\n");
  expect_has(text, "\n    local      [4, 16, 32], [32, 32] -> [4, 16, 32]\n");
  expect_has(text, "\n    needs      ");
  expect_has(text, "\n  n over pcie, hccs ");
  expect_has(text, "  does not fit\n");
  EXPECT_EQ(alternative_reason(plan, explanation.op, repeated), "all of the work done 8 times");
  EXPECT_LT(text.find("n over pcie, hccs"), text.find("all repeated"));
  expect_has(explain_json(explanation), "\"schema\": \"shardplan.explanation/1\"");
}

TEST(Sha256, HashesAsTheStandardSays) {
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256(std::string(64, 'a')), "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
}

TEST(PlanJson, IsReadBackAsTheSameDecisions) {
  for (const Plan& plan : {block_plan(), tiny_plan()}) {
    const std::string text = plan_json(plan);
    EXPECT_EQ(text, plan_json(plan));
    const PlanFile file = read_plan_file(text, "plan.json");
    const Decisions decisions = decisions_of(file, *plan.graph, tensor_versions(*plan.graph), plan.mesh);
    EXPECT_EQ(decisions.strategies, plan.strategies);
    EXPECT_EQ(decisions.versions, plan.versions);
    EXPECT_EQ(file.time.step(), plan.time.step());
    EXPECT_EQ(file.cost, plan.cost);
    EXPECT_EQ(file.model_text, plan.model->source->text());
  }
}

std::string fault_of(const std::string& text) {
  try {
    read_plan_file(text, "plan.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), with);
}

TEST(PlanJson, HostileFilesGiveOneClearError) {
  const std::string text = plan_json(block_plan());
  EXPECT_EQ(fault_of(replaced(text, "shardplan.plan/1", "shardplan.plan/2")),
            "plan.json: error: schema: found 'shardplan.plan/2', this version reads 'shardplan.plan/1'");
  EXPECT_EQ(fault_of(replaced(text, "shardplan.plan/1", "shardplan.plan/1.7")), "");
  EXPECT_EQ(fault_of(replaced(text, "\"level\": 0", "\"level\": 7")),
            "plan.json: error: options.level: expected a whole number from 0 to 2");
  EXPECT_EQ(fault_of(replaced(text, "\"k\": [\"pcie\", \"hccs\"]", "\"k\": 3")),
            "plan.json: error: operators[1].strategy.factors.k: expected a list");
  EXPECT_EQ(fault_of("{\n  \"schema\": }"), "plan.json:2:13: error: this is no JSON document");
  EXPECT_EQ(fault_of("[]"), "plan.json: error: the document: expected an object");
  EXPECT_TRUE(fault_of(std::string(1000000, '[')).starts_with("plan.json:1:33: error: nested deeper"));
  EXPECT_NE(fault_of(replaced(text, "\"size\": 2", "\"size\": 2000000000")), "");

  const Plan plan = tiny_plan();
  EXPECT_THROW(decisions_of(read_plan_file(text, "plan.json"), *plan.graph, tensor_versions(*plan.graph), plan.mesh),
               InputError);

  Random random(1);
  for (int i = 0; i < 300; ++i) {
    std::string broken = text;
    for (int k = 0; k < 3; ++k) broken[random.below(broken.size())] = static_cast<char>(random.below(256));
    if (i % 3 == 0) broken.resize(random.below(broken.size()));
    fault_of(broken);  // an error or none, never a crash
  }
}

/// Runs a Python script on files; true if there is no python3.
bool python_accepts(const std::string& script, const std::vector<NamedText>& files) {
  if (std::system("python3 -c pass >/dev/null 2>&1") != 0) return true;
  std::string folder = (std::filesystem::temp_directory_path() / "python.XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return false;
  write_files(folder, files);
  write_file(folder + "/check.py", script);
  const int result = std::system(("cd " + folder + " && python3 check.py").c_str());
  std::filesystem::remove_all(folder);
  return result == 0;
}

TEST(PlanJson, FollowsItsSchema) {
  EXPECT_TRUE(
      python_accepts("import json\n"
                     "plan, schema = json.load(open('plan.json')), json.load(open('schema.json'))\n"
                     "try:\n  import jsonschema\nexcept ImportError:\n  raise SystemExit(0)\n"
                     "jsonschema.validate(plan, schema)\n",
                     {{"plan.json", plan_json(tiny_plan())}, {"schema.json", plan_schema()}}));
}

TEST(Export, SaysInEveryToolsWordsWhatItCan) {
  const Plan plan = tiny_plan();
  const ExportedText jax = export_plan(plan, "jax");
  expect_has(jax.text, "mesh = jax.make_mesh((2, 4), (\"pcie\", \"hccs\"))\n");
  expect_has(jax.text, "    \"wte.embedding_table\": P(\"hccs\", None),\n");
  expect_has(jax.text, "    \"layers.*.up.weight\": P((\"hccs\", \"pcie\"), None),\n");
  EXPECT_EQ(jax.cannot_say, std::vector<std::string>());

  const ExportedText dtensor = export_plan(plan, "dtensor");
  expect_has(dtensor.text, "    \"wte.embedding_table\": (Replicate(), Shard(0)),\n");
  expect_has(dtensor.text,
             "    # cannot be said: layers.*.up.weight [{hccs, pcie}, {}]; DTensor nests left to right\n");
  EXPECT_EQ(dtensor.cannot_say.size(), 1U);

  const ExportedText mindspore = export_plan(plan, "mindspore");
  expect_has(mindspore.text, "layout = Layout((2, 4), (\"pcie\", \"hccs\"))\n");
  expect_has(mindspore.text,
             "for i in range(2):\n"
             "    net.layers[i].up.matmul.shard(in_strategy=(layout(\"pcie\", \"None\", \"None\"), layout(\"None\", "
             "\"None\")),\n");

  const ExportedText shardy = export_plan(plan, "shardy");
  expect_has(shardy.text, "  sdy.mesh @mesh = <[\"pcie\"=2, \"hccs\"=4]>\n");
  expect_has(shardy.text,
             "tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"hccs\"}, {}]>},  // wte.embedding_table\n");

  EXPECT_TRUE(
      python_accepts("import py_compile\nfor n in ('a', 'b', 'c'): py_compile.compile(n + '.py', doraise=True)\n",
                     {{"a.py", jax.text}, {"b.py", dtensor.text}, {"c.py", mindspore.text}}));
  EXPECT_THROW(export_plan(plan, "tensorflow"), InputError);
}

}  // namespace
}  // namespace shardplan
