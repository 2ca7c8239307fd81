#pragma once

#include <string>
#include <vector>

#include "planner/level.h"
#include "report/plan/summary.h"
#include "report/plan_file/plan_json.h"
#include "simulator/execute/simulate.h"
#include "simulator/proof/prove.h"

namespace shardplan {

/// The first line of a validation, and how to run it again.
struct ValidationSubject {
  std::string model;
  bool is_training = false;
  Level level = Level::kRatio;
  DeviceMesh mesh;       // the plan's; with workers, of one worker
  std::string argument;  // the file as given on the command line
  std::uint64_t seed = 0;
  int workers = 1;
};

/// The proof as terminal text, or as one JSON document ("shardplan.validation/1").
std::string validation_text(const ValidationSubject& subject, const Proof& proof);
std::string validation_json(const ValidationSubject& subject, const Proof& proof);

/// "loss, 148 parameters, 296 states".
std::string compared_text(const PrecisionResult& result);
/// The record for plan.json of a proof whose data were drawn with `seed`.
ProofRecord proof_record(const Proof& proof, std::uint64_t seed);
ProofVerdict proof_verdict(const Proof& proof);
/// What a plan.json says that an earlier run has proven.
ProofVerdict earlier_verdict(const ProofRecord& record);

/// 0: proven; 5: a difference, or an injected fault that was not caught; 3: an operator without a kernel, or sizes that
/// cannot be proven.
int validation_exit_code(const Proof& proof);

/// The loss and other scalar outputs of every step, on one device and on the mesh side by side, as terminal text or as
/// one JSON document ("shardplan.simulation/1"). `first_step` is the number of steps made before.
std::string simulation_text(const ValidationSubject& subject, const Shrinking& shrinking,
                            const std::vector<SimulatedScalar>& scalars, std::int64_t first_step = 0);
std::string simulation_json(const ValidationSubject& subject, const Shrinking& shrinking,
                            const std::vector<SimulatedScalar>& scalars, std::int64_t first_step = 0);

}  // namespace shardplan
