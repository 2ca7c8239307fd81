#include "report/local_report.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/read_model.h"
#include "planner/job_cluster.h"
#include "report/plan_file/plan_file.h"
#include "report/proof_report.h"
#include "tests/support/python.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

/// A sum over four ranks; the last operator is only on some of them.
LocalPlan plan_of_sum(const std::string& ranks_of_last) {
  const std::string text =
      "shardplan: 1\nmodel: sum\ncluster: dgx-a100\ninputs: {x: [64, 64]}\noperators:\n"
      "  a: {op: Tanh, in: x}\n  b: {op: AllReduce, in: a}\n  c: {op: Tanh, in: b, ranks: " +
      ranks_of_last + "}\noutputs: [b, c]\nparallel: {parallel_mode: hybrid_parallel, device_num: 4}\n";
  const auto model = std::make_shared<const Model>(read_model_text(text, "sum.yaml"));
  return plan_locally(model, job_cluster(*model, {}).cluster);
}

TEST(LocalReportTest, NamesTheRanksThatEndLast) {
  expect_has(local_plan_text(plan_of_sum("[0, 1, 2, 3]")), "all ranks end together; rank 0: kernels ");
  expect_has(local_plan_text(plan_of_sum("[1, 3]")), "2 of the ranks end together; rank 1: kernels ");
  expect_has(local_plan_text(plan_of_sum("[2]")), "rank 2 ends last: kernels ");
}

TEST(LocalReportTest, ItsDocumentFollowsItsSchema) {
  if (!has_jsonschema()) {
    GTEST_SKIP() << "no python3 with jsonschema";
  }
  EXPECT_TRUE(meets_schema(local_plan_json(plan_of_sum("[2]")), local_plan_schema()));
}

TEST(LocalReportTest, ItsDocumentIsNoPlanToReadBack) {
  const std::string document = local_plan_json(plan_of_sum("[2]"));
  expect_has(error_of([&] { read_plan_file(document, "plan.json"); }),
             "schema: 'shardplan.local_plan/1': these are the costs of sum, a model written per device");
}

/// What is no number on one of the ranks, or on the mesh, is not equal.
TEST(LocalReportTest, WhatIsNoNumberShows) {
  const double nan = std::nan("");
  const LocalSubject subject{.model = "net", .reference = "", .ranks = 2, .seed = 0, .is_training = true};
  expect_has(local_simulation_text(subject, {{"loss", {{0.5, nan}}}}, 0), "nan");
  expect_has(local_simulation_text(subject, {{"loss", {{nan, 0.5}}}}, 0), "nan");
  expect_has(local_simulation_text(subject, {{"loss", {{nan, nan}}}}, 0), "on 2 ranks");
  const auto on_a_mesh = [](double one_device, double mesh) {
    return simulation_text({}, {}, {{"loss", {{0.5, 0.5}, {one_device, mesh}}}}, 0);
  };
  expect_has(on_a_mesh(0.5, nan), "the two differ: in a step only one of them is finite");
  expect_has(on_a_mesh(nan, 0.5), "the two differ: in a step only one of them is finite");
  expect_has(on_a_mesh(nan, nan), "both are equal");
}

}  // namespace
}  // namespace shardplan
