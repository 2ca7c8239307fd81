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
  std::string name;  // a dim's or a mesh axis's
  std::int64_t from = 0;
  std::int64_t to = 0;

  bool operator==(const ShrunkSize&) const = default;
};

/// What was made smaller to execute a plan.
struct Shrinking {
  std::vector<ShrunkSize> dims;    // in the order of the file
  std::vector<ShrunkSize> axes;    // the mesh's
  std::vector<std::string> notes;  // what stayed at full size and why, what was checked by arithmetic only
  std::string expense;             // what makes the proof expensive, also among the notes; empty: nothing
  std::string refusal;             // why the plan cannot be executed; empty if it can
  DeviceMesh mesh;                 // that it runs on
};

/// A plan's program at sizes at which it can be executed; `program` and `graph` mean something if nothing was refused.
struct Executable {
  Shrinking shrinking;
  ParallelProgram program;
  std::shared_ptr<const OperatorGraph> graph;
  std::shared_ptr<const OperatorGraph> unpadded;  // the same without padding; null: nothing is padded
};

/// Finds sizes (model/shrink.h) and writes the program out at these (simulator/proof/transfer.h). On a smaller mesh, which
/// is used beyond `most_devices`, the groups and boxes of the plan's own program are checked by arithmetic as well.
/// Without `shrink`: the plan as it is.
Executable make_executable(const Plan& plan, bool shrink, std::int64_t most_devices);

struct ProofOptions {
  ValidationOptions validation;
  bool shrink = true;              // false: at the plan's own sizes
  bool mutations = false;          // also show that faults are caught
  std::int64_t most_devices = 32;  // beyond them mesh axes shrink too
};

/// What stands behind the word "proven".
struct Proof {
  Shrinking shrinking;
  ValidationResult validation;
  std::optional<UnpaddedComparison> unpadded;  // of a padded model whose devices compute what one does
  std::vector<MutationResult> mutations;

  bool is_proven() const {
    return shrinking.refusal.empty() && validation.is_equal() && (!unpadded || unpadded->is_equal());
  }
};

/// Proves a plan: runs it on the simulated mesh and compares (simulator/proof/validate.h); a padded model is compared with
/// the one without padding as well (simulator/proof/unpadded.h). Requires a plan with a program.
Proof prove(const Plan& plan, const ProofOptions& options);

/// Nothing, or the first fault: the boxes of an operator do not tile a factor, the groups of a collective are no
/// partition of the devices, or what it leaves on a device is not as much as its kind says.
std::string check_groups_and_boxes(const ParallelProgram& program);

}  // namespace shardplan
