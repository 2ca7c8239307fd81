#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "model/read_model.h"
#include "planner/job_cluster.h"
#include "planner/model_planner.h"
#include "simulator/execute/reference.h"
#include "simulator/proof/prove.h"

namespace shardplan {

/// A model given as text, with its plan for the fastest step and what one device computes.
struct PlannedStep {
  explicit PlannedStep(const std::string& text)
      : model(std::make_shared<const Model>(read_model_text(text, "m.yaml"))) {
    planner = std::make_unique<ModelPlanner>(model, job_cluster(*model).cluster, PlanOptions());
    plan = planner->plan(Level::kSpeed, "auto");
  }
  const OperatorGraph& graph() const { return planner->graph(); }
  TensorId id(const std::string& name) const { return *graph().find_tensor(name); }
  ReferenceStep reference(std::uint64_t seed) const {
    return run_reference(
        graph(), [&](TensorId tensor, std::uint64_t m) { return draw_tensor(graph(), tensor, seed, m); }, seed, 0,
        Precision::kFloat64);
  }
  /// The new value of a parameter after a step.
  const TensorValues& updated(const ReferenceStep& step, const std::string& name) const {
    for (const TensorId tensor : graph().tensors().ids()) {
      if (graph().tensor(tensor).updates == id(name)) return step.tensors[tensor];
    }
    throw std::runtime_error("no update of " + name);
  }

  std::shared_ptr<const Model> model;
  std::unique_ptr<ModelPlanner> planner;
  Plan plan;
};

/// The error of planning the model; empty if there is none.
inline std::string fault_of_model(const std::string& text) {
  try {
    PlannedStep planned(text);
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

/// Whether the plan's program computes the same as one device.
inline bool is_equal(const PlannedStep& planned) {
  ValidationOptions options;
  options.seed = 7;
  const ValidationResult result = validate(planned.plan.program, planned.graph(), options);
  EXPECT_TRUE(result.first_wrong == std::nullopt)
      << result.first_wrong->tensor << " " << result.first_wrong->instruction;
  return result.is_equal();
}

/// Two products in a row, of the weights w and v, and the mean of their squared errors; trained.
inline std::string two_products(const std::string& w,
                                const std::string& parallel = "parallel_mode: data_parallel, mesh: {dp: 4}") {
  return "shardplan: 1\ncluster: dgx-a100\ninputs: {x: [8, 3], t: [8, 2]}\nparameters: {w: " + w + R"(, v: [4, 2]}
operators:
  h:    {op: MatMul, in: [x, w]}
  y:    {op: MatMul, in: [h, v]}
  e:    {op: Sub, in: [y, t]}
  s:    {op: Square, in: e}
  loss: {op: ReduceMean, in: s}
loss: loss
training: {optimizer: sgd, learning_rate: 0.5}
parallel: {device_num: 4, )" +
         parallel + "}\n";
}

}  // namespace shardplan
