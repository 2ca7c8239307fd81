#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "planner/plan.h"
#include "simulator/proof/mutations.h"
#include "simulator/proof/unpadded.h"
#include "simulator/proof/validate.h"

namespace shardplan {

struct ShrunkSize {
  std::string name;  // of a dim or a mesh axis
  std::int64_t from = 0;
  std::int64_t to = 0;

  bool operator==(const ShrunkSize&) const = default;
};

/// What was reduced to execute a plan.
struct Shrinking {
  std::vector<ShrunkSize> dims;    // in the file's order
  std::vector<ShrunkSize> axes;    // the mesh's
  std::vector<std::string> notes;  // what stayed at full size and why, what was only checked by arithmetic
  std::string expense;             // why the proof is expensive, also among the notes; or empty
  std::string refusal;             // why the plan cannot be executed; empty if it can
  DeviceMesh mesh;                 // on which it runs
};

/// A plan's program at sizes at which it can be executed; `program` and `graph` are valid if nothing was refused.
struct Executable {
  Shrinking shrinking;
  ParallelProgram program;
  std::shared_ptr<const OperatorGraph> graph;
  std::shared_ptr<const OperatorGraph> unpadded;  // the graph without padding; null: nothing is padded
};

/// Finds sizes (model/shrink.h) and writes the program out at these (simulator/proof/transfer.h). If a smaller mesh is
/// used, beyond `most_devices`, also checks groups and boxes of the plan's own program by arithmetic. Without `shrink`:
/// the plan unchanged.
Executable make_executable(const Plan& plan, bool shrink, std::int64_t most_devices);

struct ProofOptions {
  ValidationOptions validation;
  bool shrink = true;              // false: at the plan's own sizes
  bool mutations = false;          // also show that faults are caught
  std::int64_t most_devices = 32;  // above this, mesh axes shrink too
};

/// The evidence behind the word "proven".
struct Proof {
  Shrinking shrinking;
  ValidationResult validation;
  std::optional<UnpaddedComparison> unpadded;  // of a padded model whose validation succeeded
  std::vector<MutationResult> mutations;

  bool is_proven() const {
    return shrinking.refusal.empty() && validation.is_equal() && (!unpadded || unpadded->is_equal());
  }
};

/// Proves a plan: runs it on the simulated mesh and compares (simulator/proof/validate.h); also compares a padded model
/// with the one without padding (simulator/proof/unpadded.h). Requires a plan with a program.
Proof prove(const Plan& plan, const ProofOptions& options);

/// Empty, or the first fault: an operator's boxes do not tile a factor, a collective's groups do not partition the
/// devices, or its result on a device is not as large as its kind requires.
std::string check_groups_and_boxes(const ParallelProgram& program);

}  // namespace shardplan
