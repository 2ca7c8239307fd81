#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/operator_graph.h"
#include "simulator/execute/data.h"
#include "simulator/proof/validate.h"

namespace shardplan {

/// A padded graph compared with the model without padding.
struct UnpaddedComparison {
  struct Wrong {
    int step = 0;  // from 1
    std::string tensor;
    Shape index;  // in the tensor without padding
    double found = 0;
    double should_be = 0;
    double allowed = 0;
  };

  PrecisionResult compared = {};
  std::vector<std::string> missing = {};  // tensors that one of the graphs lacks or has in another shape
  std::optional<Wrong> first_wrong = {};  // in the order of the graph without padding

  bool is_equal() const { return missing.empty() && !first_wrong; }
};

/// Runs both graphs on one device for all steps in float64 and compares every tensor that both have, at the common
/// positions: the loss, outputs, gradients, new values of parameters and states, and all others, matched by name.
/// Inputs, parameters and states of the padded graph are drawn from the seed, including their padding; the other graph
/// starts with those of these numbers that it has. So any influence of the padding shows as a difference.
UnpaddedComparison compare_with_unpadded(const OperatorGraph& padded, const OperatorGraph& unpadded,
                                         const ValidationOptions& options);

/// The elements of a padded tensor at the positions that exist without padding, in their order.
TensorValues existing_values(const TensorValues& values, const PaddedShape& shape);

}  // namespace shardplan
