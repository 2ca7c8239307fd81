#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "planner/plan.h"
#include "program/lower.h"
#include "report/plan_file/plan_json.h"

namespace shardplan {

/// The contents of plan.json, read as untrusted input: its form is checked here, its meaning by `decisions_of` against
/// the model that it contains. Figures are as the file has them; callers that need verified ones lower the decisions
/// again.
struct PlanFile {
  std::string file;
  std::string model_name, model_file, model_text;
  std::string cluster_name, cluster_text;
  PlanOptions options;
  DeviceMesh mesh;
  std::int64_t workers = 1;
  PlanStatus status = PlanStatus::kFeasible;
  bool candidates_complete = true;
  LevelValue cost;
  LevelValue bound;
  std::optional<LevelValue> free_bound;
  std::optional<Picoseconds> overlapped_bound;
  bool is_bound_one_block_ahead = false;
  std::optional<Plan::MindSporeResult> mindspore;
  StepTime time;
  Bytes peak = 0;
  std::vector<Baseline> baselines;
  std::optional<ProofRecord> proof;

  SourcePlace operators_place, tensors_place;  // of the two lists

  struct Operator {
    std::string name;
    SourcePlace place;
    bool is_user = false;
    std::vector<std::pair<std::string, std::vector<AxisRef>>> factors;
    std::vector<AxisRef> partial;
    std::uint32_t group = 0;
    Reduction reduction = Reduction::kSum;
  };
  std::vector<Operator> operators;
  struct Tensor {
    std::string name;
    SourcePlace place;
    std::vector<TensorLayout> versions;
  };
  std::vector<Tensor> tensors;
};

/// Reads the text of a plan.json; unknown keys are ignored. Throws InputError with the first fault and its place: not
/// JSON, a schema of another major version, or an invalid value with its path: "plan.json:31:7: error:
/// operators[3].strategy.factors.k[0]: no axis 'dp'".
PlanFile read_plan_file(const std::string& text, const std::string& file);

/// The decisions in the file for a graph read again from its model. Throws InputError with all faults at their places:
/// operators or tensors that the graph does not have or the file lacks, illegal strategies, layouts that do not fit.
Decisions decisions_of(const PlanFile& plan, const OperatorGraph& graph, const TensorVersions& versions,
                       const DeviceMesh& mesh);

}  // namespace shardplan
