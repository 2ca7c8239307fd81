#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/operator_graph.h"
#include "simulator/execute/data.h"
#include "simulator/proof/validate.h"

namespace shardplan {

/// A padded graph beside the model without padding.
struct UnpaddedComparison {
  struct Wrong {
    int step = 0;  // from 1
    std::string tensor;
    Shape index;  // without padding
    double found = 0;
    double should_be = 0;
    double allowed = 0;
  };

  PrecisionResult compared = {};
  std::vector<std::string> missing = {};  // what one of the two graphs does not have, or in another shape
  std::optional<Wrong> first_wrong = {};  // in the order of the graph without padding

  bool is_equal() const { return missing.empty() && !first_wrong; }
};

/// Runs both graphs on one device for all steps in float64 and compares every tensor that both have, at the positions
/// that both have: the loss, outputs, gradients, the new values of parameters and states, and what is between, found by name.
/// Inputs, parameters and states of the padded graph are drawn from the seed, what stands in the padding like all else; the
/// other graph begins with those of these numbers that it has. So whatever the padding influences is a difference.
UnpaddedComparison compare_with_unpadded(const OperatorGraph& padded, const OperatorGraph& unpadded,
                                         const ValidationOptions& options);

/// The numbers of a padded tensor at the positions that exist without padding, in their order.
TensorValues existing_values(const TensorValues& values, const PaddedShape& shape);

}  // namespace shardplan
