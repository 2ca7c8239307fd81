#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "model/model.h"

namespace shardplan {

struct LocalValidationOptions {
  std::uint64_t seed = 0;
  int steps = 3;
  std::stop_token stop = {};
};

/// One step compared with the reference's.
struct LocalStepComparison {
  struct Value {
    std::string name;
    std::int64_t rank = 0;  // the rank with the largest difference
    double found = 0;       // the element with the largest difference
    double should_be = 0;
    double difference = 0;
    bool is_equal = true;
  };
  std::vector<Value> values;  // outputs (the loss first), then parameters after the update

  bool agrees() const;
};

/// Why a step differs, according to the numbers: "the gradients of w differ between ranks, and their mean is ...", with
/// what would be right.
struct DriftCause {
  std::string message;
  std::string hint;
  std::vector<std::string> tensors;  // tensors concerned, in the order of the graph
};

struct LocalValidation {
  std::vector<LocalStepComparison> steps;
  std::optional<std::size_t> first_drift;  // the first step, from 0, in which something differs
  std::vector<DriftCause> causes;          // of that step
  struct NotCompared {
    std::string name;
    std::string reason;
  };
  std::vector<NotCompared> not_compared;  // outputs of either, all of them or those of some ranks
  bool some_ranks_lack_tensors = false;   // of those that are compared
  bool not_finite = false;                // in the reference's next step: no more steps are compared
  bool agrees() const { return !first_drift; }
};

/// Runs a model written per device, `ranks` as read by `models_of_ranks`, and `reference`, a model in the view of all
/// devices, side by side, step by step from the same numbers.
///
/// Tensors of the same name are compared. Inputs, parameters and optimizer states are drawn for the reference; each
/// rank has the same numbers if the shape is the same, else the piece at `begin`. The loss and the outputs are compared
/// with the reference's on every rank that has them in its shape, and updated parameters with the corresponding pieces.
/// Values are equal if they differ by at most 1e-9 of the largest value plus the effect of rounding on the reference
/// itself (`MeasuredReference`).
///
/// Throws InputError: an input or parameter that only one of the two has, a shape that is no piece, a part of a
/// parameter that is on no rank, micro-batches, an operator without a kernel, nothing to compare, numbers of the first
/// step that are not finite, and what `local_program` throws; Stopped if asked to stop.
LocalValidation validate_against(const std::vector<std::shared_ptr<const Model>>& ranks, const Model& reference,
                                 const LocalValidationOptions& options);

}  // namespace shardplan
